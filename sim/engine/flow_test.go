package engine

import (
	"testing"

	"infera/internal/units"
	"infera/sim/kvcache"
	"infera/sim/workload"
)

// A prefill engine keeps the caches of what it answered until they were taken
// away; a decode engine goes on from the second token.
func TestTransfer(t *testing.T) {
	check(t, []script{
		{"transfer", Options{MaxSequences: 8, HoldEnded: true}, pool(6), func(s *session) {
			d := newSession(s.t, Options{MaxSequences: 8}, pool(20))
			say := func(when string) {
				s.say("%s: prefill %d held in %d blocks, decode %d blocks, %d findable", when, s.core.Held(), s.core.pool.Used(), d.core.pool.Used(), d.core.pool.Cached())
			}
			a := s.submit("a", 10, 1, content(1, 8, 2, 2))
			b := s.submit("b", 10, 1, content(1, 8, 3, 2))
			s.submit("c", 16, 1)
			s.step(2) // no room for c beside what is held
			say("a and b computed")
			for _, from := range []*Request{a, b} {
				r, err := d.core.Resume(from, 4, s.now+5)
				if err != nil {
					s.t.Fatal(err)
				}
				d.names[r] = s.names[from] + " resumed"
				s.core.LetGo(from)
				s.core.Recycle(from)
			}
			say("a and b transferred")
			s.run()
			d.now = s.now
			d.gaps = true
			d.run()
			s.log.Write(d.log.Bytes())
			say("all ended")
		}},
	})
	c := newCore(t, Options{MaxSequences: 1}, pool(4))
	if _, err := c.Resume(&Request{Request: workload.Request{Input: 12, Output: 1}}, 5, 0); err != ErrTooLong {
		t.Errorf("12 + 5 tokens into 16: %v", err)
	}
}

// An arriving cache does not stop the decodes of those that are there already.
func TestResumeBesideDecodes(t *testing.T) {
	for _, p := range []Policy{VLLM, SGLang, ATOM} {
		c := newCore(t, Options{Policy: p, MaxSequences: 8}, pool(20))
		from := &Request{Request: workload.Request{Input: 8, Output: 1}, Generated: 1}
		for i := range 3 {
			if _, err := c.Resume(from, 10, units.Time(i)); err != nil {
				t.Fatal(err)
			}
			s := c.Next(units.Time(i))
			if s.Requests() != i+1 || s.Tokens() != i+1 || len(s.Batch.Chunks) != 0 {
				t.Errorf("%v: %d of %d requests decode", p, s.Requests(), i+1)
			}
			c.Apply(s, 1, 1, 1, nil)
		}
	}
}

// A resumed request that is thrown back is computed again, prompt included, as
// far as its blocks are gone; with a priority it takes its place in the queue.
func TestResumeAgain(t *testing.T) {
	check(t, []script{{"transfer_preempted", Options{MaxSequences: 8, Priority: true}, pool(6), func(s *session) {
		for i, name := range []string{"late", "early"} {
			from := &Request{Request: workload.Request{Input: 8, Output: 1, Priority: 2 - i}, Generated: 1}
			r, err := s.core.Resume(from, 8, 0)
			if err != nil {
				s.t.Fatal(err)
			}
			s.names[r] = name
		}
		s.run()
	}}})
}

// Two stages: a step begins every 5 and takes 10. Two steps are under way at
// once, of different requests.
func TestPipeline(t *testing.T) {
	check(t, []script{{"pipeline", Options{MaxSequences: 8, MaxBatchedTokens: 6, Stages: 2}, pool(100), func(s *session) {
		s.submit("a", 6, 3)
		s.submit("b", 4, 3)
		s.submit("c", 2, 3)
		for !s.core.Idle() {
			if st := s.start(); st != nil {
				s.flying = append(s.flying, st)
			} else {
				s.say("     nothing for the first stage at %d", s.now)
			}
			s.now += 5
			if len(s.flying) == 2 || len(s.flying) == 1 && s.flying[0].Started+10 <= s.now {
				s.finish(s.flying[0], 1, 5, 10)
				s.flying = s.flying[1:]
			}
		}
	}}})
	c := newCore(t, Options{MaxSequences: 8, Stages: 2}, pool(100))
	for range 3 {
		if _, err := c.Submit(&workload.Request{Input: 4, Output: 4}, 0); err != nil {
			t.Fatal(err)
		}
	}
	first := c.Next(0)
	if first.Requests() != 3 || c.Next(1) != nil {
		t.Error("a second step has nobody left to compute")
	}
	if _, err := c.Submit(&workload.Request{Input: 4, Output: 4}, 2); err != nil {
		t.Fatal(err)
	}
	second := c.Next(2)
	if second.Requests() != 1 || c.Next(3) != nil {
		t.Error("a third step does not start with two stages")
	}
	c.Apply(first, 1, 5, 10, nil)
	if third := c.Next(5); third.Requests() != 3 || third.Repeat != 1 {
		t.Errorf("%d requests, repeat %d", third.Requests(), third.Repeat)
	}
}

// A step is repeated until the first answer ends, the band of context lengths is
// left, or blocks might run out.
func TestRepeat(t *testing.T) {
	for _, c := range []struct {
		name   string
		opt    Options
		pool   kvcache.Options
		input  []int
		output int
		want   int
	}{
		// 100 tokens lie in a band of 2: 100 and 101. The step that computes token
		// 101 is the first.
		{"band", Options{}, pool(0), []int{99}, 1000, 2},
		// Bands of one token below 64.
		{"short context", Options{}, pool(0), []int{20}, 1000, 1},
		// 1024 tokens and more: bands of 32.
		{"long context", Options{}, pool(0), []int{1023}, 1000, 32},
		{"answer ends", Options{}, pool(0), []int{1023}, 5, 4},
		{"one by one", Options{SingleSteps: true}, pool(0), []int{1023}, 1000, 1},
		{"speculation", Options{DraftTokens: 1, Acceptance: []float64{0}}, pool(0), []int{1023}, 1000, 1},
		// 256 blocks hold the prompts' 1023 tokens, the first decode fills the last
		// of them. 3 blocks are left for the next tokens: 1 to begin with, and two
		// times 4 tokens.
		{"blocks", Options{}, pool(259), []int{1023}, 11, 8},
		// The window of 20 tokens is full, it grows no more, but a block of each is
		// counted: 1 to begin with and no full one. The first block ends at once.
		{"window", Options{}, kvcache.Options{BlockTokens: 4, Blocks: 256 + 6 + 3, Groups: []kvcache.Group{{Window: 20}}}, []int{1023}, 11, 1},
	} {
		c.opt.MaxSequences = 8
		core := newCore(t, c.opt, c.pool)
		for _, n := range c.input {
			if _, err := core.Submit(&workload.Request{Input: n, Output: c.output}, 0); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		core.Apply(core.Next(0), 1, 1, 1, nil)
		if s := core.Next(1); s.Repeat != c.want {
			t.Errorf("%s: repeat %d, want %d", c.name, s.Repeat, c.want)
		}
	}
}

func TestStats(t *testing.T) {
	s := newSession(t, Options{MaxSequences: 2}, pool(100))
	s.submit("a", 8, 3, content(1, 8))
	s.submit("b", 10, 2, content(1, 8, 2, 2))
	s.submit("c", 5, 1)
	s.run()
	// Steps: a 8 and b 2 prompt tokens (of b's 10 blocks 1 and 2 are found in
	// flight); a and b decode, b ends; a decodes beside c's 5 prompt tokens.
	want := Stats{
		Lookups: 2, Hits: 1, Blocks: 2 + 2, BlockHits: 2, HitTokens: 8, PromptTokens: 8 + 10 + 5,
		Steps: 3, PrefillSteps: 2, Sequences: 2 + 2 + 2, Prefills: 2 + 1, Decodes: 2 + 1, Tokens: 10 + 2 + 6,
		// In the cache before each step: b's 8 found; 8 + 10; a's 9.
		KVTokens: 8 + 18 + 9, MaxSequences: 2,
	}
	if got := s.core.Stats(); got != want {
		t.Errorf("stats %+v, want %+v\n%s", got, want, s.log.String())
	}
}

// What a window and recurrent state take counts when a request is too long for
// the pool, and beside others it waits.
func TestGroupsBeyondPool(t *testing.T) {
	c := newCore(t, Options{MaxSequences: 8}, kvcache.Options{BlockTokens: 4, Blocks: 12, Groups: []kvcache.Group{{Window: 1 << 30}, {Fixed: 2}}})
	submit := func(input, output int) error {
		_, err := c.Submit(&workload.Request{Input: input, Output: output}, 0)
		return err
	}
	// 20 tokens take 5 + 5 + 2 blocks, 21 take 6 + 6 + 2.
	if err := submit(11, 10); err != ErrTooLong {
		t.Errorf("14 of 12 blocks: %v", err)
	}
	if err := submit(10, 10); err != nil {
		t.Errorf("12 of 12 blocks: %v", err)
	}
	if err := submit(8, 1); err != nil {
		t.Error(err)
	}
	// 10 tokens take 3 + 3 + 2 blocks; 8 take 2 + 2 + 2, which 4 are too few for.
	if s := c.Next(0); s.Requests() != 1 || c.pool.Used() != 8 {
		t.Errorf("%d requests, %d blocks", s.Requests(), c.pool.Used())
	}
}
