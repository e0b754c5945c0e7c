package software

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"infera/configs"
	"infera/internal/units"
	"infera/models"
	"infera/sim/hardware"
)

func load(t testing.TB) *Catalog {
	t.Helper()
	c, err := Load(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func engine(t testing.TB, name string) *Engine {
	t.Helper()
	e, err := load(t).Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

var (
	mi300x = &hardware.GPU{Name: "mi300x", Vendor: "amd", ISA: "gfx942", Capacity: 192e9, Usable: units.Bytes(191.98) * units.GiB,
		Peaks: hardware.Rates{BF16: 1, FP16: 1, FP8: 1, INT8: 1}}
	h200 = &hardware.GPU{Name: "h200", Vendor: "nvidia", ISA: "sm_90", Capacity: 141e9, Usable: units.Bytes(139.8) * units.GiB,
		Peaks: hardware.Rates{BF16: 1, FP16: 1, FP8: 1, INT8: 1}}
	a100    = &hardware.GPU{Name: "a100", Vendor: "nvidia", ISA: "sm_80", Capacity: 80 * units.GiB, Peaks: hardware.Rates{BF16: 1}}
	rtx4090 = &hardware.GPU{Name: "rtx4090", Vendor: "nvidia", ISA: "sm_89", Capacity: 24 * units.GiB, Peaks: hardware.Rates{BF16: 1}}
)

func TestLookup(t *testing.T) {
	c := load(t)
	for name, want := range map[string]string{
		"vllm": "vllm", "VLLM": "vllm", "vLLM 0.9.0": "vllm", "dynamo-vllm": "vllm", "llmd-vllm": "vllm",
		"trt": "trtllm", "TensorRT 10.11": "trtllm", "dynamo-trt": "trtllm", "nim-trtllm": "trtllm",
		"sglang (infera)": "sglang", "mori-sglang": "sglang", "mooncake-atom": "atom",
		"atom-vllm": "atom-vllm", "atom-sglang": "atom-sglang", "llama.cpp": "llamacpp",
		"Mango LLMBoost AI Enterprise Platform": "vllm",
	} {
		e, err := c.Lookup(name)
		if err != nil {
			t.Errorf("Lookup(%q): %v", name, err)
		} else if e.Name != want {
			t.Errorf("Lookup(%q) = %s, want %s", name, e.Name, want)
		}
	}
	_, err := c.Lookup("sglnag")
	if !errors.Is(err, ErrEngine) || !strings.Contains(err.Error(), `did you mean "sglang"?`) {
		t.Errorf("Lookup(sglnag) = %v", err)
	}
}

func TestRelease(t *testing.T) {
	for _, tt := range []struct{ engine, spec, version, from, to string }{
		{"vllm", "0.19.0", "0.19.0", "2026-04-02", "2026-04-02"},
		{"vllm", "v0.19.0", "0.19.0", "2026-04-02", "2026-04-02"},
		{"vllm", "vllm/vllm-openai-rocm:v0.22.0", "0.22.0", "2026-05-30", "2026-05-30"},
		{"vllm", "rocm/vllm:rocm6.4.1_vllm_0.10.1_20250909", "0.10.1", "2025-09-09", "2025-09-09"},
		{"vllm", "rocm/vllm:rocm6.4.1_vllm_0.9.0.1_20250605", "0.9.0.1", "2025-06-05", "2025-06-05"},
		{"vllm", "0.14.1 / ROCm 6.4.2", "0.14.1", "2026-01-24", "2026-01-24"},
		{"vllm", "vLLM 0.9.0.2.dev108+g71faa1880.d20250730.rocm641, Pytorch 2.7.0", "0.9.0.2.dev108", "2025-07-30", "2025-07-30"},
		{"vllm", "0.26.1rc1 nightly", "0.26.1rc1", "2026-07-27", "2026-07-27"},
		{"vllm", "0.9.5", "0.9.5", "2025-07-07", "2025-07-07"}, // unlisted: the newest before it
		{"vllm", "nightly-0ba2aa35a8 (2026-07-25)", "", "", ""},
		{"vllm", "2026-04-10", "0.19.0", "2026-04-10", "2026-04-10"},
		{"vllm", "2025-09-29..2026-07-18", "0.15.1", "2025-09-29", "2026-07-18"},
		{"vllm", "2026-06", "0.23.0", "2026-06-01", "2026-06-30"},
		{"sglang", "v0.5.9", "0.5.9", "2026-02-24", "2026-02-24"},
		{"sglang", "lmsysorg/sglang:v0.5.12-rocm700-mi30x", "0.5.12", "2026-05-15", "2026-05-15"},
		{"sglang", "lmsysorg/sglang-rocm:v0.5.10.post1-rocm720-mi35x-20260501", "0.5.10.post1", "2026-05-01", "2026-05-01"},
		{"sglang", "rocm/sgl-dev:sglang-0.5.6.post1-rocm700-mi35x-mori-0113", "0.5.6.post1", "2025-12-03", "2025-12-03"},
		{"sglang", "nightly-dev-20260402-d7256eb6", "0.5.9", "2026-04-02", "2026-04-02"},
		{"sglang", "0.5.1-rc0.pre1", "0.5.1-rc0.pre1", "2025-10-01", "2025-10-01"},
		{"sglang", "0.5.1.post1", "0.5.1.post1", "2025-08-25", "2025-08-25"},
		{"atom", "rocm/atom-dev:nightly_202605231519", "0.1.2", "2026-05-23", "2026-05-23"},
		{"atom", "rocm/atom:rocm7.1.1-ubuntu24.04-pytorch2.9-atom0.1.1-MI350x", "0.1.1", "2026-01-10", "2026-01-10"},
		{"atom", "rocm/atom:rocm7.2.3_ubuntu24.04_py3.12_pytorch_release_2.10.0_atom20260511", "0.1.2", "2026-05-11", "2026-05-11"},
		{"atom-vllm", "rocm/atom-dev:vllm-v0.19.0-nightly_20260516", "0.19.0", "2026-05-16", "2026-05-16"},
		{"atom-vllm", "rocm/atom-dev:vllm-v0.25.1-nightly_20260805", "0.25.1", "2026-08-05", "2026-08-05"},
		{"atom-sglang", "rocm/atom-dev:sglang-v0.5.10-nightly_20260520", "0.5.10", "2026-05-20", "2026-05-20"},
		{"trtllm", "nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc6.post3", "1.2.0rc6.post3", "2026-01-10", "2026-01-10"},
		{"trtllm", "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:0.8.1.post2", "0.8.1.post2", "2026-02-02", "2026-02-02"},
		{"trtllm", "TensorRT 10.11, CUDA 12.9", "10.11", "2025-06-21", "2025-06-21"},
		{"trtllm", "0.5.1-rc0.pre3", "0.5.1-rc0.pre3", "2025-09-30", "2025-09-30"},
	} {
		t.Run(tt.engine+" "+tt.spec, func(t *testing.T) {
			r, err := engine(t, tt.engine).Release(tt.spec)
			if tt.from == "" {
				if !errors.Is(err, ErrRelease) {
					t.Fatalf("Release() = %v, %v, want ErrRelease", r, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := []string{r.Version, r.From.String(), r.To.String()}
			if diff := cmp.Diff([]string{tt.version, tt.from, tt.to}, got); diff != "" {
				t.Errorf("Release(%q) (-want +got):\n%s", tt.spec, diff)
			}
		})
	}
}

func TestReleaseLatestAndResolve(t *testing.T) {
	e := engine(t, "atom")
	for _, spec := range []string{"", "latest"} {
		r, err := e.Release(spec)
		if err != nil || r != e.Latest() {
			t.Errorf("Release(%q) = %v, %v, want the latest", spec, r, err)
		}
	}
	r, err := e.Resolve("rocm/atom-dev:latest@sha256:313ecedeb2ed291b5c2ce3edd384d4bd0ef78bf72acef438deddce10ccb897f7", "2026-05-13")
	if err != nil || r.Date.String() != "2026-05-13" || r.Version != "0.1.2" {
		t.Errorf("Resolve(latest@digest, day) = %v, %v", r, err)
	}
	if _, err := e.Release("2026-05-02..2026-05-01"); !errors.Is(err, ErrRelease) {
		t.Errorf("backwards range: %v", err)
	}
}

// Figures of vllm#12369, #17885, #38284, #51726, #48526 and sglang#10975.
func TestDefaults(t *testing.T) {
	for _, tt := range []struct {
		engine, release string
		gpu             *hardware.GPU
		fraction        float64 // at TP1, without speculation
		batched, seqs   int
		charged, window bool
	}{
		{"vllm", "0.6.0", h200, 0.90, 2048, 256, false, false},
		{"vllm", "0.11.0", h200, 0.90, 8192, 1024, false, true},
		{"vllm", "0.11.0", a100, 0.90, 2048, 256, false, true},
		{"vllm", "0.20.0", mi300x, 0.90, 8192, 1024, false, true},
		{"vllm", "0.22.0", mi300x, 0.92, 8192, 1024, false, true},
		{"vllm", "0.22.0", h200, 0.92, 8192, 1024, true, true},
		{"vllm", "0.26.0", mi300x, 0.92, 8192, 1024, true, true},
		{"vllm", "0.28.0", mi300x, 0.92, 16384, 1024, true, true},
		{"vllm", "0.19.0", rtx4090, 0.90, 2048, 256, false, true},
		// 191.98 GiB = 196587.5 MiB; 512 + 1.5*16384 + 2*512 + 128 = 26240 MiB; 1 - 26240/196587.5 = 0.8665.
		{"sglang", "0.5.9", mi300x, 0.867, 16384, 0, false, true},
		// 139.8 GiB = 143155 MiB; 512 + 1.5*8192 + 2*256 + 128 = 13440 MiB; 1 - 0.0939 = 0.906.
		{"sglang", "0.5.9", h200, 0.906, 16384, 0, false, true},
		{"sglang", "0.4.0", h200, 0.88, 16384, 0, false, true},
		{"atom", "2026-05-24", mi300x, 0.90, 16384, 512, false, true},
		{"atom-vllm", "rocm/atom-dev:vllm-v0.19.0-nightly_20260516", mi300x, 0.90, 8192, 1024, false, true},
		{"atom-vllm", "rocm/atom-dev:vllm-v0.25.1-nightly_20260805", mi300x, 0.92, 8192, 1024, true, true},
	} {
		t.Run(tt.engine+" "+tt.release+" "+tt.gpu.Name, func(t *testing.T) {
			e := engine(t, tt.engine)
			r, err := e.Release(tt.release)
			if err != nil {
				t.Fatal(err)
			}
			d, err := e.Defaults(r, tt.gpu)
			if err != nil {
				t.Fatal(err)
			}
			chunk := d.PrefillChunk
			if chunk == 0 {
				chunk = d.MaxBatchedTokens
			}
			if f := d.Fraction(tt.gpu.UsableCapacity(), chunk, 1, 1, false, false); f != tt.fraction {
				t.Errorf("fraction = %v, want %v", f, tt.fraction)
			}
			if d.MaxBatchedTokens != tt.batched || d.MaxSequences != tt.seqs {
				t.Errorf("batched tokens, sequences = %d, %d, want %d, %d", d.MaxBatchedTokens, d.MaxSequences, tt.batched, tt.seqs)
			}
			if d.Graphs.Charged != tt.charged || d.SlidingWindow != tt.window {
				t.Errorf("charged, window = %v, %v, want %v, %v", d.Graphs.Charged, d.SlidingWindow, tt.charged, tt.window)
			}
			if d.Source("pool") == "" {
				t.Error("no source for pool")
			}
		})
	}
}

// AMD-AGI/Infera kimi-k3: SGLang turns 0.97 into 0.8245 for a vision model.
func TestMultimodalFraction(t *testing.T) {
	e := engine(t, "sglang")
	d, err := e.Defaults(e.Latest(), mi300x)
	if err != nil {
		t.Fatal(err)
	}
	d.MemoryFraction = 0.97
	if f := d.Fraction(mi300x.UsableCapacity(), 16384, 8, 1, false, true); f < 0.82449 || f > 0.82451 {
		t.Errorf("fraction = %v, want 0.8245", f)
	}
}

func TestWeight(t *testing.T) {
	fp4 := models.Format{Name: "mxfp4", Element: models.FP4, Group: 32, ScaleBits: 8, Activation: models.BF16}
	e := engine(t, "vllm")
	d, err := e.Defaults(e.Latest(), mi300x)
	if err != nil {
		t.Fatal(err)
	}
	if bits, compute := d.Weight(fp4, models.ClassRoutedExpert, mi300x); bits != 5.19 || compute != models.BF16 {
		t.Errorf("fp4 experts on gfx942 = %v bits, %v", bits, compute)
	}
	if bits, _ := d.Weight(fp4, models.ClassAttention, mi300x); bits != 4.25 {
		t.Errorf("fp4 attention on gfx942 = %v bits, want 4.25", bits)
	}
	if bits, _ := d.Weight(fp4, models.ClassRoutedExpert, h200); bits != 4.25 {
		t.Errorf("fp4 experts on h200 = %v bits, want 4.25", bits)
	}
	if w, h := d.ExpertPadding(fp4, h200); w != 64 || h != 256 {
		t.Errorf("expert padding on h200 = %d, %d, want 64, 256", w, h)
	}
	w4a4 := fp4
	w4a4.Activation = models.FP4
	if _, compute := d.Weight(w4a4, models.ClassRoutedExpert, h200); compute != models.BF16 {
		t.Errorf("w4a4 without fp4 instructions computes in %v", compute)
	}
}

func TestGraphs(t *testing.T) {
	g := Graphs{Mode: "full", Sizes: []int{1, 2, 4, 8, 16}, Base: 100, PerLayerSize: 2}
	for n, want := range map[int]int{1: 1, 3: 4, 9: 16, 16: 16} {
		if got, ok := g.Padded(n); got != want || !ok {
			t.Errorf("Padded(%d) = %d, %v, want %d", n, got, ok, want)
		}
	}
	if _, ok := g.Padded(17); ok {
		t.Error("Padded(17) found a graph")
	}
	if b := g.Bytes(10); b != 200 { // 100 + 2*10*5
		t.Errorf("Bytes(10) = %v, want 200", b)
	}
}

func TestVersionOrder(t *testing.T) {
	ordered := []string{"0.9.2", "0.10.1.dev3", "0.10.1rc1", "0.10.1rc2", "0.10.1rc2.post1", "0.10.1", "0.10.1.post1", "0.10.1.1", "0.10.2", "1.0"}
	for i, a := range ordered {
		for j, b := range ordered {
			va, _, oka := parseVersion(a)
			vb, _, okb := parseVersion(b)
			if !oka || !okb {
				t.Fatalf("cannot read %s or %s", a, b)
			}
			if va.less(vb) != (i < j) {
				t.Errorf("%s < %s = %v", a, b, va.less(vb))
			}
		}
	}
}

func TestLoadErrors(t *testing.T) {
	const head = "name: x\nreleases: [{version: 1.0.0, date: 2026-01-01}]\n"
	for _, tt := range []struct{ name, in, want string }{
		{"unknown key", head + "rulez: []\n", `engines/x.yaml:3: unknown key "rulez"; did you mean "rules"?`},
		{"no source", head + "rules: [{set: {pool: total}}]\n", "engines/x.yaml: rule 1: no source"},
		{"bad pool", head + "rules: [{source: s, set: {pool: totall}}]\n", `unknown pool rule "totall"`},
		{"bad size", head + "rules: [{source: s, set: {context: 3 parsecs}}]\n", "context"},
		{"bad boundary", head + "rules: [{source: s, since: 2.0.0, set: {pool: total}}]\n", "neither a date nor a release"},
		{"bad graph", head + "rules: [{source: s, set: {graph_sizes: [\"8..4/1\"]}}]\n", "graph_sizes"},
		{"descending", head + "rules: [{source: s, set: {graph_sizes: [\"8\", \"4\"]}}]\n", "ascend"},
		{"order", "name: x\nreleases: [{version: 1.0.0, date: 2026-01-01}, {version: 1.1.0, date: 2025-01-01}]\n", "after a newer"},
		{"name", "name: y\nreleases: [{version: 1.0.0, date: 2026-01-01}]\n", "want \"x\""},
		{"fraction", head + "rules: [{source: s, set: {memory_fraction: 1.5}}]\n", "0..1"},
		{"format", head + "weights_as: [{element: fp5}]\n", `unknown dtype "fp5"`},
		{"host", "name: x\nhost: z\nreleases: [{version: 1.0.0, date: 2026-01-01}]\n", `host "z"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load(fstest.MapFS{"engines/x.yaml": {Data: []byte(tt.in)}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Load() = %v, want %q", err, tt.want)
			}
		})
	}
}

func FuzzRelease(f *testing.F) {
	for _, s := range []string{"0.19.0", "2026-01-01..", "rocm/atom:rocm7.1.1-atom0.1.1", "v..", "nightly_202605231519", "vllm-v"} {
		f.Add(s)
	}
	e := engine(f, "atom-vllm")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := e.Release(s)
		if err != nil && !errors.Is(err, ErrRelease) {
			t.Fatalf("error of another kind: %v", err)
		}
		if err == nil && (r.From > r.To || r.Date < r.From || r.Date > r.To) {
			t.Fatalf("Release(%q) = %+v", s, r)
		}
	})
}

func FuzzLoad(f *testing.F) {
	data, err := configs.FS.ReadFile("engines/vllm.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add("name: x\nreleases: [{version: 1.0.0, date: 2026-01-01}]\nrules: [{source: s, set: {graph_sizes: [\"1..9/2\"]}}]\n")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := Load(fstest.MapFS{"engines/x.yaml": {Data: []byte(s)}})
		if err == nil {
			_ = c.Engines()[0].Latest().String()
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(configs.FS); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDefaults(b *testing.B) {
	e := engine(b, "atom-vllm")
	r := e.Latest()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Defaults(r, mi300x); err != nil {
			b.Fatal(err)
		}
	}
}
