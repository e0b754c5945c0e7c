package engine

import (
	"math"
	"slices"
	"testing"

	"infera/internal/units"
	"infera/sim/workload"
)

// withGaps logs what clients see.
func withGaps(run func(*session)) func(*session) {
	return func(s *session) {
		s.gaps = true
		run(s)
	}
}

func TestAnswers(t *testing.T) {
	check(t, []script{
		// Two drafts, always accepted: 3 tokens come at once, which the client
		// sees as a gap and two of 0. The last burst has what is left.
		{"speculation_bursts", Options{MaxSequences: 8, DraftTokens: 2, Acceptance: []float64{1, 1}}, pool(0), withGaps(func(s *session) {
			s.submit("a", 4, 9)
			s.run()
		})},
		// The second draft is never accepted: 2 tokens per step, though 3 are
		// computed.
		{"speculation_partial", Options{MaxSequences: 8, DraftTokens: 2, Acceptance: []float64{1, 0}}, pool(0), withGaps(func(s *session) {
			s.submit("a", 4, 6)
			s.run()
		})},
		// A budget of 4 leaves the second request one token and no draft.
		{"speculation_budget", Options{MaxSequences: 8, MaxBatchedTokens: 4, DraftTokens: 2, Acceptance: []float64{1, 1}}, pool(0), func(s *session) {
			s.submit("a", 2, 7)
			s.submit("b", 2, 7)
			s.run()
		}},
		// Drafts need blocks, too: 4 do for 6 + 2 tokens of each; with the drafts of
		// the fourth step b is thrown back.
		{"speculation_blocks", Options{MaxSequences: 8, DraftTokens: 2, Acceptance: []float64{0, 0}}, pool(4), func(s *session) {
			s.submit("a", 4, 8)
			s.submit("b", 4, 8)
			s.run()
		}},
		// Tokens are sent three at a time, the first and the last at once.
		{"stream_interval", Options{MaxSequences: 8, StreamInterval: 3}, pool(0), withGaps(func(s *session) {
			s.submit("a", 4, 9)
			s.run()
		})},
		// Bursts of 2, sent when there are 3 or more.
		{"stream_interval_bursts", Options{MaxSequences: 8, StreamInterval: 3, DraftTokens: 1, Acceptance: []float64{1}}, pool(0), withGaps(func(s *session) {
			s.submit("a", 4, 8)
			s.run()
		})},
		// One that was thrown back has been seen to wait for the other.
		{"gap_of_preemption", Options{MaxSequences: 8}, pool(3), withGaps(func(s *session) {
			s.submit("a", 4, 5)
			s.submit("b", 3, 4)
			s.run()
		})},
	})
}

// The tokens of a step are 1 + a + a^2 + ... + a^k on average, whatever the
// number of requests, and no more are accepted than there were tokens for.
func TestAcceptance(t *testing.T) {
	for _, k := range []int{1, 3, 7} {
		for _, a := range []float64{0, 0.3, 0.8, 1} {
			o := Options{MaxSequences: 64, DraftTokens: k, Acceptance: slices.Repeat([]float64{a}, k)}
			c := newCore(t, o, pool(0))
			for range 50 {
				if _, err := c.Submit(&workload.Request{Input: 5, Output: 100_000}, 0); err != nil {
					t.Fatal(err)
				}
			}
			c.Apply(c.Next(0), 1, 1, 1, nil)
			const steps = 400
			for i := range steps {
				s := c.Next(units.Time(i + 1))
				if s.Tokens() != 50*(1+k) || s.Repeat != 1 || s.Batch.TokensPerSequence != float64(1+k) {
					t.Fatalf("%d tokens, %v per sequence, repeat %d", s.Tokens(), s.Batch.TokensPerSequence, s.Repeat)
				}
				c.Apply(s, 1, 1, 1, nil)
			}
			got := 0
			for _, r := range c.running {
				got += r.Generated - 1
			}
			// The variance of the tokens of a step is at most k^2 / 4.
			mean, want := float64(got)/(50*steps), float64(k+1)
			if a < 1 {
				want = (1 - math.Pow(a, float64(k+1))) / (1 - a)
			}
			if limit := 4 * float64(k) / 2 / math.Sqrt(50*steps); math.Abs(mean-want) > limit {
				t.Errorf("k %d, a %v: %v tokens per step, want %v within %v", k, a, mean, want, limit)
			}
		}
	}
}

// What a client sees between two tokens does not depend on how many steps are
// booked at once: the first gap, then the intervals.
func TestGapsOfRepetitions(t *testing.T) {
	for _, stream := range []int{0, 1, 2, 3, 5} {
		var gaps [2]map[units.Time]int64
		for i, times := range []int{1, 6} {
			gaps[i] = map[units.Time]int64{}
			c := newCore(t, Options{MaxSequences: 8, StreamInterval: stream}, pool(0))
			c.Gap = func(gap units.Time, n int64) { gaps[i][gap] += n }
			if _, err := c.Submit(&workload.Request{Input: 2047, Output: 14}, 0); err != nil {
				t.Fatal(err)
			}
			c.Apply(c.Next(0), 1, 9, 7, nil)
			now := units.Time(9)
			for range 12 / times {
				s := c.Next(now)
				if s.Repeat < times {
					t.Fatalf("repeat %d", s.Repeat)
				}
				c.Apply(s, times, 9, 7, nil)
				now += units.Time(times) * 9
			}
		}
		if len(gaps[0]) != len(gaps[1]) {
			t.Errorf("sent every %d: gaps %v one by one, %v together", stream, gaps[0], gaps[1])
		}
		var total units.Time
		for gap, n := range gaps[0] {
			if gaps[1][gap] != n {
				t.Errorf("sent every %d: %d gaps of %d one by one, %d together", stream, n, gap, gaps[1][gap])
			}
			total += gap * units.Time(n)
		}
		// What was sent last: 12 tokens after the first, in whole intervals.
		sent := units.Time(12 / max(1, stream) * max(1, stream))
		if total != 9*sent {
			t.Errorf("sent every %d: gaps add up to %d, want %d", stream, total, 9*sent)
		}
	}
}

func TestBadOptions(t *testing.T) {
	good := Options{MaxSequences: 1}
	for name, change := range map[string]func(*Options){
		"no sequences":        func(o *Options) { o.MaxSequences = 0 },
		"queue":               func(o *Options) { o.MaxWaiting = -1 },
		"budget":              func(o *Options) { o.MaxBatchedTokens = -1 },
		"chunk":               func(o *Options) { o.PrefillChunk = -1 },
		"per step":            func(o *Options) { o.NewPerStep = -1 },
		"context":             func(o *Options) { o.MaxContext = -1 },
		"policy":              func(o *Options) { o.Policy = numPolicies },
		"drafts":              func(o *Options) { o.DraftTokens = -1 },
		"too few rates":       func(o *Options) { o.DraftTokens = 2; o.Acceptance = []float64{1} },
		"rate above 1":        func(o *Options) { o.DraftTokens = 1; o.Acceptance = []float64{1.1} },
		"rate not a number":   func(o *Options) { o.DraftTokens = 1; o.Acceptance = []float64{math.NaN()} },
		"stream":              func(o *Options) { o.StreamInterval = -1 },
		"stages":              func(o *Options) { o.Stages = -1 },
		"share above 1":       func(o *Options) { o.AnswerShare.Initial = 2 },
		"share not a number":  func(o *Options) { o.AnswerShare.Initial = math.NaN() },
		"least above initial": func(o *Options) { o.AnswerShare.Least = 0.5 },
		"share steps":         func(o *Options) { o.AnswerShare.Steps = -1 },
	} {
		o := good
		change(&o)
		if c, err := New(o, nil, nil); err == nil || c != nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := New(Options{MaxSequences: 1, DraftTokens: 1, Acceptance: []float64{1}}, newCore(t, good, pool(1)).Pool(), nil); err == nil {
		t.Error("speculation without random numbers: no error")
	}
	for p, want := range map[Policy]string{VLLM: "vllm", SGLang: "sglang", ATOM: "atom", 200: "atom"} {
		if p.String() != want {
			t.Errorf("policy %d is %q", p, p.String())
		}
	}
}
