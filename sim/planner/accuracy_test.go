package planner

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"testing"

	"infera/configs"
	"infera/sim/accuracy"
)

// TestShippedAccuracy guards the accuracy over the measured points that ship
// with the program. The efficiencies were fitted on a superset of them, so the
// bars are tighter than what a new configuration can expect; those errors are
// in the bands, which come from configurations left out of the fit.
func TestShippedAccuracy(t *testing.T) {
	l, err := Open(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	data, err := fs.ReadFile(configs.FS, "measured/serving.csv")
	if err != nil {
		t.Fatal(err)
	}
	points, err := accuracy.ReadCSV(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range []struct {
		name                            string
		gpus                            []string
		tpot, median, p90, ttft, tokens float64 // per cent, upper limits
	}{
		{"AMD Instinct", []string{"MI300X", "MI325X", "MI355X"}, 10, 6, 22, 24, 18},
		{"NVIDIA", []string{"H100", "H200", "B200"}, 9, 5, 20, 32, 12},
	} {
		t.Run(group.name, func(t *testing.T) {
			var tpot, ttft, tokens []accuracy.Pair
			for i := range points {
				if !slices.Contains(group.gpus, points[i].GPU) {
					continue
				}
				s, err := l.Score(&points[i])
				if errors.Is(err, ErrSkip) {
					t.Errorf("line %d: %v", points[i].Line, err)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				tpot = appendMeasured(tpot, s.TPOT)
				ttft = appendMeasured(ttft, s.TTFT)
				tokens = appendMeasured(tokens, s.TotalPerGPU)
			}
			a, b, c := accuracy.Summarize(tpot), accuracy.Summarize(ttft), accuracy.Summarize(tokens)
			t.Logf("TPOT of %d points: MAPE %.1f, median %.1f, p90 %.1f, bias %+.1f, Spearman %.3f, band %.1f %%", a.N, a.MAPE, a.Median, a.P90, a.Bias, a.Spearman, a.WithinBand)
			t.Logf("TTFT of %d points: median %.1f, band %.1f %%; tokens/s/GPU of %d: MAPE %.1f, band %.1f %%", b.N, b.Median, b.WithinBand, c.N, c.MAPE, c.WithinBand)
			for _, bar := range []struct {
				name     string
				got, max float64
			}{
				{"TPOT MAPE", a.MAPE, group.tpot}, {"TPOT median error", a.Median, group.median}, {"TPOT p90 error", a.P90, group.p90},
				{"TTFT median error", b.Median, group.ttft}, {"tokens/s/GPU MAPE", c.MAPE, group.tokens},
			} {
				if !(bar.got <= bar.max) {
					t.Errorf("%s = %.1f %%, want at most %.1f %%", bar.name, bar.got, bar.max)
				}
			}
			if a.Spearman < 0.95 {
				t.Errorf("Spearman = %.3f, want at least 0.95", a.Spearman)
			}
			for name, share := range map[string]float64{"TPOT": a.WithinBand, "TTFT": b.WithinBand, "tokens/s/GPU": c.WithinBand} {
				if share < 80 {
					t.Errorf("the band of %s holds %.1f %% of the points, want at least 80 %%", name, share)
				}
			}
		})
	}
}

func appendMeasured(pairs []accuracy.Pair, p accuracy.Pair) []accuracy.Pair {
	if p.Measured > 0 {
		return append(pairs, p)
	}
	return pairs
}
