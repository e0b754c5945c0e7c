package workload

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"infera/internal/nearest"
	"infera/internal/units"
)

// ErrSpec is the kind of errors about impossible workloads.
var ErrSpec = errors.New("bad workload")

// The arrival processes.
const (
	Poisson       = "poisson"       // independent arrivals
	Deterministic = "deterministic" // equal gaps
	Gamma         = "gamma"         // gaps of shape Shape: below 1 in bursts
	Weibull       = "weibull"       // gaps of shape Shape: below 1 in bursts
	OnOff         = "on-off"        // poisson while on, nothing while off
	Diurnal       = "diurnal"       // poisson with a rate that swings
	Burst         = "burst"         // all at once
)

// Processes lists the arrival processes.
func Processes() []string {
	return []string{Poisson, Deterministic, Gamma, Weibull, OnOff, Diurnal, Burst}
}

// Arrivals is a process of arrivals.
type Arrivals struct {
	Process string
	// Rate is the mean number of requests per second; 0 or infinite = all at
	// once.
	Rate float64
	// Shape is that of gamma (the burstiness of vLLM's client, at least 0.001)
	// or Weibull gaps (at least 0.01); 0 = 1, which makes both poisson.
	Shape float64
	// On and Off are the mean lengths, exponentially distributed, of the two
	// states of an on-off process. Rate is the mean over both.
	On, Off units.Seconds
	// Swing is how far a diurnal rate goes below and above Rate, as a share of
	// it, within Period.
	Swing  float64
	Period units.Seconds
}

// The least shapes whose moments are ordinary numbers: those of Weibull gaps
// are gamma functions of its inverse.
const (
	leastShape   = 1e-3
	leastWeibull = 1e-2
)

// leastPerCycle is how many requests an on-off process must have per cycle of
// an on and an off state, so that an arrival is found in reasonable time.
const leastPerCycle = 1e-6

func (a *Arrivals) validate() error {
	if !slices.Contains(Processes(), a.Process) {
		err := fmt.Errorf("%w: unknown arrival process %q (known: %s)", ErrSpec, a.Process, strings.Join(Processes(), ", "))
		if hint := nearest.Hint(a.Process, Processes()); hint != "" {
			err = fmt.Errorf("%w; %s", err, hint)
		}
		return err
	}
	least := leastShape
	if a.Process == Weibull {
		least = leastWeibull
	}
	switch {
	case !(a.Rate >= 0):
		return fmt.Errorf("%w: %v requests per second, want 0 or more", ErrSpec, a.Rate)
	case a.Shape != 0 && !(a.Shape >= least && !math.IsInf(a.Shape, 0)):
		return fmt.Errorf("%w: %s arrivals of shape %v, want at least %v", ErrSpec, a.Process, a.Shape, least)
	case a.Process == OnOff && !(a.On > 0 && isTime(a.On) && isTime(a.Off)):
		return fmt.Errorf("%w: arrivals on for %v s and off for %v s", ErrSpec, float64(a.On), float64(a.Off))
	case a.Process == OnOff && a.Rate > 0 && a.Rate*float64(a.On+a.Off) < leastPerCycle:
		return fmt.Errorf("%w: %v requests per second are next to none in a cycle of %v s", ErrSpec, a.Rate, float64(a.On+a.Off))
	case a.Process == Diurnal && !(a.Swing >= 0 && a.Swing <= 1):
		return fmt.Errorf("%w: arrivals swing by %v of their rate, want 0 to 1", ErrSpec, a.Swing)
	case a.Process == Diurnal && !(a.Period > 0 && isTime(a.Period)):
		return fmt.Errorf("%w: arrivals with a period of %v s", ErrSpec, float64(a.Period))
	}
	return nil
}

// times returns a function that yields arrival after arrival, in seconds from
// the start.
func (a Arrivals) times(r *rand.Rand) func() float64 {
	if a.Process == Burst || a.Rate == 0 || math.IsInf(a.Rate, 1) {
		return func() float64 { return 0 }
	}
	shape := a.Shape
	if shape == 0 {
		shape = 1
	}
	mean, now := 1/a.Rate, 0.0
	step := func(gap func() float64) func() float64 {
		return func() float64 { now += gap(); return now }
	}
	switch a.Process {
	case Deterministic:
		return step(func() float64 { return mean })
	case Gamma:
		return step(func() float64 { return gamma(r, shape) * mean / shape })
	case Weibull:
		scale := mean / math.Gamma(1+1/shape)
		return step(func() float64 { return scale * math.Pow(r.ExpFloat64(), 1/shape) })
	case OnOff:
		return a.onOff(r)
	case Diurnal:
		// Thinning: candidates at the highest rate, kept with the share that
		// the rate has of it.
		highest := a.Rate * (1 + a.Swing)
		return step(func() float64 {
			gap := 0.0
			for {
				gap += r.ExpFloat64() / highest
				rate := a.Rate * (1 + a.Swing*math.Sin(2*math.Pi*(now+gap)/float64(a.Period)))
				if r.Float64()*highest <= rate {
					return gap
				}
			}
		})
	}
	return step(func() float64 { return r.ExpFloat64() * mean })
}

// onOff draws arrivals in the on periods only, at the rate that makes up for
// the off periods.
func (a Arrivals) onOff(r *rand.Rand) func() float64 {
	on, off := float64(a.On), float64(a.Off)
	rate := a.Rate * (on + off) / on
	now := 0.0
	left := r.ExpFloat64() * on
	return func() float64 {
		gap := r.ExpFloat64() / rate
		for gap > left {
			gap -= left
			now += left + r.ExpFloat64()*off
			left = r.ExpFloat64() * on
		}
		left -= gap
		now += gap
		return now
	}
}

// gamma draws from the gamma distribution of scale 1 (Marsaglia and Tsang, "A
// simple method for generating gamma variables", 2000).
func gamma(r *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(r, shape+1) * math.Pow(r.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		if u := r.Float64(); math.Log(u) < x*x/2+d*(1-v+math.Log(v)) {
			return d * v
		}
	}
}
