package workload

import "infera/internal/units"

// Segment is a run of tokens with an identity: two prompts that begin with
// equal segments begin with the same tokens. A prefix of a segment is the same
// as the prefix of equal length of another segment with its ID.
type Segment struct {
	ID     uint64
	Tokens int
}

// Request is one request of a workload.
type Request struct {
	// ID is the position in the order of issue, from 0.
	ID int
	// Arrival is when the client sends it, from the start of the workload.
	Arrival units.Time
	// Input and Output are its prompt's and its answer's tokens, both at least 1.
	Input, Output int
	// Content is what the prompt is made of, in order; the tokens add up to
	// Input. Nil means that it shares nothing with any other request.
	Content []Segment
	// Unshared is how many tokens at the end of the Content no other request
	// holds, where that is known: nobody needs to look for them.
	Unshared int
	// Answer identifies what the request generates, so that a later turn can
	// hold it in its Content; 0 means that no request does.
	Answer uint64
	// Session groups the turns of a conversation, 0 = none; Turn counts them
	// from 0.
	Session uint64
	Turn    int
	// Class indexes the classes of the workload (tenants with their own
	// priority and objectives), 0 when it has none.
	Class int
	// Priority orders the queue of an engine that has priorities: smaller is
	// served first.
	Priority int
}

// Shared returns the leading part of the content that other requests may hold,
// too.
func (r *Request) Shared() []Segment {
	left := r.Unshared
	for i := len(r.Content); i > 0; i-- {
		if left -= r.Content[i-1].Tokens; left < 0 {
			return r.Content[:i]
		}
	}
	return nil
}

// MarkUnshared finds how much of each request's content no other holds or
// generates, when all requests of a workload are given. One whose answer a later
// turn holds is left alone.
func MarkUnshared(requests []Request) {
	holders := map[uint64]int{}
	for i := range requests {
		for _, s := range requests[i].Content {
			holders[s.ID]++
		}
		if requests[i].Answer != 0 {
			holders[requests[i].Answer]++
		}
	}
	for i := range requests {
		r := &requests[i]
		if r.Answer != 0 {
			continue
		}
		r.Unshared = 0
		for k := len(r.Content) - 1; k >= 0 && holders[r.Content[k].ID] == 1; k-- {
			r.Unshared += r.Content[k].Tokens
		}
	}
}

// Source yields the requests of a workload in order of arrival. Some arrivals
// depend on answers: a closed loop's next request, a conversation's next turn.
// A Source is not safe for concurrent use.
type Source interface {
	// Peek returns the arrival of the request that Next would return. It
	// returns false when there is none for now: after a call of Ended there may
	// be again, and an earlier one.
	Peek() (units.Time, bool)
	// Next returns the request with the earliest known arrival, false when
	// there is none for now. A simulation takes a request when its time has
	// come, so that arrivals of successive calls do not go back in time.
	Next() (Request, bool)
	// Ended tells that a request was answered, or rejected, at a moment. It
	// must be called once for every request taken.
	Ended(r *Request, at units.Time, rejected bool)
}
