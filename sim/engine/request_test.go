package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"infera/sim/kvcache"
	"infera/sim/workload"
)

// A queue is a list, however it has grown.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var list []*Request
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 3, 1500}).Draw(t, "count") {
					r := new(Request)
					q.push(r)
					list = append(list, r)
				}
			},
			"push front": func(*rapid.T) {
				r := new(Request)
				q.pushFront(r)
				list = slices.Insert(list, 0, r)
			},
			"pop": func(t *rapid.T) {
				for range min(len(list), rapid.SampledFrom([]int{1, 2, 1300}).Draw(t, "count")) {
					if r := q.pop(); r != list[0] {
						t.Fatal("another request than the first")
					}
					list = list[1:]
				}
			},
			"": func(t *rapid.T) {
				if !slices.Equal(q.all(), list) || q.len() != len(list) || len(list) > 0 && q.at(len(list)-1) != list[len(list)-1] {
					t.Fatalf("%d requests, want %d", q.len(), len(list))
				}
			},
		})
	})
}

// A priority queue is in order of priority, and of arrival among equals.
func TestQueueInsert(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var list []*Request
		for i := range rapid.IntRange(0, 20).Draw(t, "requests") {
			r := &Request{Request: workload.Request{ID: i, Priority: rapid.IntRange(-1, 1).Draw(t, "priority")}}
			q.insert(r)
			list = append(list, r)
		}
		slices.SortStableFunc(list, func(a, b *Request) int { return a.Priority - b.Priority })
		if !slices.Equal(q.all(), list) {
			t.Fatal("the queue is not in order")
		}
	})
}

// A prompt's chain covers its whole granules of what others may hold.
func TestChainOf(t *testing.T) {
	w := workload.Request{Input: 21, Content: []workload.Segment{{ID: 1, Tokens: 10}, {ID: 2, Tokens: 11}}}
	var text kvcache.Chain
	whole := ChainOf(nil, &w, 4, &text)
	if len(whole) != 5 {
		t.Errorf("21 tokens have %d granules of 4", len(whole))
	}
	w.Unshared = 11
	text = kvcache.Chain{}
	if shared := ChainOf(nil, &w, 4, &text); !slices.Equal(shared, whole[:2]) {
		t.Errorf("10 shared tokens have the granules %v, want the first 2 of %v", shared, whole)
	}
	text = kvcache.Chain{}
	if none := ChainOf(nil, &workload.Request{Input: 21}, 4, &text); len(none) != 0 {
		t.Errorf("without content there are %d granules", len(none))
	}
}

// An engine that uses requests again does what it did with new ones.
func TestRecycle(t *testing.T) {
	for _, async := range []bool{false, true} {
		s := newSession(t, Options{MaxSequences: 4, AsyncScheduling: async}, pool(12))
		var logs [2]string
		for i := range logs {
			s.log.Reset()
			s.steps, s.now = 0, 0
			clear(s.names)
			s.submit("a", 9, 14, content(1, 9), answer(7))
			s.submit("b", 8, 14, content(1, 4, 2, 4), answer(8))
			s.submit("c", 8, 14)
			s.step(8)
			s.submit("d", 25, 1, content(1, 9, 7, 14, 3, 2))
			s.submit("e", 1, 1)
			for st := s.start(); st != nil; st = s.start() {
				s.now += 10
				for _, r := range s.finish(st, 1, 10, 10) {
					if r.Computed() != r.Input+r.Output-1 {
						t.Errorf("%d of %d + %d tokens computed", r.Computed(), r.Input, r.Output)
					}
					s.core.Recycle(r)
				}
			}
			logs[i] = s.log.String()
			if n := len(s.core.free); n != 5 {
				t.Errorf("%d requests to use again", n)
			}
			s.core.known, s.core.ended = 0, 0 // as if no time had passed
			s.core.Drain()
		}
		if logs[0] != logs[1] {
			t.Errorf("first:\n%s\nthen:\n%s", logs[0], logs[1])
		}
	}
}
