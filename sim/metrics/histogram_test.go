package metrics

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestHistogram(t *testing.T) {
	about := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) })
	for _, c := range []struct {
		name        string
		values      []float64
		bins        int
		logarithmic bool
		want        []Bin
	}{
		{"linear", []float64{4, 0, 1, 2, 3.9}, 4, false, []Bin{{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {3, 4, 2}}},
		{"logarithmic", []float64{0, 1, 5, 20, 100}, 2, true, []Bin{{1, 10, 3}, {10, 100, 2}}},
		{"negative", []float64{-3, -1, 1}, 2, false, []Bin{{-3, -1, 1}, {-1, 1, 2}}},
		{"equal", []float64{7, 7}, 10, false, []Bin{{7, 7, 2}}},
		{"not on the axis", []float64{math.NaN(), 1, math.Inf(1), 3, math.Inf(-1)}, 2, false, []Bin{{1, 2, 1}, {2, 3, 1}}},
		{"huge", []float64{-math.MaxFloat64, math.MaxFloat64}, 2, false, []Bin{{-math.MaxFloat64, 0, 1}, {0, math.MaxFloat64, 1}}},
		{"none", nil, 3, false, nil},
		{"only zeros, logarithmic", []float64{0, 0}, 3, true, nil},
		{"no bins", []float64{1, 2}, 0, false, nil},
	} {
		if d := cmp.Diff(c.want, Histogram(c.values, c.bins, c.logarithmic), about); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestSketchHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e6), 1, 100).Draw(t, "values")
		logarithmic := rapid.Bool().Draw(t, "logarithmic")
		var s Sketch
		for _, v := range values {
			s.Add(v, 3)
		}
		var sum int64
		h := s.Histogram(20, logarithmic)
		for i, b := range h {
			sum += b.Count
			if i > 0 && b.Low != h[i-1].High || b.High < b.Low {
				t.Fatalf("bin %d is %+v after %+v", i, b, h[max(0, i-1)])
			}
		}
		onlyZeros := slices.Max(values) == 0 && logarithmic
		if want := 3 * int64(len(values)); sum != want && !onlyZeros {
			t.Fatalf("bins hold %d values, want %d: %+v", sum, want, h)
		}
	})
	if h := new(Sketch).Histogram(5, false); h != nil {
		t.Errorf("the histogram of nothing is %v", h)
	}
}

// The middle of a bucket is off by half its width at most, 1/512 of the value,
// whatever the weights, from nanoseconds to days.
func TestSketchError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Sketch
		var all []float64
		for range rapid.IntRange(1, 40).Draw(t, "runs") {
			// From a nanosecond to a million seconds, every magnitude as often.
			v := math.Exp(rapid.Float64Range(math.Log(1e-9), math.Log(1e6)).Draw(t, "log"))
			n := rapid.IntRange(1, 30).Draw(t, "times")
			s.Add(v, int64(n))
			for range n {
				all = append(all, v)
			}
		}
		slices.Sort(all)
		got, want := s.Summary(), Summarize(slices.Clone(all))
		if got.Count != want.Count || got.Min != want.Min || got.Max != want.Max || math.Abs(got.Mean-want.Mean) > 1e-9*want.Mean {
			t.Fatalf("sketch %+v, exact %+v", got, want)
		}
		for _, q := range []float64{0.5, 0.9, 0.95, 0.99, 0.999} {
			w := all[int(q*float64(len(all)-1))]
			if g := s.Quantile(q); math.Abs(g-w) > w/512*(1+1e-9) {
				t.Fatalf("Quantile(%v) = %v, exactly %v", q, g, w)
			}
		}
	})
}

func TestQuantileOfNothing(t *testing.T) {
	for _, v := range []float64{Quantile(nil, 0.5), Quantile([]float64{1}, math.NaN())} {
		if !math.IsNaN(v) {
			t.Errorf("got %v, want NaN", v)
		}
	}
	for q, want := range map[float64]float64{-1: 1, 0: 1, 1: 2, 7: 2} {
		if got := Quantile([]float64{1, 2}, q); got != want {
			t.Errorf("Quantile(%v) = %v, want %v", q, got, want)
		}
	}
}
