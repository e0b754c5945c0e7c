package routing

import "math/bits"

// Index knows which workers hold which blocks, and which images they saw.
// Workers are small numbers. A set of hashes is all it is: the order of events,
// duplicates and blocks whose parents are not known make no difference.
type Index struct {
	// words is the number of 64-bit words of a worker set.
	words int
	find  map[Hash]int32
	// sets are the worker sets of the blocks, words apart; free lists those
	// that no block has any more.
	sets []uint64
	free []int32
	// By worker: the blocks held, how many at most (0 = any number), with a
	// limit the order in which they were last used, and the images.
	held   []int
	limits []int
	used   []recency[Hash]
	images []imageSet
}

// NewIndex returns an index of no blocks.
func NewIndex() *Index { return &Index{words: 1, find: map[Hash]int32{}} }

// Blocks returns the number of different blocks.
func (x *Index) Blocks() int { return len(x.find) }

// Held returns how many blocks a worker is known to hold.
func (x *Index) Held(worker int) int {
	if worker < len(x.held) {
		return x.held[worker]
	}
	return 0
}

func (x *Index) set(i int32) []uint64 {
	return x.sets[int(i)*x.words : (int(i)+1)*x.words]
}

// widen makes room for a worker.
func (x *Index) widen(worker int) {
	for worker >= len(x.held) {
		x.held = append(x.held, 0)
		x.limits = append(x.limits, 0)
		x.used = append(x.used, recency[Hash]{})
		x.images = append(x.images, imageSet{})
	}
	need := worker/64 + 1
	if need <= x.words {
		return
	}
	wide := make([]uint64, len(x.sets)/x.words*need)
	for i := range len(x.sets) / x.words {
		copy(wide[i*need:], x.sets[i*x.words:(i+1)*x.words])
	}
	x.sets, x.words = wide, need
}

// Limit clears a worker and bounds how many blocks it is taken to hold, the size
// of its cache: where news of removals is lost, what was not used for longest is
// forgotten. 0 is no bound.
func (x *Index) Limit(worker, blocks int) {
	x.widen(worker)
	x.Cleared(worker)
	x.limits[worker] = max(0, blocks)
}

// Stored notes that a worker holds a block.
func (x *Index) Stored(worker int, h Hash) {
	x.widen(worker)
	i, ok := x.find[h]
	if !ok {
		if n := len(x.free); n > 0 {
			i = x.free[n-1]
			x.free = x.free[:n-1]
		} else {
			i = int32(len(x.sets) / x.words)
			for range x.words {
				x.sets = append(x.sets, 0)
			}
		}
		x.find[h] = i
	}
	word, bit := &x.set(i)[worker/64], uint64(1)<<(worker%64)
	known := *word&bit != 0
	if !known {
		*word |= bit
		x.held[worker]++
	}
	if limit := x.limits[worker]; limit > 0 {
		x.used[worker].touch(h, known)
		if x.held[worker] > limit {
			oldest := x.used[worker].oldest()
			x.drop(worker, oldest, x.find[oldest])
		}
	}
}

// touch notes that a worker uses blocks it holds. The last ones of a chain count
// as used first, so that they are forgotten before those they rest on.
func (x *Index) touch(worker int, chain []Hash) {
	if worker >= len(x.limits) || x.limits[worker] == 0 {
		return
	}
	for i := len(chain) - 1; i >= 0; i-- {
		x.used[worker].touch(chain[i], true)
	}
}

// Removed notes that a worker no longer holds a block. One it was not known to
// hold is no error: events may be lost.
func (x *Index) Removed(worker int, h Hash) {
	i, ok := x.find[h]
	if !ok || worker >= len(x.held) || !x.drop(worker, h, i) {
		return
	}
	if x.limits[worker] > 0 {
		x.used[worker].forget(h)
	}
}

// drop takes a worker out of a block's set, and the block when that is empty. It
// reports whether the worker was in it.
func (x *Index) drop(worker int, h Hash, i int32) bool {
	set := x.set(i)
	bit := uint64(1) << (worker % 64)
	if set[worker/64]&bit == 0 {
		return false
	}
	set[worker/64] &^= bit
	x.held[worker]--
	for _, w := range set {
		if w != 0 {
			return true
		}
	}
	delete(x.find, h)
	x.free = append(x.free, i)
	return true
}

// Cleared notes that a worker holds nothing: it emptied its cache, started again
// or is gone.
func (x *Index) Cleared(worker int) {
	if worker >= len(x.held) {
		return
	}
	x.used[worker], x.images[worker] = recency[Hash]{}, imageSet{}
	if x.held[worker] == 0 {
		return
	}
	for h, i := range x.find {
		x.drop(worker, h, i)
	}
}

// knownImages returns how many images a worker saw lately.
func (x *Index) knownImages(worker int, images []Hash) int {
	if worker >= len(x.images) {
		return 0
	}
	return x.images[worker].known(images)
}

func (x *Index) sawImages(worker int, images []Hash) {
	x.widen(worker)
	x.images[worker].remember(images)
}

// Matches fills hits, by worker, with the number of leading blocks of a chain
// that each holds. alive is scratch, kept by the caller between calls.
func (x *Index) Matches(chain []Hash, hits []int, alive []uint64) []uint64 {
	clear(hits)
	alive = alive[:0]
	for range x.words {
		alive = append(alive, ^uint64(0))
	}
	// A worker's hits are known when it drops out.
	settle := func(w int, gone uint64, n int) {
		for ; gone != 0; gone &= gone - 1 {
			if worker := 64*w + bits.TrailingZeros64(gone); worker < len(hits) {
				hits[worker] = n
			}
		}
	}
	for n, h := range chain {
		i, ok := x.find[h]
		if !ok {
			chain = chain[:n]
			break
		}
		left := uint64(0)
		for w, word := range x.set(i) {
			if gone := alive[w] &^ word; gone != 0 && n > 0 {
				settle(w, gone, n)
			}
			alive[w] &= word
			left |= alive[w]
		}
		if left == 0 {
			return alive
		}
	}
	if len(chain) > 0 {
		for w, rest := range alive {
			settle(w, rest, len(chain))
		}
	}
	return alive
}
