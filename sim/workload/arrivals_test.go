package workload

import (
	"errors"
	"math"
	"strings"
	"testing"

	"infera/internal/rng"
	"infera/internal/units"
)

// Gaps have the mean and the coefficient of variation of their distribution:
// sqrt(1/shape) for gamma, sqrt(G(1+2/k)/G(1+1/k)² - 1) for Weibull, which is
// sqrt(5) at k = 1/2 (G(5)/G(3)² = 24/4).
func TestArrivals(t *testing.T) {
	for _, tt := range []struct {
		name string
		a    Arrivals
		cv   float64
	}{
		{"poisson", Arrivals{Process: Poisson, Rate: 4}, 1},
		{"deterministic", Arrivals{Process: Deterministic, Rate: 4}, 0},
		{"gamma without a shape", Arrivals{Process: Gamma, Rate: 4}, 1},
		{"gamma of shape 1/4", Arrivals{Process: Gamma, Rate: 4, Shape: 0.25}, 2},
		{"gamma of shape 4", Arrivals{Process: Gamma, Rate: 4, Shape: 4}, 0.5},
		{"Weibull of shape 1", Arrivals{Process: Weibull, Rate: 4, Shape: 1}, 1},
		{"Weibull of shape 1/2", Arrivals{Process: Weibull, Rate: 4, Shape: 0.5}, math.Sqrt(5)},
		{"on-off that is never off", Arrivals{Process: OnOff, Rate: 4, On: 3}, 1},
		{"diurnal without a swing", Arrivals{Process: Diurnal, Rate: 4, Period: 100}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mean, cv := gaps(tt.a, 400_000)
			if math.Abs(mean-0.25) > 0.25*0.02 || math.Abs(cv-tt.cv) > 0.03*tt.cv+1e-9 {
				t.Errorf("mean gap %v and variation %v, want 0.25 and %v", mean, cv, tt.cv)
			}
		})
	}
}

// gaps returns the mean and the coefficient of variation of n gaps.
func gaps(a Arrivals, n int) (mean, cv float64) {
	next := a.times(rng.Stream(1, "arrivals"))
	last, sum, square := 0.0, 0.0, 0.0
	for range n {
		at := next()
		sum, square, last = sum+at-last, square+(at-last)*(at-last), at
	}
	mean = sum / float64(n)
	return mean, math.Sqrt(max(0, square/float64(n)-mean*mean)) / mean
}

// The mean rate of an on-off process is over both states; while it is on, the
// rate makes up for the off times: 10 s in 40 s at 4/s are 16/s.
func TestOnOff(t *testing.T) {
	a := Arrivals{Process: OnOff, Rate: 4, On: 10, Off: 30}
	mean, cv := gaps(a, 400_000)
	if math.Abs(mean-0.25) > 0.25*0.03 {
		t.Errorf("mean gap %v, want 0.25", mean)
	}
	// A gap is an exponential time of mean 1/16 s in which the state ends k
	// times, k being geometric with mean p = (1/10)/16; each end adds an
	// exponential time of mean 30 s. The second moment is that of the first,
	// 2/16², of the others, 2 p 30² + 2 p² 30², and twice their product, which
	// is small.
	p := 0.1 / 16
	second := 2.0/256 + 2*p*900 + 2*p*p*900 + 2*2*p*30/16
	if want := math.Sqrt(second-1.0/16) * 4; math.Abs(cv-want) > 0.05*want {
		t.Errorf("variation %v, want %v", cv, want)
	}
}

// Over whole periods a diurnal process has its mean rate; in the quarter around
// the crest the rate is 1 + s x (2 sqrt(2)/pi) times that.
func TestDiurnal(t *testing.T) {
	a := Arrivals{Process: Diurnal, Rate: 50, Swing: 0.8, Period: 40}
	next := a.times(rng.Stream(2, "arrivals"))
	total, crest := 0, 0
	const periods = 100
	for at := next(); at < 40*periods; at = next() {
		total++
		if phase := math.Mod(at, 40) / 40; phase >= 0.125 && phase < 0.375 {
			crest++
		}
	}
	if want := 50.0 * 40 * periods; math.Abs(float64(total)-want) > 4*math.Sqrt(want) {
		t.Errorf("%d arrivals, want %v", total, want)
	}
	want := 50.0 * 10 * periods * (1 + 0.8*2*math.Sqrt2/math.Pi)
	if math.Abs(float64(crest)-want) > 4*math.Sqrt(want) {
		t.Errorf("%d arrivals around the crest, want %v", crest, want)
	}
}

func TestAllAtOnce(t *testing.T) {
	for _, a := range []Arrivals{{Process: Burst, Rate: 4}, {Process: Poisson}, {Process: Gamma, Rate: math.Inf(1), Shape: 2}} {
		next := a.times(rng.Stream(1, "arrivals"))
		if x, y := next(), next(); x != 0 || y != 0 {
			t.Errorf("%+v: arrivals at %v and %v", a, x, y)
		}
	}
}

func TestArrivalErrors(t *testing.T) {
	for _, tt := range []struct {
		a    Arrivals
		want string
	}{
		{Arrivals{Process: "poison"}, "poisson"},
		{Arrivals{Process: Poisson, Rate: -1}, "-1 requests per second"},
		{Arrivals{Process: Poisson, Rate: math.NaN()}, "NaN requests per second"},
		{Arrivals{Process: Gamma, Rate: 1, Shape: 1e-4}, "shape 0.0001"},
		{Arrivals{Process: Gamma, Rate: 1, Shape: math.NaN()}, "shape NaN"},
		{Arrivals{Process: Weibull, Rate: 1, Shape: 5e-3}, "at least 0.01"},
		{Arrivals{Process: OnOff, Rate: 1}, "on for 0 s"},
		{Arrivals{Process: OnOff, Rate: 1, On: 1, Off: units.Seconds(math.NaN())}, "off for NaN s"},
		{Arrivals{Process: OnOff, Rate: 1e-9, On: 1, Off: 1}, "next to none"},
		{Arrivals{Process: Diurnal, Rate: 1, Swing: 1.5, Period: 1}, "swing by 1.5"},
		{Arrivals{Process: Diurnal, Rate: 1}, "period of 0 s"},
	} {
		if err := tt.a.validate(); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.a, err, tt.want)
		}
	}
}
