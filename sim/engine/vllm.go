package engine

// planVLLM gives the token budget to running requests in order of admission,
// then admits from the head of the queue. When blocks run out the request
// admitted last (or the least urgent) is thrown back, and nobody is admitted in
// that step.
func (c *Core) planVLLM(s *Step) {
	budget := c.opt.MaxBatchedTokens
	for i := 0; i < len(c.running) && budget > 0; i++ {
		r := c.running[i]
		if r.flying {
			continue
		}
		want := min(c.wants(r), budget)
		for !c.room(r, r.computed+want) {
			victim := c.victim()
			if victim == nil {
				break
			}
			c.preempt(victim)
			if victim == r {
				i-- // those after it moved up
				break
			}
		}
		if r.room >= r.computed+want {
			budget -= want
			s.add(r, want)
			c.commit(r, r.computed+want)
		}
	}
	if !c.preempted {
		c.admitAll(s, budget)
	}
}

// wants returns the tokens a running request would compute in a step.
func (c *Core) wants(r *Request) int {
	if r.prefilling() {
		return min(r.target-r.computed, c.opt.PrefillChunk)
	}
	return min(1+c.opt.DraftTokens, r.remaining())
}

// victim returns the request to throw back, nil when none can be: the last
// admitted that takes no part in the step, with priorities the least urgent.
// Earlier ones have their place in the step already.
func (c *Core) victim() *Request {
	var worst *Request
	for i := len(c.running) - 1; i >= 0; i-- {
		r := c.running[i]
		if r.flying {
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

func (c *Core) position(r *Request) int {
	for i, other := range c.running {
		if other == r {
			return i
		}
	}
	return len(c.running)
}

// admitAll admits from the head of the queue while tokens, sequences and
// blocks last.
func (c *Core) admitAll(s *Step, budget int) {
	admitted := 0
	for c.waiting.len() > 0 && budget > 0 && len(c.running) < c.opt.MaxSequences {
		if c.opt.NewPerStep > 0 && admitted == c.opt.NewPerStep {
			return
		}
		n := c.admit(s, budget)
		if n == 0 {
			return
		}
		budget -= n
		admitted++
	}
}
