package engine

import (
	"testing"

	"infera/internal/units"
	"infera/sim/workload"
)

// Steps of 10, two seats. a wants 3 tokens and c 9; both come at 0. late comes
// at 3, when the first step runs.
//
// Planned one by one, late finds no seat until a has ended at 30, and has its
// first token at 40. Planned ahead, the step that begins at 30 was planned at 20,
// when a had its seat: 50. Where a seat is free, late is missed by the plans of
// the steps that begin at 0 and at 10, which is made at 0, too: 30 instead of 20.
func TestAsyncScheduling(t *testing.T) {
	for _, tt := range []struct {
		async bool
		seats int
		first units.Time
	}{{false, 2, 40}, {true, 2, 50}, {false, 3, 20}, {true, 3, 30}} {
		c := newCore(t, Options{MaxSequences: tt.seats, AsyncScheduling: tt.async}, pool(0))
		submit := func(output int, now units.Time) *Request {
			r, err := c.Submit(&workload.Request{Input: 4, Output: output}, now)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		submit(3, 0)
		submit(9, 0)
		s := c.Next(0)
		late := submit(2, 3)
		now := units.Time(0)
		for ; s != nil; s = c.Next(now) {
			now += 10
			c.Apply(s, 1, 10, 10, nil)
		}
		if late.First != tt.first || !c.Idle() {
			t.Errorf("async %v, %d seats: first token at %d, want %d; idle %v", tt.async, tt.seats, late.First, tt.first, c.Idle())
		}
	}
}

// A plan ahead with nothing in it is made again when the step has ended: the
// only seat goes to the next request at once. So does an engine that stood idle.
func TestAsyncSchedulingIdle(t *testing.T) {
	c := newCore(t, Options{MaxSequences: 1, AsyncScheduling: true}, pool(0))
	var got []*Request
	now := units.Time(0)
	for _, at := range []units.Time{0, 3, 50} {
		now = max(now, at)
		r, err := c.Submit(&workload.Request{Input: 4, Output: 2}, at)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
		if at == 0 {
			continue // the next comes while it runs
		}
		for s := c.Next(now - now%10); s != nil; s = c.Next(now) {
			now = s.Started + 10
			c.Apply(s, 1, 10, 10, nil)
		}
	}
	for i, want := range []units.Time{10, 30, 60} {
		if got[i].First != want {
			t.Errorf("request %d: first token at %d, want %d", i, got[i].First, want)
		}
	}
}
