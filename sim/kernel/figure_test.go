package kernel_test

import (
	"math"
	"testing"

	"infera/internal/units"
	"infera/sim/kernel"
)

// Bytes, operations and bounds worked out by hand.
func TestBoundsByHand(t *testing.T) {
	t.Parallel()
	mi300x, mi355x := model(t, "mi300x"), model(t, "mi355x")
	cases := []struct {
		name                string
		got                 kernel.Estimate
		bytes, flops, lower float64
		bound               kernel.Bound
	}{
		// Weights 8192 x 8192 x 1 B, activations 8192 B, output 8192 x 2 B:
		// 67,133,440 B over 5.3 TB/s = 12.67 us.
		{"fp8 row", mi300x.GEMM(1, 8192, 8192, formats["fp8"]), 67133440, 134217728, 67133440 / 5.3e12, kernel.BoundHBM},
		// 2 x 8192^3 = 1.0995e12 operations over 2516.6 TFLOP/s = 437 us.
		{"bf16 cube", mi355x.GEMM(8192, 8192, 8192, formats["bf16"]), 3 * 8192 * 8192 * 2, 1.099511627776e12, 1.099511627776e12 / 2516.6e12, kernel.BoundCompute},
		// mxfp4: 4.25 bits an element; 4096 x 4096 weights are 8,912,896 B, 16
		// rows of fp4 activations 32,768 B, of bf16 output 131,072 B.
		{"mxfp4", mi355x.GEMM(16, 4096, 4096, formats["mxfp4"]), 8912896 + 32768 + 131072, 2 * 16 * 4096 * 4096, 9076736 / 8e12, kernel.BoundLaunch},
		// 103.5 experts of 2048 x 7168 fp8 with fp32 scales per 128 x 128.
		{
			"grouped", mi300x.GroupedGEMM(kernel.Grouped{Rows: 512, Active: 103.5, Busiest: 1, N: 2048, K: 7168, Weights: formats["fp8_block"]}),
			103.5*2048*7168*(8+32.0/16384)/8 + 512*(7168+4096), 2 * 512 * 2048 * 7168, 0, kernel.BoundHBM,
		},
		// 32 heads of 128, 8 KV heads, 1000 sequences of 1000 cached tokens:
		// 1e6 x 8 x 256 x 2 B = 4.096 GB, queries and outputs 1000 x 32 x 256 x 2 B.
		{
			"decode", mi300x.DecodeAttention(kernel.DecodeAttention{Sequences: 1000, Tokens: 1, KVTokens: 1e6, Heads: 32, KVHeads: 8, KDim: 128, VDim: 128, KV: formats["bf16"]}),
			4.096e9 + 16.384e6, 2 * 1e6 * 32 * 256, 0, kernel.BoundHBM,
		},
		// Absorbed latents: 576 elements a token for all 16 heads, 2 x 16 x 1088
		// operations a token.
		{
			"latent", mi300x.DecodeAttention(kernel.DecodeAttention{Sequences: 64, Tokens: 1, KVTokens: 64 * 8192, Heads: 16, KVHeads: 1, LatentDim: 512, RopeDim: 64, KV: formats["fp8"]}),
			64*8192*576 + 64*16*1088*2, 2 * 64 * 8192 * 16 * 1088, 0, kernel.BoundHBM,
		},
		// A causal chunk of 4 after 8: queries see 9, 10, 11, 12 = 42 scores; 2
		// heads, dims 64 + 64: 2 x 2 x 42 x 128 operations.
		{
			"causal", mi300x.PrefillAttention(kernel.PrefillAttention{Tokens: 4, Context: 8, Heads: 2, KVHeads: 1, KDim: 64, VDim: 64, KV: formats["bf16"]}),
			4*2*128*2 + 12*128*2, 2 * 2 * 42 * 128, 0, kernel.BoundLaunch,
		},
		// The same behind a window of 10: 9 + 10 + 10 + 10 = 39 scores.
		{
			"window", mi300x.PrefillAttention(kernel.PrefillAttention{Tokens: 4, Context: 8, Heads: 2, KVHeads: 1, KDim: 64, VDim: 64, Window: 10, KV: formats["bf16"]}),
			4*2*128*2 + 12*128*2, 2 * 2 * 39 * 128, 0, kernel.BoundLaunch,
		},
		// 128 sequences with 4 MB of state, read and written.
		{
			"scan", mi355x.Scan(kernel.Scan{Sequences: 128, Tokens: 1, KHeads: 16, VHeads: 32, KDim: 128, VDim: 128, StateBytes: 4e6, Decode: true}),
			2*128*4e6 + 128*2*(2*16*128+2*32*128), 4 * 128 * 32 * 128 * 128, 0, kernel.BoundHBM,
		},
		{"stream", mi355x.Stream(3e9, 1e9), 4e9, 0, 4e9 / 8e12, kernel.BoundHBM},
	}
	for _, c := range cases {
		if !near(float64(c.got.Bytes), c.bytes) || !near(float64(c.got.FLOPs), c.flops) {
			t.Errorf("%s: bytes %g, operations %g, want %g, %g", c.name, c.got.Bytes, c.got.FLOPs, c.bytes, c.flops)
		}
		if c.lower > 0 && !near(float64(c.got.Lower), c.lower) {
			t.Errorf("%s: lower bound %g, want %g", c.name, c.got.Lower, c.lower)
		}
		if c.got.Bound != c.bound {
			t.Errorf("%s: bound by %s, want %s", c.name, c.got.Bound, c.bound)
		}
	}
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-9*math.Abs(want) }

// A row of Llama-70B's square projection cannot beat its weights.
func TestOneRowStreamsItsWeights(t *testing.T) {
	t.Parallel()
	e := model(t, "mi300x").GEMM(1, 8192, 8192, formats["fp8"])
	if us := e.Time.Microseconds(); us < 12.7 || us > 25 {
		t.Errorf("one fp8 row of 8192 x 8192 on mi300x takes %.1f us, want 12.7..25", us)
	}
}

// Some simulators price 32k tokens of prefill attention (32 heads of 128) at 0.144
// ms. Half of 4 x 32768^2 x 32 x 128 operations over 2516.6 TFLOP/s are 3.5 ms.
func TestLongPrefillIsNoFasterThanThePeak(t *testing.T) {
	t.Parallel()
	e := model(t, "mi355x").PrefillAttention(kernel.PrefillAttention{Tokens: 32768, Heads: 32, KVHeads: 8, KDim: 128, VDim: 128, KV: formats["bf16"]})
	if ms := e.Time.Milliseconds(); ms < 3.49 || ms > 15 {
		t.Errorf("32k prefill attention takes %.2f ms, want 3.49..15", ms)
	}
	if e.Bound != kernel.BoundCompute {
		t.Errorf("bound by %s", e.Bound)
	}
}

// A chunk's price does not depend much on how a prompt is cut.
func TestChunksAddUp(t *testing.T) {
	t.Parallel()
	m := model(t, "mi300x")
	a := kernel.PrefillAttention{Tokens: 16384, Heads: 32, KVHeads: 8, KDim: 128, VDim: 128, KV: formats["bf16"]}
	whole := m.PrefillAttention(a)
	var parts units.Seconds
	var flops units.FLOPs
	for done := 0; done < 16384; done += 2048 {
		c := a
		c.Tokens, c.Context = 2048, float64(done)
		e := m.PrefillAttention(c)
		parts += e.Time
		flops += e.FLOPs
	}
	if !near(float64(flops), float64(whole.FLOPs)) {
		t.Errorf("chunks compute %g, the whole %g", flops, whole.FLOPs)
	}
	if r := float64(parts / whole.Time); r < 1 || r > 1.4 {
		t.Errorf("chunks take %.2f of the whole, want 1..1.4", r)
	}
}

// Measured shares of the peak bandwidth of an expert product with one row per
// expert on MI355X (2880 x 2880 mxfp4, gate and up): 1, 4 and 16 experts reach
// 0.14, 0.46 and 0.85, many 0.75.
func TestFewExpertsDoNotFillThePart(t *testing.T) {
	t.Parallel()
	m := model(t, "mi355x")
	share := func(active float64) float64 {
		e := m.GroupedGEMM(kernel.Grouped{Rows: active, Active: active, Busiest: 1, N: 5760, K: 2880, Weights: formats["mxfp4"]})
		return float64(e.Bytes) / 8e12 / float64(e.Time)
	}
	for _, c := range []struct{ active, lo, hi float64 }{{1, 0.05, 0.3}, {4, 0.15, 0.5}, {16, 0.4, 0.85}, {128, 0.65, 0.85}} {
		if s := share(c.active); s < c.lo || s > c.hi {
			t.Errorf("%g experts reach %.2f of the bandwidth, want %g..%g", c.active, s, c.lo, c.hi)
		}
	}
}

// Sharding the experts' width over 8 ranks measured 6.85 to 7.54 times faster
// (103 experts of 2048 x 7168, fp8); small shards may lose somewhat more.
func TestShardedExpertsGetFaster(t *testing.T) {
	t.Parallel()
	m := model(t, "mi355x")
	at := func(n int) float64 {
		return float64(m.GroupedGEMM(kernel.Grouped{Rows: 128, Active: 103, Busiest: 1, N: n, K: 7168, Weights: formats["fp8_block"]}).Time)
	}
	if r := at(2*2048) / at(2*2048/8); r < 4.5 || r > 8 {
		t.Errorf("an eighth of the width is %.2f times faster, want 4.5..8", r)
	}
}

// Latents shared by all heads cost less than a cache per head, long contexts no
// less than the memory allows.
func TestDecodeAttentionPhysics(t *testing.T) {
	t.Parallel()
	m := model(t, "mi355x")
	latent := m.DecodeAttention(kernel.DecodeAttention{Sequences: 64, Tokens: 1, KVTokens: 64 * 4096, Heads: 16, KVHeads: 1, LatentDim: 512, RopeDim: 64, KV: formats["bf16"]})
	perHead := m.DecodeAttention(kernel.DecodeAttention{Sequences: 64, Tokens: 1, KVTokens: 64 * 4096, Heads: 16, KVHeads: 16, KDim: 192, VDim: 128, KV: formats["bf16"]})
	if latent.Time >= perHead.Time {
		t.Errorf("latents take %g s, caches per head %g s", latent.Time, perHead.Time)
	}
	// gpt-oss: 256 sequences of 1536 tokens, 8 KV heads of 64, 806 MB: 101 us at
	// the peak of 8 TB/s.
	e := m.DecodeAttention(kernel.DecodeAttention{Sequences: 256, Tokens: 1, KVTokens: 256 * 1536, Heads: 64, KVHeads: 8, KDim: 64, VDim: 64, KV: formats["bf16"]})
	if us := e.Time.Microseconds(); us < 101 || us > 250 {
		t.Errorf("gpt-oss decode attention takes %.0f us, want 101..250", us)
	}
}

func TestDegenerateInputsCostNothing(t *testing.T) {
	t.Parallel()
	m := model(t, "mi300x")
	for name, e := range map[string]kernel.Estimate{
		"no rows":      m.GEMM(0, 10, 10, formats["bf16"]),
		"NaN rows":     m.GEMM(math.NaN(), 10, 10, formats["bf16"]),
		"no width":     m.GEMM(1, 0, 10, formats["bf16"]),
		"no experts":   m.FusedMoE(kernel.FusedMoE{Tokens: 1, Rows: 1, Hidden: 1, Intermediate: 1, Weights: formats["bf16"]}),
		"no groups":    m.GroupedGEMM(kernel.Grouped{N: 1, K: 1, Weights: formats["bf16"]}),
		"no tokens":    m.PrefillAttention(kernel.PrefillAttention{Heads: 1}),
		"no sequences": m.DecodeAttention(kernel.DecodeAttention{Heads: 1}),
		"no scan":      m.Scan(kernel.Scan{}),
		"no bytes":     m.Stream(0, 0),
	} {
		if e != (kernel.Estimate{}) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
