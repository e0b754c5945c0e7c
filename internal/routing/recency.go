package routing

// recency orders keys by when they were touched last. A key that is touched
// again or forgotten leaves a void entry behind; these are swept out when they
// are the most. That takes a word per key, where a linked list with a way to
// find its nodes takes five. The zero value has no keys.
type recency[K comparable] struct {
	// order has the keys, oldest first, from head on.
	order []K
	head  int
	// void counts the entries of a key that do not count, its oldest ones, and
	// voids those of all keys.
	void  map[K]int32
	voids int
}

// touch makes a key the latest. known says that it is one of the keys already.
func (r *recency[K]) touch(k K, known bool) {
	if known {
		r.forget(k)
	}
	if len(r.order) == cap(r.order) && 2*(r.head+r.voids) > len(r.order) {
		r.sweep()
	}
	r.order = append(r.order, k)
}

// forget takes out one of the keys.
func (r *recency[K]) forget(k K) {
	if r.void == nil {
		r.void = map[K]int32{}
	}
	r.void[k]++
	r.voids++
}

// oldest takes out the key touched longest ago. There must be one.
func (r *recency[K]) oldest() K {
	for {
		k := r.order[r.head]
		r.head++
		if !r.skip(k) {
			return k
		}
	}
}

// skip reports whether the first entry left of a key is void, and counts it off.
func (r *recency[K]) skip(k K) bool {
	n := r.void[k]
	switch {
	case n == 0:
		return false
	case n == 1:
		delete(r.void, k)
	default:
		r.void[k] = n - 1
	}
	r.voids--
	return true
}

func (r *recency[K]) sweep() {
	kept := r.order[:0]
	for _, k := range r.order[r.head:] {
		if !r.skip(k) {
			kept = append(kept, k)
		}
	}
	r.order, r.head = kept, 0
}
