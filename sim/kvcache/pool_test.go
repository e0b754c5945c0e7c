package kvcache

import (
	"errors"
	"math"
	"slices"
	"testing"
)

func newPool(t testing.TB, o Options) *Pool {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run gives a sequence its chain and room for all of it, and makes that
// findable: a prompt that was computed. It returns the granules found.
func run(t testing.TB, p *Pool, s *Sequence, chain []Hash) int {
	t.Helper()
	found := p.Start(s, chain, len(chain))
	if !p.Grow(s, len(chain)*p.ContentTokens()) {
		t.Fatalf("no room for %d granules, %d blocks available", len(chain), p.Available())
	}
	p.Commit(s, len(chain)*p.ContentTokens())
	return found
}

// counts are what a pool says of itself.
type counts struct{ used, fresh, available, cached, peak, evictions int }

func (c counts) check(t *testing.T, p *Pool, when string) {
	t.Helper()
	got := counts{p.Used(), p.Fresh(), p.Available(), p.Cached(), p.Peak(), int(p.Evictions())}
	if got != c {
		t.Errorf("%s: %+v, want %+v", when, got, c)
	}
}

func TestHits(t *testing.T) {
	p := newPool(t, Options{BlockTokens: 16, Blocks: 10, Prefix: true})
	var a, b, c, d Sequence
	// 4 full blocks and one begun.
	if n := p.Start(&a, []Hash{1, 2, 3, 4}, 4); n != 0 {
		t.Errorf("an empty pool found %d blocks", n)
	}
	if !p.Grow(&a, 65) || a.Held() != 5 {
		t.Errorf("65 tokens hold %d blocks, want 5", a.Held())
	}
	if n := p.Match([]Hash{1, 2, 3, 4}); n != 0 {
		t.Errorf("%d blocks found before they were computed", n)
	}
	p.Commit(&a, 63)
	if n := p.Match([]Hash{1, 2, 3, 4}); n != 3 {
		t.Errorf("%d blocks found of 63 tokens, want 3", n)
	}
	p.Commit(&a, 65)
	counts{used: 5, fresh: 5, available: 5, cached: 4, peak: 5}.check(t, p, "one sequence")

	// The leading run that is there is found and held by both; nothing is found
	// behind the first block that differs.
	if n := p.Start(&b, []Hash{1, 2, 9, 4}, 4); n != 2 || b.Held() != 2 {
		t.Errorf("found %d, held %d blocks of 1 2 9 4, want 2", n, b.Held())
	}
	counts{used: 5, fresh: 5, available: 5, cached: 4, peak: 5}.check(t, p, "shared blocks count once")
	// The limit cuts what is found.
	if n := p.Start(&c, []Hash{1, 2, 3, 4}, 3); n != 3 {
		t.Errorf("found %d blocks with a limit of 3", n)
	}
	if n := p.Start(&d, []Hash{1, 2, 3, 4}, 0); n != 0 {
		t.Errorf("found %d blocks with a limit of 0", n)
	}
	p.Release(&a)
	// Block 4 and the one that was begun are idle, 1 to 3 are held by c. The
	// begun one is not fresh: what is younger goes after it.
	counts{used: 3, fresh: 5, available: 7, cached: 4, peak: 5}.check(t, p, "the first released")
	p.Release(&b)
	p.Release(&c)
	p.Release(&d)
	counts{used: 0, fresh: 5, available: 10, cached: 4, peak: 5}.check(t, p, "all released")
	for h, want := range map[Hash]bool{1: true, 4: true, 9: false, 0: false} {
		if p.Contains(h) != want {
			t.Errorf("Contains(%d) = %v", h, !want)
		}
	}
}

// The oldest goes first, the last block of a sequence before the ones before it,
// and blocks in use never.
func TestEvictionOrder(t *testing.T) {
	p := newPool(t, Options{BlockTokens: 1, Blocks: 8, Prefix: true})
	var evicted []Hash
	p.Evicted = func(h Hash) { evicted = append(evicted, h) }
	var a, b, c, rest Sequence
	run(t, p, &a, []Hash{1, 2, 3})
	run(t, p, &b, []Hash{1, 2, 4})
	run(t, p, &c, []Hash{5, 6})
	counts{used: 6, fresh: 2, available: 2, cached: 6, peak: 6}.check(t, p, "three sequences")
	p.Release(&b) // 4; 1 and 2 are a's, too
	p.Release(&c) // 6 5
	p.Release(&a) // 3 2 1
	for _, want := range [][]Hash{nil, nil, {4}, {4, 6}, {4, 6, 5}, {4, 6, 5, 3}, {4, 6, 5, 3, 2}, {4, 6, 5, 3, 2, 1}} {
		if !p.Grow(&rest, rest.Held()+1) {
			t.Fatalf("no block %d of 8", rest.Held()+1)
		}
		if !slices.Equal(evicted, want) {
			t.Fatalf("with %d blocks taken %v were given up, want %v", rest.Held(), evicted, want)
		}
	}
	if p.Grow(&rest, 9) || rest.Held() != 8 {
		t.Errorf("grew to %d of 8 blocks", rest.Held())
	}
	counts{used: 8, peak: 8, evictions: 6}.check(t, p, "all taken")
}

// Being found makes a block young again.
func TestEvictionAfterHit(t *testing.T) {
	p := newPool(t, Options{BlockTokens: 1, Blocks: 4, Prefix: true})
	var a, b, c Sequence
	run(t, p, &a, []Hash{1, 2})
	p.Release(&a)
	run(t, p, &b, []Hash{3, 4})
	p.Release(&b) // order: 2 1 4 3
	if n := run(t, p, &a, []Hash{1}); n != 1 {
		t.Errorf("found %d", n)
	}
	p.Release(&a) // order: 2 4 3 1
	p.Grow(&c, 3)
	if !p.Contains(1) || p.Contains(2) || p.Contains(3) || p.Contains(4) {
		t.Errorf("1 should be left, got 1 %v 2 %v 3 %v 4 %v", p.Contains(1), p.Contains(2), p.Contains(3), p.Contains(4))
	}
}

// Two sequences that computed the same at the same time end up with one copy.
func TestDeduplication(t *testing.T) {
	p := newPool(t, Options{BlockTokens: 4, Blocks: 10, Prefix: true})
	stored := 0
	p.Stored = func(Hash) { stored++ }
	var a, b Sequence
	chain := []Hash{1, 2}
	p.Start(&a, chain, 2)
	p.Start(&b, chain, 2)
	p.Grow(&a, 9)
	p.Grow(&b, 9)
	counts{used: 6, fresh: 4, available: 4, peak: 6}.check(t, p, "both computing")
	p.Commit(&a, 8)
	p.Commit(&b, 8)
	if a.Held() != 3 || b.Held() != 3 || stored != 2 {
		t.Errorf("held %d and %d blocks, %d stored; want 3, 3, 2", a.Held(), b.Held(), stored)
	}
	// 2 shared blocks and one each; the 2 copies wait in the queue, since there
	// is findable content that may be older.
	counts{used: 4, fresh: 4, available: 6, cached: 2, peak: 6}.check(t, p, "both committed")
	p.Release(&a)
	if n := p.Match(chain); n != 2 {
		t.Errorf("b's blocks: %d found", n)
	}
	p.Release(&b)
	counts{fresh: 4, available: 10, cached: 2, peak: 6}.check(t, p, "released")
}

func TestInsert(t *testing.T) {
	p := newPool(t, Options{BlockTokens: 4, Blocks: 4, Prefix: true})
	var stored []Hash
	p.Stored = func(h Hash) { stored = append(stored, h) }
	var a Sequence
	p.Grow(&a, 4)
	if n := p.Insert([]Hash{1, 2}); n != 2 {
		t.Errorf("inserted %d of 2", n)
	}
	// A longer chain: the first two are there already, one more fits.
	if n := p.Insert([]Hash{1, 2, 3, 4}); n != 3 || p.Match([]Hash{1, 2, 3, 4}) != 3 {
		t.Errorf("inserted %d of 4 into 3 blocks, %d found", n, p.Match([]Hash{1, 2, 3, 4}))
	}
	if !slices.Equal(stored, []Hash{1, 2, 3}) {
		t.Errorf("stored %v", stored)
	}
	counts{used: 1, available: 3, cached: 3, peak: 4}.check(t, p, "inserted")
	// Others' idle content makes room, the oldest first: 3 2 1.
	if n := p.Insert([]Hash{7}); n != 1 || p.Match([]Hash{1, 2, 3}) != 2 {
		t.Errorf("inserted %d, left %d of 1 2 3", n, p.Match([]Hash{1, 2, 3}))
	}
	if n := p.Insert(nil); n != 0 {
		t.Errorf("inserted %d of nothing", n)
	}
	p.Grow(&a, 16)
	if n := p.Insert([]Hash{1}); n != 0 {
		t.Errorf("inserted %d into a full pool", n)
	}
	off := newPool(t, Options{BlockTokens: 4, Blocks: 4})
	if n := off.Insert([]Hash{1, 2}); n != 0 || off.Used() != 0 || off.Cached() != 0 {
		t.Errorf("inserted %d where nothing is findable, %d used, %d cached", n, off.Used(), off.Cached())
	}
}

func TestClear(t *testing.T) {
	p := newPool(t, Options{BlockTokens: 1, Blocks: 3, Prefix: true})
	var a, b Sequence
	run(t, p, &a, []Hash{1, 2})
	p.Release(&a)
	p.Grow(&a, 2) // takes the fresh one and block 2
	p.Clear()
	counts{fresh: 3, available: 3, peak: 2, evictions: 1}.check(t, p, "cleared")
	if n := run(t, p, &b, []Hash{1, 2, 3}); n != 0 {
		t.Errorf("found %d blocks that were forgotten", n)
	}
	p.Release(&b)
	counts{available: 3, cached: 3, peak: 3, evictions: 1}.check(t, p, "used again")
}

// Without prefix caching nothing is findable and nothing is given up.
func TestNoPrefix(t *testing.T) {
	p := newPool(t, Options{BlockTokens: 1, Blocks: 4})
	var a, b Sequence
	for range 3 {
		if n := run(t, p, &a, []Hash{1, 2}); n != 0 {
			t.Errorf("found %d", n)
		}
		if n := run(t, p, &b, []Hash{1, 2}); n != 0 || p.Used() != 4 {
			t.Errorf("found %d, %d used", n, p.Used())
		}
		p.Release(&a)
		p.Release(&b)
		counts{fresh: 4, available: 4, peak: 4}.check(t, p, "released")
	}
}

// Granules of 4 blocks are found, kept and given up as a whole.
func TestContentTokens(t *testing.T) {
	p := newPool(t, Options{BlockTokens: 16, ContentTokens: 64, Blocks: 12, Prefix: true})
	var a, b Sequence
	p.Start(&a, []Hash{1, 2}, 2)
	p.Grow(&a, 150) // 10 blocks, 2 granules of which are full
	p.Commit(&a, 127)
	if p.Cached() != 4 {
		t.Errorf("%d blocks findable of 127 tokens, want one granule", p.Cached())
	}
	p.Commit(&a, 150)
	counts{used: 10, fresh: 2, available: 2, cached: 8, peak: 10}.check(t, p, "held")
	p.Release(&a) // queue: 2 of its own, granule 2, granule 1
	if n := p.Start(&b, []Hash{1, 2}, 1); n != 1 || b.Held() != 4 {
		t.Errorf("found %d granules, %d blocks held; want 1, 4", n, b.Held())
	}
	// 4 more: 2 fresh, 2 anonymous. One more takes granule 2, 3 blocks of which
	// are then fresh.
	p.Grow(&b, 128)
	counts{used: 8, available: 4, cached: 8, peak: 10}.check(t, p, "without loss")
	p.Grow(&b, 129)
	counts{used: 9, fresh: 3, available: 3, cached: 4, peak: 10, evictions: 4}.check(t, p, "one granule given up")
}

func TestGroups(t *testing.T) {
	p := newPool(t, Options{BlockTokens: 16, Blocks: 100, Prefix: true, Groups: []Group{{Window: 40}, {Fixed: 3}}})
	// Whole context, then at most ceil(40/16)+1 = 4 blocks of the window, then 3.
	for tokens, want := range map[int]int{0: 3, 1: 1 + 1 + 3, 16: 1 + 1 + 3, 17: 2 + 2 + 3, 64: 4 + 4 + 3, 65: 5 + 4 + 3, 1600: 100 + 4 + 3} {
		if got := p.Blocks(tokens); got != want {
			t.Errorf("%d tokens take %d blocks, want %d", tokens, got, want)
		}
	}
	var a, b Sequence
	chain := []Hash{1, 2, 3, 4, 5}
	run(t, p, &a, chain) // 80 tokens: 5 + 4 + 3
	counts{used: 12, fresh: 88, available: 88, cached: 5, peak: 12}.check(t, p, "one")
	// What is found saves blocks of the full layers only.
	if n := run(t, p, &b, chain); n != 5 || b.Held() != 12 {
		t.Errorf("found %d, held %d", n, b.Held())
	}
	counts{used: 19, fresh: 81, available: 81, cached: 5, peak: 19}.check(t, p, "two")
	p.Release(&a)
	p.Release(&b)
	counts{fresh: 81, available: 100, cached: 5, peak: 19}.check(t, p, "released")

	// A window that is no shorter than the context costs as much as it, and a
	// pool that is too small for it does not grow.
	small := newPool(t, Options{BlockTokens: 16, Blocks: 9, Groups: []Group{{Window: 1 << 20}}})
	if got := small.Blocks(80); got != 10 {
		t.Errorf("80 tokens take %d blocks, want 10", got)
	}
	var s Sequence
	if small.Grow(&s, 80) || s.Held() != 0 || small.Used() != 0 {
		t.Errorf("10 of 9 blocks: held %d, used %d", s.Held(), small.Used())
	}
	if !small.Grow(&s, 64) || s.Held() != 8 {
		t.Errorf("8 of 9 blocks: held %d", s.Held())
	}
}

func TestLacking(t *testing.T) {
	p := newPool(t, Options{BlockTokens: 1, Blocks: 6, Prefix: true})
	var a, b Sequence
	run(t, p, &a, []Hash{1, 2})
	run(t, p, &b, []Hash{1, 3})
	p.Release(&b) // 3 is idle, 1 is held
	for _, c := range []struct {
		chain         []Hash
		limit, tokens int
		want          int
	}{
		{nil, 0, 4, 0},               // 6 - 2 used
		{nil, 0, 5, 1},               //
		{[]Hash{1, 2}, 2, 6, 0},      // 2 of 6 are there, held by a
		{[]Hash{1, 3}, 2, 5, 0},      // 2 of 5 are there, 3 more of 4 - 1 idle
		{[]Hash{1, 3}, 2, 6, 1},      //
		{[]Hash{1, 3}, 1, 5, 0},      // 1 of 5 is there, 4 more of 4
		{[]Hash{1, 3}, 1, 6, 1},      //
		{[]Hash{9, 1, 2}, 3, 5, 1},   // nothing is there
		{[]Hash{1, 2, 3}, 3, 1, -5},  // fits with much to spare: 1 - 2 - 4
		{[]Hash{1, 2, 3}, 100, 7, 1}, // more than there are
	} {
		if got := p.Lacking(c.chain, c.limit, c.tokens); got != c.want {
			t.Errorf("Lacking(%v, %d, %d) = %d, want %d", c.chain, c.limit, c.tokens, got, c.want)
		}
	}
}

// Answers are appended to the chain of a sequence as they grow.
func TestExtend(t *testing.T) {
	p := newPool(t, Options{BlockTokens: 2, Blocks: 4, Prefix: true})
	var a, b Sequence
	run(t, p, &a, []Hash{1})
	p.Grow(&a, 5)
	p.Commit(&a, 4) // the second block's content is unknown
	if p.Cached() != 1 {
		t.Errorf("%d findable", p.Cached())
	}
	a.Extend(2)
	p.Commit(&a, 4)
	if !slices.Equal(a.Chain(), []Hash{1, 2}) || p.Match(a.Chain()) != 2 || a.Held() != 3 {
		t.Errorf("chain %v, %d found, %d held", a.Chain(), p.Match(a.Chain()), a.Held())
	}
	p.Release(&a)
	if n := p.Start(&b, []Hash{1, 2}, 2); n != 2 {
		t.Errorf("the next turn finds %d", n)
	}
}

// A pool without a limit neither runs out nor forgets.
func TestUnlimited(t *testing.T) {
	for _, blocks := range []int{0, 1 << 34, 1 << 40} {
		p := newPool(t, Options{BlockTokens: 1, Blocks: blocks, Prefix: true, Groups: []Group{{Window: 1 << 40}, {Fixed: 1 << 31}}})
		var a, b Sequence
		if blocks > 0 && p.Capacity() != blocks {
			t.Errorf("capacity %d, want %d", p.Capacity(), blocks)
		}
		run(t, p, &a, []Hash{1, 2})
		run(t, p, &b, []Hash{3})
		p.Release(&a)
		// What a sequence holds exceeds 32 bits.
		if !p.Grow(&b, 1<<30) || b.Held() != 1<<30+1<<30+1<<31 {
			t.Errorf("%d blocks held of %d", b.Held(), p.Capacity())
		}
		p.Release(&b)
		if p.Used() != 0 || p.Available() != p.Capacity() || p.Match([]Hash{1, 2}) != 2 || p.Evictions() != 0 {
			t.Errorf("used %d, available %d of %d, %d evictions", p.Used(), p.Available(), p.Capacity(), p.Evictions())
		}
	}
	// The largest pool whose blocks all fit into one entry.
	p := newPool(t, Options{BlockTokens: 1, Blocks: math.MaxInt32, Prefix: true})
	var a, b Sequence
	run(t, p, &a, []Hash{1})
	p.Release(&a)
	if !p.Grow(&b, math.MaxInt32-1) || !p.Contains(1) || p.Grow(&b, math.MaxInt32+1) {
		t.Errorf("held %d", b.Held())
	}
	p.Release(&b)
	if p.Used() != 0 || p.Available() != math.MaxInt32 {
		t.Errorf("used %d, available %d", p.Used(), p.Available())
	}
	if !p.Grow(&b, math.MaxInt32) || p.Contains(1) || p.Evictions() != 1 {
		t.Errorf("held %d, %d evictions", b.Held(), p.Evictions())
	}
}

func TestBadOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no block size":           {},
		"negative block size":     {BlockTokens: -1},
		"huge blocks":             {BlockTokens: math.MaxInt},
		"negative capacity":       {BlockTokens: 16, Blocks: -1},
		"huge capacity":           {BlockTokens: 16, Blocks: math.MaxInt},
		"content below the block": {BlockTokens: 16, ContentTokens: 8},
		"content not a multiple":  {BlockTokens: 16, ContentTokens: 40},
		"negative content":        {BlockTokens: 16, ContentTokens: -16},
		"huge content":            {BlockTokens: 1, ContentTokens: math.MaxInt},
		"negative window":         {BlockTokens: 16, Groups: []Group{{Window: -1}}},
		"huge window":             {BlockTokens: 16, Groups: []Group{{Window: math.MaxInt}}},
		"negative fixed":          {BlockTokens: 16, Groups: []Group{{Fixed: -1}}},
		"huge fixed":              {BlockTokens: 16, Groups: []Group{{}, {Fixed: math.MaxInt}}},
	} {
		if p, err := New(o); !errors.Is(err, ErrOptions) || p != nil {
			t.Errorf("%s: pool %v, error %v", name, p != nil, err)
		}
	}
	p := newPool(t, Options{BlockTokens: 16})
	if p.BlockTokens() != 16 || p.ContentTokens() != 16 || p.Capacity() < 1<<40 {
		t.Errorf("defaults: blocks of %d, content of %d, %d blocks", p.BlockTokens(), p.ContentTokens(), p.Capacity())
	}
}
