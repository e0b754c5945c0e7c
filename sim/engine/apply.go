package engine

import "infera/internal/units"

// Apply books a step that ran times times in a row, each time beginning
// interval after the last and yielding its tokens latency after it began. It
// appends the requests that ended to ended. times must not exceed the step's
// Repeat. The step must not be used afterwards.
func (c *Core) Apply(s *Step, times int, interval, latency units.Time, ended []*Request) []*Request {
	c.flying--
	c.book(s, times)
	first := s.Started + latency
	c.known = s.Started + units.Time(times-1)*interval
	c.ended = c.known + interval
	var together int64 // gaps of just one interval
	any := false
	for _, p := range s.parts {
		r := p.r
		r.flying = false
		n := times
		if p.prompt {
			r.computed += int(p.tokens)
			c.kv += int(p.tokens)
			if r.prefilling() {
				continue
			}
			c.prefills--
			n = 1
		} else {
			if c.opt.DraftTokens > 0 {
				n = c.accepted(int(p.tokens))
			}
			c.decoded(r, n)
		}
		if r.Generated == 0 {
			r.First, r.sent = first, first
			r.Generated, n = 1, n-1
		}
		together += c.emit(r, n, first, interval, times)
		if r.Last = first + units.Time(times-1)*interval; r.remaining() == 0 {
			r.done = true
			any = true
		}
	}
	if together > 0 && c.Gap != nil {
		c.Gap(interval, together)
	}
	c.spare = append(c.spare, s)
	if any {
		ended = c.retire(ended)
	}
	return ended
}

// book adds a step that ran times times to the counters.
func (c *Core) book(s *Step, times int) {
	st, k := &c.stats, int64(times)
	prompts := int64(len(s.Batch.Chunks))
	decodes := int64(len(s.parts)) - prompts
	st.Steps += k
	st.Prefills += k * prompts
	st.Decodes += k * decodes
	st.Sequences += k * int64(len(c.running))
	st.Tokens += k * int64(s.tokens)
	// Each repetition finds one token more per sequence.
	st.KVTokens += k*int64(c.kv) + decodes*k*(k-1)/2
	st.MaxSequences = max(st.MaxSequences, len(c.running))
	if prompts > 0 {
		st.PrefillSteps += k
	} else {
		c.shareSteps += times
	}
}

// decoded grows the cache of a decoding request by n tokens.
func (c *Core) decoded(r *Request, n int) {
	c.mustHold(r, r.computed+n)
	r.computed += n
	c.kv += n
	// The token that is sampled last enters the cache with the next step.
	if c.extend(r, r.computed-r.Input) {
		c.commit(r, r.computed)
	}
}

// extend makes the chain of a request go on over the first so many tokens of
// its answer, and reports whether they fill another granule.
func (c *Core) extend(r *Request, answer int) bool {
	// What follows content that nobody looks for is not looked for either.
	if r.Content == nil || r.Answer == 0 || r.Unshared > 0 || answer <= r.chained {
		return false
	}
	chain := r.text.Append(nil, r.Answer, r.chained, answer-r.chained, c.pool.ContentTokens())
	r.chained = answer
	r.seq.Extend(chain...)
	r.chain = r.seq.Chain()
	return len(chain) > 0
}

// accepted draws how many of the tokens of a sequence a step yields: one, and
// the leading drafts that were accepted.
func (c *Core) accepted(tokens int) int {
	n := 1
	for n < tokens && c.rand.Float64() < c.opt.Acceptance[n-1] {
		n++
	}
	return n
}

// emit adds n tokens to the answer of a request, which come together at first
// or one per repetition, and tells the gaps that the client sees between them.
// It returns how many of the gaps are one interval, for the caller to tell.
func (c *Core) emit(r *Request, n int, first, interval units.Time, times int) (together int64) {
	r.Generated += n
	if n == 0 || c.Gap == nil {
		return 0
	}
	if c.opt.StreamInterval == 1 && (times > 1 || n == 1) {
		// One token per repetition, each sent at once.
		wait := first - r.sent
		r.sent = first + units.Time(times-1)*interval
		if wait == interval {
			return int64(n)
		}
		c.gap(wait, 1)
		return int64(n - 1)
	}
	for i := range n {
		at := first
		if times > 1 {
			at += units.Time(i) * interval
		}
		r.unsent++
		if i < n-1 && times == 1 {
			continue // more come at the same time
		}
		ending := i == n-1 && r.remaining() == 0
		if r.unsent < c.opt.StreamInterval && !ending {
			continue
		}
		c.gap(at-r.sent, 1)
		if r.unsent > 1 {
			c.gap(0, int64(r.unsent-1))
		}
		r.sent, r.unsent = at, 0
	}
	return 0
}

func (c *Core) gap(t units.Time, n int64) { c.Gap(t, n) }

// retire drops requests that ended from the running ones, lets go of their
// blocks and appends them to ended: in order of admission, which does not depend
// on how the step was put together.
func (c *Core) retire(ended []*Request) []*Request {
	left := c.running[:0]
	for _, r := range c.running {
		if !r.done {
			left = append(left, r)
			continue
		}
		c.exit(r)
		c.letGo(r)
		ended = append(ended, r)
	}
	clear(c.running[len(left):])
	c.running = left
	return ended
}
