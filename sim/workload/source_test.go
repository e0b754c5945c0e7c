package workload

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"infera/internal/units"
)

const second = units.Time(1e9)

func arrivals(requests []Request) []units.Time {
	var out []units.Time
	for _, r := range requests {
		out = append(out, r.Arrival)
	}
	return out
}

// Two clients with answers of 1 s and 0.5 s to think: 0, 0, then each 1.5 s
// later.
func TestLoop(t *testing.T) {
	s := simple(6)
	got := all(Loop(generated(t, s), ClosedLoop{Clients: 2, Think: 0.5}))
	if want := []units.Time{0, 0, 1.5e9, 1.5e9, 3e9, 3e9}; !slices.Equal(arrivals(got), want) {
		t.Errorf("arrivals %v, want %v", arrivals(got), want)
	}
	// The requests are those of the source, in its order.
	for i, r := range all(generated(t, s)) {
		if r.Input != got[i].Input || got[i].ID != i {
			t.Errorf("request %d is %+v, was %+v", i, got[i], r)
		}
	}
	// Four clients over 2 s: every half a second.
	got = all(Loop(generated(t, simple(5)), ClosedLoop{Clients: 4, Ramp: 2}))
	if want := []units.Time{0, 0.5e9, 1e9, 1e9, 1.5e9}; !slices.Equal(arrivals(got), want) {
		t.Errorf("arrivals %v, want %v", arrivals(got), want)
	}
	// More clients than requests.
	if got := all(Loop(generated(t, simple(3)), ClosedLoop{Clients: 9})); len(got) != 3 {
		t.Errorf("%d requests", len(got))
	}
	for _, bad := range []ClosedLoop{{}, {Clients: 1, Think: -1}, {Clients: 1, Ramp: units.Seconds(math.NaN())}} {
		if err := bad.Validate(); !errors.Is(err, ErrSpec) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// A recorded workload in a closed loop keeps its lengths and loses its
// arrivals.
func TestLoopOverReplay(t *testing.T) {
	recorded := []Request{{Input: 1, Output: 1}, {Arrival: 50 * second, Input: 2, Output: 1}, {Arrival: 60 * second, Input: 3, Output: 1}}
	got := all(Loop(Replay(recorded), ClosedLoop{Clients: 1}))
	if want := []units.Time{0, second, 2 * second}; !slices.Equal(arrivals(got), want) || got[2].Input != 3 {
		t.Errorf("%+v", got)
	}
}

// In a closed loop every client talks to the end before it begins a new
// conversation, so that as many are open as there are clients.
func TestLoopOfSessions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := simple(rapid.IntRange(1, 30).Draw(t, "requests"))
		s.Arrivals.Process = rapid.SampledFrom([]string{Burst, Poisson}).Draw(t, "process")
		s.Sessions = Sessions{Turns: float64(rapid.IntRange(1, 4).Draw(t, "turns")), Fixed: true, Think: 3}
		clients := rapid.IntRange(1, 5).Draw(t, "clients")
		src, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "recorded") {
			src = ReplayTurns(all(src), 3)
		}
		open, n := map[uint64]int{}, 0
		for r := range Unroll(Loop(src, ClosedLoop{Clients: clients, Think: 1}), func(*Request) units.Time { return second }) {
			n++
			if r.Session == 0 {
				continue
			}
			if r.Turn != open[r.Session] {
				t.Fatalf("turn %d of session %d after %d", r.Turn, r.Session, open[r.Session])
			}
			if open[r.Session]++; open[r.Session] == int(s.Sessions.Turns) {
				delete(open, r.Session)
			}
			if len(open) > clients {
				t.Fatalf("%d clients have %d conversations", clients, len(open))
			}
		}
		if want := s.Requests * int(s.Sessions.Turns); n != want || len(open) > 0 {
			t.Fatalf("%d requests of %d, %d conversations unfinished", n, want, len(open))
		}
	})
}

// Recorded turns wait for answers; other requests do not.
func TestReplayTurns(t *testing.T) {
	recorded := []Request{
		{Session: 1, Input: 1}, {Arrival: 0.5e9, Session: 1, Turn: 1, Input: 2}, {Arrival: 2e9, Input: 3},
		{Arrival: 3e9, Session: 2, Turn: 5, Input: 4}, {Arrival: 50e9, Session: 2, Turn: 6, Input: 5},
	}
	got := all(ReplayTurns(recorded, 0.25))
	// The second turn was recorded at 0.5 s and waits until 1.25 s; the last
	// one comes as recorded.
	if want := []units.Time{0, 1.25e9, 2e9, 3e9, 50e9}; !slices.Equal(arrivals(got), want) {
		t.Errorf("arrivals %v, want %v", arrivals(got), want)
	}
	for i, r := range got {
		if r.ID != i || r.Input != i+1 {
			t.Errorf("request %d is %+v", i, r)
		}
	}
}

// Peek tells what Next gives, and successive requests do not go back in time.
func TestPeek(t *testing.T) {
	s := simple(100)
	s.Sessions = Sessions{Turns: 3, Think: 0.1}
	src := generated(t, s)
	var open []Request
	last := units.Time(0)
	for {
		at, more := src.Peek()
		r, ok := src.Next()
		if more != ok || ok && at != r.Arrival {
			t.Fatalf("peeked %d, %t; got %+v, %t", at, more, r, ok)
		}
		if !ok {
			if len(open) == 0 {
				return
			}
			src.Ended(&open[0], last, false)
			open = open[1:]
			continue
		}
		if r.Arrival < last {
			t.Fatalf("arrival %d after %d", r.Arrival, last)
		}
		last, open = r.Arrival, append(open, r)
	}
}

// Spans that are too long end at the horizon instead of in the past.
func TestHorizon(t *testing.T) {
	s := simple(3)
	s.Arrivals.Rate = 1e-300
	s.Sessions = Sessions{Turns: 2, Fixed: true, Think: 1e300}
	for _, r := range all(generated(t, s)) {
		if r.Arrival != horizon {
			t.Errorf("arrival %d, want %d", r.Arrival, horizon)
		}
	}
}

func TestUnrollStops(t *testing.T) {
	n := 0
	for range Unroll(generated(t, simple(10)), func(*Request) units.Time { return 0 }) {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d requests", n)
	}
}

// Shared content is what others hold or generate.
func TestMarkUnshared(t *testing.T) {
	requests := []Request{
		{Content: []Segment{{1, 10}, {2, 10}, {3, 5}}},
		{Content: []Segment{{1, 10}}, Answer: 9, Session: 1},
		{Content: []Segment{{1, 10}, {9, 5}, {4, 7}}, Session: 1, Turn: 1},
		{Content: []Segment{{5, 3}}},
		{},
	}
	MarkUnshared(requests)
	var got []int
	for i := range requests {
		got = append(got, requests[i].Unshared)
	}
	if want := []int{15, 0, 7, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("unshared tokens %v, want %v", got, want)
	}
	if shared := requests[2].Shared(); len(shared) != 2 || requests[3].Shared() != nil {
		t.Errorf("shared content %v", shared)
	}
}
