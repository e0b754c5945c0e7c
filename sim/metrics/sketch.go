package metrics

import (
	"iter"
	"math"
)

// The sketch divides every octave into 2^subBits buckets of equal width, so
// that a value is known to 1/512 of itself.
const (
	subBits = 8
	octaves = 128 // from 2^-64 to 2^63
	lowest  = 1023 - 64
)

// Sketch counts values of a distribution in buckets of equal relative width.
// Quantiles are off by at most 0.2 %; mean, least and largest are exact. The
// zero value is empty.
type Sketch struct {
	count    int64
	sum      float64
	min, max float64
	zero     int64
	pages    [octaves]*[1 << subBits]int64
}

// Add counts a value n times. Negative values and NaN count as 0.
func (s *Sketch) Add(v float64, n int64) {
	if n <= 0 {
		return
	}
	if !(v > 0) {
		v = 0
	}
	if s.count == 0 || v < s.min {
		s.min = v
	}
	if s.count == 0 || v > s.max {
		s.max = v
	}
	s.count += n
	s.sum += v * float64(n)
	b := math.Float64bits(v)
	octave := int(b>>52) - lowest
	if octave < 0 {
		s.zero += n
		return
	}
	octave = min(octave, octaves-1)
	page := s.pages[octave]
	if page == nil {
		page = new([1 << subBits]int64)
		s.pages[octave] = page
	}
	page[b>>(52-subBits)&(1<<subBits-1)] += n
}

// Merge adds everything that another sketch counted.
func (s *Sketch) Merge(o *Sketch) {
	if o.count == 0 {
		return
	}
	if s.count == 0 {
		s.min, s.max = o.min, o.max
	}
	s.min, s.max = min(s.min, o.min), max(s.max, o.max)
	s.count += o.count
	s.sum += o.sum
	s.zero += o.zero
	for i, page := range o.pages {
		if page == nil {
			continue
		}
		if s.pages[i] == nil {
			s.pages[i] = new([1 << subBits]int64)
		}
		for k, n := range page {
			s.pages[i][k] += n
		}
	}
}

// Count returns how many values were counted.
func (s *Sketch) Count() int64 { return s.count }

// Quantile returns the middle of the bucket that holds the quantile q, between
// 0 and 1; NaN without values.
func (s *Sketch) Quantile(q float64) float64 {
	if s.count == 0 {
		return math.NaN()
	}
	rank := int64(q * float64(s.count-1))
	seen := int64(0)
	for v, n := range s.buckets() {
		if seen += n; seen > rank {
			return v
		}
	}
	return s.max
}

// buckets yields the middles of the buckets that hold values, the least first,
// and how many they hold. None lies beyond the least or the largest value.
func (s *Sketch) buckets() iter.Seq2[float64, int64] {
	return func(yield func(float64, int64) bool) {
		if s.zero > 0 && !yield(s.min, s.zero) {
			return
		}
		for octave, page := range s.pages {
			if page == nil {
				continue
			}
			width := math.Ldexp(1, octave+lowest-1023-subBits)
			for k, n := range page {
				if n == 0 {
					continue
				}
				low := math.Float64frombits(uint64(octave+lowest)<<52 | uint64(k)<<(52-subBits))
				if !yield(min(s.max, max(s.min, low+width/2)), n) {
					return
				}
			}
		}
	}
}

// Summary returns the figures. Values that were counted together are not
// independent, so that there is no confidence interval.
func (s *Sketch) Summary() Summary {
	if s.count == 0 {
		return empty()
	}
	return Summary{
		Count: s.count, Mean: s.sum / float64(s.count), Min: s.min, Max: s.max,
		P50: s.Quantile(0.5), P90: s.Quantile(0.9), P95: s.Quantile(0.95), P99: s.Quantile(0.99), P999: s.Quantile(0.999),
		HalfWidth: math.NaN(),
	}
}
