package routing

import "math/bits"

// Index knows which workers hold which blocks. Workers are small numbers.
type Index struct {
	// words is the number of 64-bit words of a worker set.
	words int
	find  map[Hash]int32
	// sets are the worker sets of the blocks, words apart; free lists those
	// that no block has any more.
	sets []uint64
	free []int32
	held []int // blocks by worker
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
	if *word&bit == 0 {
		*word |= bit
		x.held[worker]++
	}
}

// Removed notes that a worker no longer holds a block. One it was not known to
// hold is no error: events may be lost.
func (x *Index) Removed(worker int, h Hash) {
	i, ok := x.find[h]
	if !ok || worker >= len(x.held) {
		return
	}
	x.drop(worker, h, i)
}

func (x *Index) drop(worker int, h Hash, i int32) {
	set := x.set(i)
	if bit := uint64(1) << (worker % 64); set[worker/64]&bit != 0 {
		set[worker/64] &^= bit
		x.held[worker]--
	}
	for _, w := range set {
		if w != 0 {
			return
		}
	}
	delete(x.find, h)
	x.free = append(x.free, i)
}

// Cleared notes that a worker holds nothing.
func (x *Index) Cleared(worker int) {
	if worker >= len(x.held) || x.held[worker] == 0 {
		return
	}
	for h, i := range x.find {
		x.drop(worker, h, i)
	}
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
