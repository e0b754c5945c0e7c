package metrics

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// batches is the number of batches whose means a confidence interval is taken
// from, and minBatch the fewest observations of one: with fewer the means of
// neighbours still depend on each other.
const (
	batches  = 20
	minBatch = 10
)

// interval returns half the 95 % confidence interval of the mean of independent
// values by Student's t, NaN for fewer than two.
func interval(values []float64) float64 {
	n := float64(len(values))
	if n < 2 {
		return math.NaN()
	}
	m := mean(values)
	var square float64
	for _, v := range values {
		square += (v - m) * (v - m)
	}
	t := distuv.StudentsT{Sigma: 1, Nu: n - 1}
	return t.Quantile(0.975) * math.Sqrt(square/(n-1)/n)
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// HalfWidth returns half the 95 % confidence interval of the mean of a series
// of dependent observations, by the method of batch means; NaN when the series
// is too short.
func HalfWidth(v []float64) float64 {
	n := len(v) / batches
	if n < minBatch {
		return math.NaN()
	}
	var means [batches]float64
	for b := range means {
		means[b] = mean(v[b*n : (b+1)*n])
	}
	return interval(means[:])
}

// Pool combines the same figures of runs that differ in their seeds. all are
// the figures of their distributions merged, which the quantiles, the extremes
// and the count are taken from. The mean is that of the runs' means, each of
// equal weight, and the interval says how much it varies from seed to seed: it
// needs two runs that observed something. One run keeps its own.
func Pool(runs []Summary, all Summary) Summary {
	var means []float64
	half := math.NaN()
	for _, r := range runs {
		if r.Count > 0 {
			means = append(means, r.Mean)
			half = r.HalfWidth
		}
	}
	if len(means) == 0 {
		return all
	}
	if len(means) > 1 {
		half = interval(means)
	}
	all.Mean, all.HalfWidth = mean(means), half
	return all
}
