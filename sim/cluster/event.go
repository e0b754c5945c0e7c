package cluster

import "infera/internal/units"

// kind orders events of one moment.
type kind uint8

const (
	// Arrivals are not events: the loop compares the next one with the queue.
	kindFault kind = iota
	kindReady
	kindSignal
	kindTransfer
	kindFetch
	kindStep
	kindScale
	kindSample
)

// event is something that will happen. Instances and links that reschedule
// theirs leave the old event behind with a version that is no longer theirs.
type event struct {
	at      units.Time
	kind    kind
	index   int // of the instance, link or fault
	version int
	seq     int // order of scheduling, the last tie-break
	do      func(at units.Time)
}

// events is a binary heap. It is typed because container/heap would allocate
// for every event.
type events struct {
	items []event
	seq   int
}

func (e *event) before(o *event) bool {
	switch {
	case e.at != o.at:
		return e.at < o.at
	case e.kind != o.kind:
		return e.kind < o.kind
	case e.index != o.index:
		return e.index < o.index
	}
	return e.seq < o.seq
}

// schedule adds an event.
func (q *events) schedule(e event) {
	e.seq = q.seq
	q.seq++
	q.items = append(q.items, e)
	i := len(q.items) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !q.items[i].before(&q.items[up]) {
			break
		}
		q.items[i], q.items[up] = q.items[up], q.items[i]
		i = up
	}
}

// next removes and returns the earliest event.
func (q *events) next() event {
	first := q.items[0]
	n := len(q.items) - 1
	q.items[0] = q.items[n]
	q.items[n] = event{}
	q.items = q.items[:n]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < n; c++ {
			if q.items[c].before(&q.items[least]) {
				least = c
			}
		}
		if least == i {
			return first
		}
		q.items[i], q.items[least] = q.items[least], q.items[i]
		i = least
	}
}
