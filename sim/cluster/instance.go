package cluster

import (
	"fmt"

	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/kvcache"
)

// state is what an instance is doing as a whole.
type state uint8

const (
	starting state = iota
	ready
	draining // finishes what it has
	stopped
	down // crashed, will come back
)

// instance is one engine of the fleet.
type instance struct {
	f     *fleet
	index int
	spec  *Spec
	core  *engine.Core
	tiers *tiers
	state state

	// run is the step under way, repeated times times; version tells its end
	// from those of runs that were cut short.
	run     *engine.Step
	price   price
	times   int
	version int
	// flying are the steps under way of an engine with pipeline stages, in
	// order.
	flying []flyingStep

	slow        float64 // factor on the price of steps
	outstanding int     // requests sent and not ended
	busy        units.Time
	steps       int
	created     units.Time
	gone        units.Time // when it stopped; Never while it is there
	ended       bool       // a request has, in the event being dealt with
}

type flyingStep struct {
	step  *engine.Step
	price price
}

// addInstance creates an instance that is ready at once.
func (f *fleet) addInstance(s *Spec, now units.Time) (*instance, error) {
	in := &instance{f: f, index: len(f.instances), spec: s, state: ready, slow: 1, created: now, gone: units.Never}
	pool, err := kvcache.New(s.Pool)
	if err != nil {
		return nil, fmt.Errorf("instance %d: %w", in.index, err)
	}
	o := s.Scheduler
	o.SingleSteps = o.SingleSteps || f.cfg.SingleSteps
	o.HoldEnded = s.Role == Prefill
	in.core, err = engine.New(o, pool, f.random(fmt.Sprintf("drafts of instance %d", in.index)))
	if err != nil {
		return nil, fmt.Errorf("instance %d: %w", in.index, err)
	}
	in.core.Gap = func(gap units.Time, n int64) { f.measure.gap(in.index, gap, n) }
	if len(f.cfg.Tiers) > 0 {
		in.tiers = newTiers(in, f.cfg.Tiers)
	}
	f.instances = append(f.instances, in)
	f.router.join(in)
	f.measure.joined(in)
	return in, nil
}

func (in *instance) stages() int { return max(1, in.spec.Scheduler.Stages) }

// wake starts the engine when it is idle, and cuts a run of steps short so that
// the next plan sees what has changed.
func (in *instance) wake() {
	if in.state != ready && in.state != draining {
		return
	}
	switch {
	case in.run != nil:
		in.cut()
	default:
		in.start()
	}
}

// cut ends the run under way with the step under way.
func (in *instance) cut() {
	done := in.stepsBy(in.f.now)
	if done >= in.times {
		return
	}
	in.times = max(1, done)
	in.scheduleEnd()
}

// stepsBy returns how many steps of the run have ended by a moment, the one
// under way included.
func (in *instance) stepsBy(t units.Time) int {
	since := t - in.run.Started
	return min(in.times, int((since+in.price.interval-1)/in.price.interval))
}

// endedBy returns how many steps of the run have ended by a moment.
func (in *instance) endedBy(t units.Time) int {
	if in.run == nil {
		return 0
	}
	return min(in.times, int((t-in.run.Started)/in.price.interval))
}

// catchUp books the steps of the run under way that have ended. It comes before
// anything that looks at the engine's cache or changes what it will plan: what
// was planned before must not see it. No request ends with those steps, it would
// have ended the run.
func (in *instance) catchUp() {
	done := 0
	if in.run != nil {
		// A step that ends at this very moment is over only if it would have
		// been dealt with before the event that looks.
		now := in.f.now
		if in.f.at.kind < kindStep || in.f.at.kind == kindStep && in.f.at.index <= in.index {
			now--
		}
		done = in.endedBy(now)
	}
	if done <= 0 || done >= in.times || in.stages() > 1 {
		return
	}
	s, left, p := in.run, in.times-done, in.price
	next := s.Started + units.Time(done)*p.interval
	in.run = nil
	in.book(s, done, p, next)
	// The plan is the one that the run would have gone on with.
	in.run = in.core.Next(next)
	in.price = in.spec.Prices.of(&in.run.Batch, in.run.Requests() < in.core.Running()).slowed(in.slow)
	in.times = min(left, in.run.Repeat)
	in.scheduleEnd()
}

func (in *instance) scheduleEnd() {
	in.version++
	end := in.run.Started + units.Time(in.times)*in.price.interval
	in.f.queue.schedule(event{at: end, kind: kindStep, index: in.index, version: in.version})
}

// start plans and runs the next step.
func (in *instance) start() {
	if in.stages() > 1 {
		in.startStage()
		return
	}
	s := in.core.Next(in.f.now)
	if s == nil {
		return
	}
	in.run, in.times = s, s.Repeat
	in.price = in.spec.Prices.of(&s.Batch, s.Requests() < in.core.Running()).slowed(in.slow)
	in.scheduleEnd()
}

// startStage starts as many steps as the pipeline takes: one now, the next when
// the first stage is free.
func (in *instance) startStage() {
	if n := len(in.flying); n > 0 && in.f.now < in.flying[n-1].step.Started+in.flying[n-1].price.interval {
		return
	}
	s := in.core.Next(in.f.now)
	if s == nil {
		return
	}
	p := in.spec.Prices.of(&s.Batch, s.Requests() < in.core.Running()).slowed(in.slow)
	in.flying = append(in.flying, flyingStep{s, p})
	q := &in.f.queue
	q.schedule(event{at: s.Started + p.latency, kind: kindStep, index: in.index, version: in.version})
	q.schedule(event{at: s.Started + p.interval, kind: kindStep, index: in.index, version: -1})
}

// stepEvent is the end of a run, or a free first stage.
func (in *instance) stepEvent(e *event) {
	if in.stages() == 1 {
		if in.run != nil {
			s := in.run
			in.run = nil
			in.finish(s, in.times, in.price)
		}
		in.start()
		in.handIn()
		return
	}
	if e.version >= 0 && len(in.flying) > 0 {
		fs := in.flying[0]
		// Stages end in order: a later step never overtakes.
		in.flying = append(in.flying[:0], in.flying[1:]...)
		in.finish(fs.step, 1, fs.price)
	}
	in.start()
	in.handIn()
}

// handIn lets transfers begin for which a request that ended has left room. A
// scheduler that plans ahead lets go of that only with its next plan.
func (in *instance) handIn() {
	if in.ended && in.f.handoffs != nil {
		in.f.handoffs.retry(in)
	}
	in.ended = false
}

// finish books a run of steps and deals with the requests that ended.
func (in *instance) finish(s *engine.Step, times int, p price) {
	f := in.f
	for _, r := range in.book(s, times, p, f.now) {
		in.requestEnded(r)
	}
	if in.state == draining && in.outstanding == 0 {
		in.stop()
	}
}

// book tells the engine and the observers of a run of steps that ended at a
// moment, and returns the requests that ended with it.
func (in *instance) book(s *engine.Step, times int, p price, end units.Time) []*engine.Request {
	f := in.f
	in.busy += units.Time(times) * p.interval
	in.steps += times
	if f.cfg.OnStep != nil {
		f.cfg.OnStep(StepRecord{
			Instance: in.index, Index: in.steps - times, Start: s.Started, End: end, Times: times,
			Prefills: len(s.Batch.Chunks), Decodes: s.Requests() - len(s.Batch.Chunks),
			PromptTokens: s.PromptTokens(), Tokens: s.Tokens(), KVTokens: in.core.KVTokens(), Waiting: in.core.Waiting(),
			Batch: s.Batch,
		})
	}
	f.measure.stepped(in, s, times, p.interval)
	f.ended = in.core.Apply(s, times, p.interval, p.latency, f.ended[:0])
	return f.ended
}

// decodesAlone returns what a step would take without its prompts.
func (in *instance) decodesAlone(s *engine.Step) units.Time {
	if s.Batch.Decodes == 0 {
		return 0
	}
	b := s.Batch
	b.Chunks = nil
	return in.spec.Prices.of(&b, false).slowed(in.slow).interval
}

// requestEnded deals with a request that its engine has finished.
func (in *instance) requestEnded(r *engine.Request) {
	f, id := in.f, r.Tag
	fl := &f.flights[id]
	in.ended = true
	if in.spec.Role == Prefill {
		if fl.w.Output > 1 {
			fl.admitted, fl.first, fl.cached = r.Admitted, r.First, r.Cached
			f.handoffs.begin(id, in, r)
			return
		}
		in.core.LetGo(r)
	}
	if fl.from < 0 {
		fl.admitted, fl.first, fl.cached = r.Admitted, r.First, r.Cached
	}
	in.outstanding--
	f.router.finished(fl)
	f.end(id, false)
	in.core.Recycle(r)
}

// stop takes an instance out of the fleet for good.
func (in *instance) stop() {
	in.state, in.gone = stopped, in.f.now
	in.f.router.leave(in)
}
