package cluster

import (
	"testing"

	"infera/sim/workload"
)

func fleetOf(s *Spec, n int) []*Spec {
	out := make([]*Spec, n)
	for i := range out {
		out[i] = s
	}
	return out
}

func BenchmarkOneInstance(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		r := run(b, Config{Source: source(b, poisson(100_000, 25)), Fleet: fleetOf(spec(60_000), 1)})
		b.ReportMetric(r.Total.Utilization, "utilization")
		b.ReportMetric(float64(r.Total.Batch.Steps), "steps")
	}
}

func BenchmarkEightInstancesKVAware(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		w := poisson(100_000, 200)
		w.Prefixes = workload.Prefixes{Count: 64, Tokens: 256, Zipf: 1}
		r := run(b, Config{Source: source(b, w), Fleet: fleetOf(spec(60_000), 8), Routing: Routing{Policy: "kv-aware", OverlapWeight: 1}})
		b.ReportMetric(r.Total.Utilization, "utilization")
	}
}
