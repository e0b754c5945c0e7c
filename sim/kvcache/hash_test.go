package kvcache

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// text is segments of an identity and a length.
type text []struct {
	id     uint64
	tokens int
}

// whole returns the chain of a text given segment by segment.
func (x text) whole(block int) []Hash {
	var c Chain
	var out []Hash
	for _, s := range x {
		out = c.Append(out, s.id, 0, s.tokens, block)
	}
	return out
}

func TestChain(t *testing.T) {
	chain := func(x text) []Hash { return x.whole(4) }
	base := chain(text{{1, 6}, {2, 6}})
	if len(base) != 3 {
		t.Fatalf("12 tokens have %d full blocks of 4", len(base))
	}
	for _, c := range []struct {
		name string
		text text
		// same is how many leading blocks have the same content.
		same, blocks int
	}{
		{"equal", text{{1, 6}, {2, 6}}, 3, 3},
		{"a prefix", text{{1, 6}, {2, 2}}, 2, 2},
		{"a block that is not full has no hash", text{{1, 6}, {2, 5}}, 2, 2},
		{"goes on otherwise", text{{1, 6}, {2, 2}, {3, 4}}, 2, 3},
		{"other content in the second block", text{{1, 6}, {3, 6}}, 1, 3},
		{"the border of the segments moved", text{{1, 5}, {2, 7}}, 1, 3},
		{"other content before equal content", text{{3, 4}, {1, 2}, {2, 6}}, 0, 3},
		{"segments swapped", text{{2, 6}, {1, 6}}, 0, 3},
		{"a segment begins in the middle of a block", text{{1, 4}, {1, 2}, {2, 6}}, 1, 3},
		{"nothing", nil, 0, 0},
		{"segments without tokens", text{{9, 0}, {1, 6}, {9, 0}, {2, 6}}, 3, 3},
	} {
		got := chain(c.text)
		same := 0
		for same < len(got) && same < len(base) && got[same] == base[same] {
			same++
		}
		if same != c.same || len(got) != c.blocks {
			t.Errorf("%s: %d of %d blocks alike, want %d of %d", c.name, same, len(got), c.same, c.blocks)
		}
	}
}

// However a text is cut into pieces, its hashes are the same; texts that differ
// in a block differ in its hash and all after it.
func TestChainPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.IntRange(1, 20).Draw(t, "block")
		var x text
		for i := range rapid.IntRange(0, 6).Draw(t, "segments") {
			// Neighbours have different identities: a segment that follows itself
			// starts again, unless the pieces join, which is the case above.
			x = append(x, struct {
				id     uint64
				tokens int
			}{uint64(2*rapid.IntRange(0, 2).Draw(t, "id") + i%2), rapid.IntRange(0, 50).Draw(t, "tokens")})
		}
		want := x.whole(block)
		var c Chain
		var got []Hash
		total := 0
		for _, s := range x {
			for from := 0; from < s.tokens; {
				n := rapid.IntRange(0, s.tokens-from).Draw(t, "piece")
				got = c.Append(got, s.id, from, n, block)
				from += n
			}
			total += s.tokens
		}
		if !slices.Equal(got, want) || len(want) != total/block {
			t.Fatalf("%d pieces' hashes %v, want %v", len(got), got, want)
		}
		if len(x) == 0 {
			return
		}
		i := rapid.IntRange(0, len(x)-1).Draw(t, "changed")
		before := 0
		for _, s := range x[:i] {
			before += s.tokens
		}
		other := slices.Clone(x)
		if other[i].id += 100; other[i].tokens == 0 {
			return
		}
		for k, h := range other.whole(block) {
			if (h == want[k]) != (k < before/block) {
				t.Fatalf("block %d of another text from token %d on: equal %v", k, before, h == want[k])
			}
		}
		if slices.Contains(got, 0) {
			t.Fatal("a hash is 0")
		}
	})
}

// Neighbouring identities, offsets and lengths do not collide.
func TestChainCollisions(t *testing.T) {
	seen := map[Hash]bool{}
	add := func(h []Hash) {
		for _, h := range h {
			if seen[h] {
				t.Fatalf("hash %x twice among %d", h, len(seen))
			}
			seen[h] = true
		}
	}
	for id := range uint64(300) {
		for cut := range 16 {
			var c Chain
			h := c.Append(nil, id, 0, 16-cut, 16)
			h = c.Append(h, id+1000, 0, 16+cut, 16)
			if cut == 0 {
				h = h[1:] // block 1 of the identity, once
			}
			add(h)
		}
		var c Chain
		add(c.Append(nil, id, 0, 16*50, 16))
	}
}
