package engine

import "slices"

// planVLLM gives the token budget to running requests, then admits from the
// head of the queue; nobody is admitted in a step that threw somebody back.
func (c *Core) planVLLM(s *Step) {
	budget := c.advance(s, c.opt.MaxBatchedTokens, true)
	if !c.preempted {
		c.admitAll(s, budget)
	}
}

// advance lets running requests go on in order of admission, those that have a
// prompt to compute only with prompts, and returns what is left of the budget.
// When blocks run out the request admitted last, or the least urgent, is thrown
// back.
func (c *Core) advance(s *Step, budget int, prompts bool) int {
	for i := 0; i < len(c.running) && budget > 0; i++ {
		r := c.running[i]
		if r.flying || r.prefilling() && !prompts {
			continue
		}
		want := min(c.wants(r), budget)
		for !c.room(r, r.computed+want) {
			victim := c.victim()
			if victim.flying {
				budget += s.remove(victim)
			}
			if c.position(victim) <= i {
				i-- // those after it move up
			}
			if c.preempt(victim); victim == r {
				break
			}
		}
		if r.room >= r.computed+want {
			budget -= want
			s.add(r, want)
			c.commit(r, r.computed+want)
		}
	}
	return budget
}

// wants returns the tokens a running request would compute in a step.
func (c *Core) wants(r *Request) int {
	if r.prefilling() {
		return min(r.target-r.computed, c.opt.PrefillChunk)
	}
	return min(1+c.opt.DraftTokens, r.remaining())
}

// victim returns the request to throw back: the last admitted, with priorities
// the least urgent, which may have its place in the step being planned already.
// There is one, since the request that lacks room can be it.
func (c *Core) victim() *Request {
	var worst *Request
	for i := len(c.running) - 1; i >= 0; i-- {
		r := c.running[i]
		if r.flying && (!c.opt.Priority || c.opt.Stages > 1) {
			continue
		}
		if worst == nil || c.opt.Priority && r.Priority > worst.Priority {
			worst = r
		}
		if !c.opt.Priority {
			break
		}
	}
	return worst
}

func (c *Core) position(r *Request) int { return slices.Index(c.running, r) }

// admitAll admits from the head of the queue while tokens, sequences and
// blocks last, and returns what is left of the budget.
func (c *Core) admitAll(s *Step, budget int) int {
	admitted := 0
	for c.waiting.len() > 0 && budget > 0 && c.seats() > 0 {
		if c.opt.NewPerStep > 0 && admitted == c.opt.NewPerStep {
			break
		}
		n := c.admit(s, budget)
		if n == 0 {
			break
		}
		budget -= n
		admitted++
	}
	return budget
}
