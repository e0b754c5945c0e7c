package kernel_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"infera/configs"
	"infera/internal/strict"
	"infera/sim/hardware"
	"infera/sim/kernel"
)

func TestShippedCurvesLoad(t *testing.T) {
	t.Parallel()
	all, err := kernel.Load(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 5 {
		t.Fatalf("%d files of curves", len(all))
	}
	for _, c := range all {
		for name, m := range c.Matrix {
			if m.Source == "" {
				t.Errorf("%s: %s has no source", c.Name, name)
			}
			// Arithmetic never beats the peak in any tile: every share is at most
			// that of the largest.
			if m.Compute > 0.95 || m.Memory > 0.95 {
				t.Errorf("%s: %s reaches %g of the peak and %g of the bandwidth", c.Name, name, m.Compute, m.Memory)
			}
		}
	}
}

func TestEveryCompletePartHasCurves(t *testing.T) {
	t.Parallel()
	catalog, err := hardware.Load(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range catalog.Names() {
		gpu, err := catalog.Lookup(name)
		if err != nil {
			continue // announced parts without figures
		}
		curves, err := kernel.LoadCurves(configs.FS, gpu)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := kernel.New(gpu, curves); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChoiceOfCurves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		part, want string
		standIn    bool
	}{
		{"mi300x", "gfx942", false},
		{"mi300a", "gfx942", false},
		{"mi308x", "gfx942-80cu", false},
		{"mi325x", "gfx942-1000w", false},
		{"mi250x", "gfx942", true},
		{"mi355x", "gfx950", false},
		{"h100", "sm_90", false},
		{"gb200", "sm_100", false},
		{"b300", "sm_100", true},
		{"a100", "sm_90", true},
	} {
		curves, err := kernel.LoadCurves(configs.FS, part(t, c.part))
		if err != nil {
			t.Errorf("%s: %v", c.part, err)
			continue
		}
		if curves.Name != c.want || curves.StandIn != c.standIn {
			t.Errorf("%s takes %s (stand-in %v), want %s (%v)", c.part, curves.Name, curves.StandIn, c.want, c.standIn)
		}
	}
}

func TestStandInWidensTheSpread(t *testing.T) {
	t.Parallel()
	own, borrowed := model(t, "mi300x"), model(t, "mi250x")
	for _, f := range kernel.Families() {
		if !(borrowed.Spread(f) > own.Spread(f)) || own.Spread(f) <= 0 {
			t.Errorf("%s: spread %g of its own, %g of a stand-in", f, own.Spread(f), borrowed.Spread(f))
		}
	}
}

func TestUnknownPartIsAnError(t *testing.T) {
	t.Parallel()
	_, err := kernel.LoadCurves(configs.FS, &hardware.GPU{Name: "z9", ISA: "z9", Arch: "zeta"})
	if !errors.Is(err, kernel.ErrNoCurves) || !strings.Contains(fmt.Sprint(err), "cdna3") {
		t.Errorf("error %v", err)
	}
	if _, err := kernel.New(nil, nil); err == nil {
		t.Error("no error without a part")
	}
	curves, err := kernel.LoadCurves(configs.FS, part(t, "mi300x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kernel.New(&hardware.GPU{Name: "empty"}, curves); err == nil || !strings.Contains(err.Error(), "bandwidth") {
		t.Errorf("error of an empty profile: %v", err)
	}
}

func TestBadHeader(t *testing.T) {
	t.Parallel()
	good := read(t, "kernels/gfx950.yaml")
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown key", "isa:", "iza:", `unknown key "iza"; did you mean "isa"?`},
		{"no curves", "\nmatrix:", "\nmatrices:", "no key matrix"},
		{"bad curve", "memory: 0.", "memory: 7.", "is not within"},
	} {
		fsys := fstest.MapFS{"kernels/bad.yaml": {Data: []byte(strings.Replace(good, c.old, c.new, 1))}}
		if _, err := kernel.LoadCurves(fsys, part(t, "mi355x")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	if _, err := kernel.LoadCurves(fstest.MapFS{}, part(t, "mi355x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

func TestBadCurves(t *testing.T) {
	t.Parallel()
	good := read(t, "kernels/gfx950.yaml")
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown key", "stand_in_spread:", "stand_in_spred:", `unknown key "stand_in_spred"; did you mean "stand_in_spread"?`},
		{"unknown family", "  gemm_int8:", "  gemm_int9:", "family gemm_int8 is missing"},
		{"share above one", "memory: 0.", "memory: 1.", "memory 1."},
		{"NaN", "prologue: ", "prologue: .nan # ", "prologue NaN is not within"},
		{"negative", "ramp_us: ", "ramp_us: -", "ramp_us -"},
		{"not a number", "compute_units: 256", "compute_units: many", "compute_units"},
		{"empty", good, "", "the file is empty"},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		fsys := fstest.MapFS{"kernels/bad.yaml": {Data: []byte(bad)}}
		_, err := kernel.Load(fsys)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "bad.yaml") {
			if c.name == "not a number" && errors.Is(err, strict.ErrInvalid) {
				continue
			}
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	extra := strings.Replace(good, "prefill:\n", "  gemm_bf61: {memory: 0.5, compute: 0.5, split: 1}\nprefill:\n", 1)
	if _, err := kernel.Decode("x.yaml", []byte(extra)); err == nil || !strings.Contains(err.Error(), `did you mean "gemm_bf16"?`) {
		t.Errorf("extra family: %v", err)
	}
}

func read(t testing.TB, name string) string {
	t.Helper()
	data, err := fs.ReadFile(configs.FS, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("name: x\nmatrix: {}\n"))
	f.Add([]byte(read(f, "kernels/host.yaml")))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := kernel.Decode("fuzz.yaml", data)
		if err != nil {
			return
		}
		gpu := &hardware.GPU{Name: "g", ComputeUnits: 8, Bandwidth: 1e12, Peaks: hardware.Rates{BF16: 1e14}}
		m, err := kernel.New(gpu, c)
		if err != nil {
			t.Fatal(err)
		}
		if e := m.GEMM(3, 100, 100, formats["bf16"]); !(e.Time >= e.Lower) {
			t.Errorf("time %g, lower bound %g", e.Time, e.Lower)
		}
	})
}
