package cluster

import (
	"fmt"
	"math"
	"slices"

	"infera/internal/routing"
	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/kvcache"
)

// Routing is how requests find an instance.
type Routing struct {
	// Policy names the policy (see routing.Names); "" = round-robin.
	Policy string
	// OverlapWeight is what a block to compute costs in blocks of load, for
	// mixed instances; PrefillWeight and DecodeWeight replace it for their
	// roles when not 0.
	OverlapWeight, PrefillWeight, DecodeWeight float64
	// PrefixTokens is how much of a prompt prefix-hash looks at; 0 = 1,024.
	PrefixTokens int
	// Staleness is how long cache events take to the router.
	Staleness units.Seconds
}

// pick is what the router noted of a request's instance.
type pick struct {
	worker  int
	request routing.Request
	noted   bool
}

// cacheEvent is a block stored or removed, on its way to the router.
type cacheEvent struct {
	due    units.Time
	worker int
	hash   kvcache.Hash
	stored bool
	clear  bool
}

// router applies a policy per role. It knows the load it caused at once, and
// the caches as late as their events arrive.
type router struct {
	f         *fleet
	policies  [Decode + 1]routing.Policy
	index     *routing.Index
	load      *routing.Load
	ready     [Decode + 1][]int
	staleness units.Time
	pending   []cacheEvent // in order
	muted     map[int]bool
	held      []int       // flights that found no instance
	handoffs  []*transfer // prompts computed that found no decode instance
	indexed   bool
	scratch   []kvcache.Hash
}

func newRouter(f *fleet) (*router, error) {
	c := &f.cfg.Routing
	if !(c.Staleness >= 0) || math.IsInf(float64(c.Staleness), 0) {
		return nil, fmt.Errorf("%w: cache events are %v s late", ErrConfig, float64(c.Staleness))
	}
	r := &router{f: f, index: routing.NewIndex(), load: routing.NewLoad(), staleness: units.Nanoseconds(c.Staleness), muted: map[int]bool{}}
	name := c.Policy
	if name == "" {
		name = "round-robin"
	}
	for role := range r.policies {
		weight := c.OverlapWeight
		if own := [...]float64{0, c.PrefillWeight, c.DecodeWeight}[role]; own != 0 {
			weight = own
		}
		p, err := routing.New(name, routing.Options{OverlapWeight: weight, PrefixTokens: c.PrefixTokens}, r.index, r.load, f.random("routing to "+Role(role).String()))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		r.policies[role] = p
	}
	// Only one policy asks what caches hold.
	r.indexed = routing.UsesIndex(name)
	return r, nil
}

// join makes an instance a candidate and serves what waited for one.
func (r *router) join(in *instance) {
	list := &r.ready[in.spec.Role]
	if i, found := slices.BinarySearch(*list, in.index); !found {
		*list = slices.Insert(*list, i, in.index)
	}
	if pool := in.core.Pool(); r.indexed && pool.Stored == nil {
		pool.Stored = func(h kvcache.Hash) { r.event(in.index, h, true) }
	}
	pool := in.core.Pool()
	if pool.Evicted == nil && (r.indexed || in.tiers != nil) {
		pool.Evicted = func(h kvcache.Hash) {
			if in.tiers != nil {
				in.tiers.evicted(h)
			}
			if r.indexed {
				r.event(in.index, h, false)
			}
		}
	}
	held, handoffs := r.held, r.handoffs
	r.held, r.handoffs = nil, nil
	for _, id := range held {
		r.f.dispatch(id)
	}
	for _, t := range handoffs {
		if to := r.pick(&r.f.flights[t.id], Decode); to >= 0 {
			r.f.handoffs.offer(t, to)
		} else {
			r.holdHandoff(t)
		}
	}
}

// leave takes an instance off the candidates; what it held is forgotten.
func (r *router) leave(in *instance) {
	list := &r.ready[in.spec.Role]
	if i, found := slices.BinarySearch(*list, in.index); found {
		*list = slices.Delete(*list, i, i+1)
	}
	if in.state == down || in.state == stopped {
		r.pending = append(r.pending, cacheEvent{due: r.f.now + r.staleness, worker: in.index, clear: true})
	}
}

func (r *router) event(worker int, h kvcache.Hash, stored bool) {
	if r.muted[worker] {
		return
	}
	if r.staleness == 0 {
		r.apply(&cacheEvent{worker: worker, hash: h, stored: stored})
		return
	}
	r.pending = append(r.pending, cacheEvent{due: r.f.now + r.staleness, worker: worker, hash: h, stored: stored})
}

func (r *router) apply(e *cacheEvent) {
	switch {
	case e.clear:
		r.index.Cleared(e.worker)
	case e.stored:
		r.index.Stored(e.worker, routing.Hash(e.hash))
	default:
		r.index.Removed(e.worker, routing.Hash(e.hash))
	}
}

// settle applies the events that have arrived by now.
func (r *router) settle() {
	n := 0
	for n < len(r.pending) && r.pending[n].due <= r.f.now {
		r.apply(&r.pending[n])
		n++
	}
	r.pending = append(r.pending[:0], r.pending[n:]...)
}

func (r *router) mute(worker int, on bool) { r.muted[worker] = on }

// chain returns the hashes of a request's prompt. It is valid until the next
// call.
func (r *router) chain(fl *flight, block int) []kvcache.Hash {
	var text kvcache.Chain
	r.scratch = engine.ChainOf(r.scratch[:0], &fl.w, block, &text)
	return r.scratch
}

// pick chooses an instance of a role and notes the request there. It returns -1
// when there is none.
func (r *router) pick(fl *flight, role Role) int {
	candidates := r.ready[role]
	if len(candidates) == 0 {
		return -1
	}
	if len(r.pending) > 0 {
		r.settle()
	}
	block := r.f.instances[candidates[0]].core.Pool().ContentTokens()
	q := &fl.picked.request
	*q = routing.Request{Chain: q.Chain[:0], Tokens: fl.w.Input, BlockTokens: block, Session: fl.w.Session}
	for _, h := range r.chain(fl, block) {
		q.Chain = append(q.Chain, routing.Hash(h))
	}
	q.Unshared = fl.w.Input/block - len(q.Chain)
	c := r.policies[role].Pick(q, candidates)
	fl.picked.worker, fl.picked.noted = c.Worker, true
	r.load.Sent(c.Worker, q)
	return c.Worker
}

// finished takes a request off the load of the instance it was sent to, when it
// was answered, handed over or lost.
func (r *router) finished(fl *flight) {
	if fl.picked.noted {
		r.load.Finished(fl.picked.worker, &fl.picked.request)
		fl.picked.noted = false
	}
}

// forget drops the computed prompts that wait for a decode instance and were
// held by an instance that crashed.
func (r *router) forget(in *instance) {
	r.handoffs = slices.DeleteFunc(r.handoffs, func(t *transfer) bool { return t.from == in })
}

func (r *router) hold(id int)             { r.held = append(r.held, id) }
func (r *router) holdHandoff(t *transfer) { r.handoffs = append(r.handoffs, t) }
