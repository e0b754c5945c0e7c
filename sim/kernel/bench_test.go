package kernel_test

import (
	"testing"

	"infera/configs"
	"infera/internal/units"
	"infera/sim/kernel"
)

var sink units.Seconds

var fp8, fp8Block = formats["fp8"], formats["fp8_block"]

var priced = []struct {
	name  string
	price func(m *kernel.Model) kernel.Estimate
}{
	{"GEMM", func(m *kernel.Model) kernel.Estimate { return m.GEMM(64, 8192, 8192, fp8) }},
	{"GEMM/prefill", func(m *kernel.Model) kernel.Estimate { return m.GEMM(8192, 8192, 8192, fp8) }},
	{"GroupedGEMM", func(m *kernel.Model) kernel.Estimate {
		return m.GroupedGEMM(kernel.Grouped{Rows: 512, Active: 50.98, Busiest: 1.3, N: 4096, K: 7168, Weights: fp8Block})
	}},
	{"FusedMoE", func(m *kernel.Model) kernel.Estimate {
		return m.FusedMoE(kernel.FusedMoE{Tokens: 64, Rows: 512, Active: 50.98, Busiest: 1.3, Hidden: 7168, Intermediate: 2048, Gated: true, Weights: fp8Block})
	}},
	{"PrefillAttention", func(m *kernel.Model) kernel.Estimate {
		return m.PrefillAttention(kernel.PrefillAttention{Tokens: 2048, Context: 6000, Heads: 16, KVHeads: 2, KDim: 128, VDim: 128, KV: fp8})
	}},
	{"DecodeAttention", func(m *kernel.Model) kernel.Estimate {
		return m.DecodeAttention(kernel.DecodeAttention{Sequences: 64, Tokens: 1, KVTokens: 64 * 3000, Heads: 16, KVHeads: 1, LatentDim: 512, RopeDim: 64, KV: fp8})
	}},
	{"Scan", func(m *kernel.Model) kernel.Estimate {
		return m.Scan(kernel.Scan{Sequences: 64, Tokens: 1, KHeads: 16, VHeads: 32, KDim: 128, VDim: 128, StateBytes: 1e6, Decode: true})
	}},
	{"Stream", func(m *kernel.Model) kernel.Estimate { return m.Stream(1e6, 1e6) }},
}

func BenchmarkPrice(b *testing.B) {
	m := model(b, "mi355x")
	for _, p := range priced {
		b.Run(p.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sink = p.price(m).Time
			}
		})
	}
}

func TestPricingDoesNotAllocate(t *testing.T) {
	m := model(t, "mi355x")
	for _, p := range priced {
		if n := testing.AllocsPerRun(100, func() { sink = p.price(m).Time }); n != 0 {
			t.Errorf("%s: %g allocations", p.name, n)
		}
	}
}

func BenchmarkLoadCurves(b *testing.B) {
	gpu := part(b, "mi355x")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := kernel.LoadCurves(configs.FS, gpu); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	gpu := part(b, "mi355x")
	curves, err := kernel.LoadCurves(configs.FS, gpu)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := kernel.New(gpu, curves); err != nil {
			b.Fatal(err)
		}
	}
}
