package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"infera/internal/units"
	"infera/sim/kvcache"
	"infera/sim/workload"
)

// anyOptions draws a scheduler and a pool.
func anyOptions(t *rapid.T) (Options, kvcache.Options) {
	o := Options{
		Policy:           Policy(rapid.IntRange(0, 2).Draw(t, "policy")),
		MaxSequences:     rapid.SampledFrom([]int{1, 2, 5, 100}).Draw(t, "sequences"),
		MaxBatchedTokens: rapid.SampledFrom([]int{0, 3, 16, 60}).Draw(t, "budget"),
		PrefillChunk:     rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "chunk"),
		WholePrompts:     rapid.IntRange(0, 4).Draw(t, "whole") == 0,
		NewPerStep:       rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "new per step"),
		MaxContext:       rapid.SampledFrom([]int{0, 0, 70}).Draw(t, "context"),
		MaxWaiting:       rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "queue"),
		ReserveAnswer:    rapid.IntRange(0, 3).Draw(t, "reserve") == 0,
		Priority:         rapid.IntRange(0, 3).Draw(t, "priority") == 0,
		MixedPrefill:     rapid.Bool().Draw(t, "mixed"),
		LongestPrefix:    rapid.Bool().Draw(t, "longest prefix"),
		AnswerShare:      AnswerShare{Initial: rapid.SampledFrom([]float64{0, 0.7, 1}).Draw(t, "share"), Steps: 20, RetractSteps: 2},
		StreamInterval:   rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "stream"),
		HoldEnded:        rapid.IntRange(0, 4).Draw(t, "hold") == 0,
		Stages:           rapid.SampledFrom([]int{0, 0, 0, 2, 3}).Draw(t, "stages"),
		AsyncScheduling:  rapid.IntRange(0, 3).Draw(t, "async") == 0,
	}
	if rapid.IntRange(0, 3).Draw(t, "drafts") == 0 {
		o.DraftTokens, o.Acceptance = 2, []float64{0.7, 0.5}
	}
	p := kvcache.Options{
		BlockTokens: rapid.SampledFrom([]int{1, 4}).Draw(t, "block"), Blocks: rapid.SampledFrom([]int{0, 25, 40, 100}).Draw(t, "blocks"),
		Prefix: rapid.IntRange(0, 3).Draw(t, "prefix") > 0,
	}
	p.ContentTokens = p.BlockTokens * rapid.IntRange(1, 2).Draw(t, "granule")
	if rapid.IntRange(0, 3).Draw(t, "groups") == 0 {
		p.Groups = []kvcache.Group{{Window: rapid.IntRange(1, 30).Draw(t, "window")}, {Fixed: rapid.IntRange(0, 2).Draw(t, "fixed")}}
	}
	return o, p
}

// anyRequest draws a request; its number makes its answer its own.
func anyRequest(t *rapid.T, n int) workload.Request {
	w := workload.Request{
		ID: n, Input: rapid.IntRange(1, 60).Draw(t, "input"), Output: rapid.IntRange(1, 40).Draw(t, "output"),
		Priority: rapid.IntRange(0, 2).Draw(t, "priority of it"),
	}
	if rapid.Bool().Draw(t, "content") {
		shared := rapid.IntRange(0, w.Input).Draw(t, "shared")
		w.Content = []workload.Segment{{ID: uint64(rapid.IntRange(1, 2).Draw(t, "segment")), Tokens: shared}, {ID: uint64(1000 + n), Tokens: w.Input - shared}}
		switch rapid.IntRange(0, 2).Draw(t, "reuse") {
		case 0:
			w.Answer = uint64(2000 + n)
		case 1:
			w.Unshared = w.Input - shared
		}
	}
	return w
}

// resumed is a request as a prefill engine leaves it.
func resumed(w workload.Request, content int, now units.Time) *Request {
	from := &Request{Request: w, Submitted: now, Admitted: now, First: now, Last: now, Generated: 1, sent: now}
	from.Output = 1
	from.chain = ChainOf(nil, &w, content, &from.text)
	return from
}

// world is an engine under a random load, and what it must have done.
type world struct {
	*Core
	t       *rapid.T
	now     units.Time
	flying  []*Step
	live    map[*Request]bool // submitted and not ended
	held    []*Request
	ended   []*Request
	gaps    map[units.Time]int64
	tokens  int
	content bool // some request had content
	events  int  // granules that became findable or were given up
}

func newWorld(t *rapid.T, o Options, p kvcache.Options, hooks bool) *world {
	pool, err := kvcache.New(p)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, live: map[*Request]bool{}, gaps: map[units.Time]int64{}}
	if hooks {
		pool.Stored, pool.Evicted = func(kvcache.Hash) { w.events++ }, func(kvcache.Hash) { w.events++ }
	}
	c, err := New(o, pool, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	w.Core = c
	c.Gap = func(gap units.Time, n int64) { w.gaps[gap] += n }
	return w
}

// arrive submits a request, or one that another engine has begun.
func (w *world) submitAny(q workload.Request, resume bool) {
	var r *Request
	var err error
	if resume && q.Output > 1 {
		r, err = w.Resume(resumed(q, w.pool.ContentTokens(), w.now), q.Output, w.now)
	} else {
		r, err = w.Submit(&q, w.now)
	}
	if err == nil {
		w.live[r] = true
		w.content = w.content || q.Content != nil
	}
}

// checkStep is what holds of any step.
func (w *world) checkStep(s *Step) {
	o := &w.opt
	prompts, decodes, chunks := 0, 0, 0
	for _, p := range s.parts {
		n := int(p.tokens)
		if n < 1 || !p.r.flying || !w.live[p.r] {
			w.t.Fatalf("a part of %d tokens, flying %v, live %v", n, p.r.flying, w.live[p.r])
		}
		if !slices.Contains(w.running, p.r) {
			w.t.Fatal("a part of a request that does not run")
		}
		if p.prompt {
			chunks++
			prompts += n
			if n > o.PrefillChunk && !o.WholePrompts {
				w.t.Fatalf("%d tokens of one prompt", n)
			}
		} else {
			decodes += n
			if n > 1+o.DraftTokens || n > p.r.remaining() {
				w.t.Fatalf("%d decode tokens of %d remaining", n, p.r.remaining())
			}
		}
		for _, other := range w.flying {
			if slices.ContainsFunc(other.parts, func(q part) bool { return q.r == p.r }) {
				w.t.Fatal("a request takes part in two steps")
			}
		}
	}
	if prompts+decodes != s.Tokens() || prompts != s.PromptTokens() || len(s.parts) != s.Requests() || chunks != len(s.Batch.Chunks) {
		w.t.Fatalf("tokens %d + %d of %d, prompts %d, %d chunks of %d", prompts, decodes, s.Tokens(), s.PromptTokens(), chunks, len(s.Batch.Chunks))
	}
	if b := &s.Batch; float64(s.Requests()-chunks) != b.Decodes || b.Decodes > 0 && fmt.Sprintf("%.6f", b.TokensPerSequence*b.Decodes) != fmt.Sprintf("%.6f", float64(decodes)) {
		w.t.Fatalf("%d decodes of %d tokens in a batch %+v", s.Requests()-chunks, decodes, b)
	}
	bound := s.Tokens()
	if o.Policy == SGLang && chunks == 0 {
		bound = 0 // the budget is one of prompts
	}
	if bound > o.MaxBatchedTokens {
		w.t.Fatalf("%d tokens in a step of %d", bound, o.MaxBatchedTokens)
	}
	if o.Policy == ATOM && chunks > 0 && decodes > 0 && s.Repeat > 0 {
		for _, p := range s.parts {
			if !p.prompt && p.r.Generated > 1 {
				w.t.Fatal("decodes beside prompts")
			}
		}
	}
	if s.Repeat < 1 || s.Repeat > 1 && (chunks > 0 || o.Stages > 1 || o.DraftTokens > 0) {
		w.t.Fatalf("repeat %d", s.Repeat)
	}
}

// checkState is what holds between steps.
func (w *world) checkState() {
	if len(w.running) > w.opt.MaxSequences {
		w.t.Fatalf("%d running", len(w.running))
	}
	if used := w.pool.Used(); used < 0 || used > w.pool.Capacity() || w.pool.Peak() > w.pool.Capacity() {
		w.t.Fatalf("%d of %d blocks used, %d at most", used, w.pool.Capacity(), w.pool.Peak())
	}
	kv, prefills := 0, 0
	for _, r := range w.running {
		kv += r.computed
		if r.prefilling() {
			prefills++
		}
		if r.computed > r.room || r.seq.Held() < w.pool.Blocks(r.room) || r.Generated > r.Output || r.done {
			w.t.Fatalf("%d tokens computed, room for %d, %d blocks held, %d of %d generated", r.computed, r.room, r.seq.Held(), r.Generated, r.Output)
		}
	}
	if kv != w.KVTokens() || prefills != w.prefills || w.Held() != len(w.held) {
		w.t.Fatalf("%d tokens in the cache, told %d; %d prefills, told %d; %d held, told %d", kv, w.KVTokens(), prefills, w.prefills, len(w.held), w.Held())
	}
	if w.Running()+w.Waiting() != len(w.live) {
		w.t.Fatalf("%d running, %d waiting, %d live", w.Running(), w.Waiting(), len(w.live))
	}
	if w.opt.Priority && !slices.IsSortedFunc(w.waiting.all(), func(a, b *Request) int { return a.Priority - b.Priority }) && w.opt.Policy != SGLang {
		w.t.Fatal("the queue is not in order of priority")
	}
}

func (w *world) apply(s *Step, times int) {
	w.tokens += times * s.Tokens()
	for _, r := range w.Apply(s, times, 3, 5, nil) {
		if !w.live[r] || r.Generated != r.Output {
			w.t.Fatalf("ended: live %v, %d of %d generated", w.live[r], r.Generated, r.Output)
		}
		if !(r.Submitted <= r.Admitted || r.Preempted > 0) || r.Admitted > r.First || r.First > r.Last {
			w.t.Fatalf("submitted %d, admitted %d, first %d, last %d", r.Submitted, r.Admitted, r.First, r.Last)
		}
		delete(w.live, r)
		w.ended = append(w.ended, r)
		if w.opt.HoldEnded {
			w.held = append(w.held, r)
		}
	}
}

// advance starts or ends one step. It returns false when there is nothing to do.
func (w *world) step(times func(repeat int) int) bool {
	s := w.Next(w.now)
	switch {
	case s != nil:
		w.checkStep(s)
		w.flying = append(w.flying, s)
		if w.opt.Stages > 1 {
			w.now += 3
			break
		}
		n := times(s.Repeat)
		w.now += units.Time(n) * 3
		w.apply(s, n)
		w.flying = nil
	case len(w.flying) > 0:
		s, w.flying = w.flying[0], w.flying[1:]
		w.now = max(w.now, s.Started+5)
		w.apply(s, 1)
	case len(w.held) > 0:
		w.LetGo(w.held[0])
		w.held = w.held[1:]
	default:
		return false
	}
	w.checkState()
	return true
}

// Every request that is not rejected ends once, with its whole answer, and no
// limit is ever exceeded.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := anyOptions(t)
		w := newWorld(t, o, p, rapid.Bool().Draw(t, "hooks"))
		times := func(repeat int) int { return rapid.IntRange(1, repeat).Draw(t, "times") }
		for n := range rapid.IntRange(1, 25).Draw(t, "requests") {
			w.submitAny(anyRequest(t, n), rapid.IntRange(0, 4).Draw(t, "resume") == 0)
			w.checkState()
			for range rapid.IntRange(0, 4).Draw(t, "steps") {
				if !w.step(times) {
					break
				}
			}
		}
		for i := 0; w.step(func(r int) int { return r }); i++ {
			if i > 10_000 {
				t.Fatalf("no end: %d running, %d waiting", w.Running(), w.Waiting())
			}
		}
		if !w.Idle() || len(w.live) > 0 {
			t.Fatalf("stuck with %d running and %d waiting, %d of %d blocks used", w.Running(), w.Waiting(), w.pool.Used(), w.pool.Capacity())
		}
		w.Next(w.now) // with asynchronous scheduling the last blocks are let go late
		if w.pool.Used() != 0 || w.KVTokens() != 0 {
			t.Fatalf("%d blocks and %d tokens are left", w.pool.Used(), w.KVTokens())
		}
		var tokens, gaps int64
		var between, waited units.Time
		for _, r := range w.ended {
			// All but the last token enter the cache, the cached ones without being
			// computed; of a resumed one the prompt was computed elsewhere.
			work := r.Input + r.Output - 1 - r.Cached + r.Wasted
			tokens += int64(work)
			gaps += int64(r.Output - 1)
			between += r.Last - r.First
		}
		for gap, n := range w.gaps {
			gaps -= n
			waited += gap * units.Time(n)
		}
		if gaps != 0 || between != waited {
			t.Fatalf("%d gaps are missing; %d between first and last tokens, %d in gaps", gaps, between, waited)
		}
		st := w.Stats()
		if st.Tokens != int64(w.tokens) {
			t.Fatalf("%d tokens, told %d", w.tokens, st.Tokens)
		}
		if o.DraftTokens == 0 && (st.Tokens > tokens || !w.content && st.Tokens != tokens-resumedPrompts(w.ended)) {
			t.Fatalf("%d tokens were computed for work of %d", st.Tokens, tokens)
		}
		if st.BlockHits > st.Blocks || st.Hits > st.Lookups || st.HitTokens > st.PromptTokens {
			t.Fatalf("more hits than lookups: %+v", st)
		}
	})
}

// resumedPrompts is the prompt tokens that other engines computed.
func resumedPrompts(ended []*Request) (tokens int64) {
	for _, r := range ended {
		if r.Submitted == r.Admitted && r.Admitted == r.First {
			tokens += int64(r.Input)
		}
	}
	return tokens
}

// state is what must be equal of two engines that did the same.
type state struct {
	Stats                           Stats
	KV, Used, Fresh, Cached, Peak   int
	Evictions                       int64
	Waiting                         int
	Running                         []string
	Share                           float64
	Gaps                            map[units.Time]int64
	Ended, Preempted, Wasted, Times []int
}

func (w *world) state() state {
	s := state{
		Stats: w.Stats(), KV: w.KVTokens(), Waiting: w.Waiting(), Share: w.answerShare(), Gaps: maps.Clone(w.gaps),
		Used: w.pool.Used(), Fresh: w.pool.Fresh(), Cached: w.pool.Cached(), Peak: w.pool.Peak(), Evictions: w.pool.Evictions(),
	}
	for _, r := range w.running {
		s.Running = append(s.Running, fmt.Sprint(r.ID, r.Generated, r.computed, r.room, r.seq.Held(), r.chain, r.First, r.Last, r.sent, r.unsent))
	}
	for _, r := range w.ended {
		s.Ended, s.Preempted = append(s.Ended, r.ID), append(s.Preempted, r.Preempted)
		s.Wasted, s.Times = append(s.Wasted, r.Wasted), append(s.Times, int(r.Admitted), int(r.First), int(r.Last))
	}
	return s
}

// Booking a step k times at once is the same as planning and booking it k times:
// the same batch, the same requests, the same state after it.
func TestRepetition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := anyOptions(t)
		o.Stages, o.DraftTokens, o.Acceptance, o.HoldEnded = 0, 0, nil, false
		// Contexts of some hundred tokens are priced in bands of 4 and more, so that
		// steps repeat, in pools that a few of them fill.
		o.MaxContext, o.MaxBatchedTokens = 0, rapid.SampledFrom([]int{0, 100, 700}).Draw(t, "larger budget")
		if o.PrefillChunk > 0 {
			o.PrefillChunk = 100
		}
		if p.Blocks > 0 {
			p.Blocks = rapid.IntRange(800, 2000).Draw(t, "tokens of the pool") / p.BlockTokens
		}
		hooks := rapid.Bool().Draw(t, "hooks")
		single := o
		single.SingleSteps = true
		a, b := newWorld(t, o, p, hooks), newWorld(t, single, p, hooks)
		step := func() bool {
			s := a.Next(a.now)
			if s == nil {
				if b.Next(b.now) != nil {
					t.Fatal("one of two equal engines has something to do")
				}
				return false
			}
			k := s.Repeat
			if rapid.IntRange(0, 3).Draw(t, "cut") == 0 {
				k = rapid.IntRange(1, s.Repeat).Draw(t, "times")
			}
			events := b.events
			for i := range k {
				one := b.Next(b.now)
				if one == nil {
					t.Fatal("one of two equal engines has nothing to do")
				}
				// Who watches the cache must see it change in time: when the plan is
				// made, or after the last step.
				if i == 0 {
					events = b.events
				} else if b.events != events {
					t.Fatalf("%d granules became findable or were given up within %d of %d repetitions", b.events-events, k, s.Repeat)
				}
				if diff := cmp.Diff(s.Batch, one.Batch); diff != "" {
					t.Fatalf("the batch changed within %d of %d repetitions:\n%s", k, s.Repeat, diff)
				}
				b.now += 3
				b.apply(one, 1)
			}
			a.now += units.Time(k) * 3
			a.apply(s, k)
			if diff := cmp.Diff(b.state(), a.state()); diff != "" {
				t.Fatalf("one by one (-) and %d at once (+) differ:\n%s", k, diff)
			}
			return true
		}
		for n := range rapid.IntRange(1, 12).Draw(t, "requests") {
			q := anyRequest(t, n)
			if rapid.IntRange(0, 5).Draw(t, "long") > 0 {
				more := rapid.IntRange(150, 400).Draw(t, "longer")
				if q.Input += more; q.Content != nil {
					q.Content[rapid.IntRange(0, 1).Draw(t, "where")].Tokens += more
				}
				q.Unshared = min(q.Unshared, q.Input)
				q.Output += 20
			}
			resume := rapid.IntRange(0, 4).Draw(t, "resume") == 0
			a.submitAny(q, resume)
			b.submitAny(q, resume)
			for range rapid.IntRange(0, 4).Draw(t, "steps") {
				if !step() {
					break
				}
			}
		}
		for step() {
		}
		if !a.Idle() {
			t.Fatalf("stuck with %d running and %d waiting", a.Running(), a.Waiting())
		}
	})
}
