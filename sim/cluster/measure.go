package cluster

import (
	"math"

	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/metrics"
	"infera/sim/workload"
)

// Scoring is which requests count and what clients pay besides the engine.
type Scoring = metrics.Scoring

// The timeline starts with a sample every firstInterval; when it has mostSamples
// every second one is dropped and the interval doubles.
const (
	firstInterval = units.Time(50_000_000)
	mostSamples   = 512
)

// moment is a sample of the timeline with the counts up to it.
type moment struct {
	at                               units.Time
	arrived, ended, waiting, running int
	tokens, kv, capacity             int64
	instances                        int
	firstTokens                      int
	firstTokenTime                   float64 // seconds, summed
}

// tally are the counts of a scope.
type tally struct{ offered, completed, rejected int }

// measure observes a simulation.
type measure struct {
	f        *fleet
	all      tally
	classes  []tally
	inst     []tally
	gaps     []*metrics.Sketch // by instance
	records  []metrics.Record  // in order of completion
	first    units.Time        // arrival
	last     units.Time        // latest end of an answer
	arrival  units.Time        // latest arrival
	tokens   int64             // generated in runs that ended
	moments  []moment
	interval units.Time
	firsts   int
	firstSum float64
	// detokenize is what every token waits besides.
	detokenize units.Time
	faults     []Fault
	scaling    []Scaling
	trace      *Trace
	// queue samples the queue at every stride-th arrival.
	queue  []metrics.Depth
	stride int
	// watched is the flight whose waterfall is wanted, -1 = none under way, and
	// disturbed how much longer prompts of others made its answer.
	watched   int
	disturbed units.Time
}

func newMeasure(f *fleet) *measure {
	return &measure{f: f, classes: make([]tally, max(1, len(f.cfg.Classes))), interval: firstInterval, first: units.Never, watched: -1, stride: 1, detokenize: units.Nanoseconds(f.cfg.Scoring.Detokenize)}
}

func (m *measure) joined(*instance) {
	m.inst = append(m.inst, tally{})
	m.gaps = append(m.gaps, new(metrics.Sketch))
}

// idle reports whether every request that arrived has ended.
func (m *measure) idle() bool { return m.all.offered == m.all.completed+m.all.rejected }

func (m *measure) class(w *workload.Request) *tally {
	return &m.classes[min(max(0, w.Class), len(m.classes)-1)]
}

func (m *measure) arrived(w *workload.Request) {
	m.all.offered++
	m.class(w).offered++
	m.first, m.arrival = min(m.first, w.Arrival), max(m.arrival, w.Arrival)
	m.sampleQueue()
	if m.f.scaler != nil {
		m.f.scaler.arrived(w.Input, w.Output)
	}
}

func (m *measure) gap(instance int, gap units.Time, n int64) {
	m.gaps[instance].Add(float64(gap+m.detokenize), n)
}

// stepped books a run of steps of an instance, which took a time each.
func (m *measure) stepped(in *instance, s *engine.Step, times int, each units.Time) {
	if m.watched >= 0 && len(s.Batch.Chunks) > 0 {
		if fl := &m.f.flights[m.watched]; fl.instance == in.index && fl.engine != nil && fl.engine.Generated > 0 {
			m.disturbed += units.Time(times) * (each - in.decodesAlone(s))
		}
	}
	m.tokens += int64(times) * int64(s.Batch.Decodes)
}

// ended books the end of a request.
func (m *measure) ended(fl *flight, rejected bool) {
	w := &fl.w
	if rejected {
		m.all.rejected++
		m.class(w).rejected++
		if fl.instance >= 0 {
			m.inst[fl.instance].rejected++
			m.inst[fl.instance].offered++
		}
		return
	}
	m.all.completed++
	m.class(w).completed++
	m.inst[fl.instance].completed++
	m.inst[fl.instance].offered++
	last := fl.engine.Last
	m.last = max(m.last, last)
	m.firsts++
	m.firstSum += float64((fl.first - w.Arrival).Seconds())
	r := metrics.Record{
		ID: int32(w.ID), Instance: int16(fl.instance), Class: int16(w.Class),
		Input: int32(w.Input), Output: int32(w.Output), Cached: int32(fl.cached),
		Arrival: w.Arrival, Admitted: max(fl.admitted, w.Arrival), First: fl.first, Last: last,
	}
	m.records = append(m.records, r)
	if m.f.cfg.OnAnswer != nil {
		m.f.cfg.OnAnswer(r)
	}
	if w.ID == m.f.cfg.Explain {
		m.explain(fl)
		m.watched = -1
	}
}

// explain lays out the life of a request.
func (m *measure) explain(fl *flight) {
	w := &fl.w
	at := func(t units.Time) units.Seconds { return (t - w.Arrival).Seconds() }
	t := &Trace{ID: w.ID, Input: w.Input, Output: w.Output, Cached: fl.cached, Instance: fl.instance}
	add := func(name string, from, to units.Time, note string) {
		if to > from {
			t.Spans = append(t.Spans, Span{Name: name, Start: at(from), End: at(to), Note: note})
		}
	}
	sent := w.Arrival + m.f.delay
	add("host", w.Arrival, sent, "")
	queued := max(sent, fl.restored)
	add("restore", sent, queued, "blocks of the prompt fetched from a tier below")
	add("queue", queued, fl.admitted, "")
	add("prefill", fl.admitted, fl.first, "")
	start := fl.first
	if fl.from >= 0 {
		add("transfer", fl.first, fl.engine.Submitted, "")
		start = fl.engine.Submitted
	}
	// What prompts of others took is spread over the answer; it is drawn in one.
	disturbed := max(start, fl.engine.Last-m.disturbed)
	add("decode", start, disturbed, "")
	add("interference", disturbed, fl.engine.Last, "prompts of other requests, in steps all over the answer")
	m.trace = t
}

// sampleUntil takes the samples due before a moment.
func (m *measure) sampleUntil(t units.Time) {
	next := m.interval
	if n := len(m.moments); n > 0 {
		next = m.moments[n-1].at + m.interval
	}
	for next < t {
		// Nothing happens before t: an idle stretch needs one sample, not many.
		if m.idle() && t-next > 2*m.interval {
			skip := (t - next) / m.interval
			next += (skip - 1) * m.interval
		}
		m.sample(next)
		if len(m.moments) == mostSamples {
			kept := m.moments[:0]
			for i := 1; i < mostSamples; i += 2 {
				kept = append(kept, m.moments[i])
			}
			m.moments = kept
			m.interval *= 2
		}
		next = m.moments[len(m.moments)-1].at + m.interval
	}
}

func (m *measure) sample(at units.Time) {
	p := moment{at: at, waiting: m.waiting(), arrived: m.all.offered, ended: m.all.completed + m.all.rejected, tokens: m.tokens, firstTokens: m.firsts, firstTokenTime: m.firstSum}
	for _, in := range m.f.instances {
		if in.state == stopped || in.state == down {
			continue
		}
		p.instances++
		p.running += in.core.Running()
		// What the run under way has done so far.
		part := int64(0)
		if in.run != nil {
			part = int64(in.endedBy(at)) * int64(in.run.Batch.Decodes)
		}
		p.tokens += part
		p.kv += int64(in.core.KVTokens()) + part
		p.capacity += int64(in.core.Pool().Capacity()) * int64(in.core.Pool().BlockTokens())
	}
	m.moments = append(m.moments, p)
}

// sampleQueue notes how many wait when a request arrives: every so many
// requests, so that a run of any length has some hundred samples between its
// first arrival and its last.
func (m *measure) sampleQueue() {
	if m.all.offered%m.stride != 0 {
		return
	}
	m.queue = append(m.queue, metrics.Depth{At: m.f.now, Waiting: m.waiting()})
	if len(m.queue) == mostSamples {
		kept := m.queue[:0]
		for i := 1; i < mostSamples; i += 2 {
			kept = append(kept, m.queue[i])
		}
		m.queue, m.stride = kept, 2*m.stride
	}
}

// waiting counts the requests that wait for an engine, for a transfer to begin
// or for an instance to come.
func (m *measure) waiting() int {
	n := len(m.f.router.held) + len(m.f.router.handoffs)
	for _, in := range m.f.instances {
		n += in.core.Waiting()
		if m.f.handoffs != nil {
			n += len(m.f.handoffs.inbox[in.index])
		}
	}
	return n
}

// saturated reports whether the queue grew as long as requests arrived.
func (m *measure) saturated(offered, achieved float64) bool {
	return metrics.Backlog{Queue: m.queue, Arrived: m.all.offered, Offered: offered, Achieved: achieved}.Saturated()
}

// timeline turns the samples into rates.
func (m *measure) timeline() []Sample {
	var out []Sample
	prev := moment{}
	for _, p := range m.moments {
		span := float64((p.at - prev.at).Seconds())
		s := Sample{
			At: p.at.Seconds(), Running: p.running, Waiting: p.waiting, Instances: p.instances,
			ArrivalRate: float64(p.arrived-prev.arrived) / span, CompletedRate: float64(p.ended-prev.ended) / span,
			OutputRate: float64(p.tokens-prev.tokens) / span, TTFT: math.NaN(),
		}
		if p.capacity > 0 {
			s.KVUsed = float64(p.kv) / float64(p.capacity)
		}
		if n := p.firstTokens - prev.firstTokens; n > 0 {
			s.TTFT = (p.firstTokenTime - prev.firstTokenTime) / float64(n)
		}
		out = append(out, s)
		prev = p
	}
	return out
}
