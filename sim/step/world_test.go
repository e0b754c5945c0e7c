package step

import (
	"math/rand/v2"
	"testing"

	"infera/configs"
	"infera/internal/units"
	"infera/models"
	"infera/sim/collective"
	"infera/sim/hardware"
	"infera/sim/kernel"
	"infera/sim/layout"
	"infera/sim/software"
)

// recipe is a model under a layout on a GPU, all from the shipped data.
type recipe struct {
	model, gpu string
	layout     layout.Layout
}

func (r recipe) String() string { return r.model + " " + r.gpu + " " + r.layout.String() }

// grid spreads a layout: TP, EP and attention data parallelism.
func grid(tp, ep, dp int) layout.Layout {
	return layout.Layout{TP: tp, PP: 1, EP: ep, AttentionDP: dp}
}

// recipes cover every kind of token mixer and feed-forward part, sharded and
// not, on both vendors.
var recipes = []recipe{
	{"llama3.1_8B", "mi300x", grid(1, 1, 1)},
	{"llama3.1_70B", "mi355x", grid(8, 1, 1)},
	{"llama3.1_70B", "mi300x", layout.Layout{TP: 2, PP: 2, EP: 1, AttentionDP: 1}},
	{"gpt_oss_120B", "mi355x", grid(1, 1, 1)},
	{"gpt_oss_120B", "mi355x", grid(8, 8, 1)},
	{"deepseek_v3", "mi300x", grid(8, 1, 1)},
	{"deepseek_v3", "h200", grid(8, 8, 8)},
	{"deepseek_v3.2", "mi355x", grid(8, 1, 1)},
	{"deepseek_v4_flash", "mi355x", grid(4, 4, 4)},
	{"qwen3_30B_A3B", "mi300x", grid(4, 4, 1)},
	{"Qwen3.5-397B-A17B", "mi355x", grid(4, 1, 1)},
	{"kimi_linear_48B_A3B", "h200", grid(2, 1, 1)},
	{"gemma3_27B", "mi325x", grid(2, 1, 1)},
	{"mixtral-8x7b", "b200", grid(2, 1, 1)},
}

// flat returns multipliers of factor and fixed times of fixed times their usual
// size.
func flat(factor, fixed float64) *software.Efficiency {
	e := new(software.Efficiency)
	for c := range software.NumCoefficients {
		e.Values[c] = factor
		if c.IsTime() {
			e.Values[c] = 20e-6 * fixed
		}
	}
	e.Values[software.HostStep] = 300e-6 * fixed
	e.Values[software.HostPrefill] = 2e-3 * fixed
	e.Values[software.HostSequence] = 2e-6 * fixed
	return e
}

// world makes pricers from the shipped data; it loads each part once.
type world struct {
	tb       testing.TB
	models   *models.Catalog
	hardware *hardware.Catalog
	gpus     map[string]*machine
	archs    map[string]*models.Architecture
}

type machine struct {
	gpu         *hardware.GPU
	kernels     *kernel.Model
	collectives *collective.Model
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{tb: tb, gpus: map[string]*machine{}, archs: map[string]*models.Architecture{}}
	var err error
	if w.models, err = models.LoadCatalog(configs.FS); err != nil {
		tb.Fatal(err)
	}
	if w.hardware, err = hardware.Load(configs.FS); err != nil {
		tb.Fatal(err)
	}
	return w
}

func must[T any](tb testing.TB) func(T, error) T {
	return func(v T, err error) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

func (w *world) machine(name string) *machine {
	if m, ok := w.gpus[name]; ok {
		return m
	}
	g := must[*hardware.GPU](w.tb)(w.hardware.Lookup(name))
	f := must[*hardware.Fabric](w.tb)(w.hardware.FabricOf(g))
	m := &machine{
		gpu:         g,
		kernels:     must[*kernel.Model](w.tb)(kernel.New(g, must[*kernel.Curves](w.tb)(kernel.LoadCurves(configs.FS, g)))),
		collectives: must[*collective.Model](w.tb)(collective.New(g, f, must[*collective.Table](w.tb)(collective.LoadTable(configs.FS, g)), collective.Options{})),
	}
	w.gpus[name] = m
	return m
}

// pricer compiles a recipe; change edits the configuration first.
func (w *world) pricer(r recipe, e *software.Efficiency, change func(*Config)) *Analytic {
	w.tb.Helper()
	arch, ok := w.archs[r.model]
	if !ok {
		arch = must[*models.Architecture](w.tb)(w.models.Lookup(r.model))
		w.archs[r.model] = arch
	}
	m := w.machine(r.gpu)
	cfg := Config{Arch: arch, GPU: m.gpu, Layout: r.layout, Kernels: m.kernels, Collectives: m.collectives, Efficiency: e}
	if change != nil {
		change(&cfg)
	}
	return must[*Analytic](w.tb)(NewAnalytic(cfg))
}

func latency(p Pricer, b Batch) units.Seconds { return p.Price(b, nil).Latency }

// decodes is a batch of n sequences with context cached tokens each.
func decodes(n, context float64) Batch { return Batch{Decodes: n, DecodeKV: n * context} }

// randomBatch draws a batch of decodes, of prompt pieces, or of both.
func randomBatch(r *rand.Rand) Batch {
	var b Batch
	kind := r.IntN(3)
	if kind != 0 {
		b = decodes(float64(1+r.IntN(512)), float64(1+r.IntN(20_000)))
		b.TokensPerSequence = float64(r.IntN(4))
	}
	if kind != 1 {
		for range 1 + r.IntN(3) {
			b.Chunks = append(b.Chunks, Chunk{
				Tokens: float64(1 + r.IntN(8192)), Context: float64(r.IntN(16_384)),
				Sequences: float64(r.IntN(9)), Final: float64(r.IntN(2)),
			})
		}
	}
	return b
}
