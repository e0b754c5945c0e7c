package engine

import (
	"testing"

	"infera/sim/kvcache"
)

// pool of n blocks of 4 tokens whose content can be found.
func pool(n int) kvcache.Options { return kvcache.Options{BlockTokens: 4, Blocks: n, Prefix: true} }

func TestVLLM(t *testing.T) {
	check(t, []script{
		// Running requests come first, in order of admission; the queue gets what
		// is left of the budget of 10, its prompts cut to fit.
		{"vllm_budget", Options{MaxSequences: 8, MaxBatchedTokens: 10}, pool(0), func(s *session) {
			s.submit("a", 4, 4)
			s.submit("b", 12, 2)
			s.submit("c", 3, 2)
			s.run()
		}},
		// A long prompt gets at most 4 tokens per step, so that the short one
		// behind it is not held up.
		{"vllm_prefill_chunk", Options{MaxSequences: 8, MaxBatchedTokens: 10, PrefillChunk: 4}, pool(0), func(s *session) {
			s.submit("long", 13, 2)
			s.submit("short", 5, 2)
			s.run()
		}},
		{"vllm_max_sequences", Options{MaxSequences: 2}, pool(0), func(s *session) {
			s.submit("a", 3, 3)
			s.submit("b", 3, 2)
			s.submit("c", 3, 1)
			s.submit("d", 3, 1)
			s.run()
		}},
		{"vllm_new_per_step", Options{MaxSequences: 8, NewPerStep: 1}, pool(0), func(s *session) {
			s.submit("a", 3, 3)
			s.submit("b", 3, 2)
			s.submit("c", 3, 1)
			s.run()
		}},
		// 5 blocks. Both prompts of 6 take 2 each; after the third token a needs
		// a third block, and b, admitted last, finds none: b is thrown back. Its two
		// full blocks are still there when a has ended.
		{"vllm_preemption", Options{MaxSequences: 8}, pool(5), func(s *session) {
			s.submit("a", 6, 6)
			s.submit("b", 6, 6)
			s.run()
		}},
		// Three that outgrow the pool: the last admitted goes first, returns to the
		// head of the queue, and nobody is admitted in the same step.
		{"vllm_preemption_order", Options{MaxSequences: 8}, pool(7), func(s *session) {
			s.submit("a", 8, 5)
			s.submit("b", 8, 5)
			s.submit("c", 7, 5)
			s.submit("d", 2, 1)
			s.run()
		}},
		// The most urgent is served first, in order of arrival among equals.
		{"vllm_priority_queue", Options{MaxSequences: 1, Priority: true}, pool(0), func(s *session) {
			s.submit("a", 3, 2, priority(2))
			s.step(1)
			s.submit("b", 3, 1, priority(2))
			s.submit("c", 3, 1, priority(1))
			s.submit("d", 3, 1, priority(3))
			s.submit("e", 3, 1, priority(1))
			s.submit("f", 3, 1)
			s.run()
		}},
		// The least urgent is thrown back, not the last admitted.
		{"vllm_priority_preemption", Options{MaxSequences: 8, Priority: true}, pool(5), func(s *session) {
			s.submit("a", 4, 7, priority(1))
			s.step(1)
			s.submit("lazy", 4, 7, priority(5))
			s.step(1)
			s.submit("b", 4, 7, priority(2))
			s.run()
		}},
		// a and b begin with the same 8 tokens, c with the first 4 of them and one
		// block more than its last token allows to be found.
		{"vllm_prefix", Options{MaxSequences: 1}, pool(100), func(s *session) {
			s.submit("a", 10, 2, content(1, 8, 2, 2))
			s.submit("b", 10, 2, content(1, 8, 3, 2))
			s.submit("c", 8, 2, content(1, 8))
			s.submit("d", 9, 2, content(9, 9))
			s.run()
		}},
		// Blocks computed in a step are found by requests admitted later in the
		// same step.
		{"vllm_prefix_in_flight", Options{MaxSequences: 8, MaxBatchedTokens: 14}, pool(100), func(s *session) {
			s.submit("a", 10, 2, content(1, 10))
			s.submit("b", 10, 2, content(1, 10))
			s.submit("c", 10, 2, content(1, 10))
			s.run()
		}},
		// Uncut prompts: b waits for a step that has room for all of it.
		{"vllm_whole_prompts", Options{MaxSequences: 8, MaxBatchedTokens: 10, WholePrompts: true}, pool(0), func(s *session) {
			s.submit("a", 6, 3)
			s.submit("b", 9, 3)
			s.submit("c", 11, 1)
			s.run()
		}},
		// One that is thrown back has become longer than the budget; it is cut.
		// Without a prefix cache nothing of it is left.
		{"vllm_whole_prompts_again", Options{MaxSequences: 8, MaxBatchedTokens: 8, WholePrompts: true}, kvcache.Options{BlockTokens: 4, Blocks: 6}, func(s *session) {
			s.submit("a", 8, 9)
			s.submit("b", 7, 9)
			s.run()
		}},
		// 6 blocks of 4 tokens: 25 tokens never fit, 24 do.
		{"vllm_rejections", Options{MaxSequences: 1, MaxWaiting: 2, MaxContext: 22}, pool(6), func(s *session) {
			s.submit("context", 20, 3)
			s.submit("a", 20, 2)
			s.step(1)
			s.submit("b", 1, 1)
			s.submit("c", 1, 1)
			s.submit("d", 1, 1)
			s.run()
			s.submit("e", 1, 1)
			s.run()
		}},
		{"vllm_too_long_for_pool", Options{MaxSequences: 1}, pool(6), func(s *session) {
			s.submit("a", 20, 5)
			s.submit("b", 20, 4)
			s.run()
		}},
		// With room kept for whole answers b waits for a instead of being thrown
		// back.
		{"vllm_reserve_answer", Options{MaxSequences: 8, ReserveAnswer: true}, pool(5), func(s *session) {
			s.submit("a", 6, 6)
			s.submit("b", 6, 6)
			s.run()
		}},
		// The head of the queue waits for blocks, and everybody behind it with it.
		{"vllm_head_of_line", Options{MaxSequences: 8}, pool(6), func(s *session) {
			s.submit("a", 10, 3)
			s.submit("b", 14, 1)
			s.submit("c", 2, 1)
			s.run()
		}},
		// The next turn finds the first one's prompt and answer: 6 + 5 tokens that
		// have their cache, 2 full blocks.
		{"vllm_conversation", Options{MaxSequences: 8}, pool(100), func(s *session) {
			s.submit("turn1", 6, 6, content(1, 6), answer(2))
			s.run()
			s.submit("turn2", 16, 1, content(1, 6, 2, 6, 3, 4))
			s.run()
		}},
		// The same when the first one was thrown back in the middle of its answer:
		// of 8 + 12 tokens with a cache there are 5 full blocks.
		{"vllm_conversation_preempted", Options{MaxSequences: 8}, pool(8), func(s *session) {
			s.submit("other", 8, 15)
			s.submit("turn1", 8, 13, content(1, 8), answer(2))
			s.run()
			s.submit("turn2", 24, 1, content(1, 8, 2, 13, 3, 3))
			s.run()
		}},
		// A crash: requests and cache are gone.
		{"vllm_drain", Options{MaxSequences: 1}, pool(10), func(s *session) {
			s.submit("a", 8, 5, content(1, 8))
			s.submit("b", 8, 5, content(1, 8))
			s.step(2)
			s.core.Drain()
			s.say("drained: %d running, %d waiting, %d blocks, %d findable, %d tokens", s.core.Running(), s.core.Waiting(), s.core.pool.Used(), s.core.pool.Cached(), s.core.KVTokens())
			s.step(1)
			s.submit("c", 8, 2, content(1, 8))
			s.run()
		}},
	})
}
