package kvcache

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is a pool written for clearness: a map of what is findable to how many
// hold it, and one list of all blocks that can be taken, the next one first.
type model struct {
	opt   Options
	fresh int
	lru   []Hash // 0 = one block without content
	refs  map[Hash]int
	// evicted are all granules given up.
	evicted []Hash
	peak    int
	parks   int
}

// parked marks the blocks of a run that was parked; its number follows.
const parked Hash = 1 << 60

// held is a sequence of the model.
type held struct {
	chain  []Hash
	shared int // leading granules of the chain
	own    int
	// park is the number of the run that was parked after follows granules.
	park, follows int
}

func newModel(o Options) *model {
	return &model{opt: o, fresh: o.Blocks, refs: map[Hash]int{}}
}

func (m *model) unit() int { return m.opt.ContentTokens / m.opt.BlockTokens }

// idle counts the blocks in the list.
func (m *model) idle() int {
	n := 0
	for _, h := range m.lru {
		if n++; h != 0 && h < parked {
			n += m.unit() - 1
		}
	}
	return n
}

func (m *model) used() int { return m.opt.Blocks - m.fresh - m.idle() }

func (m *model) need(tokens int) int {
	ceil := func(tokens int) int {
		blocks := 0
		for blocks*m.opt.BlockTokens < tokens {
			blocks++
		}
		return blocks
	}
	n := ceil(tokens)
	for _, g := range m.opt.Groups {
		if g.Window > 0 {
			n += min(ceil(tokens), ceil(g.Window)+1)
		}
		n += g.Fixed
	}
	return n
}

func (m *model) match(chain []Hash) int {
	for i, h := range chain {
		if _, ok := m.refs[h]; !ok {
			return i
		}
	}
	return len(chain)
}

func (m *model) take(n int) {
	for range n {
		if m.fresh == 0 {
			h := m.lru[0]
			m.lru = m.lru[1:]
			m.fresh = 1
			if h != 0 && h < parked {
				m.fresh = m.unit()
				delete(m.refs, h)
				m.evicted = append(m.evicted, h)
			}
		}
		m.fresh--
	}
	m.peak = max(m.peak, m.used())
}

func (m *model) give(n int) {
	if len(m.refs) == 0 && m.idle() == 0 {
		m.fresh += n
		return
	}
	for range n {
		m.lru = append(m.lru, 0)
	}
}

func (m *model) hold(h Hash) {
	if m.refs[h]++; m.refs[h] == 1 {
		m.lru = slices.DeleteFunc(m.lru, func(x Hash) bool { return x == h })
	}
}

func (m *model) start(s *held, chain []Hash, limit int) int {
	old := *s
	*s = held{chain: chain}
	if m.opt.Prefix {
		for s.shared < min(limit, len(chain)) && m.match(chain[s.shared:s.shared+1]) == 1 {
			m.hold(chain[s.shared])
			s.shared++
		}
		before := len(m.lru)
		if old.park > 0 && old.follows == s.shared {
			m.lru = slices.DeleteFunc(m.lru, func(x Hash) bool { return x == parked+Hash(old.park) })
		}
		s.own = before - len(m.lru)
		m.peak = max(m.peak, m.used())
	}
	return s.shared
}

func (m *model) grow(s *held, tokens int) bool {
	more := m.need(tokens) - s.shared*m.unit() - s.own
	if more > m.fresh+m.idle() {
		return false
	}
	if more > 0 {
		m.take(more)
		s.own += more
	}
	return true
}

func (m *model) commit(s *held, tokens int) {
	for m.opt.Prefix && s.shared < len(s.chain) && (s.shared+1)*m.opt.ContentTokens <= tokens {
		h := s.chain[s.shared]
		_, twice := m.refs[h]
		m.hold(h)
		s.own -= m.unit()
		if twice {
			m.give(m.unit())
		}
		s.shared++
	}
}

func (m *model) release(s *held) {
	m.give(s.own)
	for i := s.shared - 1; i >= 0; i-- {
		h := s.chain[i]
		if m.refs[h]--; m.refs[h] == 0 {
			m.lru = append(m.lru, h)
		}
	}
	*s = held{}
}

func (m *model) park(s *held, tokens int) {
	full := tokens/m.opt.BlockTokens - s.shared*m.unit()
	if !m.opt.Prefix || len(m.opt.Groups) > 0 || full < 1 {
		m.release(s)
		return
	}
	m.give(s.own - full)
	m.parks++
	for range full {
		m.lru = append(m.lru, parked+Hash(m.parks))
	}
	s.own = 0
	n := s.shared
	m.release(s)
	s.park, s.follows = m.parks, n
}

func (m *model) insert(chain []Hash) int {
	if !m.opt.Prefix {
		return 0
	}
	var s held
	n := m.start(&s, chain, len(chain))
	for n < len(chain) && m.fresh+m.idle() >= m.unit() {
		m.take(m.unit())
		s.own += m.unit()
		n++
		m.commit(&s, n*m.opt.ContentTokens)
	}
	m.release(&s)
	return n
}

// A pool does what the model does, whatever is asked of both.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.IntRange(1, 4).Draw(t, "block")
		o := Options{
			BlockTokens: block, ContentTokens: block * rapid.IntRange(1, 3).Draw(t, "unit"),
			Blocks: rapid.IntRange(1, 40).Draw(t, "blocks"), Prefix: rapid.IntRange(0, 9).Draw(t, "prefix") > 0,
		}
		for range rapid.IntRange(0, 2).Draw(t, "groups") {
			o.Groups = append(o.Groups, Group{Window: rapid.IntRange(0, 12).Draw(t, "window"), Fixed: rapid.IntRange(0, 2).Draw(t, "fixed")})
		}
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		m := newModel(o)
		var evicted []Hash
		findable := map[Hash]bool{}
		p.Stored = func(h Hash) { findable[h] = true }
		p.Evicted = func(h Hash) { delete(findable, h); evicted = append(evicted, h) }

		// Few different texts, so that they meet: a hash is its path.
		chains := func() []Hash {
			var chain []Hash
			h := Hash(1)
			for range rapid.IntRange(0, 6).Draw(t, "chain") {
				h = h*3 + Hash(rapid.IntRange(0, 1).Draw(t, "branch"))
				chain = append(chain, h)
			}
			return chain
		}
		seqs := make([]Sequence, 4)
		model := make([]held, 4)
		room := make([]int, 4) // tokens there is room for
		live := make([]bool, 4)
		same := func(what string, got, want any) {
			if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
				t.Fatalf("%s: %s, want %s", what, g, w)
			}
		}
		pick := func(alive bool) int {
			for i := range live {
				if live[i] == alive {
					return i
				}
			}
			return -1
		}
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) {
				i, chain, limit := pick(false), chains(), rapid.IntRange(0, 7).Draw(t, "limit")
				if i < 0 {
					t.Skip()
				}
				tokens := rapid.IntRange(0, 30).Draw(t, "tokens")
				lacking := p.Lacking(chain, limit, tokens)
				same("found", p.Start(&seqs[i], slices.Clone(chain), limit), m.start(&model[i], chain, limit))
				live[i], room[i] = true, model[i].shared*o.ContentTokens+model[i].own*block
				// Lacking says beforehand whether growing will do.
				ok := m.grow(&model[i], tokens)
				if ok != (lacking <= 0) {
					t.Fatalf("lacking %d, grows %v", lacking, ok)
				}
				same("grew", p.Grow(&seqs[i], tokens), ok)
				if ok {
					room[i] = max(room[i], tokens)
				}
			},
			"grow": func(t *rapid.T) {
				i := rapid.IntRange(0, 3).Draw(t, "sequence")
				if !live[i] {
					t.Skip()
				}
				tokens := room[i] + rapid.IntRange(0, 15).Draw(t, "more")
				ok := m.grow(&model[i], tokens)
				same("grew", p.Grow(&seqs[i], tokens), ok)
				if ok {
					room[i] = tokens
				}
			},
			"commit": func(t *rapid.T) {
				i := rapid.IntRange(0, 3).Draw(t, "sequence")
				if !live[i] {
					t.Skip()
				}
				tokens := rapid.IntRange(0, room[i]).Draw(t, "tokens")
				p.Commit(&seqs[i], tokens)
				m.commit(&model[i], tokens)
			},
			"extend": func(t *rapid.T) {
				i := rapid.IntRange(0, 3).Draw(t, "sequence")
				if !live[i] {
					t.Skip()
				}
				h := Hash(1)
				if n := len(model[i].chain); n > 0 {
					h = model[i].chain[n-1]
				}
				h = h*3 + Hash(rapid.IntRange(0, 1).Draw(t, "branch"))
				seqs[i].Extend(h)
				model[i].chain = append(slices.Clone(model[i].chain), h)
			},
			"release": func(t *rapid.T) {
				i := rapid.IntRange(0, 3).Draw(t, "sequence")
				p.Release(&seqs[i])
				m.release(&model[i])
				live[i] = false
			},
			"park": func(t *rapid.T) {
				i := rapid.IntRange(0, 3).Draw(t, "sequence")
				if !live[i] {
					t.Skip()
				}
				tokens := rapid.IntRange(0, room[i]).Draw(t, "tokens")
				p.Park(&seqs[i], tokens)
				m.park(&model[i], tokens)
				live[i] = false
			},
			"insert": func(*rapid.T) {
				chain := chains()
				same("inserted", p.Insert(chain), m.insert(chain))
			},
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "really") > 0 {
					t.Skip()
				}
				p.Clear()
				clear(findable)
				fresh := newModel(o)
				fresh.evicted, fresh.peak = m.evicted, m.peak
				*m = *fresh
				seqs, model, live = make([]Sequence, 4), make([]held, 4), make([]bool, 4)
			},
			"": func(*rapid.T) {
				if p.Used() < 0 || p.Fresh() < 0 || p.Available() > o.Blocks || p.Used() > o.Blocks {
					t.Fatalf("%d used, %d fresh, %d available of %d", p.Used(), p.Fresh(), p.Available(), o.Blocks)
				}
				same("used", p.Used(), m.used())
				same("fresh", p.Fresh(), m.fresh)
				same("cached", p.Cached(), len(m.refs)*m.unit())
				same("peak", p.Peak(), m.peak)
				same("evicted", evicted, m.evicted)
				same("evictions", p.Evictions(), len(m.evicted)*m.unit())
				same("told to be findable", len(findable), len(m.refs))
				for h := range m.refs {
					if !p.Contains(h) || !findable[h] {
						t.Fatalf("%d is not found", h)
					}
					// No granule outlives the ones before it.
					if _, ok := m.refs[h/3]; h >= 9 && !ok {
						t.Fatalf("%d is findable without %d", h, h/3)
					}
				}
				for i := range seqs {
					same("held", seqs[i].Held(), model[i].shared*m.unit()+model[i].own)
					same("matched", p.Match(model[i].chain), m.match(model[i].chain))
					if model[i].own < 0 {
						t.Fatalf("sequence %d owns %d blocks", i, model[i].own)
					}
				}
			},
		})
		for i := range seqs {
			p.Release(&seqs[i])
		}
		same("used in the end", p.Used(), 0)
	})
}
