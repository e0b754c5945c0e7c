package cluster

import (
	"fmt"
	"math"

	"infera/internal/units"
	"infera/sim/step"
)

// The rules of the autoscaler.
const (
	// ScaleByQueue follows how long queues are and how busy engines are.
	ScaleByQueue = "queue"
	// ScaleByLatency follows the load that arrived and what one instance serves
	// within the latency targets: the SLA planner's rule.
	ScaleByLatency = "latency"
)

// Autoscaler changes the number of instances of every role.
type Autoscaler struct {
	Rule string
	// Interval passes between decisions, StartDelay until an instance that was
	// asked for takes requests: a node, an image, the weights.
	Interval, StartDelay units.Seconds
	// Least and Most bound the instances of a role.
	Least, Most int
	// Queue is how many waiting requests per instance are too many, Busy the
	// utilisation to keep to, for ScaleByQueue.
	Queue, Busy float64
	// TTFT and TPOT are the targets of ScaleByLatency.
	TTFT, TPOT units.Seconds
	// Patience is how many decisions in a row must ask for fewer instances
	// before one is taken away.
	Patience int
}

func (a *Autoscaler) validate() error {
	if a == nil {
		return nil
	}
	bad := a.Rule != ScaleByQueue && a.Rule != ScaleByLatency || !(a.Interval > 0) || !(a.StartDelay >= 0) ||
		math.IsInf(float64(a.Interval+a.StartDelay), 0) || a.Least < 1 || a.Most < a.Least || a.Patience < 0 ||
		a.Rule == ScaleByQueue && (!(a.Queue > 0) || !(a.Busy > 0 && a.Busy <= 1)) ||
		a.Rule == ScaleByLatency && (!(a.TTFT > 0) || !(a.TPOT > 0))
	if bad {
		return fmt.Errorf("%w: autoscaler %+v", ErrConfig, *a)
	}
	return nil
}

// scaler decides at intervals.
type scaler struct {
	f      *fleet
	cfg    *Autoscaler
	fewer  [Decode + 1]int // decisions in a row that asked for fewer
	coming [Decode + 1]int // instances that are starting
	// Since the last decision: what arrived and how busy engines had been.
	requests, input, output int
	busy                    map[int]units.Time
}

func newScaler(f *fleet) *scaler {
	if f.cfg.Autoscaler == nil {
		return nil
	}
	s := &scaler{f: f, cfg: f.cfg.Autoscaler, busy: map[int]units.Time{}}
	s.again()
	return s
}

func (s *scaler) again() {
	at := s.f.now + units.Nanoseconds(s.cfg.Interval)
	s.f.queue.schedule(event{at: at, kind: kindScale, do: func(units.Time) { s.decide(); s.again() }})
}

func (s *scaler) arrived(input, output int) {
	s.requests++
	s.input += input
	s.output += output
}

// decide sets every role's target and starts or drains instances.
func (s *scaler) decide() {
	for role := range s.fewer {
		role := Role(role)
		now := len(s.f.router.ready[role]) + s.coming[role] + s.crashed(role)
		if now == 0 {
			continue
		}
		want, reason := s.want(role, now)
		want = min(s.cfg.Most, max(s.cfg.Least, want))
		switch {
		case want > now:
			s.fewer[role] = 0
			s.grow(role, now, want, reason)
		case want < now:
			if s.fewer[role]++; s.fewer[role] > s.cfg.Patience {
				s.fewer[role] = 0
				s.shrink(role, now, reason)
			}
		default:
			s.fewer[role] = 0
		}
	}
	s.requests, s.input, s.output = 0, 0, 0
}

// crashed counts the instances of a role that will come back.
func (s *scaler) crashed(role Role) int {
	n := 0
	for _, in := range s.f.instances {
		if in.state == down && in.spec.Role == role {
			n++
		}
	}
	return n
}

func (s *scaler) want(role Role, now int) (int, string) {
	if s.cfg.Rule == ScaleByLatency {
		return s.byLatency(role, now)
	}
	return s.byQueue(role, now)
}

// byQueue asks for as many instances as bring queue and utilisation to their
// targets, whichever needs more. Taking one away is judged by what the others
// would then have to do, or a fleet of two would swing between one and two.
func (s *scaler) byQueue(role Role, now int) (int, string) {
	waiting, busy := 0, 0.0
	for _, i := range s.f.router.ready[role] {
		in := s.f.instances[i]
		waiting += in.core.Waiting()
		span := float64(units.Nanoseconds(s.cfg.Interval))
		busy += min(1, float64(in.busyBy(s.f.now)-s.busy[i])/span)
		s.busy[i] = in.busyBy(s.f.now)
	}
	byBusy := int(math.Ceil(busy/s.cfg.Busy - 1e-9))
	// A queue on top of busy engines needs more than those busy engines.
	byWaiting := 0
	if per := float64(waiting) / float64(now); per > s.cfg.Queue {
		byWaiting = now + int(math.Ceil(float64(now)*min(1, per/s.cfg.Queue-1)))
	}
	if byWaiting > byBusy {
		return byWaiting, fmt.Sprintf("%d waiting", waiting)
	}
	return max(1, byBusy), fmt.Sprintf("engines busy %.0f %% of %d", 100*busy/float64(max(1, now)), now)
}

// byLatency asks for what the last interval's arrivals need: prompts from the
// rate at which an instance computes them, answers from the largest batch whose
// steps keep to the target.
func (s *scaler) byLatency(role Role, _ int) (int, string) {
	if s.requests == 0 {
		return s.cfg.Least, "no arrivals"
	}
	ready := s.f.router.ready[role]
	if len(ready) == 0 {
		return s.cfg.Least, "none ready"
	}
	spec := s.f.instances[ready[0]].spec
	rate := float64(s.requests) / float64(s.cfg.Interval)
	in, out := float64(s.input)/float64(s.requests), float64(s.output)/float64(s.requests)
	// The share of an instance's time that a request takes.
	share := 0.0
	prefill := float64(spec.Prices.of(&step.Batch{Chunks: []step.Chunk{{Tokens: in, Sequences: 1, Final: 1}}}, false).interval) / 1e9
	if role != Decode {
		// To answer within the target a prompt must not queue for more than
		// what is left of it; an M/D/1 queue waits rho/(2(1-rho)) services.
		slack := max(0, float64(s.cfg.TTFT)-prefill) / prefill
		rho := 2 * slack / (1 + 2*slack)
		share += prefill / max(rho, 0.05)
	}
	if role != Prefill {
		batch := largestBatch(spec, in+out/2, s.cfg.TPOT)
		t := float64(spec.Prices.of(&step.Batch{Decodes: batch, DecodeKV: batch * (in + out/2), TokensPerSequence: 1}, false).interval) / 1e9
		share += out * t / batch
	}
	return int(math.Ceil(rate*share - 1e-9)), fmt.Sprintf("%.2f requests/s of %.0f + %.0f tokens", rate, in, out)
}

// largestBatch returns how many sequences of a context length decode within a
// time per token, at least 1.
func largestBatch(spec *Spec, context float64, tpot units.Seconds) float64 {
	low, high := 1, max(1, spec.Scheduler.MaxSequences)
	for low < high {
		n := float64((low + high + 1) / 2)
		p := spec.Prices.of(&step.Batch{Decodes: n, DecodeKV: n * context, TokensPerSequence: 1}, false)
		if p.interval.Seconds() <= tpot {
			low = int(n)
		} else {
			high = int(n) - 1
		}
	}
	return float64(low)
}

func (s *scaler) grow(role Role, now, want int, reason string) {
	s.note(role, now, want, reason)
	spec := s.specOf(role)
	for range want - now {
		s.coming[role]++
		at := s.f.now + units.Nanoseconds(s.cfg.StartDelay)
		s.f.queue.schedule(event{at: at, kind: kindReady, do: func(units.Time) {
			s.coming[role]--
			// The options were accepted for the first of its kind.
			if _, err := s.f.addInstance(spec, s.f.now); err != nil {
				s.f.failed = err
			}
		}})
	}
}

// shrink drains the instance that joined last.
func (s *scaler) shrink(role Role, now int, reason string) {
	ready := s.f.router.ready[role]
	if len(ready) <= 1 {
		return
	}
	s.note(role, now, now-1, reason)
	in := s.f.instances[ready[len(ready)-1]]
	in.state = draining
	s.f.router.leave(in)
	if in.outstanding == 0 {
		in.stop()
	}
}

func (s *scaler) specOf(role Role) *Spec {
	for _, spec := range s.f.cfg.Fleet {
		if spec.Role == role {
			return spec
		}
	}
	return nil
}

func (s *scaler) note(role Role, from, to int, reason string) {
	s.f.measure.scaling = append(s.f.measure.scaling, Scaling{At: s.f.now.Seconds(), Role: role.String(), From: from, To: to, Reason: reason})
}
