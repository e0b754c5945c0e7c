package engine

import (
	"infera/internal/units"
	"infera/sim/kvcache"
)

// ahead reports whether a step is planned when the one before it begins. What
// such a plan cannot know is kept apart until it was made: requests that came
// in the meantime, and the seats and blocks of those that ended.
func (c *Core) ahead() bool { return c.opt.AsyncScheduling && c.opt.Stages == 1 }

// behind reports whether something has happened that the plan does not know.
func (c *Core) behind() bool { return len(c.arriving) > 0 || c.left > 0 }

// seats returns how many more requests the plan can let run.
func (c *Core) seats() int { return c.opt.MaxSequences - len(c.running) - c.left }

// submit puts a request where the next plan, or the one after, finds it.
func (c *Core) submit(r *Request) {
	if c.ahead() {
		c.arriving = append(c.arriving, r)
	} else {
		c.enqueue(r)
	}
}

func (c *Core) enqueue(r *Request) {
	if c.opt.Priority {
		c.waiting.insert(r)
	} else {
		c.waiting.push(r)
	}
}

// arrive puts the requests into the queue that came before a moment. One that
// comes just when a plan is made has missed it: an answer that ended then has
// yet to reach the client who sends it.
func (c *Core) arrive(before units.Time) {
	n := 0
	for n < len(c.arriving) && c.arriving[n].Submitted < before {
		c.enqueue(c.arriving[n])
		n++
	}
	if n > 0 {
		left := copy(c.arriving, c.arriving[n:])
		clear(c.arriving[left:])
		c.arriving = c.arriving[:left]
	}
}

// letGo frees the seat and the blocks of a request that ended.
func (c *Core) letGo(r *Request) {
	if c.ahead() {
		c.left++
	}
	switch {
	case c.opt.HoldEnded:
		c.held++
	case c.ahead():
		// The request is used again before its blocks are free.
		c.leaving = append(c.leaving, r.seq)
		r.seq = kvcache.Sequence{}
		if n := len(c.spareSeqs); n > 0 {
			r.seq = c.spareSeqs[n-1]
			c.spareSeqs = c.spareSeqs[:n-1]
		}
	default:
		c.pool.Release(&r.seq)
	}
}

// leave frees what those held that ended before the plan that was made.
func (c *Core) leave() {
	for i := range c.leaving {
		c.pool.Release(&c.leaving[i])
	}
	c.spareSeqs = append(c.spareSeqs, c.leaving...)
	c.leaving, c.left = c.leaving[:0], 0
}

// catchUp makes everything known that has happened.
func (c *Core) catchUp() {
	c.arrive(units.Never)
	c.leave()
}
