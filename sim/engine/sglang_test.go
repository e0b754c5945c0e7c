package engine

import "testing"

func TestSGLang(t *testing.T) {
	all := AnswerShare{Initial: 1, Least: 1}
	check(t, []script{
		// Prompts go first and alone; a long one is cut and goes on before
		// anything else.
		{"sglang_prefill_first", Options{Policy: SGLang, MaxSequences: 8, MaxBatchedTokens: 8}, pool(0), func(s *session) {
			s.submit("a", 4, 4)
			s.step(2)
			s.submit("b", 18, 2)
			s.submit("c", 3, 2)
			s.run()
		}},
		// Decodes join the prompts, and have their tokens of the budget set aside.
		{"sglang_mixed", Options{Policy: SGLang, MaxSequences: 8, MaxBatchedTokens: 8, MixedPrefill: true}, pool(0), func(s *session) {
			s.submit("a", 4, 6)
			s.submit("b", 4, 6)
			s.step(1)
			s.submit("c", 18, 2)
			s.run()
		}},
		// The queue is ordered by what is in the cache: c's 8 tokens before b's 4
		// before d and e, which have nothing and stay in order of arrival.
		{"sglang_longest_prefix", Options{Policy: SGLang, MaxSequences: 1, LongestPrefix: true}, pool(100), func(s *session) {
			s.submit("a", 9, 1, content(1, 4, 2, 4, 3, 1))
			s.step(1)
			s.submit("d", 9, 1, content(8, 9))
			s.submit("b", 9, 1, content(1, 4, 5, 5))
			s.submit("e", 9, 1)
			s.submit("c", 9, 1, content(1, 4, 2, 4, 4, 1))
			s.run()
		}},
		// With more waiting than the limit the order of arrival stays.
		{"sglang_prefix_order_limit", Options{Policy: SGLang, MaxSequences: 1, LongestPrefix: true, PrefixOrderLimit: 2}, pool(100), func(s *session) {
			s.submit("a", 9, 1, content(1, 8, 3, 1))
			s.step(1)
			s.submit("d", 9, 1, content(8, 9))
			s.submit("b", 9, 1, content(7, 9))
			s.submit("c", 9, 1, content(1, 8, 4, 1))
			s.run()
		}},
		// 10 blocks of 4 tokens. a holds 2 and has 11 tokens to come. All of that
		// counted, b's 8 + 16 do not fit into 32 - 11; it waits for a.
		{"sglang_whole_answers", Options{Policy: SGLang, MaxSequences: 8, AnswerShare: all}, pool(10), func(s *session) {
			s.submit("a", 8, 12)
			s.step(1)
			s.submit("b", 8, 16)
			s.run()
		}},
		// Half of it counted they do: 24 <= 32 - 5.5.
		{"sglang_half_answers", Options{Policy: SGLang, MaxSequences: 8, AnswerShare: AnswerShare{Initial: 0.5, Least: 0.5}}, pool(10), func(s *session) {
			s.submit("a", 8, 12)
			s.step(1)
			s.submit("b", 8, 16)
			s.run()
		}},
		// None of it counted both are admitted. When the pool is full b goes, to the
		// end of the queue and so behind n.
		{"sglang_retraction", Options{Policy: SGLang, MaxSequences: 8}, pool(8), func(s *session) {
			s.submit("a", 8, 14)
			s.submit("b", 8, 14)
			s.step(4)
			s.submit("n", 4, 12)
			s.run()
		}},
		// y needs a block; x, admitted before it, has generated less and goes.
		{"sglang_retraction_least", Options{Policy: SGLang, MaxSequences: 8, MixedPrefill: true, PrefillChunk: 4}, pool(6), func(s *session) {
			s.submit("x", 12, 6)
			s.submit("y", 4, 8)
			s.run()
		}},
		// Equal answers so far: the one with the longest prompt goes.
		{"sglang_retraction_tie", Options{Policy: SGLang, MaxSequences: 8}, pool(6), func(s *session) {
			s.submit("long", 10, 6)
			s.submit("short", 6, 6)
			s.run()
		}},
		// x needs its third block; y and z have grown into it since x was admitted,
		// and y sits out when it finds none. Then x goes on and y, as many tokens
		// old as z but with the longer prompt, is thrown back.
		{"sglang_prompt_without_room", Options{Policy: SGLang, MaxSequences: 8, MaxBatchedTokens: 4, MixedPrefill: true}, pool(6), func(s *session) {
			s.submit("y", 4, 12)
			s.step(1)
			s.submit("z", 3, 12)
			s.step(1)
			s.submit("x", 11, 1)
			s.run()
		}},
		{"sglang_new_per_step", Options{Policy: SGLang, MaxSequences: 2, NewPerStep: 1}, pool(0), func(s *session) {
			s.submit("a", 4, 2)
			s.submit("b", 4, 2)
			s.submit("c", 4, 2)
			s.run()
		}},
	})
}

// The share of answers counted on falls from 0.8 to 0.2 within 60 decode steps,
// 0.01 per step, is set to what the running requests have come to when the guess
// was too low, and starts again when the engine has nothing to do.
func TestAnswerShare(t *testing.T) {
	s := newSession(t, Options{Policy: SGLang, MaxSequences: 8, AnswerShare: AnswerShare{Initial: 0.8, Least: 0.2, Steps: 60, RetractSteps: 5}}, pool(30))
	want := func(when string, share float64) {
		t.Helper()
		if got := s.core.answerShare(); got < share-1e-9 || got > share+1e-9 {
			t.Errorf("%s: share %v, want %v", when, got, share)
		}
	}
	want("at first", 0.8)
	s.submit("a", 4, 100)
	s.step(1)
	want("after a prompt", 0.8)
	s.step(20)
	want("after 20 decodes", 0.6)
	s.step(50)
	want("after 70 decodes", 0.2)
	// 71 of 100 tokens are generated and 74 in the cache, in 19 blocks; of the 44
	// tokens that have room a's answer may need 0.2 x 29 = 5.8. b's 38 fit.
	s.submit("b", 33, 6)
	if s.core.expectRoom(s.core.waiting.at(0)) {
		t.Error("39 tokens are expected to fit into 38.2")
	}
	s.core.waiting.pop()
	s.submit("b", 32, 6)
	s.step(1)
	if s.core.Running() != 2 {
		t.Fatalf("%d running", s.core.Running())
	}
	// b ends with its 5th decode. 4 steps later a has 80 tokens, 83 in the cache,
	// in 21 blocks, and may need 4 of the 36 that have room: c's 32 fit just so.
	s.step(9)
	if s.core.Running() != 1 || s.core.running[0].Generated != 80 {
		t.Fatalf("%d running, %d generated", s.core.Running(), s.core.running[0].Generated)
	}
	c := s.submit("c", 20, 12)
	s.step(9)
	if c.Preempted != 0 || c.Generated != 9 {
		t.Fatalf("c was thrown back %d times and has %d tokens", c.Preempted, c.Generated)
	}
	// Before the 9th decode a and c, with 92 and 29 tokens, need 23 + 8 of 30
	// blocks. c goes. a has 88 of 100 tokens and wants 5 more steps in peace; one
	// step has been made since.
	s.step(1)
	if c.Preempted != 1 {
		t.Fatal("c was not thrown back")
	}
	want("after a retraction", (88.0+5)/(100+1)-0.01)
	s.run()
	want("when all ended", 0.8)
}
