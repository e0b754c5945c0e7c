package trace

import (
	"fmt"

	"infera/sim/workload"
)

// textBlock is the block size of prompts that are hashed here, in tokens: the
// usual one of an engine's cache.
const textBlock = 16

// mix joins a value to a running hash (the finaliser of SplitMix64; Steele, Lea,
// Flood, "Fast splittable pseudorandom number generators", 2014).
func mix(h, v uint64) uint64 {
	h += 0x9e3779b97f4a7c15 + v
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// hashed are the blocks of a prompt, each known by a hash of itself and of all
// before it.
type hashed struct {
	content []workload.Segment
	hash    uint64
	tokens  int // in the block under way
}

// add takes the next token.
func (h *hashed) add(token uint64) {
	h.hash = mix(h.hash, token)
	if h.tokens++; h.tokens == textBlock {
		h.close()
	}
}

func (h *hashed) close() {
	if h.tokens > 0 {
		h.content = append(h.content, workload.Segment{ID: h.hash, Tokens: h.tokens})
		h.tokens = 0
	}
}

// blocksOf turns hash ids into segments of a block each; the last holds what is
// left of the prompt. It fails when the blocks are not as many as the prompt
// needs.
func blocksOf(ids []uint64, input, size int) ([]workload.Segment, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if need := (input + size - 1) / size; len(ids) != need {
		return nil, fmt.Errorf("%d hash ids of %d tokens for a prompt of %d tokens, which has %d blocks", len(ids), size, input, need)
	}
	content := make([]workload.Segment, len(ids))
	for i, id := range ids {
		content[i] = workload.Segment{ID: id, Tokens: min(size, input-i*size)}
	}
	return content, nil
}

// chain builds the hashes of the blocks of contents, each of the block and all
// before it. The last block may be partial.
type chain struct {
	size        int
	hashes      []uint64
	hash, block uint64
	filled      int
}

func (c *chain) reset() {
	c.hashes = c.hashes[:0]
	c.hash, c.block, c.filled = 0, 0, 0
}

// add appends tokens of a segment from its beginning.
func (c *chain) add(s workload.Segment) {
	for from := 0; from < s.Tokens; {
		n := min(s.Tokens-from, c.size-c.filled)
		c.block = mix(mix(c.block, s.ID), uint64(from)<<32|uint64(n))
		from, c.filled = from+n, c.filled+n
		if c.filled == c.size {
			c.close()
		}
	}
}

// close ends the block under way.
func (c *chain) close() {
	if c.filled > 0 {
		c.hash = mix(c.hash, c.block)
		c.hashes = append(c.hashes, c.hash)
		c.block, c.filled = 0, 0
	}
}
