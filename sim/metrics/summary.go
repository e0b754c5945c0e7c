package metrics

import (
	"math"
	"slices"
)

// Summary are the figures of a distribution, in its own unit; NaN when it is
// empty.
type Summary struct {
	Count                    int64
	Mean, Min, Max           float64
	P50, P90, P95, P99, P999 float64
	// HalfWidth is half the 95 % confidence interval of the mean, by batch
	// means; NaN when there are too few observations to say.
	HalfWidth float64
}

// Objective are latency targets in seconds; 0 = none. A request meets its
// objective when it meets all that are set.
type Objective struct {
	TTFT, TPOT, E2E float64
}

// Set reports whether there is any target.
func (o Objective) Set() bool { return o.TTFT > 0 || o.TPOT > 0 || o.E2E > 0 }

func empty() Summary {
	n := math.NaN()
	return Summary{Mean: n, Min: n, Max: n, P50: n, P90: n, P95: n, P99: n, P999: n, HalfWidth: n}
}

// Summarize returns the figures of observations in the order in which they were
// made. It sorts them.
func Summarize(v []float64) Summary {
	if len(v) == 0 {
		return empty()
	}
	s := Summary{Count: int64(len(v)), HalfWidth: HalfWidth(v)}
	s.Mean = mean(v)
	slices.Sort(v)
	s.Min, s.Max = v[0], v[len(v)-1]
	s.P50, s.P90, s.P95 = Quantile(v, 0.5), Quantile(v, 0.9), Quantile(v, 0.95)
	s.P99, s.P999 = Quantile(v, 0.99), Quantile(v, 0.999)
	return s
}

// Quantile interpolates between the order statistics of sorted values, at
// position q(n-1); q is between 0 and 1. NaN without values.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 || math.IsNaN(q) {
		return math.NaN()
	}
	at := min(1, max(0, q)) * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// WarmUp returns how many leading observations of a series to drop so that the
// mean of the rest is estimated best: MSER-5 (White 1997) over means of five,
// never more than half.
func WarmUp(v []float64) int {
	const group = 5
	n := len(v) / group
	if n < 4 {
		return 0
	}
	means := make([]float64, n)
	for i := range means {
		for _, x := range v[i*group : (i+1)*group] {
			means[i] += x / group
		}
	}
	// The squares are taken about the last mean: those of a series that varies
	// little about a large value would cancel.
	last := means[n-1]
	for i := range means {
		means[i] -= last
	}
	// From the end: the sum and the squares of what is kept.
	var sum, square float64
	best, at := math.Inf(1), 0
	for k := n - 1; k >= 0; k-- {
		sum += means[k]
		square += means[k] * means[k]
		left := float64(n - k)
		if k > n/2 || left < 2 {
			continue
		}
		if e := (square - sum*sum/left) / (left * left); e <= best {
			best, at = e, k
		}
	}
	return at * group
}
