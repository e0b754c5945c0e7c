package step

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infera/configs"
	"infera/internal/units"
	"infera/models"
	"infera/sim/layout"
	"infera/sim/software"
)

// rounding allows for sums in another order.
const rounding = 1 + 1e-9

// TestBreakdown holds what is true of every step: the parts sum up, none is
// cheaper than its physical bound, stages are no slower than the whole, and the
// same batch costs the same.
func TestBreakdown(t *testing.T) {
	w := newWorld(t)
	for _, factor := range []float64{0.1, 1, 1.5} {
		e := flat(factor, 1)
		for i, rc := range recipes {
			p := w.pricer(rc, e, nil)
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for range 12 {
				b := randomBatch(r)
				var got, again Breakdown
				v := p.Price(b, &got)
				if sum := got.Total(); math.Abs(float64(sum/v.Latency)-1) > 1e-9 {
					t.Errorf("%s: parts of %+v sum to %v, want %v", rc, b, sum, v.Latency)
				}
				for o, c := range got.Ops {
					if !(c.Time*rounding >= c.Lower) || !(c.Bytes >= 0) || !(c.FLOPs >= 0) {
						t.Errorf("%s at factor %v: %s of %+v = %+v, below its bound", rc, factor, Op(o), b, c)
					}
				}
				if !(v.Latency > 0) || v.Interval > v.Latency*rounding {
					t.Errorf("%s: %+v takes %+v", rc, b, v)
				}
				if v2 := p.Price(b, &again); v2 != v || !cmp.Equal(got, again, cmp.AllowUnexported(OpCost{})) || p.Price(b, nil) != v {
					t.Errorf("%s: %+v takes %+v, then %+v", rc, b, v, v2)
				}
			}
		}
	}
}

// TestBoundsOnly: the bounds do not depend on efficiencies, and no price of
// the whole step goes below them.
func TestBoundsOnly(t *testing.T) {
	w := newWorld(t)
	bounds := func(c *Config) { c.Options.BoundsOnly = true }
	for i, rc := range recipes {
		low, full := w.pricer(rc, flat(1, 0), bounds), w.pricer(rc, flat(1, 0), nil)
		r := rand.New(rand.NewPCG(2, uint64(i)))
		for range 8 {
			b := randomBatch(r)
			if l, f := latency(low, b), latency(full, b); !(l <= f*rounding) {
				t.Errorf("%s: bounds of %+v are %v, the price %v", rc, b, l, f)
			}
		}
	}
}

// TestMonotone: more decodes, more cache, more prompt tokens and more context
// never make a step cheaper.
func TestMonotone(t *testing.T) {
	w := newWorld(t)
	for _, rc := range recipes {
		p := w.pricer(rc, flat(1.3, 1), nil)
		prompt := func(tokens, context, sequences float64) Batch {
			return Batch{Chunks: []Chunk{{Tokens: tokens, Context: context, Sequences: sequences, Final: 1}}}
		}
		for name, at := range map[string]func(x float64) Batch{
			"decodes":        func(x float64) Batch { return decodes(x, 1024) },
			"cache":          func(x float64) Batch { return decodes(32, 64*x) },
			"draft tokens":   func(x float64) Batch { return Batch{Decodes: 16, DecodeKV: 16 * 4096, TokensPerSequence: 1 + x/100} },
			"chunk tokens":   func(x float64) Batch { return prompt(16*x, 0, 1) },
			"chunk context":  func(x float64) Batch { return prompt(1024, 64*x, 1) },
			"chunks":         func(x float64) Batch { return prompt(256, 128, 1+x/16) },
			"mixed decodes":  func(x float64) Batch { b := prompt(2048, 0, 1); b.Decodes, b.DecodeKV = x, 1024*x; return b },
			"mixed prompt":   func(x float64) Batch { b := prompt(8*x, 0, 1); b.Decodes, b.DecodeKV = 64, 64*2048; return b },
			"prompt, cached": func(x float64) Batch { return prompt(8*x, 4096, 2) },
		} {
			last := units.Seconds(0)
			for x := 1.0; x <= 1024; x *= 1.09 {
				v := latency(p, at(x))
				if v*rounding < last {
					t.Errorf("%s: %s: step falls from %v to %v at %v", rc, name, last, v, x)
					break
				}
				last = v
			}
		}
	}
}

// TestShippedEfficiencies: with what ships, one more sequence never makes a
// step cheaper by more than a hair, and never dearer by more than a third.
// A product whose decode efficiency is far worse than its prefill efficiency
// could do so: the blend of both falls while the weight stream stays.
func TestShippedEfficiencies(t *testing.T) {
	w := newWorld(t)
	shipped := software.OpenEfficiencies(configs.FS, "engines/efficiency")
	for _, engine := range []string{"vllm", "sglang", "atom"} {
		for _, rc := range recipes {
			g := w.machine(rc.gpu).gpu
			e, _, err := shipped.Find(engine, g.ISA, g.Vendor, software.Release{})
			if err != nil {
				t.Fatal(err)
			}
			p := w.pricer(rc, &e, nil)
			last, top := units.Seconds(0), units.Seconds(0)
			for n := 1.0; n <= 512; n++ {
				v := latency(p, decodes(n, 2048))
				if n > 8 && !(v < 1.35*last) {
					t.Errorf("%s on %s: %v sequences take %.2f times the step of %v", engine, rc, n, v/last, n-1)
				}
				if top = max(top, v); v < 0.97*top {
					t.Errorf("%s on %s: a step of %v sequences takes %.3g s, one of fewer %.3g s", engine, rc, n, v, top)
					break
				}
				last = v
			}
		}
	}
}

// TestNoCliff: one more sequence changes a step by less than a third.
func TestNoCliff(t *testing.T) {
	w := newWorld(t)
	for _, rc := range recipes {
		for _, fixed := range []float64{0, 1} {
			p := w.pricer(rc, flat(1.2, fixed), nil)
			last := latency(p, decodes(8, 2048))
			for n := 9.0; n <= 512; n++ {
				v := latency(p, decodes(n, 2048))
				if r := v / last; !(r < 1.35) || r < 1/rounding {
					t.Errorf("%s: %v sequences take %.2f times the step of %v", rc, n, r, n-1)
				}
				last = v
			}
		}
	}
}

// TestMergedStep: a step that carries prompts and decodes streams the weights
// once, so it costs no more than both steps and no less than either.
func TestMergedStep(t *testing.T) {
	w := newWorld(t)
	for i, rc := range recipes {
		p := w.pricer(rc, flat(1.3, 1), nil)
		r := rand.New(rand.NewPCG(3, uint64(i)))
		for range 20 {
			d := decodes(float64(1+r.IntN(256)), float64(1+r.IntN(8192)))
			c := Batch{Chunks: []Chunk{{Tokens: float64(1 + r.IntN(8192)), Context: float64(r.IntN(4096)), Final: 1}}}
			both := d
			both.Chunks = c.Chunks
			m, alone, prompt := latency(p, both), latency(p, d), latency(p, c)
			if m > (alone+prompt)*rounding || m*rounding < max(alone, prompt) {
				t.Errorf("%s: merged %v; prompt %v and decodes %v alone", rc, m, prompt, alone)
			}
		}
	}
}

// TestTensorParallelRelief: at a fixed batch the weight stream of a dense
// model's decode step shrinks by at least 0.6 of the number of ranks: every
// product is cut, the feed-forward parts and the head too.
func TestTensorParallelRelief(t *testing.T) {
	w := newWorld(t)
	weights := func(model, gpu string, tp int) float64 {
		var b Breakdown
		w.pricer(recipe{model, gpu, grid(tp, 1, 1)}, flat(1, 0), nil).Price(decodes(64, 1024), &b)
		return float64(b.Ops[OpAttentionProjection].Time + b.Ops[OpDenseFFN].Time + b.Ops[OpHead].Time)
	}
	for _, c := range []struct {
		model, gpu string
		tp         int
	}{
		{"llama3.1_70B", "mi355x", 8}, {"llama3.1_70B", "mi300x", 4}, {"llama3.1_405B", "mi355x", 8},
		{"qwen2.5_72B", "h200", 8}, {"qwen3_32B", "mi300x", 2}, {"llama3.1_8B", "mi300x", 2},
	} {
		one, many := weights(c.model, c.gpu, 1), weights(c.model, c.gpu, c.tp)
		if relief := one / many / float64(c.tp); relief < 0.6 || relief > 1.05 {
			t.Errorf("%s on %s: weight stream %.3g s at TP1, %.3g s at TP%d: %.2f of ideal", c.model, c.gpu, one, many, c.tp, relief)
		}
	}
}

// TestWeightBytes checks the bytes of a decode step against the weights of the
// model: llama-3.1-70B has 80 layers of 8192 x (8192 + 2 x 1024 + 8192 + 3 x
// 28672) weights and a head of 128256 x 8192, 69.5e9 parameters, so one of 8
// ranks streams 17.4 GB of bf16 per step beside activations.
func TestWeightBytes(t *testing.T) {
	w := newWorld(t)
	var b Breakdown
	w.pricer(recipe{"llama3.1_70B", "mi355x", grid(8, 1, 1)}, flat(1, 0), nil).Price(decodes(1, 1), &b)
	var got float64
	for _, o := range []Op{OpAttentionProjection, OpDenseFFN, OpHead} {
		got += float64(b.Ops[o].Bytes)
	}
	want := 2.0 / 8 * (80*8192*(8192+2*1024+8192+3*28672) + 128256*8192)
	if math.Abs(got/want-1) > 0.005 {
		t.Errorf("a decode step streams %.4g bytes of weights per rank, want %.4g", got, want)
	}
}

// TestNarrowCache: an 8-bit cache is about half the stream of a 16-bit one.
func TestNarrowCache(t *testing.T) {
	w := newWorld(t)
	price := func(rc recipe, dtype string) (time, bytes float64) {
		f := must[models.Format](t)(models.ParseFormat(dtype))
		var b Breakdown
		w.pricer(rc, flat(1, 0), func(c *Config) { c.KV = f }).Price(decodes(64, 8192), &b)
		return float64(b.Ops[OpAttentionDecode].Time), float64(b.Ops[OpAttentionDecode].Bytes)
	}
	for _, rc := range []recipe{
		{"llama3.1_8B", "mi300x", grid(1, 1, 1)}, {"llama3.1_70B", "mi355x", grid(8, 1, 1)}, {"deepseek_v3", "mi300x", grid(8, 1, 1)},
	} {
		wideTime, wide := price(rc, "bf16")
		time, narrow := price(rc, "fp8")
		// Queries and outputs stay in 16 bits: 64 x heads x (K + V) x 2 bytes
		// against 64 x 8192 x KV heads x (K + V), a few per cent with 128 heads
		// on one latent.
		if r := narrow / wide; r < 0.5 || r > 0.52 {
			t.Errorf("%s: an fp8 cache streams %.3f of a bf16 one", rc, r)
		}
		if time >= wideTime {
			t.Errorf("%s: attention over an fp8 cache takes %v, over a bf16 one %v", rc, time, wideTime)
		}
	}
}

// TestPrefillAttention: the attention core of a long prompt takes at least its
// causal operations at the data-sheet peak: 2 x heads x T(T+1)/2 x (K + V) per
// layer.
func TestPrefillAttention(t *testing.T) {
	w := newWorld(t)
	for _, gpu := range []string{"mi300x", "mi355x", "h200", "b200"} {
		for _, n := range []float64{1, 3} {
			var b Breakdown
			const tokens = 32768.0
			p := w.pricer(recipe{"llama3.1_8B", gpu, grid(1, 1, 1)}, flat(0.01, 0), nil)
			p.Price(Batch{Chunks: []Chunk{{Tokens: tokens, Sequences: n, Final: 1}}}, &b)
			flops := n * 32 * 2 * 32 * tokens * (tokens + 1) / 2 * 256
			got := b.Ops[OpAttentionPrefill]
			if least := flops / float64(w.machine(gpu).gpu.Peaks.BF16); float64(got.Time)*rounding < least {
				t.Errorf("%s: %v prompts of 32k: attention in %v, bound %v s", gpu, n, got.Time, least)
			}
			if math.Abs(float64(got.FLOPs)/flops-1) > 1e-6 {
				t.Errorf("%s: %v prompts of 32k: %v operations, want %v", gpu, n, got.FLOPs, flops)
			}
		}
	}
}

// TestPipeline: two stages halve the interval between steps but not the time
// of one.
func TestPipeline(t *testing.T) {
	w := newWorld(t)
	at := func(pp int) Time {
		l := grid(2, 1, 1)
		l.PP = pp
		// The micro-batch of each is the same: 32 sequences.
		return w.pricer(recipe{"llama3.1_70B", "mi300x", l}, flat(1.2, 0), nil).Price(decodes(float64(32*pp), 2048), nil)
	}
	one, two := at(1), at(2)
	if one.Interval != one.Latency {
		t.Errorf("one stage: %+v, want the interval to be the latency", one)
	}
	if r := two.Interval / one.Interval; r < 0.48 || r > 0.56 {
		t.Errorf("two stages: interval is %.2f of one stage's", r)
	}
	if r := two.Latency / one.Latency; r < 0.999 || r > 1.05 {
		t.Errorf("two stages: latency is %.3f of one stage's", r)
	}
}

func TestPriceAllocates(t *testing.T) {
	w := newWorld(t)
	for _, rc := range recipes {
		p := w.pricer(rc, flat(1.3, 1), func(c *Config) { c.Options.DraftTokens = 2 })
		b := decodes(64, 2048)
		b.Chunks = []Chunk{{Tokens: 1024, Final: 1}}
		if n := testing.AllocsPerRun(5, func() { p.Price(b, nil) }); n != 0 {
			t.Errorf("%s: a price allocates %v times", rc, n)
		}
	}
}

func TestPriceNothing(t *testing.T) {
	w := newWorld(t)
	p := w.pricer(recipes[0], flat(1, 1), nil)
	b := Breakdown{}
	b.Ops[OpHost].Time = 1
	if v := p.Price(Batch{}, &b); v != (Time{}) || b.Total() != 0 {
		t.Errorf("an empty step takes %+v, %v in parts; want nothing", v, b.Total())
	}
}

// TestOptions checks the direction of each knob on one recipe.
func TestOptions(t *testing.T) {
	w := newWorld(t)
	rc := recipe{"llama3.1_70B", "mi355x", grid(8, 1, 1)}
	mixed := decodes(64, 2048)
	mixed.Chunks = []Chunk{{Tokens: 2048, Final: 1}}
	plain := latency(w.pricer(rc, flat(1.2, 1), nil), mixed)
	with := func(set func(*Options)) units.Seconds {
		return latency(w.pricer(rc, flat(1.2, 1), func(c *Config) { set(&c.Options) }), mixed)
	}
	for _, c := range []struct {
		name string
		set  func(*Options)
		sign int // of the change
	}{
		{"overhead", func(o *Options) { o.StepOverhead = 1e-3 }, 1},
		{"mixed penalty", func(o *Options) { o.MixedPenalty = 0.1 }, 1},
		{"slow attention", func(o *Options) { o.AttentionScale = 2 }, 1},
		{"fused kernels", func(o *Options) { o.FusedKernels = 0.5 }, -1},
		{"hidden collectives", func(o *Options) { o.PrefillOverlap = 0.5 }, -1},
		{"collectives of decodes only", func(o *Options) { o.DecodeOverlap = 0.5 }, 0},
		{"no sampling", func(o *Options) { o.NoSampling = true }, -1},
		{"sampling passes", func(o *Options) { o.SamplingPasses = 2 }, 1},
		{"launches of a small step", func(o *Options) { o.KernelFloor, o.KernelsPerLayer = 1e-7, 10 }, 0},
		{"launches", func(o *Options) { o.KernelFloor, o.KernelsPerLayer = 1e-3, 10 }, 1},
		{"kernel occupancy", func(o *Options) { o.KernelOccupancy, o.KernelsPerLayer = 1e-3, 10 }, 1},
		{"draft cost", func(o *Options) { o.DraftTokens, o.DraftCost = 3, 0.05 }, 1},
		{"no drafter", func(o *Options) { o.DraftTokens = 3 }, 0},
		{"bounds", func(o *Options) { o.BoundsOnly = true }, -1},
	} {
		got := with(c.set)
		change := 0
		switch {
		case got > plain:
			change = 1
		case got < plain:
			change = -1
		}
		if change != c.sign {
			t.Errorf("%s: step goes from %v to %v, want a change of sign %d", c.name, plain, got, c.sign)
		}
	}
	if got, want := with(func(o *Options) { o.StepOverhead = 1e-3 })-plain, units.Seconds(1e-3); math.Abs(float64(got-want)) > 1e-12 {
		t.Errorf("an overhead of %v adds %v", want, got)
	}
}

// TestSetEfficiency: a pricer with other efficiencies is the pricer that would
// have been compiled with them.
func TestSetEfficiency(t *testing.T) {
	w := newWorld(t)
	b := decodes(32, 4096)
	b.Chunks = []Chunk{{Tokens: 512, Context: 100, Final: 1}}
	for _, rc := range recipes {
		changed := w.pricer(rc, flat(1, 0), nil).SetEfficiency(flat(1.7, 2))
		if got, want := changed.Price(b, nil), w.pricer(rc, flat(1.7, 2), nil).Price(b, nil); got != want {
			t.Errorf("%s: %+v after the change, %+v compiled", rc, got, want)
		}
	}
	// One coefficient at a time: none makes a step cheaper as it grows.
	p := w.pricer(recipes[6], flat(1, 1), nil)
	base := latency(p, b)
	for c := range software.NumCoefficients {
		e := *flat(1, 1)
		e.Values[c] *= 1.5
		if v := latency(p.SetEfficiency(&e), b); v*rounding < base {
			t.Errorf("1.5 times %s lowers a step from %v to %v", c, base, v)
		}
	}
}

func TestNewAnalyticErrors(t *testing.T) {
	w := newWorld(t)
	good := w.pricer(recipes[0], flat(1, 1), nil).cfg
	for name, change := range map[string]func(*Config){
		"no architecture": func(c *Config) { c.Arch = nil },
		"no layers":       func(c *Config) { c.Arch = new(models.Architecture) },
		"no GPU":          func(c *Config) { c.GPU = nil },
		"no kernels":      func(c *Config) { c.Kernels = nil },
		"no collectives":  func(c *Config) { c.Collectives = nil },
		"no efficiency":   func(c *Config) { c.Efficiency = nil },
	} {
		c := good
		change(&c)
		if p, err := NewAnalytic(c); !errors.Is(err, errConfig) || p != nil {
			t.Errorf("%s: %v, %v; want errConfig", name, p, err)
		}
	}
	c := good
	c.Layout = layout.Layout{}
	if _, err := NewAnalytic(c); err != nil {
		t.Errorf("an empty layout is one GPU: %v", err)
	}
}

func TestOpNames(t *testing.T) {
	seen := map[string]bool{}
	for o := range NumOps {
		if n := o.String(); n == "" || n == "unknown" || seen[n] {
			t.Errorf("class %d is called %q", o, n)
		} else {
			seen[n] = true
		}
	}
	if NumOps.String() != "unknown" {
		t.Errorf("a class beyond the last is called %q", NumOps)
	}
}
