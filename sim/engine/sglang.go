package engine

import (
	"math"
	"slices"
)

// planSGLang plans a step of prompts when one can be admitted or goes on, of
// decodes otherwise.
func (c *Core) planSGLang(s *Step) {
	if c.opt.LongestPrefix {
		c.orderByPrefix()
	}
	aside := 0 // tokens for the decodes that join
	if c.opt.MixedPrefill {
		aside = len(c.running) - c.prefills
	}
	budget := c.continuePrompts(s, c.opt.MaxBatchedTokens-aside)
	admitted := 0
	for c.waiting.len() > 0 && budget > 0 && c.seats() > 0 {
		if c.opt.NewPerStep > 0 && admitted == c.opt.NewPerStep || !c.expectRoom(c.waiting.at(0)) {
			break
		}
		n := c.admit(s, budget)
		if n == 0 {
			break
		}
		budget -= n
		admitted++
	}
	if s.prompts() {
		if c.opt.MixedPrefill {
			c.joinDecodes(s, budget+aside)
		}
		return
	}
	c.retract()
	c.advance(s, math.MaxInt, false)
}

// retract throws back those that have generated least until all others have
// room for their next tokens.
func (c *Core) retract() {
	for i := 0; i < len(c.running); i++ {
		r := c.running[i]
		for !r.flying && !r.prefilling() && !c.room(r, r.computed+c.wants(r)) {
			victim := c.least(nil)
			if c.position(victim) <= i {
				i--
			}
			c.preempt(victim)
			c.raiseShare()
			if victim == r {
				break
			}
		}
	}
}

// joinDecodes adds decodes to a step of prompts, as far as the budget goes.
func (c *Core) joinDecodes(s *Step, budget int) {
	for _, r := range c.running {
		if budget <= 0 {
			return
		}
		if r.flying || r.prefilling() || !c.room(r, r.computed+1) {
			continue
		}
		s.add(r, 1)
		budget--
	}
}

// expectRoom reports whether a prompt and its answer fit beside the share of
// the running requests' answers that is counted on.
func (c *Core) expectRoom(r *Request) bool {
	b := c.pool.BlockTokens()
	left := float64(c.pool.Available() * b)
	share, longest := c.answerShare(), c.opt.AnswerShare.Longest
	expected := func(r *Request) float64 {
		if longest > 0 {
			return float64(min(r.remaining(), longest))
		}
		return float64(r.remaining())
	}
	for _, other := range c.running {
		left -= expected(other) * share
		left -= float64(max(0, other.target-other.computed-(other.room-other.computed)))
	}
	return left >= float64(r.target-c.found(r))+expected(r) || len(c.running) == 0
}

// orderByPrefix sorts the queue by how much of the prompt is in the cache. The
// order of arrival stays among equals, and altogether when many wait: matching
// them all would cost more than it gains.
func (c *Core) orderByPrefix() {
	all := c.waiting.all()
	if len(all) < 2 || c.opt.PrefixOrderLimit > 0 && len(all) > c.opt.PrefixOrderLimit {
		return
	}
	slices.SortStableFunc(all, func(x, y *Request) int { return c.found(y) - c.found(x) })
}

// answerShare is the share of answers that is counted on: it falls with every
// decode step since it was set.
func (c *Core) answerShare() float64 {
	a := &c.opt.AnswerShare
	if a.Steps == 0 || c.shareSteps == 0 {
		return c.share
	}
	return max(a.Least, c.share-float64(c.shareSteps)*(a.Initial-a.Least)/float64(a.Steps))
}

// resetShare counts on the initial share again.
func (c *Core) resetShare() { c.share, c.shareSteps = c.opt.AnswerShare.Initial, 0 }

// raiseShare counts on what the running requests have come to, after one was
// thrown back: the guess was too low.
func (c *Core) raiseShare() {
	var generated, whole float64
	for _, r := range c.running {
		generated += float64(r.Generated)
		whole += float64(r.Output)
	}
	c.share = min(1, (generated+float64(c.opt.AnswerShare.RetractSteps*len(c.running)))/(whole+1))
	c.shareSteps = 0
}
