package steady

import (
	"errors"
	"math"
	"testing"

	"infera/internal/units"
	"infera/sim/step"
)

// linear prices a step at a fixed time and a time per prompt token.
type linear struct{ step, perToken units.Seconds }

func (l linear) Price(b step.Batch, _ *step.Breakdown) step.Time {
	t := l.step
	for _, c := range b.Chunks {
		t += l.perToken * units.Seconds(c.Tokens*max(1, c.Sequences))
	}
	return step.Time{Latency: t, Interval: t}
}

func TestSolveStatic(t *testing.T) {
	r := Replica{
		Pricer:   linear{10e-3, 10e-6},
		Workload: Workload{InputLen: 1000, OutputLen: 100, Concurrency: 8},
		Policy:   Policy{TokenBudget: 2000},
	}
	got, err := SolveStatic(r, 4)
	if err != nil {
		t.Fatal(err)
	}
	// Two prompts of 1,000 tokens fit into a step of 2,000: the batch takes two
	// steps of 10 ms + 20 ms. Then 100 decode steps of 10 ms. A cycle is 1.06 s
	// for 4 requests, and the other 4 of the 8 clients wait for one cycle.
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"prefill", float64(got.PrefillTime), 0.06},
		{"TPOT", float64(got.TPOT), 0.01},
		{"rate", got.RequestRate, 4 / 1.06},
		{"wait", float64(got.AdmissionWait), 1.06},
		{"TTFT", float64(got.TTFT), 1.12},
		{"E2E", float64(got.E2E), 2.12},
		{"prefill rate", got.PrefillRate, 4000 / 0.06},
		{"running", got.Running, 4},
	} {
		if math.Abs(c.got-c.want) > 1e-9*c.want {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
	r.Limits.Sequences = 2
	if got, err = SolveStatic(r, 4); err != nil || got.Running != 2 {
		t.Errorf("a limit of 2 runs %v, %v", got.Running, err)
	}
	r.Workload.RequestRate = 1
	if _, err = SolveStatic(r, 4); !errors.Is(err, ErrBadWorkload) {
		t.Errorf("an open loop = %v, want ErrBadWorkload", err)
	}
	r.Workload.RequestRate = 0
	for _, batch := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err = SolveStatic(r, batch); !errors.Is(err, ErrBadWorkload) {
			t.Errorf("batch %v = %v, want ErrBadWorkload", batch, err)
		}
	}
}
