package planner_test

import (
	"math"
	"testing"

	"infera/configs"
	"infera/internal/units"
	"infera/sim/planner"
)

// A measured time per prompt token becomes the slope of the price of prompts;
// one that is far off is followed to half and to three times the modelled slope.
func TestPrefillRate(t *testing.T) {
	l, err := planner.Open(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	slope := func(perToken float64) float64 {
		ttft := func(n float64) float64 {
			r := llamaOnMI300X(t, l)
			r.InputLen, r.Concurrency, r.Engineering.MaxBatchedTokens = n, 1, 16384
			r.Engineering.Prefill = planner.PrefillRate{PerToken: units.Seconds(perToken), Low: 2048, High: 8192}
			p, err := l.Project(r)
			if err != nil || !p.Feasible {
				t.Fatal(p, err)
			}
			return p.TTFT.Value
		}
		return (ttft(8192) - ttft(2048)) / (8192 - 2048)
	}
	modelled := slope(0)
	for _, c := range []struct{ measured, want float64 }{{1, 1}, {1.4, 1.4}, {2.5, 2.5}, {50, 3}} {
		if got := slope(c.measured*modelled) / modelled; math.Abs(got-c.want) > 0.02*c.want {
			t.Errorf("measured at %v times the modelled time, priced at %v times, want %v", c.measured, got, c.want)
		}
	}
}
