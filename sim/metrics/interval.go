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

// BatchMeans is HalfWidth for series too long to keep: between 20 and 39
// batches, all of one size that doubles as the series grows. The zero value is
// empty.
type BatchMeans struct {
	sums   [2 * batches]float64 // of complete batches
	filled int                  // how many of them there are
	size   int64                // observations of a complete batch
	sum    float64              // of the batch being filled
	count  int64                // of its observations
	done   float64              // sum of all complete batches
}

// Add observes a value n times in a row.
func (b *BatchMeans) Add(v float64, n int64) {
	for n > 0 {
		b.size = max(b.size, minBatch)
		take := min(n, b.size-b.count)
		b.sum += v * float64(take)
		b.count += take
		n -= take
		if b.count == b.size {
			b.close()
		}
	}
}

// close ends the batch being filled; when there is no room for another one,
// neighbours become batches of twice the size.
func (b *BatchMeans) close() {
	b.sums[b.filled] = b.sum
	b.filled++
	b.done += b.sum
	b.sum, b.count = 0, 0
	if b.filled < len(b.sums) {
		return
	}
	for i := range batches {
		b.sums[i] = b.sums[2*i] + b.sums[2*i+1]
	}
	b.filled = batches
	b.size *= 2
}

// Count returns how many observations there were.
func (b *BatchMeans) Count() int64 { return int64(b.filled)*b.size + b.count }

// Mean returns their mean, NaN without any.
func (b *BatchMeans) Mean() float64 { return (b.done + b.sum) / float64(b.Count()) }

// HalfWidth returns half the 95 % confidence interval of the mean, NaN for
// fewer than 200 observations.
func (b *BatchMeans) HalfWidth() float64 {
	if b.filled < batches {
		return math.NaN()
	}
	return interval(b.sums[:b.filled]) / float64(b.size)
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
