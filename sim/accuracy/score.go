package accuracy

import (
	"math"
	"slices"
	"sort"
)

// Pair is one measured value with its prediction and the stated band; all in
// one unit.
type Pair struct {
	Measured, Predicted float64
	Low, High           float64
	// Curve identifies the points that differ in load only, for the rank
	// correlation; "" leaves the point out of it.
	Curve string
}

// Score summarises the pairs of one quantity.
type Score struct {
	N int
	// MAPE, Median and P90 are of the absolute error as a percentage of the
	// measured value; Bias is the mean signed error.
	MAPE, Median, P90, Bias float64
	// Spearman is the mean rank correlation over the curves of at least
	// [MinCurve] points, weighed by their size; NaN without one.
	Spearman float64
	// WithinBand is the percentage of points whose measured value lies in the
	// stated band.
	WithinBand float64
}

// MinCurve is the smallest curve that a rank correlation is taken of.
const MinCurve = 8

// Summarize scores pairs; pairs without a measured value must not be given.
func Summarize(pairs []Pair) Score {
	s := Score{N: len(pairs), Spearman: math.NaN()}
	if len(pairs) == 0 {
		s.MAPE, s.Median, s.P90, s.Bias, s.WithinBand = math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()
		return s
	}
	abs := make([]float64, len(pairs))
	inside := 0
	for i, p := range pairs {
		e := 100 * (p.Predicted - p.Measured) / p.Measured
		abs[i] = math.Abs(e)
		s.MAPE += abs[i] / float64(len(pairs))
		s.Bias += e / float64(len(pairs))
		if p.Measured >= p.Low && p.Measured <= p.High {
			inside++
		}
	}
	slices.Sort(abs)
	s.Median, s.P90 = quantile(abs, 0.5), quantile(abs, 0.9)
	s.WithinBand = 100 * float64(inside) / float64(len(pairs))
	s.Spearman = curves(pairs)
	return s
}

// quantile interpolates linearly between the order statistics of sorted.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

func curves(pairs []Pair) float64 {
	by := map[string][]Pair{}
	for _, p := range pairs {
		if p.Curve != "" {
			by[p.Curve] = append(by[p.Curve], p)
		}
	}
	names := make([]string, 0, len(by))
	for n, ps := range by {
		if len(ps) >= MinCurve {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	var sum, weight float64
	for _, n := range names {
		ps := by[n]
		x, y := make([]float64, len(ps)), make([]float64, len(ps))
		for i, p := range ps {
			x[i], y[i] = p.Measured, p.Predicted
		}
		if rho := Spearman(x, y); !math.IsNaN(rho) {
			sum += rho * float64(len(ps))
			weight += float64(len(ps))
		}
	}
	if weight == 0 {
		return math.NaN()
	}
	return sum / weight
}

// Spearman returns the rank correlation of x and y (ties share their mean
// rank), or NaN when it is not defined.
func Spearman(x, y []float64) float64 {
	if len(x) != len(y) || len(x) < 2 {
		return math.NaN()
	}
	rx, ry := ranks(x), ranks(y)
	mean := float64(len(x)+1) / 2
	var xy, xx, yy float64
	for i := range rx {
		dx, dy := rx[i]-mean, ry[i]-mean
		xy += dx * dy
		xx += dx * dx
		yy += dy * dy
	}
	if xx == 0 || yy == 0 {
		return math.NaN()
	}
	return xy / math.Sqrt(xx*yy)
}

func ranks(v []float64) []float64 {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return v[order[a]] < v[order[b]] })
	out := make([]float64, len(v))
	for i := 0; i < len(order); {
		j := i
		for j+1 < len(order) && v[order[j+1]] == v[order[i]] {
			j++
		}
		for k := i; k <= j; k++ {
			out[order[k]] = float64(i+j)/2 + 1
		}
		i = j + 1
	}
	return out
}
