package kvcache

import "math"

// Sequence is what one request holds of a pool. The zero value holds nothing.
type Sequence struct {
	// chain are the hashes of its granules of content as far as they are known.
	chain []Hash
	// shared are the entries of the leading granules that are findable, unit
	// blocks each.
	shared []int32
	unit   int
	// own is the blocks held besides: not full, of unknown content, or of
	// layers that are not addressed by content.
	own int
	// parked is the entry of the run that Park left, under the number park, and
	// follows how many granules come before it.
	parked, park int32
	follows      int
}

// Held returns the blocks that the sequence holds.
func (s *Sequence) Held() int { return len(s.shared)*s.unit + s.own }

// Start gives the sequence its chain and the leading granules of it that are
// found, at most limit of them, and what is left of what it parked after those.
// It returns how many granules it found. The sequence must hold nothing. It
// keeps chain, which may grow later by [Pool.Extend].
func (p *Pool) Start(s *Sequence, chain []Hash, limit int) int {
	s.chain, s.shared, s.unit = chain, s.shared[:0], p.unit
	if !p.opt.Prefix {
		return 0
	}
	for _, h := range chain[:min(limit, len(chain))] {
		i, ok := p.find[h]
		if !ok {
			break
		}
		p.hold(i)
		s.shared = append(s.shared, i)
	}
	if n := p.Parked(s, len(s.shared)); n > 0 {
		p.remove(s.parked)
		p.entries[s.parked].refs = 0
		p.unused = append(p.unused, s.parked)
		s.own = n
	}
	s.park = 0
	p.peak = max(p.peak, p.Used())
	return len(s.shared)
}

func (p *Pool) hold(i int32) {
	if p.entries[i].refs == 0 {
		p.remove(i)
	}
	p.entries[i].refs++
}

// Lacking returns how many blocks beyond the available ones a new sequence of
// a chain would need to hold so many tokens; 0 or less means that it fits. At
// most limit leading granules are taken from what is found.
func (p *Pool) Lacking(chain []Hash, limit, tokens int) int {
	available := p.Available()
	found := 0
	if p.opt.Prefix && len(p.find) > 0 {
		for _, h := range chain[:min(limit, len(chain))] {
			i, ok := p.find[h]
			if !ok {
				break
			}
			found++
			if p.entries[i].refs == 0 {
				available -= p.unit // taken out of the queue, not free for others
			}
		}
	}
	return p.need(tokens) - found*p.unit - available
}

// Grow makes the sequence hold room for so many tokens in all. It returns
// false, and changes nothing, when the pool has not enough.
func (p *Pool) Grow(s *Sequence, tokens int) bool {
	more := p.need(tokens) - s.Held()
	if more <= 0 {
		return true
	}
	if more > p.Available() {
		return false
	}
	p.take(more)
	s.own += more
	return true
}

// Extend appends hashes of further granules to the chain of the sequence.
func (s *Sequence) Extend(chain ...Hash) { s.chain = append(s.chain, chain...) }

// Chain returns the hashes the sequence was started and extended with.
func (s *Sequence) Chain() []Hash { return s.chain }

// Commit makes the full granules among the first so many tokens findable, which
// the sequence has room for ([Pool.Grow]).
func (p *Pool) Commit(s *Sequence, tokens int) {
	if !p.opt.Prefix {
		return
	}
	full := min(tokens/p.opt.ContentTokens, len(s.chain))
	for len(s.shared) < full {
		h := s.chain[len(s.shared)]
		i, ok := p.find[h]
		switch {
		case !ok:
			i = p.newEntry(entry{hash: h, refs: 1, blocks: int32(p.unit)})
			p.find[h] = i
			s.own -= p.unit
			if p.Stored != nil {
				p.Stored(h)
			}
		default:
			// Another sequence computed the same at the same time: one copy is
			// enough.
			p.hold(i)
			s.own -= p.unit
			p.give(p.unit)
		}
		s.shared = append(s.shared, i)
	}
}

// Park lets go of all blocks of a sequence that will be started again. The full
// blocks among its first so many tokens wait to be used again like others do,
// and [Pool.Start] takes back what is left of them then: the first ones are left
// longest. Layers that are not addressed by content have nothing to take back.
func (p *Pool) Park(s *Sequence, tokens int) {
	full := tokens/p.opt.BlockTokens - len(s.shared)*p.unit
	if !p.opt.Prefix || len(p.opt.Groups) > 0 || full < 1 || p.opt.Blocks > math.MaxInt32 {
		p.Release(s)
		return
	}
	p.give(s.own - full)
	p.parks = max(1, p.parks+1) // from the start after the largest number
	run, follows := p.newEntry(entry{blocks: int32(full), refs: p.parks}), len(s.shared)
	p.push(run)
	s.own = 0
	p.Release(s)
	s.parked, s.park, s.follows = run, p.parks, follows
}

// Parked returns how many blocks are left to take back for a sequence whose
// chain is found so far.
func (p *Pool) Parked(s *Sequence, found int) int {
	if s.park == 0 || s.follows != found || int(s.parked) >= len(p.entries) {
		return 0
	}
	if e := &p.entries[s.parked]; e.hash == 0 && e.refs == s.park {
		return int(e.blocks)
	}
	return 0
}

// Release lets go of all blocks, the last first. Findable ones stay so.
func (p *Pool) Release(s *Sequence) {
	p.give(s.own)
	for k := len(s.shared) - 1; k >= 0; k-- {
		i := s.shared[k]
		e := &p.entries[i]
		if e.refs--; e.refs == 0 {
			p.push(i)
		}
	}
	s.own, s.shared, s.chain, s.park = 0, s.shared[:0], nil, 0
}
