package kernel_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"infera/configs"
	"infera/internal/units"
	"infera/models"
	"infera/sim/hardware"
	"infera/sim/kernel"
)

var formats = map[string]models.Format{
	"bf16":      {Name: "bf16", Element: models.BF16, Activation: models.BF16},
	"fp8":       {Name: "fp8", Element: models.FP8, Activation: models.FP8},
	"fp8_block": {Name: "fp8_block", Element: models.FP8, Group: 128 * 128, ScaleBits: 32, Activation: models.FP8},
	"mxfp4":     {Name: "mxfp4", Element: models.FP4, Group: 32, ScaleBits: 8, Activation: models.FP4},
	"mxfp6":     {Name: "mxfp6", Element: models.FP6, Group: 32, ScaleBits: 8, Activation: models.FP6},
	"fp4_fp8":   {Name: "fp4_fp8", Element: models.FP4, Group: 32, ScaleBits: 8, Activation: models.FP8},
	"fp4_bf16":  {Name: "fp4_bf16", Element: models.FP4, Group: 32, ScaleBits: 8, Activation: models.BF16},
	"int8":      {Name: "int8", Element: models.INT8, Activation: models.INT8},
	"int4":      {Name: "int4", Element: models.INT4, Group: 128, ScaleBits: 16, Activation: models.BF16},
}

var formatNames = []string{"bf16", "fp8", "fp8_block", "mxfp4", "mxfp6", "fp4_fp8", "fp4_bf16", "int8", "int4"}

var partNames = []string{"mi300x", "mi308x", "mi325x", "mi355x", "h100", "h200", "b200", "a100"}

func part(t testing.TB, name string) *hardware.GPU {
	t.Helper()
	catalog, err := hardware.Load(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := catalog.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return gpu
}

func model(t testing.TB, name string) *kernel.Model {
	t.Helper()
	gpu := part(t, name)
	curves, err := kernel.LoadCurves(configs.FS, gpu)
	if err != nil {
		t.Fatal(err)
	}
	m, err := kernel.New(gpu, curves)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func allModels(t *testing.T) map[string]*kernel.Model {
	all := map[string]*kernel.Model{}
	for _, name := range partNames {
		all[name] = model(t, name)
	}
	return all
}

// operation is one kernel with every argument that a caller may raise.
type operation struct {
	name  string
	price func(m *kernel.Model) kernel.Estimate
	// bigger returns the same operation with one argument raised by factor.
	bigger []func(factor float64) operation
}

func scaled(n int, factor float64) int { return max(n+1, int(float64(n)*factor)) }

func gemm(rows float64, n, k int, w models.Format) operation {
	return operation{
		fmt.Sprintf("GEMM(%g, %d, %d, %s)", rows, n, k, w.Name),
		func(m *kernel.Model) kernel.Estimate { return m.GEMM(rows, n, k, w) },
		[]func(float64) operation{
			func(f float64) operation { return gemm(rows*f, n, k, w) },
			func(f float64) operation { return gemm(rows, scaled(n, f), k, w) },
			func(f float64) operation { return gemm(rows, n, scaled(k, f), w) },
		},
	}
}

func grouped(g kernel.Grouped) operation {
	with := func(change func(*kernel.Grouped, float64)) func(float64) operation {
		return func(f float64) operation { b := g; change(&b, f); return grouped(b) }
	}
	return operation{
		fmt.Sprintf("GroupedGEMM(%+v)", g),
		func(m *kernel.Model) kernel.Estimate { return m.GroupedGEMM(g) },
		[]func(float64) operation{
			with(func(g *kernel.Grouped, f float64) { g.Rows *= f }),
			with(func(g *kernel.Grouped, f float64) { g.Active *= f }),
			with(func(g *kernel.Grouped, f float64) { g.Busiest *= f }),
			with(func(g *kernel.Grouped, f float64) { g.N = scaled(g.N, f) }),
			with(func(g *kernel.Grouped, f float64) { g.K = scaled(g.K, f) }),
		},
	}
}

func fused(g kernel.FusedMoE) operation {
	with := func(change func(*kernel.FusedMoE, float64)) func(float64) operation {
		return func(f float64) operation { b := g; change(&b, f); return fused(b) }
	}
	return operation{
		fmt.Sprintf("FusedMoE(%+v)", g),
		func(m *kernel.Model) kernel.Estimate { return m.FusedMoE(g) },
		[]func(float64) operation{
			with(func(g *kernel.FusedMoE, f float64) { g.Tokens *= f; g.Rows *= f }),
			with(func(g *kernel.FusedMoE, f float64) { g.Rows *= f }),
			with(func(g *kernel.FusedMoE, f float64) { g.Active *= f }),
			with(func(g *kernel.FusedMoE, f float64) { g.Busiest *= f }),
			with(func(g *kernel.FusedMoE, f float64) { g.Hidden = scaled(g.Hidden, f) }),
			with(func(g *kernel.FusedMoE, f float64) { g.Intermediate = scaled(g.Intermediate, f) }),
		},
	}
}

func prefill(a kernel.PrefillAttention) operation {
	with := func(change func(*kernel.PrefillAttention, float64)) func(float64) operation {
		return func(f float64) operation { b := a; change(&b, f); return prefill(b) }
	}
	return operation{
		fmt.Sprintf("PrefillAttention(%+v)", a),
		func(m *kernel.Model) kernel.Estimate { return m.PrefillAttention(a) },
		[]func(float64) operation{
			with(func(a *kernel.PrefillAttention, f float64) { a.Tokens *= f }),
			with(func(a *kernel.PrefillAttention, f float64) { a.Context = a.Context*f + 1 }),
			with(func(a *kernel.PrefillAttention, f float64) { a.Sequences = max(1, a.Sequences) * f }),
			with(func(a *kernel.PrefillAttention, f float64) { a.Heads = a.Heads + a.KVHeads }),
			with(func(a *kernel.PrefillAttention, f float64) { a.VDim = scaled(a.VDim, f) }),
			with(func(a *kernel.PrefillAttention, f float64) {
				if a.Window > 0 {
					a.Window = scaled(a.Window, f)
				}
			}),
		},
	}
}

func decode(d kernel.DecodeAttention) operation {
	with := func(change func(*kernel.DecodeAttention, float64)) func(float64) operation {
		return func(f float64) operation { b := d; change(&b, f); return decode(b) }
	}
	return operation{
		fmt.Sprintf("DecodeAttention(%+v)", d),
		func(m *kernel.Model) kernel.Estimate { return m.DecodeAttention(d) },
		[]func(float64) operation{
			with(func(d *kernel.DecodeAttention, f float64) { d.Sequences *= f; d.KVTokens *= f }),
			with(func(d *kernel.DecodeAttention, f float64) { d.KVTokens *= f }),
			with(func(d *kernel.DecodeAttention, f float64) { d.Tokens *= f }),
			with(func(d *kernel.DecodeAttention, f float64) { d.Heads += max(1, d.KVHeads) }),
		},
	}
}

func scan(s kernel.Scan) operation {
	with := func(change func(*kernel.Scan, float64)) func(float64) operation {
		return func(f float64) operation { b := s; change(&b, f); return scan(b) }
	}
	return operation{
		fmt.Sprintf("Scan(%+v)", s),
		func(m *kernel.Model) kernel.Estimate { return m.Scan(s) },
		[]func(float64) operation{
			with(func(s *kernel.Scan, f float64) { s.Tokens *= f }),
			with(func(s *kernel.Scan, f float64) { s.Sequences *= f }),
			with(func(s *kernel.Scan, f float64) { s.StateBytes *= units.Bytes(f) }),
		},
	}
}

func stream(read, write units.Bytes) operation {
	return operation{
		fmt.Sprintf("Stream(%g, %g)", read, write),
		func(m *kernel.Model) kernel.Estimate { return m.Stream(read, write) },
		[]func(float64) operation{
			func(f float64) operation { return stream(read*units.Bytes(f), write) },
			func(f float64) operation { return stream(read, write*units.Bytes(f)) },
		},
	}
}

// count draws a positive count over its orders of magnitude, whole or not.
func count(t *rapid.T, label string, hi float64) float64 {
	v := math.Exp(rapid.Float64Range(math.Log(0.3), math.Log(hi)).Draw(t, label))
	if rapid.Bool().Draw(t, label+" whole") {
		v = max(1, math.Round(v))
	}
	return v
}

func width(t *rapid.T, label string, hi int) int { return int(max(1, count(t, label, float64(hi)))) }

func draw(t *rapid.T) operation {
	w := formats[rapid.SampledFrom(formatNames).Draw(t, "format")]
	kv := formats[rapid.SampledFrom([]string{"bf16", "fp8"}).Draw(t, "kv")]
	kvHeads := rapid.IntRange(1, 16).Draw(t, "kv heads")
	heads := kvHeads * rapid.IntRange(1, 16).Draw(t, "heads per kv head")
	dim := rapid.SampledFrom([]int{64, 96, 128, 192, 256, 576}).Draw(t, "dim")
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		return gemm(count(t, "rows", 65536), width(t, "n", 200000), width(t, "k", 65536), w)
	case 1:
		active := count(t, "active", 512)
		return grouped(kernel.Grouped{Rows: active * max(1, count(t, "rows per expert", 4096)), Active: active, Busiest: count(t, "busiest", 8), N: width(t, "n", 16384), K: width(t, "k", 16384), Weights: w})
	case 2:
		tokens, active := count(t, "tokens", 32768), count(t, "active", 256)
		return fused(kernel.FusedMoE{Tokens: tokens, Rows: max(active, tokens*8), Active: active, Busiest: count(t, "busiest", 8), Hidden: width(t, "hidden", 16384), Intermediate: width(t, "intermediate", 8192), Gated: rapid.Bool().Draw(t, "gated"), Weights: w})
	case 3:
		a := kernel.PrefillAttention{Tokens: count(t, "tokens", 131072), Context: count(t, "context", 1e6), Heads: heads, KVHeads: kvHeads, KDim: dim, VDim: dim, KV: kv}
		switch rapid.IntRange(0, 3).Draw(t, "reach") {
		case 1:
			a.Window = width(t, "window", 8192)
		case 2:
			a.TopK = count(t, "topk", 4096)
		case 3:
			a.MLA, a.KDim, a.VDim = true, 192, 128
			a.KVHeads = a.Heads
		}
		return prefill(a)
	case 4:
		n := count(t, "sequences", 4096)
		d := kernel.DecodeAttention{Sequences: n, Tokens: width64(t), KVTokens: n * count(t, "context", 200000), Heads: heads, KVHeads: kvHeads, KDim: dim, VDim: dim, KV: kv}
		if rapid.Bool().Draw(t, "latent") {
			d.LatentDim, d.RopeDim = 512, 64
		}
		return decode(d)
	case 5:
		return scan(kernel.Scan{Sequences: count(t, "sequences", 1024), Tokens: count(t, "tokens", 32768), KHeads: kvHeads, VHeads: heads, KDim: 128, VDim: 128, StateBytes: units.Bytes(count(t, "state", 1e8)), Decode: rapid.Bool().Draw(t, "decode")})
	}
	return stream(units.Bytes(count(t, "read", 1e10)), units.Bytes(count(t, "write", 1e10)))
}

func width64(t *rapid.T) float64 { return float64(rapid.IntRange(1, 8).Draw(t, "query tokens")) }

func TestNoPriceIsBelowItsBound(t *testing.T) {
	t.Parallel()
	all := allModels(t)
	gpus := map[string]*hardware.GPU{}
	for _, name := range partNames {
		gpus[name] = part(t, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(partNames).Draw(t, "part")
		o := draw(t)
		e := o.price(all[name])
		if !(e.Time >= e.Lower) || !(e.Lower > 0) || math.IsInf(float64(e.Time), 0) {
			t.Fatalf("%s on %s: time %g, lower bound %g", o.name, name, e.Time, e.Lower)
		}
		if least := float64(e.Bytes) / float64(gpus[name].Bandwidth); !(float64(e.Lower) >= least*(1-1e-12)) {
			t.Fatalf("%s on %s: bound %g is below its bytes %g over the peak bandwidth", o.name, name, e.Lower, least)
		}
		if e.Bound > kernel.BoundLaunch {
			t.Fatalf("%s on %s: bound %s", o.name, name, e.Bound)
		}
	})
}

func TestMoreWorkIsNeverFaster(t *testing.T) {
	t.Parallel()
	all := allModels(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(partNames).Draw(t, "part")
		o := draw(t)
		i := rapid.IntRange(0, len(o.bigger)-1).Draw(t, "argument")
		f := 1 + math.Exp(rapid.Float64Range(-9, 2).Draw(t, "factor"))
		b := o.bigger[i](f)
		small, big := o.price(all[name]), b.price(all[name])
		if big.Time < small.Time*(1-1e-12) || big.Bytes < small.Bytes*(1-1e-12) || big.FLOPs < small.FLOPs*(1-1e-12) {
			t.Fatalf("on %s:\n%s = %+v\n%s = %+v", name, o.name, small, b.name, big)
		}
	})
}

// Adjacent row counts may differ by what the work grows, times at most 1.35.
func TestNoCliffBetweenAdjacentRows(t *testing.T) {
	t.Parallel()
	shapes := [][2]int{{8192, 8192}, {512, 7168}, {7168, 2048}, {36864, 7168}, {1280, 8192}, {152064, 4096}, {256, 256}}
	for name, m := range allModels(t) {
		for _, fn := range formatNames {
			w := formats[fn]
			for _, s := range shapes {
				worst, at := 0.0, 0
				last := m.GEMM(1, s[0], s[1], w).Time
				for rows := 2; rows <= 2100; rows++ {
					now := m.GEMM(float64(rows), s[0], s[1], w).Time
					if r := float64(now/last) / (float64(rows) / float64(rows-1)); r > worst {
						worst, at = r, rows
					}
					last = now
				}
				if worst > 1.35 {
					t.Errorf("%s %s N=%d K=%d: %.2f times the ideal at %d rows", name, fn, s[0], s[1], worst, at)
				}
			}
		}
	}
}

// One more token, sequence or cached block never jumps either.
func TestNoCliffElsewhere(t *testing.T) {
	t.Parallel()
	w, kv := formats["fp8_block"], formats["fp8"]
	steps := map[string]func(m *kernel.Model, n float64) kernel.Estimate{
		"fused experts": func(m *kernel.Model, n float64) kernel.Estimate {
			return m.FusedMoE(kernel.FusedMoE{Tokens: n, Rows: 8 * n, Active: 256 * (1 - math.Pow(1-8.0/256, n)), Busiest: 1, Hidden: 7168, Intermediate: 256, Gated: true, Weights: w})
		},
		"prefill": func(m *kernel.Model, n float64) kernel.Estimate {
			return m.PrefillAttention(kernel.PrefillAttention{Tokens: n, Context: 1000, Heads: 16, KVHeads: 2, KDim: 128, VDim: 128, Window: 1024, KV: kv})
		},
		"sparse context": func(m *kernel.Model, n float64) kernel.Estimate {
			return m.PrefillAttention(kernel.PrefillAttention{Tokens: 512, Context: n, Heads: 16, KVHeads: 1, KDim: 576, VDim: 512, MLA: true, TopK: 1024, KV: kv})
		},
		"decode": func(m *kernel.Model, n float64) kernel.Estimate {
			return m.DecodeAttention(kernel.DecodeAttention{Sequences: n, Tokens: 1, KVTokens: 2000 * n, Heads: 16, KVHeads: 2, KDim: 128, VDim: 128, KV: kv})
		},
		"draft tokens": func(m *kernel.Model, n float64) kernel.Estimate {
			return m.DecodeAttention(kernel.DecodeAttention{Sequences: 32, Tokens: n, KVTokens: 32 * 4000, Heads: 16, KVHeads: 2, KDim: 128, VDim: 128, KV: kv})
		},
	}
	for part, m := range allModels(t) {
		for name, price := range steps {
			last := price(m, 1).Time
			for n := 2.0; n <= 2000; n++ {
				now := price(m, n).Time
				if r := float64(now/last) / (n / (n - 1)); r > 1.35 {
					t.Errorf("%s %s: %.2f times the ideal at %g", part, name, r, n)
				}
				last = now
			}
		}
	}
}

func TestWaveEffectShows(t *testing.T) {
	t.Parallel()
	m := model(t, "mi355x")
	// 4096 x 16384 outputs in 256 x 256 tiles are 1024 tiles: four full waves of
	// 256 compute units. 4352 rows make 17 rows of tiles, the fifth wave is a
	// quarter full and costs more per row.
	full := m.GEMM(4096, 16384, 8192, formats["bf16"])
	ragged := m.GEMM(4352, 16384, 8192, formats["bf16"])
	perRow := float64(ragged.Time) / 4352 / (float64(full.Time) / 4096)
	if perRow < 1.02 || perRow > 1.25 {
		t.Errorf("a quarter of a wave more costs %.3f per row of the full waves, want 1.02..1.25", perRow)
	}
}
