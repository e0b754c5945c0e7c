package models

import (
	"math"
	"strings"
	"testing"

	"infera/configs"
)

func catalog(t testing.TB) *Catalog {
	t.Helper()
	c, err := LoadCatalog(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func preset(t testing.TB, name string) *Architecture {
	t.Helper()
	a, err := catalog(t).Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Sizes that publishers state, in billions: total without drafter and vision
// tower, and active where stated.
func TestPublishedSizes(t *testing.T) {
	for _, tt := range []struct {
		name          string
		total, active float64
	}{
		{"llama-3.1-8b", 8.03, 0}, {"llama-3.1-70b", 70.55, 0}, {"llama-3.1-405b", 405.85, 0}, {"llama-2-70b", 68.98, 0},
		{"gpt-oss-120b", 116.83, 5.13}, {"gpt-oss-20b", 20.91, 3.61},
		{"deepseek-v3", 671, 37}, {"deepseek-r1", 671, 37}, {"deepseek-v2", 236, 21}, {"deepseek-v4-flash", 284, 13},
		{"qwen3-235b-a22b", 235.1, 22}, {"qwen3-30b-a3b", 30.5, 3.3}, {"qwen3-next-80b-a3b", 80, 3.9}, {"qwen3.5-397b-a17b", 397, 17}, {"qwen3-coder-480b-a35b", 480, 35},
		{"mixtral-8x7b", 46.7, 12.9}, {"mixtral-8x22b", 140.6, 39}, {"kimi-k2", 1026, 32}, {"llama-4-scout", 107.8, 17}, {"llama-4-maverick", 400.7, 17},
		{"glm-4.5-air", 106.85, 0}, {"glm-4.5", 355, 32}, {"glm-5", 744, 40}, {"minimax-m2", 229, 0}, {"minimax-m1", 456, 45.9},
		{"nemotron-3-nano-30b-a3b", 31.6, 3.2}, {"nemotron-3-super-120b-a12b", 120.6, 12.2}, {"nemotron-3-ultra-550b-a55b", 550, 55},
		{"gemma-3-27b", 27.0, 0}, {"gemma-4-26b-a4b", 25.2, 3.8}, {"mistral-large-3", 673, 39}, {"jamba-1.5-large", 398, 94}, {"ling-1t", 1000, 50},
		{"longcat-flash", 560, 27}, {"mimo-v2-flash", 309, 15}, {"grok-2", 270, 115}, {"granite-4.0-h-small", 32.2, 9}, {"ernie-4.5-300b-a47b", 300, 47},
	} {
		a := preset(t, tt.name)
		c := a.Params()
		total, active := float64(c.Total)/1e9, float64(c.Active)/1e9
		if math.Abs(total/tt.total-1) > 0.01 {
			t.Errorf("%s: %.2f B, published %.2f", tt.name, total, tt.total)
		}
		// Some publishers count the input embedding as active.
		with := active + float64(a.EmbeddingParams())/1e9
		if tt.active > 0 && math.Abs(active/tt.active-1) > 0.03 && math.Abs(with/tt.active-1) > 0.03 {
			t.Errorf("%s: %.2f B active (%.2f with the embedding), published %.2f", tt.name, active, with, tt.active)
		}
	}
}

// Cache of one token in bf16 over the whole model, from the shapes: layers x
// heads x (K + V) x 2 bytes, or layers x (latent + rotary) x 2.
func TestKVBytesPerToken(t *testing.T) {
	for name, want := range map[string]float64{
		"gpt-oss-120b": 36 * 8 * 128 * 2, "llama-3.1-8b": 32 * 8 * 256 * 2, "llama-3.1-70b": 80 * 8 * 256 * 2, "llama-3.1-405b": 126 * 8 * 256 * 2,
		"qwen3-30b-a3b": 98304, "qwen3-235b-a22b": 192512, "mixtral-8x7b": 131072, "deepseek-v3": 61 * 576 * 2, "kimi-k2": 61 * 576 * 2,
		"qwen3-next-80b-a3b": 12 * 2 * 512 * 2,
	} {
		if got := float64(preset(t, name).KVBytesPerToken(FormatOf(BF16))); got != want {
			t.Errorf("%s: %v bytes, want %v", name, got, want)
		}
	}
	fp8, err := ParseFormat("fp8")
	if err != nil {
		t.Fatal(err)
	}
	if got := preset(t, "deepseek-v3").KVBytesPerToken(fp8); got != 35136 {
		t.Errorf("deepseek-v3 fp8: %v, want 35136", got)
	}
	m3 := preset(t, "minimax-m3")
	if got := m3.KVBytesPerToken(fp8); got != 60*4*256 { // 4 heads x (128 + 128)
		t.Errorf("minimax-m3: %v, want %d", got, 60*4*256)
	}
	if got := m3.IndexBytesPerToken(); got != 57*132 { // 128 in fp8 and a 4-byte scale
		t.Errorf("minimax-m3 index: %v, want %d", got, 57*132)
	}
	// DeepSeek-V4-Pro alternates 128 and 4: 31 layers at 512/128 and 30 at 512/4 elements.
	if got := preset(t, "deepseek-v4-pro").KVBytesPerToken(FormatOf(BF16)); got != (31*4+30*128)*2 {
		t.Errorf("deepseek-v4-pro: %v, want %d", got, (31*4+30*128)*2)
	}
}

func TestStateBytes(t *testing.T) {
	// Kimi-K3: 69 KDA layers of 96 heads, fp32 state 128x128 and three
	// convolutions of 3 past taps in bf16: 53.57 MiB on each of 8 ranks.
	got := float64(preset(t, "kimi-k3").StateBytesPerSequence())
	want := 69 * (96*128*128*4 + 3*96*128*3*2.0)
	if got != want {
		t.Errorf("kimi-k3: %v, want %v", got, want)
	}
	if mib := got / 8 / (1 << 20); math.Abs(mib-53.57) > 0.01 {
		t.Errorf("kimi-k3: %.2f MiB per rank, want 53.57", mib)
	}
	if got := preset(t, "llama-3.1-8b").StateBytesPerSequence(); got != 0 {
		t.Errorf("llama has %v of state", got)
	}
}

func TestCached(t *testing.T) {
	g := LayerGroup{Attention: Attention{Kind: AttentionGQA, Window: 128}}
	if g.Cached(100) != 100 || g.Cached(1000) != 128 {
		t.Errorf("Cached: %d %d, want 100 128", g.Cached(100), g.Cached(1000))
	}
	g.Attention.Sparse.Compress = 4
	if g.Cached(1000) != 1000 {
		t.Errorf("compressed layers keep every entry, got %d", g.Cached(1000))
	}
}

// The classes add up, and every class has a format.
func TestCountsClose(t *testing.T) {
	c := catalog(t)
	for _, name := range c.Names() {
		a, err := c.Lookup(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		n := a.Params()
		var sum int64
		for class, v := range n.ByClass {
			if v < 0 {
				t.Errorf("%s: %v has %d", name, TensorClass(class), v)
			}
			sum += v
		}
		if sum != n.Total+n.Draft+n.Vision {
			t.Errorf("%s: classes add up to %d, want %d", name, sum, n.Total+n.Draft+n.Vision)
		}
		if n.Active > n.Total || n.Active <= 0 {
			t.Errorf("%s: active %d of %d", name, n.Active, n.Total)
		}
		if p := float64(a.PublishedParams); p > 0 && math.Abs(float64(n.Total)/p-1) > 0.01 {
			t.Errorf("%s: %d parameters, published %.0f", name, n.Total, p)
		}
	}
}

// formatsOf lists the classes stored otherwise than in the compute type.
func formatsOf(a *Architecture) string {
	var s []string
	for c, f := range a.Formats {
		if f.Element != a.Compute || f.MixedBits > 0 {
			s = append(s, TensorClass(c).String()+"="+f.String())
		}
	}
	return strings.Join(s, " ")
}

func TestWithFormats(t *testing.T) {
	f := func(s string) Format {
		x, err := ParseFormat(s)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, tt := range []struct {
		model string
		o     Requant
		want  string
	}{
		{"llama-3.1-70b", Requant{Weight: f("fp8")}, "attention=fp8 recurrent=fp8 dense_ffn=fp8 routed_expert=fp8 shared_expert=fp8 indexer=fp8 draft=fp8"},
		{"llama-3.1-70b", Requant{Weight: f("mxfp4")}, "attention=mxfp4 dense_ffn=mxfp4 routed_expert=mxfp4 shared_expert=mxfp4"},
		{"gpt-oss-120b", Requant{Weight: f("mxfp4")}, "dense_ffn=mxfp4 routed_expert=mxfp4_a16"},
		{"gpt-oss-120b", Requant{Weight: f("bf16")}, ""},
		{"gpt-oss-120b", Requant{Linear: f("fp8")}, "attention=fp8 recurrent=fp8 dense_ffn=fp8 routed_expert=mxfp4_a16"},
		{"mixtral-8x7b", Requant{Expert: f("int4")}, "routed_expert=int4"},
		{"deepseek-v3", Requant{Weight: f("fp8")}, "attention=fp8_block dense_ffn=fp8_block routed_expert=fp8_block shared_expert=fp8_block draft=fp8_block recurrent=fp8 indexer=fp8"},
		{"deepseek-v3", Requant{Weight: f("mxfp4")}, "attention=fp8_block dense_ffn=mxfp4 routed_expert=mxfp4 shared_expert=fp8_block draft=fp8_block"},
	} {
		a := preset(t, tt.model)
		before := formatsOf(a)
		got := a.WithFormats(tt.o)
		want := map[string]bool{}
		for _, s := range strings.Fields(tt.want) {
			want[s] = true
		}
		for _, s := range strings.Fields(formatsOf(got)) {
			if !want[s] {
				t.Errorf("%s %+v: unexpected %s", tt.model, tt.o.Weight.Name, s)
			}
			delete(want, s)
		}
		for s := range want {
			t.Errorf("%s %s: missing %s", tt.model, tt.o.Weight.Name, s)
		}
		if formatsOf(a) != before {
			t.Errorf("%s: the original changed", tt.model)
		}
	}
	kv := preset(t, "llama-3.1-8b").WithFormats(Requant{KV: f("fp8")})
	if got := kv.KVBytesPerToken(Format{}); got != 65536 {
		t.Errorf("fp8 cache: %v bytes per token, want 65536", got)
	}
}
