package metrics

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"infera/internal/units"
)

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.Abs(got-want) > relative*math.Abs(want) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// Quantiles of 1..5: positions q(n-1) = 2, 3.6, 3.8, 3.96.
func TestSummarize(t *testing.T) {
	s := Summarize([]float64{5, 1, 4, 2, 3})
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"mean", s.Mean, 3}, {"p50", s.P50, 3}, {"p90", s.P90, 4.6}, {"p95", s.P95, 4.8}, {"p99", s.P99, 4.96}, {"min", s.Min, 1}, {"max", s.Max, 5}} {
		near(t, c.name, c.got, c.want, 1e-12)
	}
	if !math.IsNaN(s.HalfWidth) || s.Count != 5 {
		t.Errorf("half-width %v of %d observations, want NaN of 5", s.HalfWidth, s.Count)
	}
	if e := Summarize(nil); e.Count != 0 || !math.IsNaN(e.Mean) || !math.IsNaN(e.P99) {
		t.Errorf("Summarize(nil) = %+v", e)
	}
}

// The interval of independent normals of deviation 1: 2.093 sqrt(1/2000) = 0.0468
// on average, and it holds the mean in about 95 % of the series.
func TestHalfWidth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	inside, width := 0, 0.0
	const series = 400
	for range series {
		v := make([]float64, 2000)
		mean := 0.0
		for i := range v {
			v[i] = 10 + r.NormFloat64()
			mean += v[i] / float64(len(v))
		}
		h := HalfWidth(v)
		width += h / series
		if math.Abs(mean-10) <= h {
			inside++
		}
	}
	near(t, "mean half-width", width, 0.0468, 0.05)
	if share := float64(inside) / series; share < 0.92 || share > 0.98 {
		t.Errorf("intervals hold the mean in %.3f of series, want about 0.95", share)
	}
}

func TestWarmUp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	v := make([]float64, 2000)
	for i := range v {
		v[i] = 10 + r.NormFloat64() - 8*math.Exp(-float64(i)/60)
	}
	if n := WarmUp(v); n < 80 || n > 500 {
		t.Errorf("WarmUp drops %d of a transient with a time constant of 60", n)
	}
	if n := WarmUp(v[:12]); n != 0 {
		t.Errorf("WarmUp drops %d of 12", n)
	}
	rising := make([]float64, 100)
	for i := range rising {
		rising[i] = float64(i)
	}
	if n := WarmUp(rising); n > 50 {
		t.Errorf("WarmUp drops %d of 100, more than half", n)
	}
}

func TestSketch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(1e-9, 1e6), 1, 200).Draw(t, "values")
		var all, a, b Sketch
		for i, v := range values {
			all.Add(v, 1)
			if i%2 == 0 {
				a.Add(v, 1)
			} else {
				b.Add(v, 1)
			}
		}
		a.Merge(&b)
		slices.Sort(values)
		for _, q := range []float64{0, 0.25, 0.5, 0.9, 0.99, 1} {
			want := values[int(q*float64(len(values)-1))]
			got := all.Quantile(q)
			if math.Abs(got-want) > want/400 {
				t.Fatalf("Quantile(%v) = %v, want %v", q, got, want)
			}
			if m := a.Quantile(q); m != got {
				t.Fatalf("merged Quantile(%v) = %v, at once %v", q, m, got)
			}
		}
		if s := all.Summary(); s.Min != values[0] || s.Max != values[len(values)-1] {
			t.Fatalf("min %v, max %v, want %v and %v", s.Min, s.Max, values[0], values[len(values)-1])
		}
	})
	var s Sketch
	s.Add(2, 3)
	s.Add(0, 1)
	s.Add(math.NaN(), 1)
	s.Add(1, 0)
	if g := s.Summary(); g.Count != 5 || g.Mean != 1.2 || g.Min != 0 || g.P90 != 2 {
		t.Errorf("weighted: %+v", g)
	}
	if !math.IsNaN(new(Sketch).Quantile(0.5)) {
		t.Error("an empty sketch has a median")
	}
}

func seconds(v float64) units.Time { return units.Nanoseconds(units.Seconds(v)) }

// Arrival 1 s, admitted 2 s, first token 4 s, last 10 s, 4 tokens: TTFT 3 s, 2 s
// from admission, queue 1 s, TPOT 6/3 = 2 s, E2E 9 s. Tokenizing 100 prompt
// tokens at 10 ms adds 1 s to TTFT and E2E; detokenizing at 0.5 s adds 0.5 s to
// TPOT and 2 s to E2E.
func TestLatencies(t *testing.T) {
	r := []Record{{Input: 100, Output: 4, Arrival: seconds(1), Admitted: seconds(2), First: seconds(4), Last: seconds(10)}}
	for _, c := range []struct {
		s    Scoring
		want [5]float64
	}{
		{Scoring{}, [5]float64{3, 2, 1, 2, 9}},
		{Scoring{Tokenize: 0.01, Detokenize: 0.5}, [5]float64{4, 3, 1, 2.5, 12}},
	} {
		l := c.s.Latencies(r, Objective{TTFT: 3.5, TPOT: 2.1})
		got := [5]float64{l.TTFT.Mean, l.TTFTFromAdmission.Mean, l.Queue.Mean, l.TPOT.Mean, l.E2E.Mean}
		for i := range got {
			near(t, []string{"TTFT", "from admission", "queue", "TPOT", "E2E"}[i], got[i], c.want[i], 1e-12)
		}
		if want := map[bool]float64{true: 1, false: 0}[c.s.Tokenize == 0]; l.Within != want {
			t.Errorf("within = %v, want %v", l.Within, want)
		}
	}
	if l := new(Scoring).Latencies(r, Objective{}); !math.IsNaN(l.Within) {
		t.Errorf("within = %v without an objective", l.Within)
	}
	r[0].Output = 1
	if l := new(Scoring).Latencies(r, Objective{}); l.TPOT.Count != 0 {
		t.Error("an answer of one token has a time per output token")
	}
}

func TestScored(t *testing.T) {
	make80 := func() []Record {
		r := make([]Record, 80)
		for i := range r {
			r[i].ID = int32(i)
		}
		return r
	}
	for _, c := range []struct {
		name string
		s    Scoring
		n    int
		want int
	}{
		{"a tenth", Scoring{WarmUpShare: 0.1}, 80, 72},
		{"by issue", Scoring{WarmUpRequests: 8}, 80, 72},
		{"no more than half by issue", Scoring{WarmUpRequests: 1000}, 80, 40},
		{"too few remain", Scoring{WarmUpShare: 0.5}, 8, 8},
		{"too few remain by issue", Scoring{WarmUpRequests: 5}, 10, 10},
		{"no more than nine tenths", Scoring{WarmUpShare: 2}, 80, 8},
	} {
		if got := len(c.s.Scored(make80()[:c.n])); got != c.want {
			t.Errorf("%s: %d scored, want %d", c.name, got, c.want)
		}
	}
}

func TestKnee(t *testing.T) {
	calls := 0
	got, err := Knee(1, 100, 0.01, func(rate float64) (bool, error) { calls++; return rate <= 42, nil })
	if err != nil || got > 42 || got < 41.5 || calls > 14 {
		t.Errorf("Knee = %v, %v after %d calls, want just below 42", got, err, calls)
	}
	if got, _ := Knee(1, 100, 0.01, func(float64) (bool, error) { return false, nil }); got != 0 {
		t.Errorf("Knee = %v where nothing holds", got)
	}
	if got, _ := Knee(1, 100, 0.01, func(float64) (bool, error) { return true, nil }); got != 100 {
		t.Errorf("Knee = %v where everything holds", got)
	}
}

func BenchmarkSketchAdd(b *testing.B) {
	var s Sketch
	b.ReportAllocs()
	v := 0.01
	for b.Loop() {
		v *= 1.0001
		if v > 1 {
			v = 0.01
		}
		s.Add(v, 1)
	}
}
