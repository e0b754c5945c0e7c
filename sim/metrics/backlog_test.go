package metrics

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"infera/internal/units"
)

// station is a number of servers with random services, fed by arrivals at a
// mean interval of 1 s. It returns what the queue did until the last arrival,
// sampled at a hundred intervals.
func station(r *rand.Rand, servers int, load float64, n int, interval func() float64) Backlog {
	free := make([]float64, servers)
	arrivals, starts := make([]float64, n), make([]float64, n)
	now := 0.0
	for i := range n {
		now += interval()
		first := 0
		for k := range free {
			if free[k] < free[first] {
				first = k
			}
		}
		// First come, first served: starts do not go back in time either.
		starts[i] = max(now, free[first])
		free[first] = starts[i] + load*float64(servers)*r.ExpFloat64()
		arrivals[i] = now
	}
	b := Backlog{Arrived: n}
	arrived, started := 0, 0
	const intervals = 100
	for k := range intervals + 1 {
		at := arrivals[0] + (now-arrivals[0])*float64(k)/intervals
		for arrived < n && arrivals[arrived] <= at {
			arrived++
		}
		for started < n && starts[started] <= at {
			started++
		}
		b.Queue = append(b.Queue, Depth{seconds(at), arrived - started})
	}
	return b
}

// The shares of runs called growing; those of stable loads are false alarms.
func TestGrowing(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	// Most gaps are short and a few long: 9 times the variance of random
	// arrivals.
	bursty := func() float64 {
		p := 0.5 * (1 + math.Sqrt(8.0/10))
		if r.Float64() >= p {
			p = 1 - p
		}
		return r.ExpFloat64() / (2 * p)
	}
	for _, c := range []struct {
		name     string
		servers  int
		interval func() float64
		load     float64
		n        int
		min, max float64
	}{
		{"one server", 1, r.ExpFloat64, 0.5, 200, 0, 0},
		{"one server", 1, r.ExpFloat64, 0.8, 200, 0, 0.02},
		{"one server", 1, r.ExpFloat64, 0.9, 200, 0, 0.05},
		{"one server", 1, r.ExpFloat64, 0.9, 400, 0, 0.03},
		{"one server", 1, r.ExpFloat64, 0.9, 1000, 0, 0.01},
		{"one server", 1, r.ExpFloat64, 0.9, 4000, 0, 0},
		{"one server", 1, r.ExpFloat64, 1.1, 400, 0.45, 1},
		{"one server", 1, r.ExpFloat64, 1.1, 1000, 0.65, 1},
		{"one server", 1, r.ExpFloat64, 1.1, 4000, 0.98, 1},
		{"one server", 1, r.ExpFloat64, 1.5, 400, 0.98, 1},
		{"many servers", 32, r.ExpFloat64, 0.9, 400, 0, 0.03},
		{"many servers", 32, r.ExpFloat64, 1.1, 4000, 0.97, 1},
		{"bursts", 1, bursty, 0.8, 1000, 0, 0.03},
		{"bursts", 1, bursty, 0.9, 4000, 0, 0.04},
		{"bursts", 1, bursty, 1.2, 4000, 0.9, 1},
	} {
		found := 0
		const runs = 200
		for range runs {
			if station(r, c.servers, c.load, c.n, c.interval).Growing() {
				found++
			}
		}
		if share := float64(found) / runs; share < c.min || share > c.max {
			t.Errorf("%s, load %v, %d requests: %.3f of runs grow, want %v to %v", c.name, c.load, c.n, share, c.min, c.max)
		}
	}
}

// queue samples a depth at seconds 0, 1, ...
func queue100(depth func(i int) int) Backlog {
	b := Backlog{Arrived: 1000}
	for i := range 101 {
		b.Queue = append(b.Queue, Depth{units.Time(i) * 1e9, depth(i)})
	}
	return b
}

func TestSaturatedShapes(t *testing.T) {
	line := func(i int) int { return i }
	for _, c := range []struct {
		name string
		b    Backlog
		want bool
	}{
		{"a straight line", queue100(line), true},
		{"empty", queue100(func(int) int { return 0 }), false},
		{"a step at the end", queue100(func(i int) int { return 500 * (i / 98) }), false},
		{"a burst that drains", queue100(func(i int) int { return max(0, 300-5*max(i-20, 20-i)) }), false},
		{"one that was there at the beginning", queue100(func(i int) int { return 200 - i }), false},
		{"growth that does not matter", queue100(func(i int) int { return i / 10 }), false},
		{"nothing", Backlog{}, false},
		{"few samples", Backlog{Queue: queue100(line).Queue[:19], Arrived: 1}, false},
		{"samples of one moment", Backlog{Queue: make([]Depth, 50)}, false},
		{"half the rate, and some wait", Backlog{Queue: queue100(line).Queue[:3], Arrived: 3, Offered: 10, Achieved: 4}, true},
		{"half the rate, and none waits", Backlog{Queue: make([]Depth, 3), Arrived: 3, Offered: 10, Achieved: 4}, false},
		{"more than half the rate", Backlog{Queue: queue100(line).Queue[:3], Arrived: 3, Offered: 10, Achieved: 6}, false},
	} {
		if got := c.b.Saturated(); got != c.want {
			t.Errorf("%s: saturated = %t", c.name, got)
		}
	}
}

// Leaving out samples of a line changes nothing, nor does repeating one.
func TestGrowingUneven(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	full := station(r, 1, 1.3, 2000, r.ExpFloat64)
	uneven := Backlog{Arrived: full.Arrived}
	for i, d := range full.Queue {
		if i < 40 && i%4 != 0 {
			continue
		}
		uneven.Queue = append(uneven.Queue, d, d)
	}
	if !full.Growing() || !uneven.Growing() {
		t.Errorf("growing: %t, with uneven samples %t", full.Growing(), uneven.Growing())
	}
}

func TestKneeErrors(t *testing.T) {
	never := func(float64) (bool, error) { t.Error("asked in a bad range"); return true, nil }
	for _, c := range [][3]float64{{0, 1, 0.1}, {-1, 1, 0.1}, {2, 1, 0.1}, {1, math.Inf(1), 0.1}, {math.NaN(), 1, 0.1}, {1, 2, 0}, {1, 2, math.NaN()}} {
		if _, err := Knee(c[0], c[1], c[2], never); err == nil {
			t.Errorf("Knee(%v) has no error", c)
		}
	}
	broken := errors.New("broken")
	calls := 0
	got, err := Knee(1, 100, 0.01, func(rate float64) (bool, error) {
		if calls++; calls > 3 {
			return false, broken
		}
		return rate < 50, nil
	})
	// 1 holds, 100 does not, 10 does; then it breaks.
	near(t, "rate before the error", got, 10, 1e-9)
	if !errors.Is(err, broken) {
		t.Errorf("err = %v", err)
	}
	calls = 0
	if _, err := Knee(1e-300, 1e300, 1e-300, func(rate float64) (bool, error) { calls++; return rate < 3, nil }); err != nil || calls > 64 {
		t.Errorf("%d calls, error %v", calls, err)
	}
}

func BenchmarkGrowing(b *testing.B) {
	r := rand.New(rand.NewPCG(17, 18))
	q := station(r, 1, 1.1, 10000, r.ExpFloat64)
	b.ReportAllocs()
	for b.Loop() {
		if !q.Growing() {
			b.Fatal("stable")
		}
	}
}
