package cluster

import (
	"fmt"
	"math"

	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/kvcache"
	"infera/sim/metrics"
)

// TierSpec is a cache tier below GPU memory. Blocks that leave GPU memory are
// written to the first tier, what leaves that to the next. A prompt whose
// leading blocks go on in a tier waits until they are fetched.
type TierSpec struct {
	Name string // dram, nvme, remote
	// Capacity is per instance, or of all instances together when Shared.
	Capacity units.Bytes
	// Read and Write are bandwidths, of an instance or, when Shared, of all
	// together; Latency passes before the first byte of a fetch.
	Read, Write units.BytesPerSecond
	Latency     units.Seconds
	Shared      bool
}

func validateTiers(specs []TierSpec) error {
	for _, t := range specs {
		if !(t.Capacity > 0) || !(t.Read > 0) || !(t.Write > 0) || !(t.Latency >= 0) || math.IsInf(float64(t.Latency), 0) {
			return fmt.Errorf("%w: tier %q holds %v B, reads %v B/s, writes %v B/s, latency %v s",
				ErrConfig, t.Name, t.Capacity, t.Read, t.Write, t.Latency)
		}
	}
	return nil
}

// store is what one tier holds, least recently used first out, and the link to
// it: one transfer at a time, in order.
type store struct {
	spec     TierSpec
	capacity int // blocks
	find     map[kvcache.Hash]int32
	nodes    []storeNode
	unused   []int32
	old, new int32
	free     units.Time // when the link is

	hits, written, evicted int64
	read                   float64
	fetch                  metrics.Sketch
}

type storeNode struct {
	hash       kvcache.Hash
	prev, next int32
}

func newStore(spec TierSpec, block units.Bytes) *store {
	// A tier counts whole blocks; more than 2^30 of them are without limit.
	n := math.Min(float64(spec.Capacity)/math.Max(1, float64(block)), 1<<30)
	return &store{spec: spec, capacity: int(n), find: map[kvcache.Hash]int32{}, old: -1, new: -1}
}

func (s *store) unlink(i int32) {
	n := &s.nodes[i]
	if n.prev < 0 {
		s.old = n.next
	} else {
		s.nodes[n.prev].next = n.next
	}
	if n.next < 0 {
		s.new = n.prev
	} else {
		s.nodes[n.next].prev = n.prev
	}
}

func (s *store) link(i int32) {
	n := &s.nodes[i]
	n.prev, n.next = s.new, -1
	if s.new < 0 {
		s.old = i
	} else {
		s.nodes[s.new].next = i
	}
	s.new = i
}

// touch makes a block the most recently used and reports whether it is there.
func (s *store) touch(h kvcache.Hash) bool {
	i, ok := s.find[h]
	if ok {
		s.unlink(i)
		s.link(i)
	}
	return ok
}

// put stores a block and returns the one that had to go for it.
func (s *store) put(h kvcache.Hash) (out kvcache.Hash, gone bool) {
	if s.capacity == 0 {
		return h, true
	}
	if s.touch(h) {
		return 0, false
	}
	if len(s.find) >= s.capacity {
		i := s.old
		out, gone = s.nodes[i].hash, true
		s.unlink(i)
		delete(s.find, out)
		s.unused = append(s.unused, i)
		s.evicted++
	}
	i := int32(len(s.nodes))
	if n := len(s.unused); n > 0 {
		i = s.unused[n-1]
		s.unused = s.unused[:n-1]
		s.nodes[i].hash = h
	} else {
		s.nodes = append(s.nodes, storeNode{hash: h})
	}
	s.link(i)
	s.find[h] = i
	s.written++
	return out, gone
}

// tiers are the tiers of one instance.
type tiers struct {
	in    *instance
	block units.Bytes
	list  []*store
}

func newTiers(in *instance, specs []TierSpec) *tiers {
	t := &tiers{in: in, block: units.Bytes(float64(in.spec.KVBytesPerToken) * float64(in.core.Pool().ContentTokens()))}
	for i, spec := range specs {
		s := (*store)(nil)
		if spec.Shared && len(in.f.instances) > 0 {
			s = in.f.instances[0].tiers.list[i]
		} else {
			s = newStore(spec, t.block)
		}
		t.list = append(t.list, s)
	}
	return t
}

// evicted writes a block that left GPU memory to the first tier.
func (t *tiers) evicted(h kvcache.Hash) {
	for _, s := range t.list {
		s.free = max(s.free, t.in.f.now) + units.Nanoseconds(units.Seconds(float64(t.block)/float64(s.spec.Write)))
		out, gone := s.put(h)
		if !gone {
			return
		}
		h = out
	}
}

// fetch brings the blocks of a prompt that only the tiers have to GPU memory
// and then submits the request. It returns false when there are none.
func (t *tiers) fetch(id int) bool {
	f := t.in.f
	fl := &f.flights[id]
	if fl.w.Content == nil {
		return false
	}
	t.in.catchUp()
	var text kvcache.Chain
	pool := t.in.core.Pool()
	chain := engine.ChainOf(nil, &fl.w, pool.ContentTokens(), &text)
	have := pool.Match(chain)
	end := min(len(chain), (fl.w.Input-1)/pool.ContentTokens())
	if have >= end {
		return false
	}
	ready, upTo := f.now, have
	per := make([]int, len(t.list))
	for _, h := range chain[have:end] {
		tier := -1
		for i, s := range t.list {
			if s.touch(h) {
				tier = i
				break
			}
		}
		if tier < 0 {
			break
		}
		per[tier]++
		upTo++
	}
	if upTo == have {
		return false
	}
	for i, n := range per {
		if n == 0 {
			continue
		}
		s := t.list[i]
		bytes := float64(n) * float64(t.block)
		start := max(s.free, f.now)
		s.free = start + units.Nanoseconds(s.spec.Latency+units.Seconds(bytes/float64(s.spec.Read)))
		s.hits += int64(n)
		s.read += bytes
		s.fetch.Add(float64(s.free-f.now), 1)
		ready = max(ready, s.free)
	}
	fl.restored = ready
	chain = chain[:upTo]
	in := t.in
	f.queue.schedule(event{at: ready, kind: kindFetch, index: in.index, do: func(units.Time) {
		if fl := &f.flights[id]; !fl.used || fl.instance != in.index || in.state == down {
			return
		}
		in.catchUp()
		pool.Insert(chain)
		f.submit(id)
	}})
	return true
}
