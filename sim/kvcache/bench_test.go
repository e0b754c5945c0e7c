package kvcache

import "testing"

// chainsOf returns chains of n blocks with equal first shared ones.
func chainsOf(count, n, shared int) [][]Hash {
	var out [][]Hash
	for i := range count {
		var c Chain
		chain := c.Append(nil, 1, 0, shared*16, 16)
		out = append(out, c.Append(chain, uint64(i+2), 0, (n-shared)*16, 16))
	}
	return out
}

// A request of 32 blocks comes and goes: one that finds all but its last block,
// one that finds half of its blocks and evicts others' for the rest, and one
// without content.
func BenchmarkSequence(b *testing.B) {
	for _, c := range []struct {
		name           string
		chains, shared int
	}{{"found", 1, 32}, {"evicting", 1000, 16}, {"counted", 0, 0}} {
		b.Run(c.name, func(b *testing.B) {
			p := newPool(b, Options{BlockTokens: 16, Blocks: 4000, Prefix: true})
			chains := chainsOf(c.chains, 32, c.shared)
			var s Sequence
			i := 0
			once := func() {
				var chain []Hash
				if len(chains) > 0 {
					chain = chains[i%len(chains)]
					i++
				}
				p.Start(&s, chain, 31)
				p.Grow(&s, 32*16)
				p.Commit(&s, 32*16)
				p.Release(&s)
			}
			for range 2 * c.chains {
				once()
			}
			b.ReportAllocs()
			for b.Loop() {
				once()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/block")
		})
	}
}

// A decoding request takes one block after the other.
func BenchmarkGrow(b *testing.B) {
	p := newPool(b, Options{BlockTokens: 16, Blocks: 4000, Prefix: true})
	p.Insert(chainsOf(1, 1, 0)[0])
	var s Sequence
	tokens := 0
	b.ReportAllocs()
	for b.Loop() {
		if tokens += 16; !p.Grow(&s, tokens) {
			p.Release(&s)
			tokens = 0
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	p := newPool(b, Options{BlockTokens: 16, Blocks: 4000, Prefix: true})
	chain := chainsOf(1, 32, 0)[0]
	p.Insert(chain)
	b.ReportAllocs()
	for b.Loop() {
		p.Match(chain)
	}
}

func BenchmarkChain(b *testing.B) {
	dst := make([]Hash, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		var c Chain
		dst = c.Append(dst[:0], 1, 0, 32*16, 16)
	}
}

// Nothing of a sequence's life allocates once the pool has its size.
func TestAllocations(t *testing.T) {
	p := newPool(t, Options{BlockTokens: 16, Blocks: 100, Prefix: true})
	chains := chainsOf(20, 32, 16)
	var s Sequence
	i := 0
	once := func() {
		p.Start(&s, chains[i%20], 31)
		p.Grow(&s, 32*16)
		p.Commit(&s, 32*16)
		p.Release(&s)
		i++
	}
	for range 1000 {
		once()
	}
	if n := testing.AllocsPerRun(1000, once); n != 0 {
		t.Errorf("%v allocations per sequence", n)
	}
}
