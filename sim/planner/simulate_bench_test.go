package planner_test

import (
	"context"
	"testing"

	"infera/configs"
	"infera/sim/cluster"
	"infera/sim/layout"
	"infera/sim/planner"
	"infera/sim/software"
	"infera/sim/workload"
)

// BenchmarkSimulate runs whole simulations of Llama-3.1-8B on MI300X: lengths
// lognormal about 512 and 128, random arrivals at about 80 % of what the fleet
// serves.
func BenchmarkSimulate(b *testing.B) {
	for _, c := range []struct {
		name                string
		requests, instances int
	}{{"100k-1", 100_000, 1}, {"100k-8-kv-aware", 100_000, 8}, {"1M-64-kv-aware", 1_000_000, 64}} {
		b.Run(c.name, func(b *testing.B) {
			l, err := planner.Open(configs.FS)
			if err != nil {
				b.Fatal(err)
			}
			r := llamaOnMI300X(b, l)
			r.Replica = c.instances
			b.ReportAllocs()
			for b.Loop() {
				f, err := l.Fleet(r)
				if err != nil || !f.Feasible {
					b.Fatal(f, err)
				}
				source, err := workload.New(workload.Spec{
					Requests: c.requests, Arrivals: workload.Arrivals{Process: workload.Poisson, Rate: 25 * float64(c.instances)},
					Input: workload.Length{Mean: 512, Sigma: 0.5}, Output: workload.Length{Mean: 128, Sigma: 0.5},
				})
				if err != nil {
					b.Fatal(err)
				}
				out, err := cluster.Run(context.Background(), &cluster.Config{
					Source: source, Fleet: f.Instances, Host: f.Host, Explain: -1,
					Routing: cluster.Routing{Policy: "kv-aware", OverlapWeight: 1},
				})
				if err != nil || out.Total.Completed != c.requests || out.Total.Saturated {
					b.Fatal(out, err)
				}
			}
			b.ReportMetric(float64(b.N*c.requests)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

func llamaOnMI300X(b testing.TB, l *planner.Library) *planner.Request {
	b.Helper()
	arch, err := l.Model("llama-3.1-8b")
	if err != nil {
		b.Fatal(err)
	}
	gpu, fabric, err := l.GPU("mi300x")
	if err != nil {
		b.Fatal(err)
	}
	engine, err := l.Engines.Lookup("vllm")
	if err != nil {
		b.Fatal(err)
	}
	var release software.Release
	if release, err = engine.Release(""); err != nil {
		b.Fatal(err)
	}
	return &planner.Request{Arch: arch, GPU: gpu, Fabric: fabric, Layout: layout.Layout{TP: 1, EP: 1, PP: 1, AttentionDP: 1}, Engine: engine, Release: release, InputLen: 512, OutputLen: 128}
}
