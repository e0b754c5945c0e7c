package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// The mean of 1, 2, 3, 4 varies by sqrt(5/3/4) = 0.6455; the 97.5 % quantile of
// Student's t with 3 degrees of freedom is 3.1824.
func TestInterval(t *testing.T) {
	near(t, "interval", interval([]float64{1, 2, 3, 4}), 3.1824*0.645497, 1e-4)
	for _, v := range [][]float64{nil, {1}} {
		if h := interval(v); !math.IsNaN(h) {
			t.Errorf("interval of %v = %v", v, h)
		}
	}
	// Small differences of large values do not cancel.
	near(t, "far from zero", interval([]float64{1e9 + 1, 1e9 + 2, 1e9 + 3, 1e9 + 4}), 3.1824*0.645497, 1e-4)
}

// Of 209 observations both methods make 20 batches of 10.
func TestBatchMeansEqualsHalfWidth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var b BatchMeans
	var v []float64
	for i := range 209 {
		if n := b.Count(); n != int64(i) {
			t.Fatalf("count = %d after %d", n, i)
		}
		v = append(v, r.Float64())
		b.Add(v[i], 1)
		if i < 199 && !math.IsNaN(b.HalfWidth()) {
			t.Fatalf("a half-width of %d observations", i+1)
		}
	}
	near(t, "half-width", b.HalfWidth(), HalfWidth(v), 1e-9)
	near(t, "mean", b.Mean(), mean(v), 1e-12)
	if !math.IsNaN(new(BatchMeans).Mean()) {
		t.Error("nothing has a mean")
	}
}

func TestBatchMeansWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var once, each BatchMeans
		for range rapid.IntRange(1, 60).Draw(t, "runs") {
			v := float64(rapid.IntRange(0, 1000).Draw(t, "value"))
			n := rapid.Int64Range(0, 100).Draw(t, "times")
			once.Add(v, n)
			for range n {
				each.Add(v, 1)
			}
		}
		if once != each {
			t.Fatalf("together %+v\none by one %+v", once, each)
		}
	})
	// A single call may stand for more than can be counted one by one.
	var b BatchMeans
	b.Add(2, 1<<50)
	if b.Mean() != 2 || b.HalfWidth() != 0 || b.Count() != 1<<50 {
		t.Errorf("mean %v, half-width %v of %d", b.Mean(), b.HalfWidth(), b.Count())
	}
}

// autoregressive fills v with x = phi x + noise about a mean of 10, from the
// stationary distribution.
func autoregressive(r *rand.Rand, v []float64, phi float64) {
	x := r.NormFloat64() / math.Sqrt(1-phi*phi)
	for i := range v {
		v[i] = 10 + x
		x = phi*x + r.NormFloat64()
	}
}

// The observations depend on each other over (1+phi)/(1-phi) = 9 steps. The
// interval of independent ones would hold the mean in about half of the series.
func TestCoverage(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const series, n = 500, 6000
	v := make([]float64, n)
	whole, streamed := 0, 0
	for range series {
		autoregressive(r, v, 0.8)
		var b BatchMeans
		for _, x := range v {
			b.Add(x, 1)
		}
		if math.Abs(mean(v)-10) <= HalfWidth(v) {
			whole++
		}
		if math.Abs(b.Mean()-10) <= b.HalfWidth() {
			streamed++
		}
	}
	for name, inside := range map[string]int{"whole": whole, "streamed": streamed} {
		if share := float64(inside) / series; share < 0.92 || share > 0.98 {
			t.Errorf("%s: intervals hold the mean in %.3f of series, want about 0.95", name, share)
		}
	}
}

func TestWarmUpOfDependent(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	const series, n = 100, 4000
	v := make([]float64, n)
	var raw, kept float64
	for range series {
		autoregressive(r, v, 0.7)
		for i := range v {
			v[i] += 30 * math.Exp(-float64(i)/100)
		}
		drop := WarmUp(v)
		if drop < 200 || drop > n/2 {
			t.Errorf("WarmUp drops %d of a transient with a time constant of 100", drop)
		}
		raw += math.Abs(mean(v)-10) / series
		kept += math.Abs(mean(v[drop:])-10) / series
	}
	// The transient adds 30 x 100/4000 = 0.75.
	if raw < 0.7 || kept > 0.1 {
		t.Errorf("the mean is off by %.3f with the transient and %.3f without", raw, kept)
	}
}

func TestWarmUpOfConstant(t *testing.T) {
	v := make([]float64, 1000)
	for i := range v {
		v[i] = 0.1
	}
	if n := WarmUp(v); n != 0 {
		t.Errorf("WarmUp drops %d of equal observations", n)
	}
}

func TestPool(t *testing.T) {
	all := Summary{Count: 30, Mean: 9, Min: 1, Max: 8, P50: 4, HalfWidth: math.NaN()}
	runs := []Summary{{Count: 10, Mean: 2}, {Count: 15, Mean: 4}, empty(), {Count: 5, Mean: 6}}
	got := Pool(runs, all)
	want := all
	want.Mean = 4
	// Means 2, 4, 6: deviation 2, t(2) = 4.3027.
	near(t, "half-width", got.HalfWidth, 4.3027*2/math.Sqrt(3), 1e-4)
	if got.HalfWidth = math.NaN(); got.Mean != want.Mean || got.P50 != 4 || got.Min != 1 || got.Count != 30 {
		t.Errorf("Pool = %+v, want %+v", got, want)
	}
	if one := Pool([]Summary{{Count: 3, Mean: 2, HalfWidth: 0.5}}, all); one.Mean != 2 || one.HalfWidth != 0.5 || one.Max != 8 {
		t.Errorf("Pool of one run = %+v", one)
	}
	if none := Pool([]Summary{empty()}, empty()); none.Count != 0 || !math.IsNaN(none.Mean) {
		t.Errorf("Pool of nothing = %+v", none)
	}
}

func BenchmarkBatchMeansAdd(b *testing.B) {
	var m BatchMeans
	b.ReportAllocs()
	for b.Loop() {
		m.Add(0.01, 32)
	}
}
