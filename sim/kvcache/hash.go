package kvcache

// Hash identifies a block by its content and all content before it.
type Hash uint64

// mix is the finaliser of SplitMix64 over a running state: cheap, and without
// collisions that matter among the blocks of a simulation.
func mix(h, v uint64) uint64 {
	h += 0x9e3779b97f4a7c15 + v
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// Chain builds the hashes of the full blocks of a text that arrives piece by
// piece. How the pieces are cut does not matter. The zero value is at the start
// of a text.
type Chain struct {
	hash   uint64 // of all full blocks
	block  uint64 // of the closed pieces of the block under way
	filled int    // tokens in it
	// The piece under way: tokens of a segment from an offset within it. What
	// follows it without a gap belongs to it.
	segment      uint64
	from, tokens int
}

// Append adds tokens of a segment, from an offset within it, and appends the
// hash of every block that they fill to dst.
func (c *Chain) Append(dst []Hash, segment uint64, offset, tokens, block int) []Hash {
	for tokens > 0 {
		if c.tokens > 0 && (segment != c.segment || offset != c.from+c.tokens) {
			c.closePiece()
		}
		if c.tokens == 0 {
			c.segment, c.from = segment, offset
		}
		n := min(tokens, block-c.filled)
		c.tokens, c.filled = c.tokens+n, c.filled+n
		offset, tokens = offset+n, tokens-n
		if c.filled == block {
			c.closePiece()
			// 0 marks blocks without findable content.
			c.hash = max(1, mix(c.hash, c.block))
			c.block, c.filled = 0, 0
			dst = append(dst, Hash(c.hash))
		}
	}
	return dst
}

func (c *Chain) closePiece() {
	c.block = mix(mix(c.block, c.segment), uint64(c.from)<<32|uint64(c.tokens))
	c.tokens = 0
}
