package units

import "math"

// Time is a moment or a span of simulated time in whole nanoseconds, so that
// adding steps up never depends on their order.
type Time int64

// Never is later than any event.
const Never Time = math.MaxInt64

// Seconds returns t as a floating-point number of seconds.
func (t Time) Seconds() Seconds { return Seconds(float64(t) / 1e9) }

// Milliseconds returns t in milliseconds.
func (t Time) Milliseconds() float64 { return float64(t) / 1e6 }

// Nanoseconds rounds s to simulated time; what exceeds its range, about 292
// years, is [Never].
func Nanoseconds(s Seconds) Time {
	ns := math.Round(float64(s) * 1e9)
	if !(ns < math.MaxInt64) {
		return Never
	}
	return Time(math.Max(ns, -math.MaxInt64))
}
