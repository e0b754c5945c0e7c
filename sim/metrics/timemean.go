package metrics

import (
	"math"

	"infera/internal/units"
)

// TimeMean averages a quantity over time, such as the number of requests in a
// system: by Little's law their arrival rate times their mean time in it. The
// zero value has seen no time.
type TimeMean struct {
	area float64 // value x nanoseconds
	span units.Time
}

// Add says that the quantity had a value from one moment to another. A span
// that does not end after it begins counts nothing.
func (m *TimeMean) Add(value float64, from, to units.Time) {
	if to <= from {
		return
	}
	m.area += value * float64(to-from)
	m.span += to - from
}

// Mean returns the average over all spans, NaN without any.
func (m *TimeMean) Mean() float64 {
	if m.span == 0 {
		return math.NaN()
	}
	return m.area / float64(m.span)
}

// Span returns the length of all spans together.
func (m *TimeMean) Span() units.Time { return m.span }
