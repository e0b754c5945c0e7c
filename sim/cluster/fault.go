package cluster

import (
	"fmt"
	"math"

	"infera/internal/units"
)

// FaultKind names what goes wrong.
type FaultKind string

// The faults.
const (
	// FaultCrash stops an instance: what its requests had computed is lost, they
	// are routed again, and its cache is empty when it comes back.
	FaultCrash FaultKind = "crash"
	// FaultSlow multiplies the time of an instance's steps.
	FaultSlow FaultKind = "slow"
	// FaultLink stops all transfers between instances.
	FaultLink FaultKind = "link"
	// FaultEvents loses the cache events of an instance on the way to the
	// router.
	FaultEvents FaultKind = "events"
)

// FaultSpec is a fault to come.
type FaultSpec struct {
	Kind FaultKind
	// At is when it begins, Duration how long it lasts: a crashed instance
	// takes that long to come back.
	At, Duration units.Seconds
	// Instance is the index of the instance; FaultLink has none.
	Instance int
	// Factor multiplies step times under FaultSlow.
	Factor float64
}

func (c *Config) validateFaults() error {
	for i, s := range c.Faults {
		bad := !(s.At >= 0) || !(s.Duration > 0) || math.IsInf(float64(s.At), 0)
		switch s.Kind {
		case FaultCrash, FaultEvents:
			bad = bad || s.Instance < 0 || s.Instance >= len(c.Fleet)
		case FaultSlow:
			bad = bad || s.Instance < 0 || s.Instance >= len(c.Fleet) || !(s.Factor > 0) || math.IsInf(s.Factor, 0)
		case FaultLink:
			bad = bad || c.Handoff == nil
		default:
			bad = true
		}
		if bad {
			return fmt.Errorf("%w: fault %d: %s of instance %d at %v s for %v s, factor %v", ErrConfig, i, s.Kind, s.Instance, s.At, s.Duration, s.Factor)
		}
	}
	return nil
}

func (f *fleet) scheduleFaults() {
	for _, s := range f.cfg.Faults {
		at := units.Nanoseconds(s.At)
		end := units.Nanoseconds(s.At + s.Duration)
		f.queue.schedule(event{at: at, kind: kindFault, index: s.Instance, do: func(units.Time) { f.fail(&s) }})
		f.queue.schedule(event{at: end, kind: kindFault, index: s.Instance, do: func(units.Time) { f.mend(&s) }})
	}
}

// fail begins a fault.
func (f *fleet) fail(s *FaultSpec) {
	note := Fault{At: s.At, Kind: string(s.Kind), Duration: s.Duration, Target: fmt.Sprintf("instance %d", s.Instance)}
	switch s.Kind {
	case FaultCrash:
		note.Requests, note.Tokens = f.crash(f.instances[s.Instance])
	case FaultSlow:
		in := f.instances[s.Instance]
		in.catchUp()
		in.slow *= s.Factor
		in.wake() // the next step has the new price
	case FaultLink:
		note.Target = "network"
		f.handoffs.advance()
		f.handoffs.lost = true
		f.handoffs.share()
	case FaultEvents:
		f.router.mute(s.Instance, true)
	}
	f.measure.faults = append(f.measure.faults, note)
}

// mend ends a fault.
func (f *fleet) mend(s *FaultSpec) {
	switch s.Kind {
	case FaultCrash:
		if in := f.instances[s.Instance]; in.state == down {
			in.state = ready
			f.router.join(in)
			if f.handoffs != nil {
				f.handoffs.retry(in)
			}
		}
	case FaultSlow:
		in := f.instances[s.Instance]
		in.catchUp()
		in.slow /= s.Factor
		in.wake()
	case FaultLink:
		f.handoffs.advance()
		f.handoffs.lost = false
		f.handoffs.share()
	case FaultEvents:
		f.router.mute(s.Instance, false)
	}
}

// crash stops an instance and routes its requests again. It returns how many
// they are and how many tokens were computed in vain.
func (f *fleet) crash(in *instance) (requests, tokens int64) {
	if in.state != ready && in.state != draining {
		return 0, 0
	}
	in.catchUp()
	in.state = down
	in.version++
	in.run, in.flying = nil, nil
	f.router.leave(in)
	in.core.Drain()
	var lost []int
	for id := range f.flights {
		fl := &f.flights[id]
		if !fl.used || fl.instance != in.index && !(f.handoffs != nil && f.handoffs.waitsAt(id, in)) {
			continue
		}
		lost = append(lost, id)
	}
	if f.handoffs != nil {
		f.router.forget(in)
		f.handoffs.abort(in)
	}
	for _, id := range lost {
		fl := &f.flights[id]
		if r := fl.engine; r != nil {
			tokens += int64(r.Computed())
		}
		requests++
		f.router.finished(fl)
		fl.engine, fl.from, fl.instance = nil, -1, -1
		fl.admitted, fl.first, fl.cached = 0, 0, 0
	}
	in.outstanding = 0
	for _, id := range lost {
		f.dispatch(id)
	}
	return requests, tokens
}
