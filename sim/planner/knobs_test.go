package planner

import (
	"errors"
	"math"
	"testing"

	"infera/configs"
	"infera/sim/software"
)

func TestKnobs(t *testing.T) {
	l, err := Open(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	k, err := l.knobs()
	if err != nil {
		t.Fatal(err)
	}
	if k.Source == "" || !(k.FusedKernels > 0 && k.FusedKernels <= 1) {
		t.Errorf("source %q, fused kernels %v", k.Source, k.FusedKernels)
	}
	full := &software.Defaults{Graphs: software.Graphs{Mode: "full_and_piecewise"}}
	for _, c := range []struct {
		mode     string
		overhead float64 // microseconds over the default's 3
		penalty  float64
		eager    bool
	}{{"", 0, 0, false}, {"full", 0, 0, false}, {"piecewise", 5, 0.15, false}, {"none", 37, 0, true}} {
		var e effects
		if err := k.graphs(c.mode, full, &e); err != nil {
			t.Fatal(err)
		}
		if math.Abs(float64(e.overhead)*1e6-c.overhead) > 1e-9 || e.mixedPenalty != c.penalty || e.eager != c.eager {
			t.Errorf("graph mode %q: %+v, want %+v", c.mode, e, c)
		}
		if changed := c.overhead > 0; changed != (len(e.warnings) == 1) {
			t.Errorf("graph mode %q: warnings %v", c.mode, e.warnings)
		}
	}
	var e effects
	if err := k.attention("triton", "amd", &e); err != nil || math.Abs(e.attentionScale-1/0.85) > 1e-12 {
		t.Errorf("triton on AMD scales by %v, %v; want 1/0.85", e.attentionScale, err)
	}
	if err := k.attention("ck", "nvidia", &e); !errors.Is(err, ErrBadRequest) {
		t.Errorf("ck on NVIDIA = %v, want ErrBadRequest", err)
	}
	if err := k.attention("trition", "amd", &e); !errors.Is(err, ErrBadRequest) {
		t.Errorf("an unknown backend = %v, want ErrBadRequest", err)
	}
	rate, latency, err := l.transferRate("mori")
	if err != nil || rate != 300e9 || math.Abs(float64(latency)-7e-6) > 1e-15 {
		t.Errorf("mori = %v, %v, %v; want 300 GB/s and 7 us", rate, latency, err)
	}
	if _, _, err := l.transferRate("nixel"); !errors.Is(err, ErrBadRequest) {
		t.Errorf("an unknown library = %v, want ErrBadRequest", err)
	}
}
