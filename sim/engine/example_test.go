package engine_test

import (
	"fmt"

	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/kvcache"
	"infera/sim/workload"
)

// Two requests on an engine whose steps take 10 ms: the second prompt is cut to
// what is left of the budget and goes on beside the first answer.
func Example() {
	pool, err := kvcache.New(kvcache.Options{BlockTokens: 16, Blocks: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	core, err := engine.New(engine.Options{MaxSequences: 8, MaxBatchedTokens: 64}, pool, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range []workload.Request{{ID: 0, Input: 40, Output: 4}, {ID: 1, Input: 60, Output: 2}} {
		if _, err := core.Submit(&w, 0); err != nil {
			fmt.Println(err)
		}
	}
	took := units.Nanoseconds(10e-3)
	var ended []*engine.Request
	for now := units.Time(0); ; now += took {
		s := core.Next(now)
		if s == nil {
			break
		}
		fmt.Printf("%v ms: %d prompt tokens of %d\n", now.Milliseconds(), s.PromptTokens(), s.Tokens())
		ended = core.Apply(s, 1, took, took, ended[:0])
		for _, r := range ended {
			fmt.Printf("request %d: first token at %v ms, last at %v ms\n", r.ID, r.First.Milliseconds(), r.Last.Milliseconds())
		}
	}
	// Output:
	// 0 ms: 64 prompt tokens of 64
	// 10 ms: 36 prompt tokens of 37
	// 20 ms: 0 prompt tokens of 2
	// request 1: first token at 20 ms, last at 30 ms
	// 30 ms: 0 prompt tokens of 1
	// request 0: first token at 10 ms, last at 40 ms
}
