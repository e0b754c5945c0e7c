package metrics

import (
	"fmt"
	"math"
)

// knees is the most calls that Knee makes: enough for any range of rates at a
// tolerance of 1e-15.
const knees = 64

// Knee returns the highest rate between low and high for which ok holds, to a
// relative tolerance, by bisection of the logarithm; 0 when it does not hold at
// low. ok must hold below some rate and not above it. It is called about
// log2(log(high/low)/tolerance) times, and 64 times at most. Errors are those
// of ok, then the rate is the highest that held so far, and of rates that are
// not positive, finite and in order.
func Knee(low, high, tolerance float64, ok func(rate float64) (bool, error)) (float64, error) {
	if !(low > 0) || !(high >= low) || math.IsInf(high, 0) || !(tolerance > 0) {
		return 0, fmt.Errorf("search for a rate between %v and %v per second within %v: bad range", low, high, tolerance)
	}
	good, err := ok(low)
	if err != nil || !good {
		return 0, err
	}
	good, err = ok(high)
	switch {
	case err != nil:
		return low, err
	case good:
		return high, nil
	}
	for calls := 2; calls < knees && high/low > 1+tolerance; calls++ {
		middle := math.Sqrt(low) * math.Sqrt(high)
		if good, err = ok(middle); err != nil {
			return low, err
		}
		if good {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}
