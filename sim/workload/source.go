package workload

import (
	"fmt"
	"iter"
	"math"

	"infera/internal/units"
)

// source yields requests of a stream in order and, between them, those that
// depend on answers.
type source struct {
	// next gives the stream's requests, follow the one that comes after an
	// answer; follow may be nil.
	next   func() (Request, bool)
	follow func(r *Request, at units.Time, rejected bool) (Request, bool)
	// closed says that a closed loop decides when requests arrive: what depends
	// on answers comes before the stream, and recorded arrivals mean nothing.
	closed bool

	head   Request
	have   bool
	dry    bool
	later  queue
	issued int
}

// Peek implements [Source].
func (s *source) Peek() (units.Time, bool) {
	r := s.first()
	if r == nil {
		return 0, false
	}
	return r.Arrival, true
}

// Next implements [Source].
func (s *source) Next() (Request, bool) {
	first := s.first()
	if first == nil {
		return Request{}, false
	}
	r := *first
	if first == &s.head {
		s.have = false
	} else {
		s.later.pop()
	}
	r.ID = s.issued
	s.issued++
	return r, true
}

// first returns what comes next, nil when there is nothing for now.
func (s *source) first() *Request {
	waiting := len(s.later) > 0
	if waiting && s.closed {
		return &s.later[0].r
	}
	if !s.have && !s.dry {
		s.head, s.have = s.next()
		s.dry = !s.have
	}
	switch {
	case s.have && (!waiting || s.head.Arrival <= s.later[0].at):
		return &s.head
	case waiting:
		return &s.later[0].r
	}
	return nil
}

// Ended implements [Source].
func (s *source) Ended(r *Request, at units.Time, rejected bool) {
	if s.follow == nil {
		return
	}
	if n, ok := s.follow(r, at, rejected); ok {
		s.later.push(due{n.Arrival, n})
	}
}

// horizon is the latest arrival: late enough to be none, early enough that
// adding spans to it does not overflow.
const horizon = units.Never / 4

// after returns the moment a span after another.
func after(at units.Time, span units.Seconds) units.Time {
	return min(min(at, horizon)+min(units.Nanoseconds(span), horizon), horizon)
}

// Replay returns the source of recorded requests at their recorded arrivals,
// which must be in order. They are not copied and must not change.
func Replay(requests []Request) Source {
	i := 0
	return &source{next: func() (Request, bool) {
		if i == len(requests) {
			return Request{}, false
		}
		i++
		return requests[i-1], true
	}}
}

// ReplayTurns is [Replay], but a turn of a conversation waits for the answer to
// the turn before and then for a time to think: it arrives at its recorded time
// or later. A turn that was rejected counts as answered.
func ReplayTurns(requests []Request, think units.Seconds) Source {
	// The turns to come, by session, as positions in the requests.
	turns := map[uint64][]int{}
	started := map[uint64]bool{}
	for i := range requests {
		switch s := requests[i].Session; {
		case s == 0:
		case started[s]:
			turns[s] = append(turns[s], i)
		default:
			started[s] = true
		}
	}
	s, i := &source{}, 0
	s.next = func() (Request, bool) {
		for ; i < len(requests); i++ {
			r := &requests[i]
			if r.Session == 0 || started[r.Session] {
				delete(started, r.Session)
				i++
				return *r, true
			}
		}
		return Request{}, false
	}
	s.follow = func(r *Request, at units.Time, _ bool) (Request, bool) {
		next := turns[r.Session]
		if len(next) == 0 {
			return Request{}, false
		}
		turns[r.Session] = next[1:]
		n, thought := requests[next[0]], after(at, think)
		if s.closed {
			n.Arrival = thought
		}
		n.Arrival = max(n.Arrival, thought)
		return n, true
	}
	return s
}

// ClosedLoop describes clients that send a request when the one before has
// ended.
type ClosedLoop struct {
	Clients int
	// Think passes between an answer and the next request of a client.
	Think units.Seconds
	// Ramp spreads the first requests of the clients evenly over a time; 0 =
	// all at once.
	Ramp units.Seconds
}

// Validate refuses clients that are none and times that are no times. The error
// is of kind [ErrSpec].
func (c ClosedLoop) Validate() error {
	if c.Clients < 1 || !isTime(c.Think) || !isTime(c.Ramp) {
		return fmt.Errorf("%w: %d clients, think time %v s, ramp %v s", ErrSpec, c.Clients, float64(c.Think), float64(c.Ramp))
	}
	return nil
}

func isTime(s units.Seconds) bool { return s >= 0 && !math.IsInf(float64(s), 0) }

// Loop returns a source that takes what requests are from another, and when
// they arrive from clients in a closed loop. A client that is in a conversation
// goes on with it, at the conversation's pace, before it begins something else.
func Loop(of Source, c ClosedLoop) Source {
	if s, ok := of.(*source); ok {
		s.closed = true
	}
	started := 0
	return &source{
		next: func() (Request, bool) {
			if started >= c.Clients {
				return Request{}, false
			}
			r, ok := of.Next()
			r.Arrival = after(0, c.Ramp*units.Seconds(started)/units.Seconds(c.Clients))
			started++
			return r, ok
		},
		follow: func(r *Request, at units.Time, rejected bool) (Request, bool) {
			of.Ended(r, at, rejected)
			n, ok := of.Next()
			if goesOn := n.Session != 0 && n.Session == r.Session; goesOn {
				n.Arrival = max(n.Arrival, at)
			} else {
				n.Arrival = after(at, c.Think)
			}
			return n, ok
		},
	}
}

// Unroll yields the requests of a source in order of arrival when every answer
// takes a time that is known beforehand, so that a workload can be written down
// without an engine.
func Unroll(of Source, answer func(*Request) units.Time) iter.Seq[Request] {
	return func(yield func(Request) bool) {
		var open queue
		for {
			at, more := of.Peek()
			if len(open) > 0 && (!more || open[0].at <= at) {
				d := open.pop()
				of.Ended(&d.r, d.at, false)
				continue
			}
			r, ok := of.Next()
			if !ok || !yield(r) {
				return
			}
			open.push(due{min(r.Arrival, horizon) + min(answer(&r), horizon), r})
		}
	}
}

// due is a request with the moment at which something happens to it.
type due struct {
	at units.Time
	r  Request
}

// queue is a heap by time, then session, turn and ID, so that nothing depends
// on the order of insertion.
type queue []due

func (q *queue) push(d due) {
	h := append(*q, d)
	*q = h
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (q *queue) pop() due {
	h := *q
	first, n := h[0], len(h)-1
	h[0] = h[n]
	h[n] = due{}
	*q = h[:n]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < n; c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

func (d *due) before(e *due) bool {
	switch {
	case d.at != e.at:
		return d.at < e.at
	case d.r.Session != e.r.Session:
		return d.r.Session < e.r.Session
	case d.r.Turn != e.r.Turn:
		return d.r.Turn < e.r.Turn
	}
	return d.r.ID < e.r.ID
}
