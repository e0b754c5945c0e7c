package trace

import (
	"cmp"
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
	var input, output, turns samples
	sessions := map[uint64]int{}
	for _, name := range t.Classes {
		s.Classes = append(s.Classes, ClassCount{Name: name})
	}
	for i := range t.Requests {
		r := &t.Requests[i]
		input.add(float64(r.Input))
		output.add(float64(r.Output))
		if r.Session != 0 {
			sessions[r.Session]++
		}
		if r.Class < len(s.Classes) {
			s.Classes[r.Class].Requests++
		}
	}
	for _, n := range sessions {
		if n > 1 {
			s.Sessions++
			turns = append(turns, sample{float64(n), 1})
		}
	}
	s.Turns = turns.distribution()
	s.Input, s.Output = input.distribution(), output.distribution()
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
	var gaps samples
	first := 0 // of the second that ends with a request
	for i := range t.Requests {
		at := t.Requests[i].Arrival
		if i > 0 {
			gaps.add(float64((at - t.Requests[i-1].Arrival).Seconds()))
		}
		for at-t.Requests[first].Arrival >= 1e9 {
			first++
		}
		s.Busiest = max(s.Busiest, i-first+1)
	}
	s.Gaps = gaps.distribution()
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
	holders := t.holders()
	used := map[uint64]units.Time{}
	c := chain{size: t.BlockSize}
	var ages samples
	for i := range t.Requests {
		r := &t.Requests[i]
		blocks := int64((r.Input + t.BlockSize - 1) / t.BlockSize)
		u.Blocks += blocks
		if r.Content == nil {
			u.Distinct += blocks
			continue
		}
		// What nobody else holds is only counted.
		shared := len(r.Content)
		for r.Answer == 0 && shared > 0 && holders[r.Content[shared-1].ID] == 1 {
			shared--
		}
		c.reset()
		for _, s := range r.Content[:shared] {
			c.add(s)
		}
		whole := c // without the block under way, which the answer goes on with
		if shared == len(r.Content) {
			c.close()
		}
		for _, h := range c.hashes {
			last, ok := used[h]
			if !ok {
				break
			}
			u.Hits++
			ages.add(float64((r.Arrival - last).Seconds()))
		}
		u.Distinct += blocks - int64(len(c.hashes))
		c.use(used, r.Arrival)
		if r.Answer != 0 {
			c = whole
			c.add(workload.Segment{ID: r.Answer, Tokens: r.Output})
			c.close()
			c.use(used, r.Arrival)
		}
	}
	u.Distinct += int64(len(used))
	u.Age = ages.distribution()
}

// holders counts how often a segment of each identity is in a prompt or is an
// answer.
func (t *Trace) holders() map[uint64]int {
	out := map[uint64]int{}
	for i := range t.Requests {
		for _, s := range t.Requests[i].Content {
			out[s.ID]++
		}
		if a := t.Requests[i].Answer; a != 0 {
			out[a]++
		}
	}
	return out
}

// use notes when blocks were used.
func (c *chain) use(used map[uint64]units.Time, at units.Time) {
	for _, h := range c.hashes {
		used[h] = at
	}
}

// samples are numbers; equal ones that follow each other are one entry.
type samples []sample

type sample struct {
	value float64
	times int
}

func (s *samples) add(v float64) {
	if n := len(*s); n > 0 && (*s)[n-1].value == v {
		(*s)[n-1].times++
		return
	}
	*s = append(*s, sample{v, 1})
}

// distribution sorts the samples and returns their figures.
func (s samples) distribution() Distribution {
	if len(s) == 0 {
		return Distribution{}
	}
	slices.SortFunc(s, func(a, b sample) int { return cmp.Compare(a.value, b.value) })
	var d Distribution
	sum := 0.0
	for _, x := range s {
		d.Count += x.times
		sum += x.value * float64(x.times)
	}
	d.Mean = sum / float64(d.Count)
	square := 0.0
	for _, x := range s {
		square += (x.value - d.Mean) * (x.value - d.Mean) * float64(x.times)
	}
	if d.Mean > 0 {
		d.CoefficientOfVariation = math.Sqrt(square/float64(d.Count)) / d.Mean
	}
	d.Min, d.Max = s[0].value, s[len(s)-1].value
	d.P50, d.P90, d.P99 = s.quantile(d.Count, 0.5), s.quantile(d.Count, 0.9), s.quantile(d.Count, 0.99)
	return d
}

// quantile interpolates at position q(n-1) of the n sorted samples.
func (s samples) quantile(n int, q float64) float64 {
	at := q * float64(n-1)
	below, i := int(at), 0
	for ; below >= s[i].times; i++ {
		below -= s[i].times
	}
	next := i
	if below+1 == s[i].times && i+1 < len(s) {
		next++
	}
	return s[i].value + (at-math.Floor(at))*(s[next].value-s[i].value)
}

// doubling counts whole numbers from 1 in bins from one power of two to the
// next, from the first that is not empty to the last.
func doubling(v samples) []Bin {
	var count [64]int
	low, high := len(count), 0
	for _, x := range v {
		i := bits.Len64(uint64(x.value))
		count[i] += x.times
		low, high = min(low, i), max(high, i+1)
	}
	var out []Bin
	for i := low; i < high; i++ {
		out = append(out, Bin{math.Ldexp(1, i-1), math.Ldexp(1, i), count[i]})
	}
	return out
}
