package planner

import (
	"testing"

	"infera/configs"
	"infera/sim/layout"
)

// question returns a request like the README's first command.
func question(tb testing.TB, l *Library, model, gpu, engine string, lay layout.Layout, in, out, concurrency float64) *Request {
	tb.Helper()
	arch, err := l.Model(model)
	if err != nil {
		tb.Fatal(err)
	}
	g, f, err := l.GPU(gpu)
	if err != nil {
		tb.Fatal(err)
	}
	e, err := l.Engines.Lookup(engine)
	if err != nil {
		tb.Fatal(err)
	}
	return &Request{
		Arch: arch, GPU: g, Fabric: f, Layout: lay, Engine: e, Release: e.Latest(),
		InputLen: in, OutputLen: out, Concurrency: concurrency,
	}
}

// BenchmarkProject prices one recipe in process: the budget is 50 µs and 20
// allocations.
func BenchmarkProject(b *testing.B) {
	l, err := Open(configs.FS)
	if err != nil {
		b.Fatal(err)
	}
	for _, bm := range []struct {
		name, model string
		layout      layout.Layout
	}{
		{"gpt-oss-120b/tp2ep2", "gpt_oss_120B", layout.Layout{TP: 2, EP: 2, PP: 1, AttentionDP: 1}},
		{"deepseek-v3/tp8", "deepseek_v3", layout.Layout{TP: 8, EP: 1, PP: 1, AttentionDP: 1}},
		{"llama-70b/tp8", "llama3.1_70B", layout.Layout{TP: 8, EP: 1, PP: 1, AttentionDP: 1}},
		{"qwen3.5-397b/tp4", "Qwen3.5-397B-A17B", layout.Layout{TP: 4, EP: 1, PP: 1, AttentionDP: 1}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			r := question(b, l, bm.model, "mi355x", "vllm", bm.layout, 1024, 1024, 32)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Project(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
