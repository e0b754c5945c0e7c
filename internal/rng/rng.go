package rng

import (
	"hash/fnv"
	"math/rand/v2"
)

// Stream returns the stream of a name under a seed. Equal arguments give equal
// streams, in every version of the program.
func Stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	// Writes to a hash do not fail.
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
