package fit

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"infera/configs"
	"infera/internal/strict"
	"infera/sim/accuracy"
	"infera/sim/planner"
	"infera/sim/software"
)

// shipped returns the samples of one GPU among the points that ship with the
// program.
func shipped(t *testing.T, l *planner.Library, gpu string) []Sample {
	t.Helper()
	data, err := fs.ReadFile(configs.FS, "measured/serving.csv")
	if err != nil {
		t.Fatal(err)
	}
	points, err := accuracy.ReadCSV(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var keep []accuracy.Point
	for _, p := range points {
		if p.GPU == gpu && p.Concurrency >= 16 {
			keep = append(keep, p)
		}
	}
	samples, _, err := Samples(l, keep)
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

// TestCalibrate writes a small calibration, reads it back and finds the
// efficiency of a build in it.
func TestCalibrate(t *testing.T) {
	l, err := planner.Open(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	samples := shipped(t, l, "MI300X")
	start, err := l.Efficiencies.Start()
	if err != nil {
		t.Fatal(err)
	}
	opt := Defaults()
	opt.Iterations = 6
	c, err := Calibrate(t.Context(), samples, start, 2, opt)
	if err != nil {
		t.Fatal(err)
	}
	tpot, ttft, _ := c.Unseen()
	if len(tpot) != len(samples) || len(ttft) == 0 {
		t.Errorf("cross-validated %d TPOT and %d TTFT of %d samples", len(tpot), len(ttft), len(samples))
	}
	files := map[string]*software.EfficiencyFile{}
	c.AddTo(files, "a test")
	tree := fstest.MapFS{}
	for name, f := range files {
		data, err := strict.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		tree["e/"+name+".yaml"] = &fstest.MapFile{Data: data}
	}
	sglang, err := l.Engines.Lookup("sglang")
	if err != nil {
		t.Fatal(err)
	}
	r, err := sglang.Release("2025-12-13")
	if err != nil {
		t.Fatal(err)
	}
	e, match, err := software.OpenEfficiencies(tree, "e").Find("sglang", "gfx942", "amd", r)
	if err != nil {
		t.Fatal(err)
	}
	if !match.Exact || !match.Epoch || match.Points == 0 {
		t.Errorf("match = %+v, want the measured build", match)
	}
	if !(e.Spread.TPOT > 0 && e.Spread.TPOT < 1) {
		t.Errorf("TPOT spread = %v, want a band below a factor of e", e.Spread.TPOT)
	}
	for name, floor := range start.Floors {
		k, err := software.ParseCoefficient(name)
		if err != nil {
			t.Fatal(err)
		}
		if e.Values[k] < 0.999*floor {
			t.Errorf("%s = %v, below its floor of %v", name, e.Values[k], floor)
		}
	}
}

// TestCalibrateStops: a calibration ends with its context.
func TestCalibrateStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l, err := planner.Open(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	start, err := l.Efficiencies.Start()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Calibrate(ctx, shipped(t, l, "MI300X"), start, 2, Defaults()); !errors.Is(err, context.Canceled) {
		t.Errorf("Calibrate() = %v, want %v", err, context.Canceled)
	}
}
