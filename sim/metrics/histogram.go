package metrics

import "math"

// Bin is a bar of a histogram: how many values v with Low <= v < High there
// are. The last bin holds High too.
type Bin struct {
	Low, High float64
	Count     int64
}

// Histogram counts values in bins of equal width, or of equal ratio when the
// axis is logarithmic: there the first bin also holds what is not above 0.
// Equal values give one bin. NaN and infinite values have no place on an axis
// and are left out.
func Histogram(values []float64, bins int, logarithmic bool) []Bin {
	a := newAxis(logarithmic)
	for _, v := range values {
		a.cover(v)
	}
	h := a.bins(bins)
	for _, v := range values {
		a.count(h, v, 1)
	}
	return h
}

// Histogram is Histogram of the values that the sketch counted, each at the
// middle of its bucket. Bins narrower than the buckets, 0.4 %, come out uneven.
func (s *Sketch) Histogram(bins int, logarithmic bool) []Bin {
	a := newAxis(logarithmic)
	for v := range s.buckets() {
		a.cover(v)
	}
	if s.count > 0 {
		a.cover(s.min)
		a.cover(s.max)
	}
	h := a.bins(bins)
	for v, n := range s.buckets() {
		a.count(h, v, n)
	}
	return h
}

// axis is what values are laid out on. Low and high are the least and the
// largest, or their logarithms.
type axis struct {
	logarithmic bool
	low, high   float64
}

func newAxis(logarithmic bool) axis {
	return axis{logarithmic, math.Inf(1), math.Inf(-1)}
}

// at returns the position of a value: NaN or infinite for one without a place.
func (a *axis) at(v float64) float64 {
	if a.logarithmic {
		return math.Log(v)
	}
	return v
}

func (a *axis) cover(v float64) {
	if x := a.at(v); !math.IsNaN(x) && !math.IsInf(x, 0) {
		a.low, a.high = min(a.low, x), max(a.high, x)
	}
}

func (a *axis) bins(n int) []Bin {
	value := func(x float64) float64 { return x }
	if a.logarithmic {
		value = math.Exp
	}
	if n < 1 || a.low > a.high {
		return nil
	}
	if a.low == a.high {
		n = 1
	}
	h := make([]Bin, n)
	for i := range h {
		h[i].Low = value(a.edge(i, n))
		h[i].High = value(a.edge(i+1, n))
	}
	return h
}

// edge interpolates without the width of the axis, which may overflow.
func (a *axis) edge(i, n int) float64 {
	share := float64(i) / float64(n)
	return a.low*(1-share) + a.high*share
}

func (a *axis) count(h []Bin, v float64, n int64) {
	x := a.at(v)
	switch {
	case len(h) == 0 || math.IsNaN(v) || math.IsInf(v, 0):
	case a.logarithmic && v <= 0, x <= a.low:
		h[0].Count += n
	default:
		share := (x/2 - a.low/2) / (a.high/2 - a.low/2)
		h[max(0, min(len(h)-1, int(share*float64(len(h)))))].Count += n
	}
}
