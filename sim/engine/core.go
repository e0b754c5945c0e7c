package engine

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"infera/internal/units"
	"infera/sim/kvcache"
	"infera/sim/step"
	"infera/sim/workload"
)

// Reasons for rejecting a request.
var (
	ErrTooLong   = errors.New("prompt and answer are longer than the longest context")
	ErrQueueFull = errors.New("the waiting queue is full")
)

// Core is one engine's scheduler. It is not safe for concurrent use.
type Core struct {
	opt  Options
	pool *kvcache.Pool
	rand *rand.Rand
	// perBlock is the blocks that a sequence takes for one more of tokens: a
	// window that is not full grows, too.
	perBlock int

	waiting queue
	// arriving requests came after the moment that the next plan knows of, and
	// leaving is what those held that ended after it: see AsyncScheduling.
	arriving []*Request
	leaving  []kvcache.Sequence
	left     int        // requests that leaving stands for
	known    units.Time // the moment
	ended    units.Time // when the last step ended
	running  []*Request // in order of admission
	// prefills counts running requests that have tokens to compute before they
	// yield the next one.
	prefills int
	flying   int // steps under way
	answers  int // running requests that generate shareable content
	kv       int // tokens that running requests have in the cache
	// share is SGLang's share of answers counted on when it was set last, and
	// shareSteps the decode steps since.
	share      float64
	shareSteps int
	// preempted is set when the plan being made threw a request back.
	preempted bool
	spare     []*Step
	spareSeqs []kvcache.Sequence
	free      []*Request
	held      int // ended requests whose blocks are not let go
	stats     Stats

	// Gap, when set, is told how often a client waited so long between two
	// tokens.
	Gap func(gap units.Time, count int64)
}

// Stats count what an engine did.
type Stats struct {
	// Lookups counts requests with shareable content admitted for the first
	// time, Hits those that found some of it; Blocks and BlockHits their granules
	// of content.
	Lookups, Hits, Blocks, BlockHits int64
	// HitTokens were found, PromptTokens all prompt tokens admitted.
	HitTokens, PromptTokens int64
	Preemptions             int64
	// Steps counts steps, PrefillSteps those with prompt tokens. The sums are
	// over steps, divide by Steps for means.
	Steps, PrefillSteps                            int64
	Sequences, Prefills, Decodes, Tokens, KVTokens int64
	// MaxSequences is the most at once.
	MaxSequences int
}

// New returns an engine without requests. rand draws the acceptance of drafts;
// it may be nil without speculation. The error is of kind [ErrOptions].
func New(o Options, pool *kvcache.Pool, rand *rand.Rand) (*Core, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.DraftTokens > 0 && rand == nil {
		return nil, fmt.Errorf("%w: speculation without random numbers", ErrOptions)
	}
	o.StreamInterval, o.Stages = max(1, o.StreamInterval), max(1, o.Stages)
	if o.MaxBatchedTokens == 0 {
		o.MaxBatchedTokens = math.MaxInt32
	}
	if o.PrefillChunk == 0 {
		o.PrefillChunk = o.MaxBatchedTokens
	}
	b := pool.BlockTokens()
	return &Core{opt: o, pool: pool, rand: rand, share: o.AnswerShare.Initial, perBlock: pool.Blocks(2*b) - pool.Blocks(b)}, nil
}

// Pool returns the engine's cache.
func (c *Core) Pool() *kvcache.Pool { return c.pool }

// Stats returns the counters.
func (c *Core) Stats() Stats { return c.stats }

// Waiting and Running return the numbers of requests in the queue and admitted.
func (c *Core) Waiting() int { return c.waiting.len() + len(c.arriving) }

// Running returns the number of admitted requests.
func (c *Core) Running() int { return len(c.running) }

// KVTokens returns the tokens that admitted requests have in the cache.
func (c *Core) KVTokens() int { return c.kv }

// Idle reports whether the engine has nothing to do.
func (c *Core) Idle() bool { return len(c.running) == 0 && c.Waiting() == 0 }

// Submit puts a request into the queue. The errors are [ErrTooLong] and
// [ErrQueueFull].
func (c *Core) Submit(w *workload.Request, now units.Time) (*Request, error) {
	longest := w.Input + w.Output
	if c.opt.MaxContext > 0 && longest > c.opt.MaxContext || c.pool.Blocks(longest) > c.pool.Capacity() {
		return nil, ErrTooLong
	}
	if c.opt.MaxWaiting > 0 && c.Waiting() >= c.opt.MaxWaiting {
		return nil, ErrQueueFull
	}
	if c.opt.WholePrompts && w.Input > c.opt.MaxBatchedTokens {
		return nil, ErrTooLong
	}
	r := c.newRequest()
	r.Request, r.Submitted, r.target = *w, now, w.Input
	if w.Content != nil {
		r.chain = ChainOf(r.chain[:0], w, c.pool.ContentTokens(), &r.text)
	}
	c.submit(r)
	return r, nil
}

// Resume puts a request into the queue whose prompt was computed by another
// engine, which answered with its first token: its cache has come with it. The
// whole answer is output tokens long. The error is [ErrTooLong].
func (c *Core) Resume(from *Request, output int, now units.Time) (*Request, error) {
	if c.pool.Blocks(from.Input+output) > c.pool.Capacity() {
		return nil, ErrTooLong
	}
	r := c.newRequest()
	chain, seq := r.chain, r.seq
	*r = *from
	r.chain, r.seq, r.room, r.flying, r.done = append(chain[:0], from.chain...), seq, 0, false, false
	r.Output, r.Submitted = output, now
	r.computed, r.target = r.Input, r.Input
	c.submit(r)
	return r, nil
}

func (c *Core) newRequest() *Request {
	if n := len(c.free); n > 0 {
		r := c.free[n-1]
		c.free = c.free[:n-1]
		return r
	}
	return new(Request)
}

// Recycle gives a request that ended back to the engine, which uses it again.
func (c *Core) Recycle(r *Request) {
	*r = Request{chain: r.chain[:0], seq: r.seq}
	c.free = append(c.free, r)
}

// LetGo releases the blocks of a request that ended in an engine that holds
// them (HoldEnded).
func (c *Core) LetGo(r *Request) {
	c.pool.Release(&r.seq)
	c.held--
}

// Held returns how many requests that ended still hold blocks.
func (c *Core) Held() int { return c.held }

// Drain empties the engine, as after a crash: its requests are gone and its
// cache is empty. Steps under way must not be applied.
func (c *Core) Drain() {
	c.running, c.waiting = nil, queue{}
	c.arriving, c.leaving, c.left = nil, nil, 0
	c.prefills, c.flying, c.kv, c.held, c.answers = 0, 0, 0, 0, 0
	c.resetShare()
	c.pool.Clear()
}

// Step is a step to run. It is valid until it was applied.
type Step struct {
	// Batch is what to price.
	Batch step.Batch
	// Repeat is how many times the step can be repeated before its batch, or
	// who takes part, changes. The bands of context length within which the
	// price of decoding counts as equal are part of the batch.
	Repeat int
	// Started is the moment given to Next.
	Started units.Time

	parts  []part
	tokens int
}

// part is what one request takes part in a step with.
type part struct {
	r      *Request
	tokens int32
	prompt bool
}

// Tokens returns the tokens that the step computes, PromptTokens those of them
// that belong to prompts.
func (s *Step) Tokens() int { return s.tokens }

// PromptTokens returns the prompt tokens that the step computes.
func (s *Step) PromptTokens() int {
	n := 0
	for _, c := range s.Batch.Chunks {
		n += int(c.Tokens)
	}
	return n
}

// Requests returns the number of requests that take part.
func (s *Step) Requests() int { return len(s.parts) }

// Next plans a step that begins now. It returns nil when there is nothing to
// do, or nothing that can be done before a step under way has ended.
func (c *Core) Next(now units.Time) *Step {
	if c.flying >= c.opt.Stages {
		return nil
	}
	if c.Idle() {
		c.leave()
		c.resetShare()
		return nil
	}
	if !c.ahead() || now != c.ended {
		c.catchUp()
	} else {
		c.arrive(c.known)
	}
	s := c.newStep(now)
	c.plan(s)
	if len(s.parts) == 0 && c.behind() {
		// Nothing could be planned ahead: the plan is made now.
		c.catchUp()
		c.plan(s)
	}
	if len(s.parts) == 0 {
		c.spare = append(c.spare, s)
		return nil
	}
	c.finishPlan(s)
	c.leave()
	c.flying++
	return s
}

func (c *Core) plan(s *Step) {
	c.preempted = false
	switch c.opt.Policy {
	case SGLang:
		c.planSGLang(s)
	case ATOM:
		c.planATOM(s)
	default:
		c.planVLLM(s)
	}
}

func (c *Core) newStep(now units.Time) *Step {
	var s *Step
	if n := len(c.spare); n > 0 {
		s = c.spare[n-1]
		c.spare = c.spare[:n-1]
	} else {
		s = new(Step)
	}
	*s = Step{Started: now, Repeat: 1, parts: s.parts[:0], Batch: step.Batch{Chunks: s.Batch.Chunks[:0]}}
	return s
}

// add lets a request take part with so many tokens, for which it has room.
func (s *Step) add(r *Request, tokens int) {
	r.flying = true
	s.parts = append(s.parts, part{r, int32(tokens), r.prefilling()})
	s.tokens += tokens
}

// remove takes a request out of a step that is being planned, and returns its
// tokens.
func (s *Step) remove(r *Request) int {
	i := slices.IndexFunc(s.parts, func(p part) bool { return p.r == r })
	n := int(s.parts[i].tokens)
	s.parts = slices.Delete(s.parts, i, i+1)
	s.tokens -= n
	r.flying = false
	return n
}

// prompts reports whether the step computes any.
func (s *Step) prompts() bool {
	return slices.ContainsFunc(s.parts, func(p part) bool { return p.prompt })
}

// band is a range of mean context lengths priced alike: 1/32 of the length
// wide, which moves the price of reading the cache by less than 1.6 %.
func band(mean int) (middle float64, left int) {
	width := 1 << max(0, bits.Len(uint(mean))-6)
	from := mean &^ (width - 1)
	return float64(from) + float64(width-1)/2, from + width - mean
}

// finishPlan fills the batch and how often it may be repeated.
func (c *Core) finishPlan(s *Step) {
	decodes, drafts, kv, least, boundary := 0, 0, 0, math.MaxInt, math.MaxInt
	block := c.pool.BlockTokens()
	for i := range s.parts {
		p := &s.parts[i]
		r, n := p.r, int(p.tokens)
		if p.prompt {
			final := 0.0
			if r.computed+n == r.target {
				final = 1
			}
			s.Batch.Chunks = append(s.Batch.Chunks, step.Chunk{
				Tokens: float64(n), Context: float64(r.computed), Sequences: 1, Final: final,
			})
			continue
		}
		decodes++
		drafts += n
		kv += r.length()
		least = min(least, r.remaining())
		boundary = min(boundary, block-r.computed%block)
	}
	if decodes == 0 {
		return
	}
	middle, left := band(kv / decodes)
	s.Batch.Decodes, s.Batch.DecodeKV = float64(decodes), middle*float64(decodes)
	s.Batch.TokensPerSequence = float64(drafts) / float64(decodes)
	if len(s.Batch.Chunks) == 0 {
		s.Repeat = max(1, min(left, least, c.repeatable(decodes, boundary)))
	}
}

// repeatable returns how often a step of decodes alone would be planned again
// without a look at the queue coming out otherwise, and without anything that
// must be seen to happen in its own moment. boundary steps fill the first block
// that a sequence has under way.
func (c *Core) repeatable(decodes, boundary int) int {
	if c.opt.SingleSteps || c.opt.DraftTokens > 0 || c.opt.Stages > 1 || decodes < len(c.running) {
		return 1
	}
	if c.waiting.len() > 0 && (c.preempted || c.opt.Policy == SGLang || c.opt.NewPerStep > 0) || c.behind() && c.Waiting() > 0 {
		return 1
	}
	// Blocks for all to begin a new one, and then for every full block.
	b, each := c.pool.BlockTokens(), decodes*c.perBlock
	steps := max(boundary, (c.pool.Available()/each-1)*b)
	if c.pool.Stored != nil && c.answers > 0 || c.pool.Evicted != nil && (c.pool.Fresh()/each-1)*b < steps {
		return boundary
	}
	return steps
}

// room makes sure that a request has blocks for so many tokens in all.
func (c *Core) room(r *Request, tokens int) bool {
	if tokens <= r.room {
		return true
	}
	if !c.pool.Grow(&r.seq, tokens) {
		return false
	}
	b := c.pool.BlockTokens()
	r.room = (tokens + b - 1) / b * b
	return true
}

// limit is the most leading granules of content a prompt may find: its last
// token must be computed to yield the next.
func (c *Core) limit(r *Request) int { return (r.target - 1) / c.pool.ContentTokens() }

// found returns how many tokens of a waiting request are in the cache.
func (c *Core) found(r *Request) int {
	granules := min(c.pool.Match(r.chain), c.limit(r))
	return granules*c.pool.ContentTokens() + c.pool.Parked(&r.seq, granules)*c.pool.BlockTokens()
}

// admit moves the head of the queue to the running requests with its first
// tokens, at most budget of them. It returns how many those are, 0 when it
// cannot be admitted now.
func (c *Core) admit(s *Step, budget int) int {
	r := c.waiting.at(0)
	if !r.prefilling() {
		return c.adopt(s)
	}
	cached := c.found(r)
	n := min(r.target-cached, c.opt.PrefillChunk, budget)
	// One that was thrown back may have grown beyond what a step can take.
	if whole := r.target - cached; c.opt.WholePrompts && whole <= c.opt.MaxBatchedTokens {
		if n = whole; n > budget {
			return 0
		}
	}
	// The whole prompt must fit, not only its first piece: admitting what
	// cannot be finished would throw others back.
	now, later := cached+n, r.target
	switch {
	case c.opt.ReserveAnswer:
		later = r.Input + r.Output
		now = later
	case c.opt.Policy == ATOM:
		now = later // its blocks are taken at once
	}
	if n < 1 || c.pool.Lacking(r.chain, c.limit(r), later) > 0 {
		return 0
	}
	c.pool.Start(&r.seq, r.chain, c.limit(r))
	hit := r.seq.Held() * c.pool.BlockTokens()
	r.room = hit
	c.mustHold(r, now)
	c.waiting.pop()
	r.computed = hit
	c.count(r, hit, s.Started)
	c.kv += hit
	c.enter(r)
	c.prefills++
	s.add(r, n)
	// What a request computes can be found by those scheduled after it.
	c.commit(r, hit+n)
	return n
}

// adopt admits a request whose prompt was computed elsewhere.
func (c *Core) adopt(s *Step) int {
	r := c.waiting.at(0)
	hold := r.length() + 1
	if c.opt.ReserveAnswer {
		hold = r.Input + r.Output
	}
	if c.pool.Lacking(r.chain, len(r.chain), hold) > 0 {
		return 0
	}
	r.room = c.pool.Start(&r.seq, r.chain, len(r.chain)) * c.pool.ContentTokens()
	c.mustHold(r, hold)
	c.waiting.pop()
	c.commit(r, r.Input)
	c.kv += r.computed
	c.enter(r)
	s.add(r, 1)
	return 1
}

// enter and exit book a request as running, and no longer.
func (c *Core) enter(r *Request) {
	c.running = append(c.running, r)
	if r.Answer != 0 {
		c.answers++
	}
}

func (c *Core) exit(r *Request) {
	c.kv -= r.computed
	if r.Answer != 0 {
		c.answers--
	}
}

// mustHold takes blocks that were found to be available.
func (c *Core) mustHold(r *Request, tokens int) {
	if !c.room(r, tokens) {
		panic(fmt.Sprintf("engine: no room for %d tokens that the pool said it had", tokens))
	}
}

// count books the first admission of a request.
func (c *Core) count(r *Request, hit int, now units.Time) {
	if r.Preempted > 0 {
		r.Wasted += max(0, r.lost-hit)
		return
	}
	r.Admitted, r.Cached = now, hit
	st := &c.stats
	st.PromptTokens += int64(r.Input)
	st.HitTokens += int64(hit)
	if r.Content != nil {
		st.Lookups++
		st.Blocks += int64(r.Input / c.pool.ContentTokens())
		st.BlockHits += int64(hit / c.pool.ContentTokens())
		if hit > 0 {
			st.Hits++
		}
	}
}

// commit makes what a request has computed findable.
func (c *Core) commit(r *Request, computed int) {
	if r.Content != nil {
		c.pool.Commit(&r.seq, computed)
	}
}

// preempt throws a running request back: its blocks are let go, and what of
// them is gone when it is admitted again is computed again. vLLM finds the rest
// by its hashes; SGLang's tree holds no answers under way.
func (c *Core) preempt(r *Request) {
	for i, other := range c.running {
		if other == r {
			c.running = append(c.running[:i], c.running[i+1:]...)
			break
		}
	}
	if r.prefilling() {
		c.prefills--
	}
	c.exit(r)
	c.preempted = true
	c.extend(r, r.Generated)
	if c.opt.Policy == SGLang {
		c.pool.Release(&r.seq)
	} else {
		c.pool.Park(&r.seq, r.computed)
	}
	r.Preempted++
	r.lost = r.computed
	r.computed, r.target, r.room = 0, r.length(), 0
	c.stats.Preemptions++
	switch {
	case c.opt.Priority:
		c.waiting.insert(r)
	case c.opt.Policy == SGLang:
		c.waiting.push(r)
	default:
		c.waiting.pushFront(r)
	}
}
