package engine

// planATOM plans a step of prompts when there are any, of decodes otherwise.
func (c *Core) planATOM(s *Step) {
	budget := c.admitAll(s, c.continuePrompts(s, c.opt.MaxBatchedTokens))
	if !s.prompts() {
		c.advance(s, budget, false)
	}
}

// continuePrompts goes on with prompts that were cut and returns what is left
// of the budget.
func (c *Core) continuePrompts(s *Step, budget int) int {
	if c.prefills == 0 {
		return budget
	}
	for i := 0; i < len(c.running) && budget > 0; i++ {
		r := c.running[i]
		if r.flying || !r.prefilling() {
			continue
		}
		want := min(c.wants(r), budget)
		if !c.room(r, r.computed+want) {
			// Its whole prompt was checked when it was admitted; answers have
			// taken the room since.
			if victim := c.least(r); victim != nil {
				if c.position(victim) < i {
					i--
				}
				c.preempt(victim)
				i--
			}
			continue
		}
		budget -= want
		s.add(r, want)
		c.commit(r, r.computed+want)
	}
	return budget
}

// least returns the request, other than one, that has generated least, of those
// the one with the longest prompt, and the last admitted of those. Nil when none
// can be thrown back.
func (c *Core) least(except *Request) *Request {
	var worst *Request
	for _, r := range c.running {
		if r == except || r.flying {
			continue
		}
		if worst == nil || r.Generated < worst.Generated || r.Generated == worst.Generated && r.Input >= worst.Input {
			worst = r
		}
	}
	return worst
}
