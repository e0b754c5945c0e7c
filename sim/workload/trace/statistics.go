package trace

import (
	"math"
	"math/bits"
	"slices"

	"infera/internal/units"
	"infera/sim/workload"
)

// Distribution are the figures of a set of numbers; quantiles are interpolated
// between order statistics. All are 0 when the set is empty.
type Distribution struct {
	Count                         int
	Mean, Min, P50, P90, P99, Max float64
	CoefficientOfVariation        float64 // standard deviation over mean
}

// Bin counts the values v with Low <= v < High.
type Bin struct {
	Low, High float64
	Count     int
}

// ClassCount is how many requests a class has.
type ClassCount struct {
	Name     string
	Requests int
}

// Reuse says how much of the prompts a prefix cache that never forgets finds.
// Blocks have the trace's block size; the last of a prompt may be partial. What
// a request generates counts as seen when a later turn holds it.
type Reuse struct {
	// Blocks are those of all prompts, Hits those that were seen before with
	// all before them, Distinct what the cache holds in the end.
	Blocks, Hits, Distinct int64
	// Age is how long ago the blocks that were hit were used last, in seconds.
	Age Distribution
}

// HitRate returns the share of blocks found, 0 when there are none.
func (r *Reuse) HitRate() float64 {
	if r.Blocks == 0 {
		return 0
	}
	return float64(r.Hits) / float64(r.Blocks)
}

// Statistics say what a trace holds.
type Statistics struct {
	Requests int
	// Span is the time from the first arrival to the last, Rate the requests
	// per second of it; 0 when there is no span.
	Span units.Time
	Rate float64
	// Gaps are the times between arrivals in seconds; Busiest is the most
	// arrivals within one second.
	Gaps    Distribution
	Busiest int
	// Input and Output are in tokens.
	Input, Output Distribution
	// Sessions have at least two turns; Turns is how many each has.
	Sessions int
	Turns    Distribution
	Classes  []ClassCount
	Reuse    Reuse
	// Arrivals are requests over time, in bins of equal length, in seconds;
	// Inputs and Outputs are tokens in bins whose bounds double.
	Arrivals, Inputs, Outputs []Bin
}

// arrivalBins is how many bins the time of a trace is divided into.
const arrivalBins = 40

// Statistics counts what the trace holds.
func (t *Trace) Statistics() *Statistics {
	s := &Statistics{Requests: len(t.Requests)}
	var input, output []float64
	sessions := map[uint64]int{}
	for _, name := range t.Classes {
		s.Classes = append(s.Classes, ClassCount{Name: name})
	}
	for i := range t.Requests {
		r := &t.Requests[i]
		input, output = append(input, float64(r.Input)), append(output, float64(r.Output))
		if r.Session != 0 {
			sessions[r.Session]++
		}
		if r.Class < len(s.Classes) {
			s.Classes[r.Class].Requests++
		}
	}
	var turns []float64
	for _, n := range sessions {
		if n > 1 {
			turns = append(turns, float64(n))
		}
	}
	s.Sessions, s.Turns = len(turns), distribution(turns)
	s.Input, s.Output = distribution(input), distribution(output)
	s.Inputs, s.Outputs = doubling(input), doubling(output)
	t.arrivals(s)
	t.reuse(&s.Reuse)
	return s
}

// arrivals counts what depends on time.
func (t *Trace) arrivals(s *Statistics) {
	n := len(t.Requests)
	if n == 0 || !t.Timed {
		return
	}
	start, end := t.Requests[0].Arrival, t.Requests[n-1].Arrival
	s.Span = end - start
	var gaps []float64
	first := 0 // of the second that ends with a request
	for i := range t.Requests {
		at := t.Requests[i].Arrival
		if i > 0 {
			gaps = append(gaps, float64((at - t.Requests[i-1].Arrival).Seconds()))
		}
		for at-t.Requests[first].Arrival >= 1e9 {
			first++
		}
		s.Busiest = max(s.Busiest, i-first+1)
	}
	s.Gaps = distribution(gaps)
	if s.Span <= 0 {
		return
	}
	span := float64(s.Span.Seconds())
	s.Rate = float64(n) / span
	s.Arrivals = make([]Bin, arrivalBins)
	for i := range s.Arrivals {
		s.Arrivals[i].Low, s.Arrivals[i].High = span*float64(i)/arrivalBins, span*float64(i+1)/arrivalBins
	}
	for i := range t.Requests {
		at := float64(t.Requests[i].Arrival-start) / float64(s.Span)
		s.Arrivals[min(int(at*arrivalBins), arrivalBins-1)].Count++
	}
}

// reuse runs the prompts through a cache that never forgets.
func (t *Trace) reuse(u *Reuse) {
	if t.BlockSize < 1 {
		return
	}
	used := map[uint64]units.Time{}
	c := chain{size: t.BlockSize}
	var ages []float64
	for i := range t.Requests {
		r := &t.Requests[i]
		blocks := int64((r.Input + t.BlockSize - 1) / t.BlockSize)
		u.Blocks += blocks
		if r.Content == nil {
			u.Distinct += blocks
			continue
		}
		c.of(r)
		for _, h := range c.hashes {
			last, ok := used[h]
			if !ok {
				break
			}
			u.Hits++
			ages = append(ages, float64((r.Arrival - last).Seconds()))
		}
		c.use(used, r.Arrival)
		if r.Answer != 0 {
			c.reset()
			for _, s := range r.Content {
				c.add(s)
			}
			c.add(workload.Segment{ID: r.Answer, Tokens: r.Output})
			c.close()
			c.use(used, r.Arrival)
		}
	}
	u.Distinct += int64(len(used))
	u.Age = distribution(ages)
}

// use notes when blocks were used.
func (c *chain) use(used map[uint64]units.Time, at units.Time) {
	for _, h := range c.hashes {
		used[h] = at
	}
}

// distribution sorts the values and returns their figures.
func distribution(v []float64) Distribution {
	d := Distribution{Count: len(v)}
	if len(v) == 0 {
		return d
	}
	slices.Sort(v)
	n := float64(len(v))
	for _, x := range v {
		d.Mean += x
	}
	d.Mean /= n
	square := 0.0
	for _, x := range v {
		square += (x - d.Mean) * (x - d.Mean)
	}
	if d.Mean > 0 {
		d.CoefficientOfVariation = math.Sqrt(square/n) / d.Mean
	}
	d.Min, d.P50, d.P90, d.P99, d.Max = v[0], quantile(v, 0.5), quantile(v, 0.9), quantile(v, 0.99), v[len(v)-1]
	return d
}

// quantile interpolates at position q(n-1) of sorted values.
func quantile(v []float64, q float64) float64 {
	at := q * float64(len(v)-1)
	i := int(at)
	if i+1 >= len(v) {
		return v[len(v)-1]
	}
	return v[i] + (at-float64(i))*(v[i+1]-v[i])
}

// doubling counts whole numbers from 1 in bins from one power of two to the
// next, from the first that is not empty to the last.
func doubling(v []float64) []Bin {
	var count [64]int
	low, high := len(count), 0
	for _, x := range v {
		i := bits.Len64(uint64(x))
		count[i]++
		low, high = min(low, i), max(high, i+1)
	}
	var out []Bin
	for i := low; i < high; i++ {
		out = append(out, Bin{math.Ldexp(1, i-1), math.Ldexp(1, i), count[i]})
	}
	return out
}
