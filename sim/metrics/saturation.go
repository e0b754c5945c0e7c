package metrics

import (
	"fmt"
	"math"
)

// Load is what a run of open arrivals looked like when it was half over and
// when the last request had arrived.
type Load struct {
	// Arrived counts requests by then, Inside those of them that had not ended.
	ArrivedHalf, InsideHalf, Arrived, Inside int
	// Residence is the mean time from arrival to end, Half the length of the
	// second half, in the same unit.
	Residence, Half float64
	// Waiting counts those inside that had not been admitted.
	WaitingHalf, Waiting int
}

// Saturated reports whether arrivals outran the fleet: over the second half of
// the arrivals the number of requests inside grew by more than 3 % of them and
// by more than chance explains. The difference of two Poisson counts of n has a
// standard deviation of sqrt(2n); 2.5 of them is passed by chance in 0.6 % of
// runs at most. A run that is short against the time requests spend inside is
// still filling up: there only the growth of the queue counts.
func (l Load) Saturated() bool {
	n := float64(l.Arrived - l.ArrivedHalf)
	growth := float64(l.Inside - l.InsideHalf)
	if l.Residence > l.Half/4 {
		growth = float64(l.Waiting - l.WaitingHalf)
	}
	return growth > 0.03*n && growth > 2.5*math.Sqrt(2*n)
}

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
