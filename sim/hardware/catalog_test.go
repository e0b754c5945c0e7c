package hardware

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"infera/internal/units"
	"infera/models"
)

// shipped is the tree of configs; read from disk, so that the tests of this
// package do not depend on what else is embedded.
var shipped = os.DirFS("../../configs")

func load(t testing.TB) *Catalog {
	t.Helper()
	c, err := Load(shipped)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// planned are the parts that can be planned on as shipped; announced and
// probed ones are told apart.
var (
	planned = []string{
		"a100", "b200", "b300", "gb200", "gb300", "h100", "h200",
		"mi250x", "mi300a", "mi300x", "mi308x", "mi325x", "mi350x", "mi355x", "mi455x", "h20", "l20", "rtx-pro-6000", "rtx3090", "rtx4090", "rtx5090",
	}
	gaps = []string{"cpu", "mi430x", "mi440x"}
)

func TestShippedProfiles(t *testing.T) {
	c := load(t)
	want := slices.Sorted(slices.Values(append(slices.Clone(planned), gaps...)))
	if got := c.Names(); !slices.Equal(got, want) {
		t.Fatalf("Names() = %v, want %v", got, want)
	}
	for _, name := range planned {
		t.Run(name, func(t *testing.T) {
			g, err := c.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			plausible(t, g)
			f, err := c.FabricOf(g)
			if err != nil {
				t.Fatal(err)
			}
			if g.Links > 0 {
				if sum := float64(g.Links) * float64(g.LinkBandwidth); math.Abs(sum-float64(g.ScaleUp)) > 1e-6*sum {
					t.Errorf("%d links of %v do not make %v", g.Links, g.LinkBandwidth, g.ScaleUp)
				}
			}
			if f.NIC >= f.Bandwidth(g) {
				t.Errorf("network %v not below scale-up %v", f.NIC, f.Bandwidth(g))
			}
		})
	}
	for _, name := range gaps {
		if _, err := c.Lookup(name); !errors.Is(err, ErrIncomplete) {
			t.Errorf("Lookup(%s) = %v, want ErrIncomplete", name, err)
		}
		if _, missing, err := c.Describe(name); err != nil || len(missing) == 0 {
			t.Errorf("Describe(%s) = %v, %v", name, missing, err)
		}
	}
}

// plausible checks what holds for every accelerator: a narrower operand is
// never slower than a wider one, matrix not slower than vector, data sheet
// above usable memory, and the roofline's knee within decades of the known.
func plausible(t *testing.T, g *GPU) {
	t.Helper()
	p := g.Peaks
	for _, o := range []struct {
		name         string
		wider, other units.FLOPsPerSecond
	}{
		{"bf16 >= fp32", p.FP32, p.BF16}, {"fp16 = bf16", p.BF16, p.FP16}, {"fp8 >= bf16", p.BF16, p.FP8},
		{"fp6 >= fp8", p.FP8, p.FP6}, {"fp4 >= fp6", p.FP6, p.FP4}, {"int8 >= bf16", p.BF16, p.INT8},
		{"bf16 >= vector fp32", g.VectorFP32, p.BF16},
	} {
		if o.other > 0 && o.other < o.wider {
			t.Errorf("not %s: %v and %v", o.name, o.other, o.wider)
		}
	}
	for d := models.FP32; d <= models.INT4; d++ {
		if g.Peak(d) <= 0 {
			t.Errorf("Peak(%v) = %v", d, g.Peak(d))
		}
	}
	if g.UsableCapacity() > g.Capacity || g.UsableCapacity() < 0.9*g.Capacity {
		t.Errorf("usable %v of %v GiB", g.UsableCapacity().GiB(), g.Capacity.GiB())
	}
	if knee := float64(p.BF16) / float64(g.Bandwidth); knee < 30 || knee > 1000 {
		t.Errorf("bf16 peak over bandwidth = %v FLOP/B", knee)
	}
	if g.Source == "" || g.Confidence == "" || g.Vendor == "" || g.Arch == "" || g.ISA == "" {
		t.Errorf("%s lacks provenance or identity: %+v", g.Name, g)
	}
}

// Figures of the data sheets, and the totals that drivers report.
func TestKnownFigures(t *testing.T) {
	c := load(t)
	for _, tt := range []struct {
		name                 string
		cu, chiplets         int
		usable, tbs          float64 // GiB, TB/s
		bf16, fp8, fp4, gbps float64 // TFLOPS, GB/s
	}{
		{"mi300x", 304, 8, 191.98, 5.3, 1307.4, 2614.9, 0, 448},
		{"mi325x", 304, 8, 255.98, 6, 1307.4, 2614.9, 0, 448},
		{"mi355x", 256, 8, 287.98, 8, 2516.6, 5033.2, 10066.3, 537.6},
		{"h100", 132, 1, 79.19, 3.35, 989.4, 1978.9, 0, 450},
		{"h200", 132, 1, 139.81, 4.8, 989.4, 1978.9, 0, 450},
		{"b200", 148, 1, 178.35, 7.7, 2250, 4500, 9000, 900},
		{"b300", 148, 1, 268, 7.7, 2250, 4500, 13500, 900},
	} {
		g, err := c.Lookup(tt.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []struct {
			what      string
			got, want float64
		}{
			{"CUs", float64(g.ComputeUnits), float64(tt.cu)}, {"chiplets", float64(g.Chiplets), float64(tt.chiplets)},
			{"usable GiB", g.UsableCapacity().GiB(), tt.usable}, {"TB/s", float64(g.Bandwidth) / 1e12, tt.tbs},
			{"bf16", float64(g.Peaks.BF16) / 1e12, tt.bf16}, {"fp8", float64(g.Peaks.FP8) / 1e12, tt.fp8},
			{"fp4", float64(g.Peaks.FP4) / 1e12, tt.fp4}, {"scale-up GB/s", float64(g.ScaleUp) / 1e9, tt.gbps},
		} {
			if math.Abs(v.got-v.want) > 1e-9*math.Abs(v.want) {
				t.Errorf("%s: %s = %v, want %v", tt.name, v.what, v.got, v.want)
			}
		}
	}
	g, err := c.Lookup("mi300x")
	if err != nil {
		t.Fatal(err)
	}
	if g.Supports(models.FP4) || g.Peak(models.FP4) != g.Peaks.BF16 {
		t.Error("gfx942 has no fp4 instructions and computes it as bf16")
	}
}

func TestLookupSpellings(t *testing.T) {
	c := load(t)
	for in, want := range map[string]string{
		"mi300x": "mi300x", "MI300X": "mi300x", " Mi-300X ": "mi300x", "AMD Instinct MI300X": "mi300x",
		"AMD Instinct MI300X OAM": "mi300x", "gfx942": "mi300x", "gfx942:sramecc+:xnack-": "mi300x", "GFX950": "mi355x",
		"gfx90a": "mi250x", "AMD Instinct MI325X 256GB": "mi325x", "mi355": "mi355x", "MI308X": "mi308x",
		"NVIDIA H100 80GB HBM3": "h100", "NVIDIA-H100-80GB-HBM3": "h100", "h100_sxm": "h100", "NVIDIA A100-SXM4-80GB": "a100",
		"NVIDIA H200": "h200", "b200-192GB": "b200", "NVIDIA B300 SXM6 AC": "b300", "gb200-nvl72": "gb200", "GB300": "gb300",
	} {
		g, err := c.Lookup(in)
		if err != nil {
			t.Errorf("Lookup(%q): %v", in, err)
		} else if g.Name != want {
			t.Errorf("Lookup(%q) = %s, want %s", in, g.Name, want)
		}
	}
}

func TestLookupUnknown(t *testing.T) {
	c := load(t)
	for in, say := range map[string]string{
		"mi3555x": `did you mean "mi355x"?`, "gfx951": `did you mean "gfx950"?`, "": "known: a100,", "MI300": "mi300",
		"NVIDIA H100 PCIe": "known:", "NVIDIA A100-SXM4-40GB": "the profile a100 is the 80 GB part", "../names": "known:", "names": "known:",
		"mi300x/../../x": "known:", strings.Repeat("x", 1<<16): "known:",
	} {
		_, err := c.Lookup(in)
		if !errors.Is(err, ErrUnknownGPU) || !strings.Contains(err.Error(), say) {
			t.Errorf("Lookup(%.40q) = %.300v, want ErrUnknownGPU saying %q", in, err, say)
		}
	}
	if _, err := c.Lookup("mi440x"); !strings.Contains(err.Error(), "peak_tflops.bf16") {
		t.Errorf("an announced part does not say what is missing: %v", err)
	}
}

func TestFabrics(t *testing.T) {
	c := load(t)
	for _, name := range c.FabricNames() {
		f, err := c.Fabric(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if f.Source == "" || f.Confidence == "" || f.DomainSize < 1 {
			t.Errorf("%+v", f)
		}
	}
	_, err := c.Fabric("xgmi-mi301x")
	if !errors.Is(err, ErrUnknownFabric) || !strings.Contains(err.Error(), `did you mean "xgmi-mi300x"?`) {
		t.Errorf("Fabric() = %v", err)
	}
	g, err := c.Lookup("mi300x")
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.FabricOf(g)
	if err != nil {
		t.Fatal(err)
	}
	// 7 x 64 GB/s; one link to one peer; 8 x 50 GB/s of network over 8 GPUs.
	if f.Bandwidth(g) != 448e9 || f.PeerBandwidth(g) != 64e9 || f.NICBandwidthPerGPU() != 50e9 {
		t.Errorf("bandwidths %v, %v, %v", f.Bandwidth(g), f.PeerBandwidth(g), f.NICBandwidthPerGPU())
	}
}

func TestWithCapacity(t *testing.T) {
	g, err := load(t).Lookup("mi300x")
	if err != nil {
		t.Fatal(err)
	}
	h, err := g.WithCapacity(64 * units.GB)
	if err != nil || h.UsableCapacity() != 64e9 || h.Capacity != 64e9 {
		t.Errorf("WithCapacity() = %v, %v", h, err)
	}
	if g.UsableCapacity().GiB() != 191.98 {
		t.Error("WithCapacity changed its receiver")
	}
	for _, b := range []units.Bytes{0, -1, units.Bytes(math.NaN()), units.Bytes(math.Inf(1)), 1e15} {
		if _, err := g.WithCapacity(b); !errors.Is(err, ErrInvalid) {
			t.Errorf("WithCapacity(%v) = %v, want ErrInvalid", b, err)
		}
	}
}

// tree is a minimal configs tree with a profile and the given names.yaml.
func tree(profile, names string) fs.FS {
	return fstest.MapFS{
		"hardware/x1.yaml":    {Data: []byte(profile)},
		"hardware/names.yaml": {Data: []byte(names)},
		"fabrics/f.yaml":      {Data: []byte("name: f\n")},
	}
}

func TestBadTrees(t *testing.T) {
	for _, tt := range []struct{ profile, names, want string }{
		{"name: x2\n", "x1: []\n", "hardware/x1.yaml: a shipped profile is named as its file"},
		{"name: x1\nbase: mi300x\n", "x1: []\n", "has no base or fabric block"},
		{"name: x1\nclock_mhz: -3\n", "x1: []\n", "hardware/x1.yaml: clock_mhz is -3e+06, want above 0"},
		{"name: x1\nmemory: {bandwidth_tb_s: .nan}\n", "x1: []\n", "memory.bandwidth_tb_s is NaN"},
		{"name: x1\nmemory: {bandwidth_tb_s: 5300}\n", "x1: []\n", "memory.bandwidth_tb_s is 5.3e+15"},
		{"name: x1\nmemory: {bandwith_tb_s: 5}\n", "x1: []\n", `unknown key "bandwith_tb_s"; did you mean "bandwidth_tb_s"?`},
		{"name: x1\nvendor: intel\n", "x1: []\n", `vendor "intel", want one of amd, nvidia, cpu`},
		{"name: x1\n", "x1: []\n", "x1 lacks vendor, arch, scale_up.fabric, compute_units"},
		{"name: x1\n", "x1: [y]\nx3: []\n", `aliases of "x3", which has no profile`},
		{"name: x1\n", "x1: {a: b}\n", "hardware/names.yaml:1: cannot unmarshal"},
	} {
		c, err := Load(tree(tt.profile, tt.names))
		if err == nil {
			_, err = c.Lookup("x1")
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.profile, err, tt.want)
		}
	}
	if _, err := Load(fstest.MapFS{}); err == nil {
		t.Error("Load() of an empty tree succeeds")
	}
	c, err := Load(tree("name: x1\n", "x1: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fabric("f"); !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "topology, domain_size, link_efficiency") {
		t.Errorf("Fabric() = %v", err)
	}
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(shipped); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	c := load(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Lookup("gfx942"); err != nil {
			b.Fatal(err)
		}
	}
}
