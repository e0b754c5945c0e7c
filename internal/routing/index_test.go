package routing

import (
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A worker with a limit holds what it used last, whatever the order of events,
// and one without is not touched by that. The model keeps lists, oldest first.
func TestLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := NewIndex()
		limits := [2]int{rapid.IntRange(1, 6).Draw(t, "limit"), 0}
		x.Limit(0, limits[0])
		var lists [2][]Hash
		forget := func(w int, h Hash) {
			lists[w] = slices.DeleteFunc(lists[w], func(k Hash) bool { return k == h })
		}
		for range rapid.IntRange(0, 300).Draw(t, "events") {
			w := rapid.IntRange(0, 1).Draw(t, "worker")
			h := Hash(rapid.IntRange(1, 10).Draw(t, "hash"))
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0, 1, 2, 3, 4:
				x.Stored(w, h)
				forget(w, h)
				lists[w] = append(lists[w], h)
				if n := len(lists[w]); limits[w] > 0 && n > limits[w] {
					lists[w] = lists[w][1:]
				}
			case 5, 6:
				x.Removed(w, h)
				forget(w, h)
			case 7, 8:
				// The last of the leading run counts as used first.
				run := 0
				for slices.Contains(lists[w], Hash(run+1)) {
					run++
				}
				x.touch(w, []Hash{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}[:run])
				for k := Hash(run); k > 0; k-- {
					forget(w, k)
					lists[w] = append(lists[w], k)
				}
			default:
				x.Cleared(w)
				lists[w] = nil
			}
			for w := range lists {
				if x.Held(w) != len(lists[w]) {
					t.Fatalf("worker %d holds %d blocks, want %v", w, x.Held(w), lists[w])
				}
			}
		}
		for h := Hash(1); h <= 10; h++ {
			var hits [2]int
			x.Matches([]Hash{h}, hits[:], nil)
			for w := range lists {
				if want := slices.Contains(lists[w], h); want != (hits[w] == 1) {
					t.Fatalf("worker %d holds %v: block %d found %v", w, lists[w], h, hits[w] == 1)
				}
			}
		}
	})
}

// A cache that is used and replaced for long takes no more room than one that
// was filled once.
func TestLimitIsBounded(t *testing.T) {
	x := NewIndex()
	x.Limit(0, 100)
	for i := range 100_000 {
		x.Stored(0, Hash(i+1))
		x.touch(0, []Hash{Hash(i + 1)})
	}
	if x.Held(0) != 100 || x.Blocks() != 100 {
		t.Errorf("%d of %d blocks held, want 100", x.Held(0), x.Blocks())
	}
	if n := cap(x.used[0].order); n > 1000 {
		t.Errorf("the order of 100 blocks takes %d entries", n)
	}
	if n := len(x.sets); n > 101 {
		t.Errorf("100 blocks take %d sets", n)
	}
	// Setting a limit begins anew.
	x.Limit(0, 0)
	if x.Held(0) != 0 || x.Blocks() != 0 {
		t.Errorf("%d of %d blocks held after a new limit, want none", x.Held(0), x.Blocks())
	}
	for i := range 200 {
		x.Stored(0, Hash(i+1))
	}
	if x.Held(0) != 200 {
		t.Errorf("%d blocks held without a limit, want 200", x.Held(0))
	}
}

// A worker beyond 64 widens all sets and keeps what they say.
func TestManyWorkers(t *testing.T) {
	x := NewIndex()
	chain := []Hash{1, 2, 3}
	for _, h := range chain {
		x.Stored(5, h)
	}
	x.Stored(200, 1)
	hits := make([]int, 201)
	x.Matches(chain, hits, nil)
	if hits[5] != 3 || hits[200] != 1 || hits[6] != 0 || hits[69] != 0 {
		t.Errorf("hits %d, %d, %d, %d, want 3, 1, 0, 0", hits[5], hits[200], hits[6], hits[69])
	}
}

// big is an index of a million blocks in chains of 32 on 64 workers.
func big() *Index {
	x := NewIndex()
	for i := range 1 << 20 {
		x.Stored(i/32%64, spread(i))
	}
	return x
}

// spread turns numbers into hashes.
func spread(i int) Hash { return Hash(rendezvous(Hash(i), 0)) }

func BenchmarkIndexMemory(b *testing.B) {
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		x := big()
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(x.Blocks()), "B/block")
	}
}

func BenchmarkStoredRemoved(b *testing.B) {
	for _, limit := range []int{0, 1 << 14} {
		b.Run(map[bool]string{false: "unlimited", true: "limited"}[limit > 0], func(b *testing.B) {
			x := NewIndex()
			x.Limit(0, limit)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				x.Stored(0, spread(i))
				if i >= 1<<13 {
					x.Removed(0, spread(i-1<<13))
				}
				i++
			}
		})
	}
}

// Chains that are cold in the processor's caches, too.
func BenchmarkMatchesOfMillion(b *testing.B) {
	x := big()
	chains := make([][]Hash, 1<<15)
	for c := range chains {
		for i := range 32 {
			chains[c] = append(chains[c], spread(32*c+i))
		}
	}
	hits := make([]int, 64)
	var alive []uint64
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		alive = x.Matches(chains[i*7919%len(chains)], hits, alive)
		i++
	}
}
