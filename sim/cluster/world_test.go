package cluster

import (
	"context"
	"testing"

	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/kvcache"
	"infera/sim/step"
	"infera/sim/workload"
)

// linear prices a step as a constant, a time per sequence, per cached token and
// per prompt token.
type linear struct{ fixed, sequence, kv, prompt units.Seconds }

func (l linear) Price(b step.Batch, _ *step.Breakdown) step.Time {
	t := l.fixed + l.sequence*units.Seconds(b.Decodes) + l.kv*units.Seconds(b.DecodeKV)
	for _, c := range b.Chunks {
		t += l.prompt * units.Seconds(c.Tokens)
	}
	return step.Time{Latency: t, Interval: t}
}

// small is a model of about 8 billion parameters on a large GPU.
var small = linear{fixed: 4e-3, sequence: 10e-6, kv: 30e-9, prompt: 40e-6}

func spec(blocks int) *Spec {
	return &Spec{
		Name: "test", GPUs: 1,
		Scheduler:       engine.Options{MaxSequences: 256, MaxBatchedTokens: 2048},
		Pool:            kvcache.Options{BlockTokens: 16, Blocks: blocks, Prefix: true},
		Prices:          NewPrices(small, 1),
		KVBytesPerToken: 131072, Network: 50e9,
	}
}

func source(t testing.TB, s workload.Spec) workload.Source {
	t.Helper()
	src, err := workload.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func poisson(n int, rate float64) workload.Spec {
	return workload.Spec{
		Requests: n, Arrivals: workload.Arrivals{Process: workload.Poisson, Rate: rate},
		Input: workload.Length{Mean: 512, Sigma: 0.5}, Output: workload.Length{Mean: 128, Sigma: 0.5}, Seed: 1,
	}
}

func run(t testing.TB, c Config) *Result {
	t.Helper()
	c.Explain = -1
	r, err := Run(context.Background(), &c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
