package kvcache

// Store is a cache tier below the pool: granules of content, the least recently
// used first out. It is not safe for concurrent use.
type Store struct {
	capacity int
	find     map[Hash]int32
	nodes    []node
	unused   []int32
	old, new int32

	written, evictions int64
}

type node struct {
	hash       Hash
	prev, next int32
}

// NewStore returns an empty store for so many granules; with 0 it keeps none.
func NewStore(capacity int) *Store {
	return &Store{capacity: max(0, capacity), find: map[Hash]int32{}, old: none, new: none}
}

// Len returns how many granules the store holds.
func (s *Store) Len() int { return len(s.find) }

// Written returns how many granules came.
func (s *Store) Written() int64 { return s.written }

// Evictions returns how many granules had to go for others.
func (s *Store) Evictions() int64 { return s.evictions }

func (s *Store) unlink(i int32) {
	n := &s.nodes[i]
	if n.prev == none {
		s.old = n.next
	} else {
		s.nodes[n.prev].next = n.next
	}
	if n.next == none {
		s.new = n.prev
	} else {
		s.nodes[n.next].prev = n.prev
	}
}

func (s *Store) link(i int32) {
	n := &s.nodes[i]
	n.prev, n.next = s.new, none
	if s.new == none {
		s.old = i
	} else {
		s.nodes[s.new].next = i
	}
	s.new = i
}

// Touch makes a granule the most recently used and reports whether it is there.
func (s *Store) Touch(h Hash) bool {
	i, ok := s.find[h]
	if ok {
		s.unlink(i)
		s.link(i)
	}
	return ok
}

// Put stores a granule as the most recently used and returns the one that had to
// go for it, which is the granule itself in a store without room.
func (s *Store) Put(h Hash) (out Hash, gone bool) {
	if s.capacity == 0 {
		return h, true
	}
	if s.Touch(h) {
		return 0, false
	}
	if len(s.find) >= s.capacity {
		i := s.old
		out, gone = s.nodes[i].hash, true
		s.unlink(i)
		delete(s.find, out)
		s.unused = append(s.unused, i)
		s.evictions++
	}
	i := int32(len(s.nodes))
	if n := len(s.unused); n > 0 {
		i = s.unused[n-1]
		s.unused = s.unused[:n-1]
		s.nodes[i].hash = h
	} else {
		s.nodes = append(s.nodes, node{hash: h})
	}
	s.link(i)
	s.find[h] = i
	s.written++
	return out, gone
}
