package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"

	"infera/internal/rng"
	"infera/internal/routing"
	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/workload"
)

// flight is a request on its way through the fleet.
type flight struct {
	w workload.Request
	// instance serves it now, from is where its prompt was computed.
	instance, from int
	// admitted and first are those of the instance that computed its prompt.
	admitted, first units.Time
	// restored is when the blocks that a tier had of its prompt were fetched.
	restored units.Time
	cached   int
	engine   *engine.Request
	picked   pick
	used     bool
}

// fleet is a simulation under way.
type fleet struct {
	cfg       *Config
	ctx       context.Context
	queue     events
	now       units.Time
	at        event      // being dealt with; its zero value while a request arrives
	delay     units.Time // from a client's arrival to the router
	instances []*instance
	flights   []flight
	unused    []int
	router    *router
	handoffs  *handoffs
	scaler    *scaler
	measure   *measure
	ended     []*engine.Request // scratch
	failed    error
}

// cancelEvery is how many events pass between looks at the context.
const cancelEvery = 4096

// Run simulates. It stops early with the context's error. Other errors are of
// kind [ErrConfig] or come from the engines' options.
func Run(ctx context.Context, cfg *Config) (*Result, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	f := &fleet{cfg: cfg, ctx: ctx, delay: units.Nanoseconds(cfg.Host.RequestFixed)}
	var err error
	if f.router, err = newRouter(f); err != nil {
		return nil, err
	}
	f.measure = newMeasure(f)
	for _, s := range cfg.Fleet {
		if _, err := f.addInstance(s, 0); err != nil {
			return nil, err
		}
	}
	f.handoffs = newHandoffs(f)
	f.scheduleFaults()
	f.scaler = newScaler(f)
	if err := f.loop(); err != nil {
		return nil, err
	}
	return f.measure.result(), nil
}

// loop runs events and arrivals in order until nothing is left to happen.
func (f *fleet) loop() error {
	for n := 0; ; n++ {
		if n%cancelEvery == 0 && f.ctx.Err() != nil {
			return f.ctx.Err()
		}
		if f.failed != nil {
			return f.failed
		}
		arrival, more := f.cfg.Source.Peek()
		if more {
			arrival += f.delay
		}
		next := units.Never
		if len(f.queue.items) > 0 {
			next = f.queue.items[0].at
		}
		at := next
		if more {
			at = min(at, arrival)
		}
		if at == units.Never || f.cfg.Until > 0 && at > f.cfg.Until || !more && f.measure.idle() {
			f.now = min(at, max(f.now, f.cfg.Until))
			return nil
		}
		f.measure.sampleUntil(at)
		f.now = at
		if more && arrival <= next {
			w, ok := f.cfg.Source.Next()
			if !ok {
				return fmt.Errorf("workload: a request due at %v is gone", arrival.Seconds())
			}
			f.at = event{}
			f.arrive(&w)
			continue
		}
		f.at = f.queue.next()
		f.happen(&f.at)
	}
}

func (f *fleet) happen(e *event) {
	switch e.kind {
	case kindStep:
		if in := f.instances[e.index]; e.version == in.version || e.version < 0 {
			in.stepEvent(e)
		}
	default:
		e.do(e.at)
	}
}

// arrive takes a request in and routes it.
func (f *fleet) arrive(w *workload.Request) {
	id := f.newFlight(w)
	if w.ID == f.cfg.Explain {
		f.measure.watched = id
	}
	f.measure.arrived(w)
	f.dispatch(id)
}

// dispatch sends a request to the instance that the router picks.
func (f *fleet) dispatch(id int) {
	fl := &f.flights[id]
	role := Mixed
	if f.handoffs != nil {
		role = f.handoffs.roleOf(fl)
	}
	to := f.router.pick(fl, role)
	if to < 0 {
		f.router.hold(id)
		return
	}
	f.send(id, to)
}

// send submits a request to an instance, after what its tiers hold of the
// prompt was fetched.
func (f *fleet) send(id, to int) {
	fl := &f.flights[id]
	fl.instance = to
	in := f.instances[to]
	in.outstanding++
	if in.tiers != nil && in.tiers.fetch(id) {
		return
	}
	f.submit(id)
}

// submit puts a request into its instance's queue.
func (f *fleet) submit(id int) {
	fl := &f.flights[id]
	in := f.instances[fl.instance]
	w := fl.w
	if in.spec.Role == Prefill && w.Output > 1 {
		w.Output = 1
	}
	in.catchUp()
	r, err := in.core.Submit(&w, f.now)
	if err != nil {
		in.outstanding--
		f.router.finished(fl)
		f.end(id, true)
		return
	}
	r.Tag = id
	fl.engine = r
	in.wake()
}

// end takes a request out of the fleet.
func (f *fleet) end(id int, rejected bool) {
	fl := &f.flights[id]
	f.measure.ended(fl, rejected)
	w := fl.w
	fl.used, fl.engine = false, nil
	f.unused = append(f.unused, id)
	f.cfg.Source.Ended(&w, f.now, rejected)
}

func (f *fleet) newFlight(w *workload.Request) int {
	id := len(f.flights)
	if n := len(f.unused); n > 0 {
		id = f.unused[n-1]
		f.unused = f.unused[:n-1]
	} else {
		f.flights = append(f.flights, flight{})
	}
	chain := f.flights[id].picked.request.Chain[:0]
	f.flights[id] = flight{w: *w, used: true, instance: -1, from: -1, picked: pick{request: routing.Request{Chain: chain}}}
	return id
}

func (f *fleet) random(name string) *rand.Rand { return rng.Stream(f.cfg.Seed, name) }
