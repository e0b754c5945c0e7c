package memory

import (
	"math"
	"testing"

	"infera/internal/units"
	"infera/models"
	"infera/sim/layout"
)

// Pool sizes and tokens that engines logged at start-up, for models whose
// geometry is known.
func TestPoolTokens(t *testing.T) {
	dcp := plain(8)
	dcp.DecodeCP = 8
	for _, tt := range []struct {
		name    string
		sizer   *Sizer
		request Request
		pool    units.Bytes
		want    int
		percent float64
	}{
		// vllm-project/recipes Kimi-K2-Think: 61 layers x 576 x 2 B = 70,272 B;
		// 46.80 GiB / (70,272 x 64) = 11,173 blocks of 64.
		{"Kimi-K2-Thinking TP8 H200", sizer(t, kimiK2()), Request{GPU: h200, Layout: plain(8), Engine: defaults(t, "vllm", "0.11.0", h200)}, 46.80 * units.GiB, 715072, 0},
		{"the same with decode context parallel 8", sizer(t, kimiK2()), Request{GPU: h200, Layout: dcp, Engine: defaults(t, "vllm", "0.11.0", h200)}, 46.80 * units.GiB, 5721088, 0.01},
		// llm-d/llm-d-benchmark#345: 80 x 8 x 128 x 2 x 2 B = 327,680 B; the log
		// rounds the pool to 0.01 GiB.
		{"Llama-3.3-70B TP1 H200", sizer(t, llama70BFP8()), Request{GPU: h200, Layout: plain(1), Engine: defaults(t, "vllm", "0.11.0", h200)}, 53.20 * units.GiB, 174336, 0.02},
		// vllm#15928: 107,824 tokens x 70,272 B = 7.06 GiB.
		{"DeepSeek-V3 TP8 MI308X", sizer(t, deepseekV3()), Request{GPU: mi300x, Layout: plain(8), Engine: defaults(t, "vllm", "0.8.3", mi300x), MaxContext: 32768}, 107824 * 70272, 107824, 0},
		// vllm#10517: 1,952 blocks of 16 x 131,072 B, printed as 3.81 GiB.
		{"Llama-3.1-8B RTX 3090", sizer(t, llama8B()), Request{GPU: rtx3090, Layout: plain(1), Engine: defaults(t, "vllm", "0.6.0", rtx3090), MaxContext: 20000}, 1952.5 * 16 * 131072, 31232, 0},
		// casys-kaist/LLMServingSim#59: 2,588 blocks of 16.
		{"Llama-3.1-8B RTX 4090", sizer(t, llama8B()), Request{GPU: rtx4090, Layout: plain(1), Engine: defaults(t, "vllm", "0.19.0", rtx4090), MaxContext: 8192}, 2588.9 * 16 * 131072, 41408, 0},
		// mitchross/talos-argocd-proxmox#1995: 4.99 GiB per GPU at TP2, 16 of 64
		// layers attention, printed as requests x 131,072 tokens.
		{"Qwen 27B hybrid TP2 RTX 3090", sizer(t, qwen27B()), Request{GPU: rtx3090, Layout: plain(2), Engine: defaults(t, "vllm", "0.25.0", rtx3090), KVFormat: fp8, MaxContext: 131072}, 4.99 * units.GiB, 302921, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.sizer.PoolTokens(&tt.request, tt.pool)
			if err != nil {
				t.Fatal(err)
			}
			if off := 100 * math.Abs(float64(got-tt.want)) / float64(tt.want); off > tt.percent {
				t.Errorf("PoolTokens(%.2f GiB) = %d, want %d within %v %%", tt.pool.GiB(), got, tt.want, tt.percent)
			}
		})
	}
}

// Cache of one request, and state of one sequence, as engines logged them.
func TestSequenceBytes(t *testing.T) {
	mib := func(b units.Bytes) float64 { return float64(b / units.MiB) }
	k3 := Request{GPU: mi355x, Layout: plain(8), Engine: defaults(t, "sglang", "0.5.15", mi355x), MaxContext: 32768}
	f, err := sizer(t, kimiK3()).Fit(&k3)
	if err != nil {
		t.Fatal(err)
	}
	// AMD-AGI/Infera kimi-k3: 69 x (12 x 128 x 128 x 4 + 3 x 12 x 128 x 3 x 2) B = 53.57 MiB.
	if got := mib(f.StateBytesPerSequence); math.Abs(got-53.57) > 0.01 {
		t.Errorf("Kimi-K3 state = %.3f MiB, want 53.57", got)
	}
	// InferenceX perf-changelog ~5664: 60 x 2 x 128 x 2 x 1 B + 57 x 132 B per
	// token, 37.35 GiB for 1,048,576 tokens without the drafter.
	m3 := Request{GPU: b200, Layout: plain(2), Engine: defaults(t, "vllm", "0.25.0", b200), KVFormat: fp8}
	b, err := sizer(t, minimaxM3()).SequenceBytes(&m3, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(b.GiB()-37.35) > 0.01 {
		t.Errorf("MiniMax-M3 1M tokens = %.3f GiB, want 37.35", b.GiB())
	}
	// aiconfigurator#1537: gpt-oss-120b, 65,536 tokens, fp8: 18 full layers x
	// 1,024 B x 65,536 = 1.125 GiB plus the windows.
	oss := Request{GPU: h200, Layout: plain(1), Engine: defaults(t, "sglang", "0.5.9", h200), KVFormat: fp8}
	if b, err = sizer(t, gptOSS120B()).SequenceBytes(&oss, 65536); err != nil {
		t.Fatal(err)
	}
	if math.Abs(b.GiB()-1.1272) > 0.001 { // + 18 x 128 x 1,024 B = 2.25 MiB
		t.Errorf("gpt-oss 65,536 tokens = %.4f GiB, want 1.1272", b.GiB())
	}
	// vllm#53961: one 1M request of DeepSeek-V4-Pro needs 23.32 GiB with steps
	// of 16,384 tokens; InferenceX#2540: 14.88 GiB with 8,192 (and a drafter).
	v4 := Request{GPU: mi300x, Layout: plain(8), Engine: defaults(t, "vllm", "0.28.0", mi300x), KVFormat: fp8}
	for _, step := range []struct {
		batched int
		want    float64
	}{{16384, 23.32}, {8192, 14.88}} {
		v4.MaxBatchedTokens = step.batched
		if b, err = sizer(t, deepseekV4Pro()).SequenceBytes(&v4, 1<<20); err != nil {
			t.Fatal(err)
		}
		if off := math.Abs(b.GiB()-step.want) / step.want; off > 0.03 {
			t.Errorf("DeepSeek-V4-Pro at %d tokens a step = %.2f GiB, want %.2f", step.batched, b.GiB(), step.want)
		}
	}
}

// mitchross/talos-argocd-proxmox#1995 logs attention blocks of 1,568 tokens:
// (24 x 128 x 128 x 4 + 5,120 x 3 x 2) B / 1,024 B = 1,566, up to a multiple
// of 16.
func TestHybridBlock(t *testing.T) {
	r := Request{GPU: rtx3090, Layout: plain(2), Engine: defaults(t, "vllm", "0.25.0", rtx3090), KVFormat: fp8, MaxContext: 131072}
	f, err := sizer(t, qwen27B()).Fit(&r)
	if err != nil {
		t.Fatal(err)
	}
	if f.BlockTokens != 1568 {
		t.Errorf("block = %d tokens, want 1568", f.BlockTokens)
	}
}

// Weights per GPU as engines logged them, within 2 %.
func TestWeights(t *testing.T) {
	dp4 := layout.Layout{TP: 4, EP: 4, PP: 1, AttentionDP: 4}
	for _, tt := range []struct {
		name    string
		arch    *models.Architecture
		request Request
		want    units.Bytes
	}{
		{"Llama-70B FP8 (llm-d-benchmark#345)", llama70BFP8(), Request{GPU: h200, Layout: plain(1), Engine: defaults(t, "vllm", "0.11.0", h200)}, 67.72 * units.GiB},
		{"Llama-8B (vllm#10517)", llama8B(), Request{GPU: rtx3090, Layout: plain(1), Engine: defaults(t, "vllm", "0.6.0", rtx3090)}, 14.9888 * units.GiB},
		{"gpt-oss-120b Marlin (vllm#23278)", gptOSS120B(), Request{GPU: h100, Layout: plain(1), Engine: defaults(t, "vllm", "0.10.1", h100)}, 65.97 * units.GiB},
		{"gpt-oss-120b Triton (vllm#33155)", gptOSS120B(), Request{GPU: h100, Layout: plain(1), Engine: defaults(t, "vllm", "0.14.1", h100)}, 64.38 * units.GiB},
		{"DeepSeek-V4-Pro DP4 EP4 with its drafter (InferenceX#2540)", deepseekV4Pro(), Request{GPU: mi355x, Layout: dp4, Engine: defaults(t, "vllm", "0.26.0", mi355x), SpeculativeTokens: 1}, 224.83 * units.GiB},
		{"DeepSeek-V4-Pro TP8 on gfx942 (InferenceX PR#2194)", deepseekV4Pro(), Request{GPU: mi300x, Layout: plain(8), Engine: defaults(t, "vllm", "0.26.0", mi300x)}, 131 * units.GB},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := sizer(t, tt.arch).Fit(&tt.request)
			if err != nil {
				t.Fatal(err)
			}
			if off := 100 * math.Abs(float64(f.Weights/tt.want-1)); off > 2 {
				t.Errorf("weights = %.2f GiB, logged %.2f (%.1f %% off)", f.Weights.GiB(), tt.want.GiB(), off)
			}
		})
	}
}

// Pools as engines logged them, from nothing but the recipe: how far the whole
// account is off, in GiB.
func TestPools(t *testing.T) {
	for _, tt := range []struct {
		name    string
		arch    *models.Architecture
		request Request
		want    float64 // GiB
		within  float64 // GiB
	}{
		{"Llama-70B FP8 H200 (llm-d-benchmark#345)", llama70BFP8(), Request{GPU: h200, Layout: plain(1), Engine: defaults(t, "vllm", "0.11.0", h200)}, 53.20, 0.3},
		{"Kimi-K2 TP8 H200 (recipes Kimi-K2-Think)", kimiK2(), Request{GPU: h200, Layout: plain(8), Engine: defaults(t, "vllm", "0.11.0", h200)}, 46.80, 0.5},
		{"gpt-oss-120b H100 (vllm#23278)", gptOSS120B(), Request{GPU: h100, Layout: plain(1), Engine: defaults(t, "vllm", "0.10.1", h100)}, -2.14, 0.5},
		{"gpt-oss-120b H100, 1,024 tokens a step (vllm#27508)", gptOSS120B(), Request{GPU: h100, Layout: plain(1), Engine: defaults(t, "vllm", "0.11.0", h100), MemoryFraction: 0.95, MaxBatchedTokens: 1024}, 1.71, 0.5},
		{"Llama-8B RTX 3090 (vllm#10517)", llama8B(), Request{GPU: rtx3090, Layout: plain(1), Engine: defaults(t, "vllm", "0.6.0", rtx3090), MaxContext: 20000, MaxBatchedTokens: 20000}, 3.81, 0.4},
		{"Llama-8B RTX 4090 (LLMServingSim#59)", llama8B(), Request{GPU: rtx4090, Layout: plain(1), Engine: defaults(t, "vllm", "0.19.0", rtx4090)}, 5.05, 0.4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := sizer(t, tt.arch).Fit(&tt.request)
			if err != nil {
				t.Fatal(err)
			}
			if off := math.Abs(f.Pool.GiB() - tt.want); off > tt.within {
				t.Errorf("pool = %.2f GiB, logged %.2f", f.Pool.GiB(), tt.want)
			}
		})
	}
}

// Recipes that did not start, with the term that was short.
func TestRefused(t *testing.T) {
	dp4 := layout.Layout{TP: 4, EP: 4, PP: 1, AttentionDP: 4}
	sglang := defaults(t, "sglang", "0.5.15", mi355x)
	k3 := func(fraction float64) Request {
		return Request{GPU: mi355x, Layout: plain(8), Engine: sglang, MemoryFraction: fraction, MaxContext: 32768}
	}
	for _, tt := range []struct {
		name    string
		arch    *models.Architecture
		request Request
		short   Term
		cause   Term
	}{
		{"DeepSeek-V4-Pro 1M on MI300X, 16,384 tokens a step (vllm#53961)", deepseekV4Pro(),
			Request{GPU: mi300x, Layout: plain(8), Engine: defaults(t, "vllm", "0.28.0", mi300x), KVFormat: fp8}, TermKV, TermActivation},
		{"DeepSeek-V4-Pro DP4 EP4 with MTP on MI355X (InferenceX#2540)", deepseekV4Pro(),
			Request{GPU: mi355x, Layout: dp4, Engine: defaults(t, "vllm", "0.26.0", mi355x), KVFormat: fp8, SpeculativeTokens: 1}, TermKV, TermActivation},
		{"Kimi-K3 SGLang 0.80 (Infera)", kimiK3(), k3(0.80), TermWeights, ""},
		{"Kimi-K3 SGLang 0.93 (Infera)", kimiK3(), k3(0.93), TermWeights, ""},
		{"Kimi-K3 SGLang 0.97 (Infera)", kimiK3(), k3(0.97), TermWeights, ""},
		{"Llama-4-Scout with Triton attention graphs of 20 GiB (vllm#48458)", scout(),
			Request{GPU: mi300x, Layout: plain(4), Engine: defaults(t, "vllm", "0.25.0", mi300x), GraphBytes: 20 * units.GiB}, TermGraphs, ""},
		{"MiniMax-M3 1M with EAGLE3 at TP2 on B200 (InferenceX ~5664)", minimaxM3(),
			Request{GPU: b200, Layout: plain(2), Engine: defaults(t, "vllm", "0.25.0", b200), MemoryFraction: 0.9, KVFormat: fp8, SpeculativeTokens: 3, DraftWeights: 2e9, DraftKVBytesPerToken: 256}, TermKV, TermActivation},
		{"gpt-oss-120b on one H100 (vllm#23278)", gptOSS120B(),
			Request{GPU: h100, Layout: plain(1), Engine: defaults(t, "vllm", "0.10.1", h100)}, TermKV, TermActivation},
		{"gpt-oss-120b on one H100 at 0.95 (vllm#27508)", gptOSS120B(),
			Request{GPU: h100, Layout: plain(1), Engine: defaults(t, "vllm", "0.11.0", h100), MemoryFraction: 0.95, MaxBatchedTokens: 1024}, TermKV, TermActivation},
		{"gpt-oss-120b on one H100, Triton (vllm#33155)", gptOSS120B(),
			Request{GPU: h100, Layout: plain(1), Engine: defaults(t, "vllm", "0.14.1", h100)}, TermKV, TermActivation},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := sizer(t, tt.arch).Report(&tt.request)
			if err != nil {
				t.Fatal(err)
			}
			if r.OK || r.Short != tt.short || r.Cause != tt.cause {
				t.Fatalf("OK %v, short %q because of %q, want short %q because of %q\n%s", r.OK, r.Short, r.Cause, tt.short, tt.cause, r)
			}
			if r.Reason == "" || r.By <= 0 || len(r.Suggestions) == 0 {
				t.Errorf("reason %q, short by %v, suggestions %v", r.Reason, r.By, r.Suggestions)
			}
		})
	}
}

// The counterparts that did start.
func TestAccepted(t *testing.T) {
	for _, tt := range []struct {
		name    string
		arch    *models.Architecture
		request Request
	}{
		{"DeepSeek-V4-Pro 1M on MI300X, 8,192 tokens a step (vllm#53961)", deepseekV4Pro(),
			Request{GPU: mi300x, Layout: plain(8), Engine: defaults(t, "vllm", "0.28.0", mi300x), KVFormat: fp8, MaxBatchedTokens: 8192}},
		{"Llama-4-Scout at 0.85 (vllm#48458)", scout(),
			Request{GPU: mi300x, Layout: plain(4), Engine: defaults(t, "vllm", "0.25.0", mi300x), MemoryFraction: 0.85, GraphBytes: 20 * units.GiB}},
		{"Kimi-K3 text only at 0.97 with 16 requests (Infera)", kimiK3(),
			Request{GPU: mi355x, Layout: plain(8), Engine: defaults(t, "sglang", "0.5.15", mi355x), MemoryFraction: 0.97, MaxContext: 32768, MaxSequences: 16, TextOnly: true, Eager: true, MaxBatchedTokens: 2048}},
		{"MiniMax-M3 TP8 on B200 (vllm#51494)", minimaxM3(),
			Request{GPU: b200, Layout: plain(8), Engine: defaults(t, "vllm", "0.26.0", b200), BlockTokens: 128}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := sizer(t, tt.arch).Report(&tt.request)
			if err != nil {
				t.Fatal(err)
			}
			if !r.OK || r.Reason != "" {
				t.Errorf("refused: %s\n%s", r.Reason, r)
			}
		})
	}
}
