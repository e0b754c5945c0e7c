package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"infera/internal/units"
)

// Times to first token of 1, 2, 3 and 4 s; the last answer takes 1 s per token.
func TestAttainment(t *testing.T) {
	var r []Record
	for i := range 4 {
		first := seconds(float64(i + 1))
		r = append(r, Record{Output: 2, Admitted: first, First: first, Last: first + seconds(0.1)})
	}
	r[3].Last = r[3].First + seconds(1)
	objectives := []Objective{{TTFT: 0.5}, {TTFT: 2}, {TTFT: 9}, {TPOT: 0.5}, {TTFT: 2, TPOT: 0.5}, {E2E: 4.5}, {}}
	want := []float64{0, 0.5, 1, 0.75, 0.5, 0.75, 1}
	for i, got := range new(Scoring).Attainment(r, objectives) {
		if got != want[i] {
			t.Errorf("%+v: %v meet it, want %v", objectives[i], got, want[i])
		}
	}
	if a := new(Scoring).Attainment(nil, objectives[:1]); !math.IsNaN(a[0]) {
		t.Errorf("the attainment of nothing is %v", a[0])
	}
}

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
