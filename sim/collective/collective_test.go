package collective

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"infera/internal/units"
	"infera/models"
	"infera/sim/hardware"
)

// part is a GPU and the fabric it sits in, as far as a collective sees them.
type part struct {
	gpu    hardware.GPU
	fabric hardware.Fabric
}

func testPart(isa string) part {
	f := hardware.Fabric{
		Name: "test", Topology: hardware.Mesh, DomainSize: 8, ScaleUp: 448e9, LinkEfficiency: 0.72,
		HopLatency: 0.9e-6, NICs: 8, NIC: 50e9, NICEfficiency: 0.9, NICLatency: 3.5e-6,
	}
	switch isa {
	case "gfx950":
		f.ScaleUp = 537.6e9
	case "sm_90":
		f.Topology, f.ScaleUp = hardware.Switch, 450e9
	case "sm_100":
		f.Topology, f.ScaleUp, f.DomainSize, f.NICs = hardware.Switch, 900e9, 72, 72
	case "sm_80":
		f.Topology, f.ScaleUp = hardware.PCIe, 32e9
	}
	return part{hardware.GPU{Name: isa, ISA: isa}, f}
}

var testISAs = []string{"gfx942", "gfx950", "gfx90a", "sm_80", "sm_90", "sm_100"}

func testTable(t testing.TB, isa string) *Table {
	t.Helper()
	table, err := LoadTable(os.DirFS("../../configs"), &hardware.GPU{Name: isa, ISA: isa})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func testModel(t testing.TB, isa string, opt Options) *Model {
	t.Helper()
	p := testPart(isa)
	m, err := New(&p.gpu, &p.fabric, testTable(t, isa), opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func near(got units.Seconds, wantMicroseconds, tolerance float64) bool {
	return math.Abs(got.Microseconds()/wantMicroseconds-1) <= tolerance
}

func TestMeasuredAllReduce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		isa       string
		ranks     int
		bytes     units.Bytes
		want, tol float64 // microseconds, relative
	}{
		// vLLM's all-reduce on MI355X: 7.81 us + 1e6/65.9e9, 10.06 us + 1e6/120.7e9.
		{"gfx950", 2, 1e6, 7.81 + 15.17, 0.001},
		{"gfx950", 4, 1e6, 10.06 + 8.285, 0.001},
		{"gfx950", 8, 5760, 9.9, 0.3}, // batch 1 of hidden 2880 in bf16
		{"gfx950", 8, 1474560, 25.1, 0.3},
		{"gfx950", 8, 786432, 16.0, 0.15}, // vllm-project/vllm#39080
		// Decode messages in serving: about 8 us a call.
		{"gfx950", 8, 32 * 7168 * 2 / 8, 8, 0.15},
		{"gfx942", 2, 4194304, 93.79, 0.1}, // ROCm/aiter#801
		{"gfx942", 4, 1048576, 22.91, 0.1}, // sgl-project/sglang#6619
		{"gfx942", 8, 1 << 28, 1534.4, 0.05},
		{"sm_90", 8, 1 << 20, 13.4, 0.1}, // between 12.1 (0.5 M elements/2) and 14.1 us
	}
	for _, tt := range tests {
		e := testModel(t, tt.isa, Options{}).AllReduce(tt.ranks, tt.bytes)
		if !near(e.Time, tt.want, tt.tol) {
			t.Errorf("%s: AllReduce(%d, %g) = %.2f us, want %.2f +-%.0f %%", tt.isa, tt.ranks, tt.bytes, e.Time.Microseconds(), tt.want, tt.tol*100)
		}
	}
}

func TestMeasuredAllToAll(t *testing.T) {
	t.Parallel()
	m := testModel(t, "gfx950", Options{})
	// floor + bytes*(g-1)/g/bandwidth.
	for _, tt := range []struct {
		ranks int
		want  float64
	}{{2, 26.59 + 1e6*0.5/57.2e3}, {4, 22.52 + 1e6*0.75/148.3e3}, {8, 18.6 + 1e6*0.875/290.3e3}} {
		if e := m.AllToAll(tt.ranks, 1e6); !near(e.Time, tt.want, 0.002) || !e.Measured {
			t.Errorf("AllToAll(%d, 1e6) = %.2f us (measured %v), want %.2f", tt.ranks, e.Time.Microseconds(), e.Measured, tt.want)
		}
	}
}

func TestNothingToDo(t *testing.T) {
	t.Parallel()
	m := testModel(t, "gfx950", Options{})
	for _, e := range []Estimate{
		m.AllReduce(1, 1e6), m.AllReduce(8, 0), m.AllReduce(0, 1), m.AllReduce(8, -1), m.AllReduce(8, units.Bytes(math.NaN())),
		m.AllGather(1, 1e6), m.ReduceScatter(1, 1e6), m.AllToAll(1, 1e6), m.PointToPoint(0, false),
	} {
		if e != (Estimate{}) {
			t.Errorf("got %+v, want nothing", e)
		}
	}
}

// TestShape holds every operation of every table to the promises of the package:
// above the lower bound, growing, and without a cliff.
func TestShape(t *testing.T) {
	t.Parallel()
	options := map[string]Options{
		"default": {}, "eager": {Eager: true}, "quick": {QuickReduce: true}, "ring": {Algorithm: "ring"},
		"two_shot": {Algorithm: "two_shot"}, "one_shot": {Algorithm: "one_shot"}, "hierarchical": {Algorithm: "hierarchical"},
		"direct": {A2AAlgorithm: "direct"}, "fast": {AllReduceEfficiency: 50, AllToAllEfficiency: 50, FusedNorm: true},
	}
	for _, isa := range testISAs {
		for name, opt := range options {
			if opt.QuickReduce && len(testTable(t, isa).quantisations()) == 0 {
				continue
			}
			m := testModel(t, isa, opt)
			for op, price := range map[string]func(int, units.Bytes) Estimate{
				"all-reduce": m.AllReduce, "all-gather": m.AllGather, "reduce-scatter": m.ReduceScatter, "all-to-all": m.AllToAll,
				"send": func(_ int, b units.Bytes) Estimate { return m.PointToPoint(b, false) },
				"far":  func(_ int, b units.Bytes) Estimate { return m.PointToPoint(b, true) },
			} {
				for _, ranks := range []int{2, 3, 4, 6, 8, 12, 16, 64, 100} {
					checkShape(t, isa+" "+name+" "+op, ranks, price)
				}
			}
		}
	}
}

func checkShape(t *testing.T, name string, ranks int, price func(int, units.Bytes) Estimate) {
	t.Helper()
	last := 0.0
	for b := 100.0; b < 2e10; b *= 1.05 {
		e := price(ranks, units.Bytes(b))
		now := float64(e.Time)
		switch {
		case !(now > 0) || math.IsInf(now, 0):
			t.Fatalf("%s over %d ranks: %g bytes take %g s", name, ranks, b, now)
		case e.Time < e.Lower:
			t.Fatalf("%s over %d ranks: %g bytes take %g s, less than the wire's %g", name, ranks, b, now, float64(e.Lower))
		case now < last*(1-1e-12):
			t.Fatalf("%s over %d ranks: %g bytes take %g s, fewer took %g", name, ranks, b, now, last)
		case last > 0 && now > 1.2*last:
			t.Fatalf("%s over %d ranks: a cliff at %g bytes, %g after %g s", name, ranks, b, now, last)
		}
		last = now
	}
}

func TestTopology(t *testing.T) {
	t.Parallel()
	mesh, sw := testModel(t, "gfx942", Options{}), testModel(t, "sm_90", Options{})
	// Two ranks of a mesh have one link of seven: 64 GB/s. 1 GB through it takes
	// 15.6 ms at best; eight ranks share 7 links: 2*7/8 GB / 448 GB/s = 3.9 ms.
	if got := mesh.AllReduce(2, 1e9).Lower; !near(got, 15625, 1e-9) {
		t.Errorf("mesh, 2 ranks: lower %.0f us", got.Microseconds())
	}
	if got := mesh.AllReduce(8, 1e9).Lower; !near(got, 3906.25, 1e-9) {
		t.Errorf("mesh, 8 ranks: lower %.0f us", got.Microseconds())
	}
	// A switch serves any group at full rate, and reduces on the way.
	if got := sw.AllReduce(8, 1e9).Lower; !near(got, 1e9/450e3, 1e-9) {
		t.Errorf("switch: lower %.0f us", got.Microseconds())
	}
	// Crossing domains costs more than staying inside.
	for _, m := range []*Model{mesh, sw} {
		if in, out := m.AllReduce(8, 1e6).Time, m.AllReduce(16, 1e6).Time; out <= in {
			t.Errorf("16 ranks over two domains take %g, 8 in one %g", float64(out), float64(in))
		}
	}
	if e := mesh.AllReduce(16, 1e6); e.Measured || e.Spread < 0.4 {
		t.Errorf("two domains: measured %v, spread %g; want an unmeasured, wide estimate", e.Measured, e.Spread)
	}
}

func TestKnobs(t *testing.T) {
	t.Parallel()
	us := func(v float64) *units.Seconds { s := units.Seconds(v * 1e-6); return &s }
	mib := func(v float64) *units.Bytes { b := units.Bytes(v) * units.MiB; return &b }
	base := testModel(t, "gfx950", Options{})
	// The floor replaces the fixed time and leaves the slope.
	m := testModel(t, "gfx950", Options{AllReduceFloor: us(20), AllToAllFloor: us(40)})
	if got := m.AllReduce(2, 1e6).Time; !near(got, 20+15.17, 0.001) {
		t.Errorf("floor of 20 us: %.2f us", got.Microseconds())
	}
	if got := m.AllToAll(8, 1e6).Time; !near(got, 40+3.014, 0.001) {
		t.Errorf("all-to-all floor of 40 us: %.2f us", got.Microseconds())
	}
	if e := testModel(t, "gfx950", Options{CustomAllReduceMax: mib(0)}).AllReduce(8, 1e6); e.Implementation != "rccl" {
		t.Errorf("without the custom all-reduce: %s", e.Implementation)
	}
	if e := testModel(t, "gfx950", Options{AllToAllMeasuredMax: mib(0)}).AllToAll(8, 1e6); e.Implementation != "rccl" {
		t.Errorf("without the measured all-to-all: %s", e.Implementation)
	}
	if a, b := base.AllReduce(8, 1e4).Time, testModel(t, "gfx950", Options{Eager: true}).AllReduce(8, 1e4).Time; b <= a {
		t.Errorf("eager %g is not slower than captured %g", float64(b), float64(a))
	}
	if a, b := base.AllReduce(8, 4e6).Time, testModel(t, "gfx950", Options{AllReduceEfficiency: 0.5}).AllReduce(8, 4e6).Time; !near(b, 2*a.Microseconds(), 1e-9) {
		t.Errorf("half the efficiency takes %g, not twice %g", float64(b), float64(a))
	}
	// ROCm/aiter#801: int4 takes 66.95 us for 8 MiB on 2 MI300X, the plain one 181.43.
	quick := testModel(t, "gfx942", Options{QuickReduce: true})
	if e := quick.AllReduce(2, 8<<20); !near(e.Time, 66.95, 0.1) || !strings.Contains(e.Implementation, "int4") {
		t.Errorf("quick-reduce: %.1f us by %s", e.Time.Microseconds(), e.Implementation)
	}
	if e := quick.AllReduce(2, 8192); e.Implementation != "vllm custom all-reduce" {
		t.Errorf("a small message goes by %s", e.Implementation)
	}
}

func TestForcedNeverBeatsAuto(t *testing.T) {
	t.Parallel()
	for _, isa := range testISAs {
		auto := testModel(t, isa, Options{})
		for _, a := range algorithms {
			m := testModel(t, isa, Options{Algorithm: a})
			for b := units.Bytes(1 << 10); b < 1<<30; b *= 3 {
				for _, ranks := range []int{2, 4, 8} {
					if got, want := m.AllReduce(ranks, b).Time, auto.AllReduce(ranks, b).Time; got < want {
						t.Errorf("%s: %s over %d ranks takes %g, auto %g", isa, a, ranks, float64(got), float64(want))
					}
				}
			}
		}
	}
}

func TestDispatch(t *testing.T) {
	t.Parallel()
	fp8 := models.Format{Name: "fp8", Element: models.FP8}
	m := testModel(t, "gfx942", Options{})
	x := Exchange{Ranks: 8, Experts: 256, TopK: 8, Hidden: 7168, TokensPerRank: 128, Dispatch: fp8}
	// MoRI-EP, EP8 on MI300X: 35 us dispatch and 47 us combine.
	e := m.Dispatch(x)
	if !near(e.Dispatch.Time, 35, 0.08) || !near(e.Combine.Time, 47, 0.08) {
		t.Errorf("EP8: %.1f and %.1f us, want 35 and 47", e.Dispatch.Time.Microseconds(), e.Combine.Time.Microseconds())
	}
	// EP16 over two nodes: 115 and 141 us.
	x.Ranks = 16
	e = m.Dispatch(x)
	if !near(e.Dispatch.Time, 115, 0.3) || !near(e.Combine.Time, 141, 0.3) {
		t.Errorf("EP16: %.1f and %.1f us, want 115 and 141", e.Dispatch.Time.Microseconds(), e.Combine.Time.Microseconds())
	}
	x.Ranks, x.Replicated = 8, true
	e = m.Dispatch(x)
	if want := m.AllReduce(8, 128*7168*2); e.Dispatch != (Estimate{}) || e.Combine != want {
		t.Errorf("replicated tokens: %+v, want one all-reduce", e)
	}
	half := testModel(t, "gfx942", Options{HiddenFraction: 0.5}).Dispatch(x)
	if half.Exposed() != half.Total()/2 {
		t.Errorf("exposed %g of %g", float64(half.Exposed()), float64(half.Total()))
	}
	if e := m.Dispatch(Exchange{Ranks: 1, TopK: 8, Hidden: 1, TokensPerRank: 1}); e.Total() != 0 {
		t.Errorf("one rank: %+v", e)
	}
}

func TestCopies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		groups, experts, topK int
		want                  float64
	}{
		{8, 0, 8, 8 * (1 - math.Pow(7.0/8, 8))},
		{2, 4, 1, 1},
		{2, 4, 2, 5.0 / 3},   // both in one half: 2 of 6 pairs
		{4, 4, 4, 4},         // every expert
		{8, 256, 8, 5.29465}, // 8*(1 - C(224,8)/C(256,8))
	} {
		if got := Copies(tt.groups, tt.experts, tt.topK); math.Abs(got-tt.want) > 1e-3 {
			t.Errorf("Copies(%d, %d, %d) = %.5f, want %.5f", tt.groups, tt.experts, tt.topK, got, tt.want)
		}
	}
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	p, table := testPart("gfx950"), testTable(t, "gfx950")
	negative := units.Seconds(-1)
	for want, opt := range map[string]Options{
		`did you mean "ring"`: {Algorithm: "rnig"}, "unknown all-to-all": {A2AAlgorithm: "x"},
		"unknown quick-reduce": {QuickReduceFormat: "int3"}, "hidden fraction": {HiddenFraction: 2},
		"efficiencies": {AllReduceEfficiency: math.NaN()}, "floor": {AllReduceFloor: &negative},
	} {
		if _, err := New(&p.gpu, &p.fabric, table, opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v): %v, want %q", opt, err, want)
		}
	}
	bad := p.fabric
	bad.LinkEfficiency = 0
	if _, err := New(&p.gpu, &bad, table, Options{}); err == nil {
		t.Error("a fabric without efficiency: no error")
	}
	if _, err := New(nil, nil, nil, Options{}); err == nil {
		t.Error("nothing given: no error")
	}
}

func TestLoadTable(t *testing.T) {
	t.Parallel()
	tree := os.DirFS("../../configs")
	if table, err := LoadTable(tree, &hardware.GPU{Name: "x", Arch: "cdna2"}); err != nil || table.DerivedFrom != "gfx942" {
		t.Errorf("by architecture: %+v, %v", table, err)
	}
	_, err := LoadTable(tree, &hardware.GPU{Name: "x", ISA: "gfx94"})
	if !errors.Is(err, ErrNoTable) || !strings.Contains(err.Error(), "gfx942") {
		t.Errorf("unknown part: %v", err)
	}
	// Every shipped part has a table, and a model in its own fabric.
	catalog, err := hardware.Load(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range catalog.Names() {
		gpu, err := catalog.Lookup(name)
		if err != nil {
			continue // announced without the numbers a projection needs
		}
		table, err := LoadTable(tree, gpu)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		fabric, err := catalog.FabricOf(gpu)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m, err := New(gpu, fabric, table, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkShape(t, name, 2, m.AllReduce)
		checkShape(t, name, 16, m.AllToAll)
	}
	broken := fstest.MapFS{Directory + "/a.yaml": {Data: []byte("name: a\nisa: [b]\nlike: c\nsource: s\n")}}
	if _, err := LoadTable(broken, &hardware.GPU{ISA: "b"}); err == nil || !strings.Contains(err.Error(), `"c"`) {
		t.Errorf("like nothing: %v", err)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile("../../configs/fabrics/collectives/gfx950.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ old, new, want string }{
		{"topology: mesh", "topology: mehs", `did you mean "mesh"`},
		{"floor_us: 7.81", "floor_us: .nan", "floor of 0 or more"},
		{"gb_s: 65.9", "gb_s: 0", "positive bandwidth"},
		{"family: expert", "family: expart", `did you mean "expert"`},
		{"operation: send_receive", "operation: all_gather", "no library implementation of send_receive"},
		{"custom_max_mib", "custom_max_mb", "unknown key"},
		{"{ranks: 2, smallest", "{ranks: 9, smallest", "ascending order"},
	} {
		bad := strings.Replace(string(good), tt.old, tt.new, 1)
		if _, err := Parse("t.yaml", []byte(bad)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.new, err, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	good, err := os.ReadFile("../../configs/fabrics/collectives/gfx950.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("name: a\nlike: b\n"))
	p := testPart("gfx950")
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := Parse("t.yaml", data)
		if err != nil {
			return
		}
		m, err := New(&p.gpu, &p.fabric, table, Options{})
		if err != nil {
			return
		}
		for _, ranks := range []int{2, 3, 8, 16} {
			for _, b := range []units.Bytes{1, 1e5, 1e9} {
				if e := m.AllReduce(ranks, b); !(e.Time > 0) || e.Time < e.Lower {
					t.Fatalf("AllReduce(%d, %g) = %+v", ranks, b, e)
				}
			}
		}
	})
}

func TestNoAllocations(t *testing.T) {
	m := testModel(t, "gfx950", Options{QuickReduce: true})
	x := Exchange{Ranks: 16, Experts: 256, TopK: 8, Hidden: 7168, TokensPerRank: 128}
	n := testing.AllocsPerRun(100, func() {
		_ = m.AllReduce(8, 1e5)
		_ = m.AllReduce(3, 1e8)
		_ = m.AllToAll(16, 1e6)
		_ = m.Dispatch(x)
	})
	if n != 0 {
		t.Errorf("%g allocations, want 0", n)
	}
	if names := testTable(t, "gfx950").quantisations(); !slices.Contains(names, defaultQuantisation) {
		t.Errorf("quantisations %v lack the default %s", names, defaultQuantisation)
	}
}

func BenchmarkAllReduce(b *testing.B) {
	m := testModel(b, "gfx950", Options{})
	b.ReportAllocs()
	for b.Loop() {
		_ = m.AllReduce(8, 1e5)
	}
}

func BenchmarkNew(b *testing.B) {
	p, table := testPart("gfx950"), testTable(b, "gfx950")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(&p.gpu, &p.fabric, table, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
