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
// leading blocks go on in a tier waits until they are fetched; blocks found in a
// lower tier move up to the first.
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

// tier is what one tier holds and the link to it, which carries one transfer at
// a time, in order.
type tier struct {
	spec TierSpec
	held *kvcache.Store
	free units.Time // when the link is

	hits  int64
	read  float64
	fetch metrics.Sketch
}

func newTier(spec TierSpec, granule units.Bytes) *tier {
	// Whole granules are counted; more than 2^30 of them are without limit.
	n := math.Min(float64(spec.Capacity)/math.Max(1, float64(granule)), 1<<30)
	return &tier{spec: spec, held: kvcache.NewStore(int(n))}
}

// tiers are the tiers of one instance.
type tiers struct {
	in    *instance
	block units.Bytes
	list  []*tier
}

func newTiers(in *instance, specs []TierSpec) *tiers {
	t := &tiers{in: in, block: units.Bytes(float64(in.spec.KVBytesPerToken) * float64(in.core.Pool().ContentTokens()))}
	for i, spec := range specs {
		s := (*tier)(nil)
		if spec.Shared && len(in.f.instances) > 0 {
			s = in.f.instances[0].tiers.list[i]
		} else {
			s = newTier(spec, t.block)
		}
		t.list = append(t.list, s)
	}
	return t
}

// evicted writes a block that left GPU memory to the first tier, and what has to
// go for it to the next.
func (t *tiers) evicted(h kvcache.Hash) {
	for _, s := range t.list {
		s.free = max(s.free, t.in.f.now) + units.Nanoseconds(units.Seconds(float64(t.block)/float64(s.spec.Write)))
		out, gone := s.held.Put(h)
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
			if s.held.Touch(h) {
				tier = i
				break
			}
		}
		if tier < 0 {
			break
		}
		per[tier]++
		upTo++
		if tier > 0 {
			// What is found further down moves up, too: it will be wanted again.
			t.evicted(h)
		}
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
