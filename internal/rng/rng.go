package rng

import (
	"hash/fnv"
	"math/rand/v2"
)

// Stream returns the stream of a name under a seed. Equal arguments give equal
// streams, in every version of the program.
func Stream(seed uint64, name string) *rand.Rand {
	return rand.New(rand.NewPCG(seed, hash(name)))
}

func hash(name string) uint64 {
	h := fnv.New64a()
	// Writes to a hash do not fail.
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// Family is a set of numbered streams under one name, for things whose draws
// must not depend on the order in which they are made. It is not safe for
// concurrent use.
type Family struct {
	seed, name uint64
	source     *rand.PCG
	stream     *rand.Rand
}

// NewFamily returns the streams of a name under a seed.
func NewFamily(seed uint64, name string) *Family {
	source := rand.NewPCG(0, 0)
	return &Family{seed: seed, name: hash(name), source: source, stream: rand.New(source)}
}

// At returns the stream of a number from its beginning. It is valid until the
// next call and takes no memory.
func (f *Family) At(n uint64) *rand.Rand {
	// Neighbouring numbers are spread over all bits (the finaliser of
	// SplitMix64; Steele, Lea, Flood, "Fast splittable pseudorandom number
	// generators", 2014): a generator's first output is close for close seeds.
	x := f.name + n*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	f.source.Seed(f.seed, x^x>>31)
	return f.stream
}
