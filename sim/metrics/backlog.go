package metrics

import (
	"math"

	"infera/internal/units"
)

// Depth is how many requests waited at a moment, for whatever they wait for.
type Depth struct {
	At      units.Time
	Waiting int
}

// Backlog is what open arrivals left waiting.
type Backlog struct {
	// Queue samples the queue in order of time, from the first arrival to the
	// last and no longer. Samples need not be evenly spaced; some hundred are
	// enough.
	Queue []Depth
	// Arrived counts the requests that arrived in that time.
	Arrived int
	// Offered and Achieved are requests per second, up to the last arrival and
	// up to the last answer.
	Offered, Achieved float64
}

// What a queue must do to be called growing.
const (
	minDepths   = 20   // samples
	growthShare = 0.02 // of the arrivals
	growthScore = 1.5  // growth over its standard deviation
	shortShare  = 0.1  // of the arrivals, where they are answered too slowly
)

// Growing reports whether the queue grew to the end of the arrivals for want of
// capacity. All of these hold when it did:
//
//   - Between the first sample and the last it grew by more than 2 % of the
//     arrivals: what waits is no longer a matter of batching.
//   - It grew by more than 1.5 standard deviations of a queue that is never
//     empty and has no drift. Its variance is that of the increments between
//     samples, so that bursty arrivals raise the bar. A burst within one
//     interval scores 1 at most, however large.
//   - In the last quarter of the time it never came down to where it was at
//     most in the first.
//
// The queue of a stable system returns to empty again and again, so that the
// longer the run, the rarer it passes for growing. With random arrivals and
// random service times, by one server or by 32, 2 % of runs of 200 requests do
// at a load of 0.9, 1 % of 400 and 0.2 % of 1,000; at a load of 1.1, half of the
// runs of 400 are found, 3 of 4 of 1,000 and all of 4,000. Fewer than 20 samples
// tell nothing.
func (b Backlog) Growing() bool {
	q := b.Queue
	if len(q) < minDepths {
		return false
	}
	first, last := q[0], q[len(q)-1]
	growth, span := float64(last.Waiting-first.Waiting), float64(last.At-first.At)
	if !(growth > growthShare*float64(b.Arrived)) || span <= 0 {
		return false
	}
	// The increments of a random walk with drift, sampled at uneven intervals:
	// the variance per unit of time is the mean of their squared residuals, each
	// over the length of its interval.
	var variance float64
	n, from := 0, first
	early, late := 0, math.MaxInt
	for _, d := range q {
		if since := float64(d.At - first.At); since <= span/4 {
			early = max(early, d.Waiting)
		} else if since >= span*3/4 {
			late = min(late, d.Waiting)
		}
		if dt := float64(d.At - from.At); dt > 0 {
			e := float64(d.Waiting-from.Waiting) - growth*dt/span
			variance += e * e / dt
			n++
			from = d
		}
	}
	if n < minDepths-1 {
		return false
	}
	variance /= float64(n - 1)
	return late > early && growth > growthScore*math.Sqrt(variance*span)
}

// Saturated reports whether arrivals outran the fleet: the queue is Growing, or
// requests were answered at less than half the rate of their arrival while a
// tenth of them came to wait. Without the latter condition a run that is short
// against the time of one request would pass for saturated.
func (b Backlog) Saturated() bool {
	if b.Growing() {
		return true
	}
	n := len(b.Queue)
	return b.Achieved < b.Offered/2 && n > 0 && float64(b.Queue[n-1].Waiting-b.Queue[0].Waiting) > shortShare*float64(b.Arrived)
}
