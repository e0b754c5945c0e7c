package memory

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"infera/configs"
	"infera/internal/measured"
	"infera/internal/units"
	"infera/models"
	"infera/models/hf"
	"infera/sim/hardware"
	"infera/sim/layout"
)

// The measured figures again, with the architectures as imported from the
// checkpoints' own config.json.
func TestCheckpoints(t *testing.T) {
	dir := os.DirFS(filepath.Join(measured.Dir(t), "hf_configs"))
	dp4 := layout.Layout{TP: 4, EP: 4, PP: 1, AttentionDP: 4}
	for _, tt := range []struct {
		name, file string
		request    Request
		weights    units.Bytes // 0 = not logged
		pool       units.Bytes // with tokens: what they are computed from
		tokens     int
		percent    float64
		refused    Term
	}{
		{"gpt-oss-120b (vllm#23278)", "openai--gpt-oss-120b.json",
			Request{GPU: h100, Layout: plain(1), Engine: defaults(t, "vllm", "0.10.1", h100)}, 65.97 * units.GiB, 0, 0, 2, TermKV},
		{"gpt-oss-120b (vllm#33155)", "openai--gpt-oss-120b.json",
			Request{GPU: h100, Layout: plain(1), Engine: defaults(t, "vllm", "0.14.1", h100)}, 64.38 * units.GiB, 0, 0, 2, TermKV},
		{"Kimi-K2 tokens (recipes)", "moonshotai--Kimi-K2.5.json",
			Request{GPU: h200, Layout: plain(8), Engine: defaults(t, "vllm", "0.11.0", h200)}, 0, 46.80 * units.GiB, 715072, 2, ""},
		{"MiniMax-M3-NVFP4 250.1 GB over 8 (vllm#51494)", "nvidia--MiniMax-M3-NVFP4.json",
			Request{GPU: b200, Layout: plain(8), Engine: defaults(t, "vllm", "0.26.0", b200)}, 250.1 * units.GB / 8, 0, 0, 2, ""},
		{"MiniMax-M3-NVFP4 TP2 (InferenceX ~5664)", "nvidia--MiniMax-M3-NVFP4.json",
			Request{GPU: b200, Layout: plain(2), Engine: defaults(t, "vllm", "0.25.0", b200), KVFormat: fp8, MemoryFraction: 0.9}, 0, 0, 0, 2, TermKV},
		{"DeepSeek-V4-Pro DP4 EP4 MTP (InferenceX#2540)", "deepseek-ai--DeepSeek-V4-Pro.json",
			Request{GPU: mi355x, Layout: dp4, Engine: defaults(t, "vllm", "0.26.0", mi355x), KVFormat: fp8, SpeculativeTokens: 1}, 224.83 * units.GiB, 0, 0, 2, TermKV},
		{"DeepSeek-V4-Pro TP8 on gfx942 (InferenceX PR#2194, vllm#53961)", "deepseek-ai--DeepSeek-V4-Pro.json",
			Request{GPU: mi300x, Layout: plain(8), Engine: defaults(t, "vllm", "0.28.0", mi300x), KVFormat: fp8}, 131 * units.GB, 0, 0, 2, TermKV},
		{"Kimi-K3 SGLang 0.80 (Infera)", "moonshotai--Kimi-K3.json",
			Request{GPU: mi355x, Layout: plain(8), Engine: defaults(t, "sglang", "0.5.15", mi355x), MemoryFraction: 0.8, MaxContext: 32768}, 0, 0, 0, 2, TermWeights},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, _, err := hf.ImportFS(dir, tt.file)
			if err != nil {
				t.Fatal(err)
			}
			s := sizer(t, a)
			r, err := s.Report(&tt.request)
			if err != nil {
				t.Fatal(err)
			}
			if tt.weights > 0 {
				if off := 100 * math.Abs(float64(r.Weights/tt.weights-1)); off > tt.percent {
					t.Errorf("weights = %.2f GiB, logged %.2f (%.1f %% off)", r.Weights.GiB(), tt.weights.GiB(), off)
				}
			}
			if tt.tokens > 0 {
				n, err := s.PoolTokens(&tt.request, tt.pool)
				if err != nil || n != tt.tokens {
					t.Errorf("tokens = %d, %v, logged %d", n, err, tt.tokens)
				}
			}
			if r.Short != tt.refused {
				t.Errorf("short of %q, want %q: %s", r.Short, tt.refused, r.Reason)
			}
		})
	}
}

// Every shipped model is sized under every shipped engine on every shipped
// card without an error, and nothing comes out negative or not a number.
func TestEveryPreset(t *testing.T) {
	presets, err := models.LoadCatalog(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	cards, err := hardware.Load(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(configs.FS, "engines/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var requests []Request
	for _, name := range []string{"mi300x", "mi355x", "b200"} {
		gpu, err := cards.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range names {
			engine := file[len("engines/") : len(file)-len(".yaml")]
			requests = append(requests, Request{GPU: gpu, Layout: layout.Layout{TP: 8, PP: 1, EP: 8, AttentionDP: 1},
				Engine: defaults(t, engine, "", gpu), InputLen: 1024, OutputLen: 1024})
		}
	}
	for _, name := range presets.Names() {
		a, err := presets.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		s := sizer(t, a)
		for i := range requests {
			f, err := s.Fit(&requests[i])
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, b := range []units.Bytes{f.Weights, f.Activation, f.Graphs, f.Overhead, f.OneRequest, f.Budget} {
				if !(b >= 0 && b < 1e16) {
					t.Errorf("%s: a term is %v", name, b)
				}
			}
			if !(f.Weights > 0) || f.OneRequest <= 0 {
				t.Errorf("%s: weights %v, one request %v", name, f.Weights, f.OneRequest)
			}
		}
	}
}
