package steady

import (
	"math"
	"math/rand/v2"
	"testing"

	"infera/internal/units"
	"infera/sim/step"
)

// fake prices a step at a fixed time plus a time per decoded token, per cached
// token that decodes read, and per prompt token; stages makes it a pipeline and
// groups spreads prompts over attention groups.
type fake struct {
	fixed, decode, cached, prompt float64
	stages, groups                float64
}

func (f fake) Price(b step.Batch, _ *step.Breakdown) step.Time {
	if b.Decodes <= 0 && len(b.Chunks) == 0 {
		return step.Time{}
	}
	t := f.fixed + f.decode*b.Decodes*max(1, b.TokensPerSequence) + f.cached*b.DecodeKV
	for _, c := range b.Chunks {
		t += f.prompt * c.Tokens * max(1, c.Sequences/max(1, f.groups))
	}
	return step.Time{Latency: units.Seconds(t), Interval: units.Seconds(t / max(1, f.stages))}
}

// random draws a replica of plausible times and a workload for it. Host costs
// are zero.
func random(r *rand.Rand) Replica {
	between := func(low, high float64) float64 { return low * math.Exp(r.Float64()*math.Log(high/low)) }
	price := fake{fixed: between(1e-3, 30e-3), decode: between(1e-6, 1e-4), cached: between(1e-10, 1e-8), prompt: between(1e-6, 1e-4)}
	rep := Replica{
		Workload: Workload{
			InputLen: math.Round(between(16, 32768)), OutputLen: math.Round(between(1, 4096)),
			Concurrency: math.Round(between(1, 1024)),
		},
		Policy: Policy{ExclusivePrefill: r.IntN(2) == 0, AdmissionSteps: float64(r.IntN(3))},
	}
	if r.IntN(2) == 0 {
		rep.Policy.TokenBudget = between(1024, 32768)
	}
	if r.IntN(3) == 0 {
		rep.Policy.ChunkSize = between(256, 8192)
	}
	if r.IntN(3) == 0 {
		rep.Limits.Sequences = math.Round(between(1, 1024))
	}
	if r.IntN(4) == 0 {
		rep.Policy.Groups, price.groups = 8, 8
	}
	if r.IntN(4) == 0 {
		rep.Host.QueueFactor = between(0.2, 1)
	}
	rep.Pricer = price
	return rep
}

func solve(t *testing.T, r Replica) Result {
	t.Helper()
	got, err := Solve(r)
	if err != nil {
		t.Fatalf("Solve(%+v): %v", r, err)
	}
	return got
}

// near reports equality within a share of the larger.
func near[T ~float64](a, b T, share float64) bool {
	return math.Abs(float64(a-b)) <= share*math.Max(math.Abs(float64(a)), math.Abs(float64(b)))
}
