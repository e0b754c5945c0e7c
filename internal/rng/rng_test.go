package rng

import "testing"

func TestStream(t *testing.T) {
	a, b := Stream(1, "arrivals"), Stream(1, "arrivals")
	for range 10 {
		if x, y := a.Uint64(), b.Uint64(); x != y {
			t.Fatalf("equal streams gave %d and %d", x, y)
		}
	}
	first := Stream(1, "arrivals").Uint64()
	for _, other := range []uint64{Stream(2, "arrivals").Uint64(), Stream(1, "lengths").Uint64()} {
		if other == first {
			t.Errorf("streams of other seeds or names begin with the same %d", first)
		}
	}
	// The stream is part of what makes a result reproducible: a change of it
	// changes every simulation.
	if want := uint64(8626657296654601543); first != want {
		t.Errorf("first = %d, want %d", first, want)
	}
}

func TestFamily(t *testing.T) {
	f := NewFamily(1, "turns")
	a, b := f.At(7).Uint64(), f.At(8).Uint64()
	if a == b {
		t.Errorf("neighbours begin with the same %d", a)
	}
	f.At(8).Uint64()
	if again := f.At(7).Uint64(); again != a {
		t.Errorf("stream 7 began with %d, then with %d", a, again)
	}
	if other := NewFamily(1, "tools").At(7).Uint64(); other == a {
		t.Errorf("families of other names begin with the same %d", a)
	}
	if n := testing.AllocsPerRun(100, func() { f.At(3).Uint64() }); n != 0 {
		t.Errorf("At takes %v allocations", n)
	}
}

// The first outputs of neighbouring streams are as good as those of one stream:
// their mean is 1/2 within four standard errors, and neighbours do not follow
// each other (lag-1 correlation within four standard errors of 0).
func TestFamilyIsRandom(t *testing.T) {
	const n = 20_000
	f := NewFamily(3, "turns")
	sum, product, last := 0.0, 0.0, 0.5
	for i := range uint64(n) {
		x := f.At(i).Float64() - 0.5
		sum, product, last = sum+x, product+x*last, x
	}
	// A uniform variable has the variance 1/12, a product of two 1/144.
	if mean := sum / n; mean*mean*12*n > 16 {
		t.Errorf("mean is off by %v", mean)
	}
	if r := product / n; r*r*144*n > 16 {
		t.Errorf("lag-1 covariance %v", r)
	}
}
