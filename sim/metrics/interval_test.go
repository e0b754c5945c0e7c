package metrics

import (
	"math"
	"math/rand/v2"
	"testing"
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
	inside := 0
	for range series {
		autoregressive(r, v, 0.8)
		if math.Abs(mean(v)-10) <= HalfWidth(v) {
			inside++
		}
	}
	if share := float64(inside) / series; share < 0.92 || share > 0.98 {
		t.Errorf("intervals hold the mean in %.3f of series, want about 0.95", share)
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
