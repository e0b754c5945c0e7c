package routing

import (
	"encoding/binary"
	"strings"

	"github.com/zeebo/xxh3"
)

// Hash identifies a block of tokens and everything before it.
type Hash uint64

// Chain appends to dst the hashes of the full blocks of a token sequence: each
// is XXH3-64, seed 0, of the hash before it (0 at first) and the block's token
// ids, little-endian. A trailing partial block has none. Engines hash in ways
// of their own; a router that hashes the token ids itself serves them all.
func Chain(dst []Hash, tokens []uint32, block int) []Hash {
	if block < 1 || len(tokens) < block {
		return dst
	}
	// Blocks of usual sizes need no memory of their own.
	var room [8 + 4*256]byte
	buffer := room[:0]
	if n := 8 + 4*block; n > len(room) {
		buffer = make([]byte, 0, n)
	}
	var parent Hash
	for len(tokens) >= block {
		buffer = binary.LittleEndian.AppendUint64(buffer[:0], uint64(parent))
		for _, t := range tokens[:block] {
			buffer = binary.LittleEndian.AppendUint32(buffer, t)
		}
		parent = Hash(xxh3.Hash(buffer))
		dst = append(dst, parent)
		tokens = tokens[block:]
	}
	return dst
}

// ImageKey identifies an image by its reference, a URL or inline data; spaces
// around it do not count.
func ImageKey(reference string) Hash { return Hash(xxh3.HashString(strings.TrimSpace(reference))) }
