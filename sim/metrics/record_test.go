package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"infera/internal/units"
)

func TestScoredBadShare(t *testing.T) {
	for _, share := range []float64{math.NaN(), -1, math.Inf(-1)} {
		if n := len((&Scoring{WarmUpShare: share}).Scored(make([]Record, 50))); n != 50 {
			t.Errorf("a share of %v leaves %d of 50", share, n)
		}
	}
	if n := len((&Scoring{WarmUpShare: math.Inf(1)}).Scored(make([]Record, 100))); n != 10 {
		t.Errorf("an infinite share leaves %d of 100, want a tenth", n)
	}
}

func BenchmarkLatencies(b *testing.B) {
	r := rand.New(rand.NewPCG(19, 20))
	records := make([]Record, 1_000_000)
	for i := range records {
		at := units.Time(i) * 1e6
		q, p, d := units.Time(1e7*r.ExpFloat64()), units.Time(1e8*r.ExpFloat64()), units.Time(1e9*r.ExpFloat64())
		records[i] = Record{ID: int32(i), Input: 1000, Output: 128, Arrival: at, Admitted: at + q, First: at + q + p, Last: at + q + p + d}
	}
	s := Scoring{WarmUpShare: 0.1}
	b.ReportAllocs()
	for b.Loop() {
		s.Latencies(s.Scored(records), Objective{TTFT: 0.2})
	}
}
