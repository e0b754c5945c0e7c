package engine

import "testing"

func TestATOM(t *testing.T) {
	check(t, []script{
		// Prompts go first and alone.
		{"atom_exclusive_prefill", Options{Policy: ATOM, MaxSequences: 8, MaxBatchedTokens: 8}, pool(0), func(s *session) {
			s.submit("a", 4, 4)
			s.step(2)
			s.submit("b", 18, 2)
			s.submit("c", 3, 2)
			s.run()
		}},
		// When blocks run out the last admitted is thrown back, to the head of the
		// queue.
		{"atom_preemption", Options{Policy: ATOM, MaxSequences: 8}, pool(10), func(s *session) {
			s.submit("c", 7, 12)
			s.step(3)
			s.submit("b", 8, 12)
			s.step(1)
			s.submit("a", 8, 12)
			s.submit("d", 3, 2)
			s.run()
		}},
		// Blocks for the whole prompt are taken when its first piece is computed;
		// there are none for b although it would begin with one.
		{"atom_whole_prompt_held", Options{Policy: ATOM, MaxSequences: 8, MaxBatchedTokens: 8, PrefillChunk: 4}, pool(5), func(s *session) {
			s.submit("a", 12, 2)
			s.submit("b", 12, 2)
			s.run()
		}},
		// The budget bounds decodes, too.
		{"atom_budget", Options{Policy: ATOM, MaxSequences: 8, MaxBatchedTokens: 2}, pool(0), func(s *session) {
			s.submit("a", 1, 3)
			s.submit("b", 1, 3)
			s.submit("c", 1, 3)
			s.run()
		}},
		{"atom_max_sequences", Options{Policy: ATOM, MaxSequences: 2}, pool(0), func(s *session) {
			s.submit("a", 3, 3)
			s.submit("b", 3, 2)
			s.submit("c", 3, 1)
			s.run()
		}},
	})
}
