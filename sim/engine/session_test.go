package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"infera/internal/golden"
	"infera/internal/units"
	"infera/sim/kvcache"
	"infera/sim/workload"
)

// session is an engine that a test talks to, and the log of what it does. A
// step takes 10, and begins when the one before has ended.
type session struct {
	t     *testing.T
	core  *Core
	now   units.Time
	steps int
	log   bytes.Buffer
	names map[*Request]string
	// flying are steps under way of a pipeline.
	flying []*Step
	gaps   bool // log what clients see between tokens
}

func newCore(t testing.TB, o Options, pool kvcache.Options) *Core {
	t.Helper()
	p, err := kvcache.New(pool)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(o, p, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newSession(t *testing.T, o Options, pool kvcache.Options) *session {
	s := &session{t: t, core: newCore(t, o, pool), names: map[*Request]string{}}
	s.core.Gap = func(gap units.Time, n int64) {
		if s.gaps {
			s.say("     gap %d x%d", gap, n)
		}
	}
	return s
}

func (s *session) say(format string, args ...any) { fmt.Fprintf(&s.log, format+"\n", args...) }

// submit sends a request that shares nothing; change may say more about it.
func (s *session) submit(name string, input, output int, change ...func(*workload.Request)) *Request {
	w := workload.Request{Input: input, Output: output}
	for _, f := range change {
		f(&w)
	}
	r, err := s.core.Submit(&w, s.now)
	if err != nil {
		s.say("submit %s %d+%d: %v", name, input, output, err)
		return nil
	}
	s.say("submit %s %d+%d", name, input, output)
	s.names[r] = name
	return r
}

// content makes a prompt of pieces: identity, tokens, identity, tokens, ...
func content(pieces ...int) func(*workload.Request) {
	return func(w *workload.Request) {
		for i := 0; i < len(pieces); i += 2 {
			w.Content = append(w.Content, workload.Segment{ID: uint64(pieces[i]), Tokens: pieces[i+1]})
		}
	}
}

func priority(p int) func(*workload.Request) {
	return func(w *workload.Request) { w.Priority = p }
}

func answer(id uint64) func(*workload.Request) {
	return func(w *workload.Request) { w.Answer = id }
}

// parts says who takes part in a step: prompts as what is there + what is
// computed, a star when that is all, decodes with what they compute if more than
// one.
func (s *session) parts(st *Step) string {
	var prompts, decodes []string
	for _, p := range st.parts {
		r, n := p.r, int(p.tokens)
		switch {
		case p.prompt && r.computed+n == r.target:
			prompts = append(prompts, fmt.Sprintf("%s %d+%d*", s.names[r], r.computed, n))
		case p.prompt:
			prompts = append(prompts, fmt.Sprintf("%s %d+%d", s.names[r], r.computed, n))
		case n > 1:
			decodes = append(decodes, fmt.Sprintf("%s(%d)", s.names[r], n))
		default:
			decodes = append(decodes, s.names[r])
		}
	}
	var out []string
	if len(prompts) > 0 {
		out = append(out, "prompt "+strings.Join(prompts, ", "))
	}
	if len(decodes) > 0 {
		out = append(out, "decode "+strings.Join(decodes, " "))
	}
	return strings.Join(out, "; ")
}

// start plans a step and logs it.
func (s *session) start() *Step {
	before := map[*Request]int{}
	for r := range s.names {
		before[r] = r.Preempted
	}
	st := s.core.Next(s.now)
	for _, r := range s.core.waiting.all() {
		if r.Preempted > before[r] {
			s.say("     %s thrown back", s.names[r])
		}
	}
	if st == nil {
		return nil
	}
	s.steps++
	s.say("%3d  %s  | %d tokens, %d running, %d waiting, %d blocks", s.steps, s.parts(st), st.Tokens(), s.core.Running(), s.core.Waiting(), s.core.pool.Used())
	return st
}

// finish applies a step that ran times times and logs who ended.
func (s *session) finish(st *Step, times int, interval, latency units.Time) []*Request {
	ended := s.core.Apply(st, times, interval, latency, nil)
	for _, r := range ended {
		again := ""
		if r.Preempted > 0 {
			again = fmt.Sprintf(", thrown back %d times, %d tokens computed again", r.Preempted, r.Wasted)
		}
		s.say("     %s ended: admitted %d, first %d, last %d, cached %d%s", s.names[r], r.Admitted, r.First, r.Last, r.Cached, again)
	}
	return ended
}

// step runs n steps one by one.
func (s *session) step(n int) {
	for range n {
		st := s.start()
		if st == nil {
			s.say("     nothing to do")
			return
		}
		s.now += 10
		s.finish(st, 1, 10, 10)
	}
}

// run steps until nothing is left to do, and says so when requests are stuck.
func (s *session) run() {
	for range 10_000 {
		st := s.start()
		if st == nil {
			break
		}
		s.now += 10
		s.finish(st, 1, 10, 10)
	}
	if !s.core.Idle() {
		s.say("     stuck: %d running, %d waiting", s.core.Running(), s.core.Waiting())
	}
}

// sessions are the scripts of a scheduler.
type script struct {
	name string
	opt  Options
	pool kvcache.Options
	run  func(*session)
}

// check runs scripts and compares their logs with the golden files.
func check(t *testing.T, scripts []script) {
	for _, c := range scripts {
		t.Run(c.name, func(t *testing.T) {
			if c.pool.BlockTokens == 0 {
				c.pool.BlockTokens = 4
			}
			s := newSession(t, c.opt, c.pool)
			c.run(s)
			golden.Check(t, c.name, s.log.Bytes())
		})
	}
}
