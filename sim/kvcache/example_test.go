package kvcache_test

import (
	"fmt"

	"infera/sim/kvcache"
)

// A second request finds the part of its prompt that the first one had
// computed, as far as whole blocks go.
func Example() {
	pool, err := kvcache.New(kvcache.Options{BlockTokens: 16, Blocks: 100, Prefix: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	const system, question, other = 1, 2, 3
	prompt := func(user uint64) []kvcache.Hash {
		var text kvcache.Chain
		hashes := text.Append(nil, system, 0, 40, pool.ContentTokens())
		return text.Append(hashes, user, 0, 60, pool.ContentTokens())
	}

	var first, second kvcache.Sequence
	fmt.Println("found:", pool.Start(&first, prompt(question), 6))
	pool.Grow(&first, 100)
	pool.Commit(&first, 100)
	fmt.Println("held:", first.Held())
	pool.Release(&first)

	fmt.Println("found:", pool.Start(&second, prompt(other), 6))
	fmt.Println("used:", pool.Used(), "cached:", pool.Cached())
	// Output:
	// found: 0
	// held: 7
	// found: 2
	// used: 2 cached: 6
}
