package engine

import (
	"testing"

	"infera/internal/units"
	"infera/sim/kvcache"
	"infera/sim/workload"
)

// decoding returns an engine with so many requests that decode answers without
// end.
func decoding(t testing.TB, o Options, n int) *Core {
	t.Helper()
	o.MaxSequences = n
	c := newCore(t, o, kvcache.Options{BlockTokens: 16, Prefix: true})
	for range n {
		if _, err := c.Submit(&workload.Request{Input: 1024, Output: 1 << 30}, 0); err != nil {
			t.Fatal(err)
		}
	}
	c.Gap = func(units.Time, int64) {}
	for c.prefills > 0 || c.Waiting() > 0 {
		c.Apply(c.Next(0), 1, 1, 1, nil)
	}
	return c
}

var schedulers = []struct {
	name string
	opt  Options
}{
	{"vllm", Options{SingleSteps: true, MaxBatchedTokens: 8192}},
	{"vllm async", Options{SingleSteps: true, MaxBatchedTokens: 8192, AsyncScheduling: true}},
	{"sglang", Options{Policy: SGLang, SingleSteps: true, MaxBatchedTokens: 8192}},
	{"atom", Options{Policy: ATOM, SingleSteps: true, MaxBatchedTokens: 8192}},
	{"speculation", Options{DraftTokens: 3, Acceptance: []float64{0.8, 0.8, 0.8}, MaxBatchedTokens: 8192}},
}

// One step of 256 decoding requests.
func BenchmarkDecode(b *testing.B) {
	for _, s := range schedulers {
		b.Run(s.name, func(b *testing.B) {
			c := decoding(b, s.opt, 256)
			now := units.Time(0)
			b.ReportAllocs()
			for b.Loop() {
				now += 10
				c.Apply(c.Next(now), 1, 10, 10, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/request")
		})
	}
}

// 256 answers of 1024 tokens, whose steps are booked as long as they repeat.
func BenchmarkAnswers(b *testing.B) {
	c := newCore(b, Options{MaxSequences: 256, MaxBatchedTokens: 8192}, kvcache.Options{BlockTokens: 16, Blocks: 64 * 1024, Prefix: true})
	c.Gap = func(units.Time, int64) {}
	w := workload.Request{Input: 1024, Output: 1024}
	var ended []*Request
	now := units.Time(0)
	steps := 0
	b.ReportAllocs()
	for b.Loop() {
		for range 256 {
			if _, err := c.Submit(&w, now); err != nil {
				b.Fatal(err)
			}
		}
		for s := c.Next(now); s != nil; s = c.Next(now) {
			steps++
			now += units.Time(s.Repeat) * 10
			ended = c.Apply(s, s.Repeat, 10, 10, ended[:0])
			for _, r := range ended {
				c.Recycle(r)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256/1024, "ns/token")
	b.ReportMetric(float64(steps)/float64(b.N), "steps/op")
}

// The life of a request: 512 tokens prompt, 32 tokens answer, 32 at a time.
func BenchmarkRequest(b *testing.B) {
	c := newCore(b, Options{MaxSequences: 32, MaxBatchedTokens: 2048}, kvcache.Options{BlockTokens: 16, Blocks: 4000, Prefix: true})
	c.Gap = func(units.Time, int64) {}
	w := workload.Request{Input: 512, Output: 32, Content: []workload.Segment{{ID: 1, Tokens: 256}, {ID: 2, Tokens: 256}}, Unshared: 256}
	var ended []*Request
	now := units.Time(0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Submit(&w, now); err != nil {
			b.Fatal(err)
		}
		for c.Waiting() > 0 || c.Running() == 32 {
			s := c.Next(now)
			now += 10
			ended = c.Apply(s, 1, 10, 10, ended[:0])
			for _, r := range ended {
				c.Recycle(r)
			}
		}
	}
}

// Steps of decodes take no memory once the engine has its size.
func TestAllocations(t *testing.T) {
	for _, s := range schedulers {
		c := decoding(t, s.opt, 16)
		now := units.Time(0)
		if n := testing.AllocsPerRun(1000, func() {
			now += 10
			c.Apply(c.Next(now), 1, 10, 10, nil)
		}); n != 0 {
			t.Errorf("%s: %v allocations per step", s.name, n)
		}
	}
}
