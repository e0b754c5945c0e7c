package routing

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"infera/internal/units"
)

const second = units.Time(1e9)

func newBreaker(t *testing.T) *Breaker {
	t.Helper()
	b, err := NewBreaker(DefaultBreaker())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Three failures in a row open for 5 s; failed probes for 10, 20, 40, 60 and 60.
func TestBreaker(t *testing.T) {
	b := newBreaker(t)
	at := 100 * second
	expect := func(want BreakerState, allowed bool) {
		t.Helper()
		if got := b.State(1, at); got != want {
			t.Errorf("at %v s the breaker is %v, want %v", at.Seconds(), got, want)
		}
		if got := slices.Contains(b.Allowed(nil, []int{0, 1}, at), 1); got != allowed {
			t.Errorf("at %v s the worker is allowed: %v, want %v", at.Seconds(), got, allowed)
		}
	}
	b.Failed(1, at)
	b.Failed(1, at)
	b.Succeeded(1)
	b.Failed(1, at)
	b.Failed(1, at)
	b.Neutral(1)
	expect(BreakerClosed, true)
	b.Failed(1, at)
	expect(BreakerOpen, false)
	// Requests from before the cut end late and change nothing.
	b.Failed(1, at+second)
	for _, cooldown := range []units.Time{5, 10, 20, 40, 60, 60} {
		at += cooldown*second - 1
		expect(BreakerOpen, false)
		at++
		expect(BreakerHalfOpen, true)
		b.Failed(1, at)
		expect(BreakerHalfOpen, true)
		b.Sent(1, at)
		expect(BreakerHalfOpen, false)
		b.Failed(1, at)
		expect(BreakerOpen, false)
	}
	if b.Trips() != 1 {
		t.Errorf("%d trips, want 1: failed probes cut nothing off", b.Trips())
	}
	at += 60 * second
	b.Sent(1, at)
	b.Succeeded(1)
	expect(BreakerClosed, true)
	for range 3 {
		b.Failed(1, at)
	}
	at += 5 * second
	expect(BreakerHalfOpen, true)
	if b.Trips() != 2 {
		t.Errorf("%d trips, want 2", b.Trips())
	}
	b.Forget(1)
	expect(BreakerClosed, true)
}

// A probe whose end says nothing, or of which nothing is heard for a minute,
// makes way for another.
func TestBreakerProbe(t *testing.T) {
	b := newBreaker(t)
	for range 3 {
		b.Failed(0, 0)
	}
	at := 5 * second
	b.Sent(0, at)
	b.Neutral(0)
	if got := b.Allowed(nil, []int{0, 1}, at); len(got) != 2 {
		t.Errorf("allowed %v, want both", got)
	}
	b.Sent(0, at)
	if got := b.Allowed(nil, []int{0, 1}, at+60*second-1); len(got) != 1 {
		t.Errorf("allowed %v while the probe is under way, want 1 only", got)
	}
	if got := b.Allowed(nil, []int{0, 1}, at+60*second); len(got) != 2 {
		t.Errorf("allowed %v after the probe was given up, want both", got)
	}
}

// Where all are cut off, all are allowed.
func TestBreakerAllOpen(t *testing.T) {
	b := newBreaker(t)
	for w := range 2 {
		for range 3 {
			b.Failed(w, 0)
		}
	}
	if got := b.Allowed([]int{9}, []int{0, 1}, second); !slices.Equal(got, []int{9, 0, 1}) {
		t.Errorf("allowed %v, want all after what was there", got)
	}
	off, err := NewBreaker(BreakerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		off.Failed(0, 0)
	}
	if off.State(0, 0) != BreakerClosed {
		t.Error("a breaker that never opens did")
	}
}

// Candidates are never lost nor made up, a closed one is always allowed, and a
// worker that answers is.
func TestBreakerLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := NewBreaker(DefaultBreaker())
		if err != nil {
			t.Fatal(err)
		}
		candidates := []int{0, 1, 2}
		now := units.Time(0)
		for range rapid.IntRange(1, 100).Draw(t, "events") {
			now += units.Time(rapid.Int64Range(0, 20e9).Draw(t, "gap"))
			w := rapid.IntRange(0, 2).Draw(t, "worker")
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0, 1, 2:
				b.Failed(w, now)
			case 3:
				b.Sent(w, now)
			case 4:
				b.Neutral(w)
			default:
				b.Succeeded(w)
				if !slices.Contains(b.Allowed(nil, candidates, now), w) {
					t.Fatal("a worker that answered is cut off")
				}
			}
			allowed := b.Allowed(nil, candidates, now)
			if len(allowed) == 0 || !slices.IsSorted(allowed) || allowed[len(allowed)-1] > 2 {
				t.Fatalf("allowed %v of %v", allowed, candidates)
			}
			for _, w := range candidates {
				if b.State(w, now) == BreakerClosed && !slices.Contains(allowed, w) {
					t.Fatalf("a closed breaker cuts worker %d off", w)
				}
				// An hour heals everything.
				if b.State(w, now+3600*second) == BreakerOpen {
					t.Fatalf("worker %d is cut off for an hour", w)
				}
			}
		}
	})
}

func TestBreakerOptions(t *testing.T) {
	for _, o := range []BreakerOptions{
		{Threshold: -1},
		{Threshold: 1},
		{Threshold: 1, Cooldown: 2, MaxCooldown: 1, ProbeTimeout: 1},
		{Threshold: 1, Cooldown: 1, MaxCooldown: 1},
	} {
		if _, err := NewBreaker(o); !errors.Is(err, ErrOptions) {
			t.Errorf("NewBreaker(%+v) = %v", o, err)
		}
	}
	// Cool-downs at the end of time do not wrap around.
	b, err := NewBreaker(BreakerOptions{Threshold: 1, Cooldown: units.Never, MaxCooldown: units.Never, ProbeTimeout: units.Never})
	if err != nil {
		t.Fatal(err)
	}
	b.Failed(0, second)
	if b.State(0, units.Never-1) != BreakerOpen {
		t.Error("a cool-down without end ended")
	}
	if got := BreakerHalfOpen.String(); got != "half-open" {
		t.Errorf("String() = %q", got)
	}
}
