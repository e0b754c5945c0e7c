package kvcache

import (
	"errors"
	"fmt"
	"math"
)

// ErrOptions is the kind of errors about impossible pools.
var ErrOptions = errors.New("bad cache pool")

// Group is a set of layers that does not keep the whole context.
type Group struct {
	// Window bounds the tokens it keeps; 0 = it keeps Fixed blocks only.
	Window int
	// Fixed is the blocks a sequence takes whatever its length: recurrent
	// state.
	Fixed int
}

// Options describe a pool.
type Options struct {
	// BlockTokens is the allocation granule.
	BlockTokens int
	// ContentTokens is the granule in which content is known, a multiple of
	// BlockTokens: a recorded workload may know no finer one, and a coarse one is
	// cheaper. What is found, kept and given up then are runs of blocks of that
	// size. 0 = BlockTokens.
	ContentTokens int
	// Blocks is the capacity; 0 = no limit.
	Blocks int
	// Prefix keeps blocks findable after their sequence has ended.
	Prefix bool
	// Groups are the layer groups besides those that keep the whole context.
	Groups []Group
}

// none marks the end of a list of entries.
const none = -1

// entry is the blocks of one findable granule of content, or a run of blocks
// without findable content that waits to be used again.
type entry struct {
	hash       Hash
	prev, next int32 // in the queue of what can be taken, while refs is 0
	// refs is how many sequences hold the granule; of a run without content, the
	// number under which it was parked, 0 = it was not.
	refs   int32
	blocks int32 // 1, or the length of a run without content
}

// Pool is the cache of one engine. It is not safe for concurrent use.
type Pool struct {
	opt Options
	// unit is the blocks of a granule of content.
	unit int
	// fresh blocks were never used, or nothing can be lost by taking them.
	fresh int
	// idle blocks wait in the queue, oldest first at head.
	idle       int
	head, tail int32
	entries    []entry
	unused     []int32 // indexes of entries
	find       map[Hash]int32
	evictions  int64
	peak       int
	parks      int32 // the number given last

	// Stored and Evicted, when set, are told the granules that become findable
	// and those that stop being so to make room.
	Stored, Evicted func(Hash)
}

// most is far beyond any simulation, and sums of it are far from overflow.
const most = 1 << 40

// New returns an empty pool. The error is of kind [ErrOptions].
func New(o Options) (*Pool, error) {
	if o.BlockTokens < 1 || o.BlockTokens > math.MaxInt32 || o.Blocks < 0 || o.Blocks > most {
		return nil, fmt.Errorf("%w: blocks of %d tokens, %d of them", ErrOptions, o.BlockTokens, o.Blocks)
	}
	if o.ContentTokens == 0 {
		o.ContentTokens = o.BlockTokens
	}
	if o.ContentTokens < o.BlockTokens || o.ContentTokens > math.MaxInt32 || o.ContentTokens%o.BlockTokens != 0 {
		return nil, fmt.Errorf("%w: content in granules of %d tokens, blocks of %d", ErrOptions, o.ContentTokens, o.BlockTokens)
	}
	for _, g := range o.Groups {
		if g.Window < 0 || g.Window > most || g.Fixed < 0 || g.Fixed > most {
			return nil, fmt.Errorf("%w: a group with a window of %d tokens and %d fixed blocks", ErrOptions, g.Window, g.Fixed)
		}
	}
	if o.Blocks == 0 {
		o.Blocks = most
	}
	p := &Pool{opt: o, unit: o.ContentTokens / o.BlockTokens}
	p.Clear()
	return p, nil
}

// Clear forgets everything, sequences that still hold blocks included: they
// must not be used any more.
func (p *Pool) Clear() {
	p.fresh, p.idle = p.opt.Blocks, 0
	p.head, p.tail = none, none
	p.entries, p.unused = p.entries[:0], p.unused[:0]
	if p.find == nil {
		p.find = map[Hash]int32{}
	}
	clear(p.find)
}

// BlockTokens returns the allocation granule.
func (p *Pool) BlockTokens() int { return p.opt.BlockTokens }

// ContentTokens returns the granule in which content is known: what a chain has
// a hash for.
func (p *Pool) ContentTokens() int { return p.opt.ContentTokens }

// Capacity returns the blocks of the pool.
func (p *Pool) Capacity() int { return p.opt.Blocks }

// Available returns the blocks that can be taken: fresh and idle ones.
func (p *Pool) Available() int { return p.fresh + p.idle }

// Fresh returns the blocks that can be taken without losing anything findable.
func (p *Pool) Fresh() int { return p.fresh }

// Used returns the blocks that sequences hold.
func (p *Pool) Used() int { return p.opt.Blocks - p.Available() }

// Peak returns the most blocks that sequences held at once.
func (p *Pool) Peak() int { return p.peak }

// Cached returns the findable blocks, held or idle.
func (p *Pool) Cached() int { return len(p.find) * p.unit }

// Evictions returns how many findable blocks were given up for others.
func (p *Pool) Evictions() int64 { return p.evictions }

// Contains reports whether a block can be found.
func (p *Pool) Contains(h Hash) bool {
	_, ok := p.find[h]
	return ok
}

// Match returns how many leading granules of a chain are there.
func (p *Pool) Match(chain []Hash) int {
	if len(p.find) == 0 {
		return 0
	}
	for i, h := range chain {
		if _, ok := p.find[h]; !ok {
			return i
		}
	}
	return len(chain)
}

// need returns the blocks of a sequence of n tokens.
func (p *Pool) need(tokens int) int {
	b := p.opt.BlockTokens
	n := (tokens + b - 1) / b
	total := n
	for _, g := range p.opt.Groups {
		if g.Window > 0 {
			// One block more than the window, since it starts anywhere in one.
			total += min(n, (g.Window+b-1)/b+1)
		}
		total += g.Fixed
	}
	return total
}

// Blocks returns the blocks that a sequence of n tokens takes.
func (p *Pool) Blocks(tokens int) int { return p.need(tokens) }

func (p *Pool) newEntry(e entry) int32 {
	if n := len(p.unused); n > 0 {
		i := p.unused[n-1]
		p.unused = p.unused[:n-1]
		p.entries[i] = e
		return i
	}
	p.entries = append(p.entries, e)
	return int32(len(p.entries) - 1)
}

// push puts an entry at the young end of the queue.
func (p *Pool) push(i int32) {
	e := &p.entries[i]
	e.prev, e.next = p.tail, none
	if p.tail == none {
		p.head = i
	} else {
		p.entries[p.tail].next = i
	}
	p.tail = i
	p.idle += int(e.blocks)
}

// remove takes an entry out of the queue.
func (p *Pool) remove(i int32) {
	e := &p.entries[i]
	if e.prev == none {
		p.head = e.next
	} else {
		p.entries[e.prev].next = e.next
	}
	if e.next == none {
		p.tail = e.prev
	} else {
		p.entries[e.next].prev = e.prev
	}
	p.idle -= int(e.blocks)
}

// take makes n blocks anonymous property of a sequence, oldest content first.
// The caller has checked that they are available.
func (p *Pool) take(n int) {
	used := min(n, p.fresh)
	p.fresh -= used
	n -= used
	for n > 0 {
		i := p.head
		e := &p.entries[i]
		if e.hash == 0 && int(e.blocks) > n {
			e.blocks -= int32(n)
			p.idle -= n
			break
		}
		p.remove(i)
		// A granule goes as a whole; what is not needed of it has nothing left
		// to lose.
		used := min(n, int(e.blocks))
		p.fresh += int(e.blocks) - used
		n -= used
		if e.hash != 0 {
			delete(p.find, e.hash)
			p.evictions += int64(e.blocks)
			if p.Evicted != nil {
				p.Evicted(e.hash)
			}
		}
		e.refs = 0
		p.unused = append(p.unused, i)
	}
	p.peak = max(p.peak, p.Used())
}

// Insert makes content findable that came from elsewhere, as far as there is
// room, the first of it first. It returns how many leading granules of the chain
// are there now.
func (p *Pool) Insert(chain []Hash) int {
	if !p.opt.Prefix {
		return 0
	}
	var s Sequence
	found := p.Start(&s, chain, len(chain))
	for found < len(chain) && p.Available() >= p.unit {
		p.take(p.unit)
		s.own += p.unit
		found++
		p.Commit(&s, found*p.opt.ContentTokens)
	}
	p.Release(&s)
	return found
}

// give returns n anonymous blocks.
func (p *Pool) give(n int) {
	if n == 0 {
		return
	}
	// Without blocks worth keeping there is nothing whose age matters, and a
	// pool of more blocks than an entry counts never runs out.
	if len(p.find) == 0 && p.idle == 0 || p.opt.Blocks > math.MaxInt32 {
		p.fresh += n
		return
	}
	p.push(p.newEntry(entry{blocks: int32(n)}))
}
