package engine

import (
	"infera/internal/units"
	"infera/sim/kvcache"
	"infera/sim/workload"
)

// Request is a request inside an engine.
type Request struct {
	workload.Request
	// Tag is the caller's, to find its own record of the request again.
	Tag int
	// Submitted is when the engine got it, Admitted when its first step began,
	// First and Last the ends of the steps that gave its first and latest token.
	Submitted, Admitted, First, Last units.Time
	// Cached is how many prompt tokens were found in the cache when it was
	// admitted first, Preempted how often it was thrown back, Wasted how many
	// tokens were computed again because of that.
	Cached, Preempted, Wasted int
	// Generated counts the tokens of the answer so far.
	Generated int

	// computed tokens have their cache entries; a step computes what is
	// missing up to target, then one token at a time.
	computed, target int
	// room is how many tokens the blocks held have room for.
	room  int
	seq   kvcache.Sequence
	chain []kvcache.Hash // of the prompt
	text  kvcache.Chain  // where the chain goes on
	// chained is how many tokens of the answer the chain goes over, lost how many
	// were computed when the request was thrown back last.
	chained, lost int
	flying        bool // part of a step under way
	done          bool
	sent          units.Time // when the client got tokens last
	unsent        int        // tokens since then
}

// Computed returns the tokens whose cache entries exist.
func (r *Request) Computed() int { return r.computed }

// prefilling reports whether the request still has tokens to compute before it
// yields the next one.
func (r *Request) prefilling() bool { return r.computed < r.target }

// remaining is how many tokens of the answer are still to come.
func (r *Request) remaining() int { return r.Output - r.Generated }

// length is the tokens of the request that exist: prompt and answer so far.
func (r *Request) length() int { return r.Input + r.Generated }

// ChainOf appends to dst the hashes of the full granules of a prompt, as far as
// another request may hold them; one without content has none. text is left at
// the end of that.
func ChainOf(dst []kvcache.Hash, r *workload.Request, block int, text *kvcache.Chain) []kvcache.Hash {
	for _, s := range r.Shared() {
		dst = text.Append(dst, s.ID, 0, s.Tokens, block)
	}
	return dst
}

// queue is a double-ended queue.
type queue struct {
	items []*Request
	head  int
}

func (q *queue) len() int          { return len(q.items) - q.head }
func (q *queue) at(i int) *Request { return q.items[q.head+i] }
func (q *queue) all() []*Request   { return q.items[q.head:] }
func (q *queue) push(r *Request)   { q.items = append(q.items, r) }

func (q *queue) pushFront(r *Request) {
	if q.head == 0 {
		room := len(q.items)/2 + 8
		q.items = append(make([]*Request, room, room+len(q.items)+8), q.items...)
		q.head = room
	}
	q.head--
	q.items[q.head] = r
}

func (q *queue) pop() *Request {
	r := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head > 1024 && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return r
}

// insert puts a request before the first that is less urgent.
func (q *queue) insert(r *Request) {
	q.push(r)
	all := q.all()
	for i := len(all) - 1; i > 0 && all[i-1].Priority > r.Priority; i-- {
		all[i-1], all[i] = all[i], all[i-1]
	}
}
