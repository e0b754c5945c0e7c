package cluster

import (
	"fmt"
	"math"

	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/metrics"
)

// result puts the figures together.
func (m *measure) result() *Result {
	f := m.f
	r := &Result{Seed: f.cfg.Seed, Seeds: 1, Faults: m.faults, Scaling: m.scaling, Timeline: m.timeline(), Request: m.trace}
	scored := f.cfg.Scoring.Scored(m.records)
	all := func(*metrics.Record) bool { return true }
	everywhere := func(*instance) bool { return true }
	r.Total = m.stats(scored, m.all, all, everywhere, m.objectiveOf)
	r.Total.Saturated = m.open() && m.saturated(r.Total.OfferedRate, r.Total.AchievedRate)
	for i, in := range f.instances {
		here := func(o *instance) bool { return o == in }
		s := r.Total
		if len(f.instances) > 1 {
			s = m.stats(scored, m.inst[i], func(rec *metrics.Record) bool { return int(rec.Instance) == i }, here, m.objectiveOf)
		}
		r.Instances = append(r.Instances, Instance{Index: i, Role: in.spec.Role.String(), Name: in.spec.Name, GPUs: in.spec.GPUs, Stats: s})
	}
	if f.handoffs != nil {
		m.pools(r, scored)
		h := f.handoffs
		r.Links = append(r.Links, Link{
			Name: "prefill to decode", Bytes: units.Bytes(h.bytes), Transfers: h.count,
			Utilization: h.busyShare(m.last - m.first), Time: inSeconds(h.duration.Summary()),
		})
	}
	for i, c := range f.cfg.Classes {
		s := m.stats(scored, m.classes[i], func(rec *metrics.Record) bool { return int(rec.Class) == i },
			func(*instance) bool { return false }, func(int16) metrics.Objective { return c.Objective })
		r.Classes = append(r.Classes, Class{Name: c.Name, Objective: c.Objective, Stats: s})
	}
	m.tiers(r)
	m.histograms(r, scored)
	m.warn(r)
	return r
}

// bars is the number of bars of a histogram, of equal ratio: latencies span
// orders of magnitude.
const bars = 60

// histograms adds the distributions of the scored requests for charts.
func (m *measure) histograms(r *Result, scored []metrics.Record) {
	for _, q := range []struct {
		metric string
		of     func(*metrics.Record) float64
	}{
		{"ttft", m.f.cfg.Scoring.TTFT}, {"tpot", m.f.cfg.Scoring.TPOT}, {"e2e", m.f.cfg.Scoring.E2E}, {"queue", metrics.Queue},
	} {
		values := make([]float64, len(scored))
		for i := range scored {
			values[i] = q.of(&scored[i])
		}
		r.Histograms = append(r.Histograms, Histogram{Metric: q.metric, Bins: metrics.Histogram(values, bars, true)})
	}
	var gaps metrics.Sketch
	for _, g := range m.gaps {
		gaps.Merge(g)
	}
	bins := gaps.Histogram(bars, true)
	for i := range bins {
		bins[i].Low, bins[i].High = bins[i].Low/1e9, bins[i].High/1e9
	}
	r.Histograms = append(r.Histograms, Histogram{Metric: "itl", Bins: bins})
}

// open reports whether arrivals do not depend on answers.
func (m *measure) open() bool { return !m.f.cfg.ClosedLoop }

func (m *measure) objectiveOf(class int16) metrics.Objective {
	if int(class) < len(m.f.cfg.Classes) {
		return m.f.cfg.Classes[class].Objective
	}
	return m.f.cfg.Objective
}

// stats computes the figures of the records and instances of a scope.
func (m *measure) stats(scored []metrics.Record, t tally, of func(*metrics.Record) bool, at func(*instance) bool, objective func(int16) metrics.Objective) Stats {
	s := Stats{Offered: t.offered, Completed: t.completed, Rejected: t.rejected, Unfinished: t.offered - t.completed - t.rejected, Goodput: math.NaN()}
	var mine []metrics.Record
	first, last, output, total := units.Never, units.Time(0), 0.0, 0.0
	window := m.records
	if !m.open() {
		window = scored
	}
	for i := range window {
		if rec := &window[i]; of(rec) {
			first, last = min(first, rec.Arrival), max(last, rec.Last)
			output += float64(rec.Output)
			total += float64(rec.Input) + float64(rec.Output)
		}
	}
	for i := range scored {
		if of(&scored[i]) {
			mine = append(mine, scored[i])
		}
	}
	s.Scored = len(mine)
	l := m.f.cfg.Scoring.LatenciesOf(mine, objective)
	s.TTFT, s.TTFTFromAdmission, s.Queue, s.TPOT, s.E2E, s.Attainment = l.TTFT, l.TTFTFromAdmission, l.Queue, l.TPOT, l.E2E, l.Within
	if span := float64((last - first).Seconds()); last > first {
		s.OutputRate, s.TotalRate = output/span, total/span
	}
	s.Duration = (max(m.last, m.first) - m.first).Seconds()
	if m.all.offered == 0 {
		s.Duration = 0
	}
	if span := float64((m.arrival - m.first).Seconds()); span > 0 && m.open() {
		s.OfferedRate = float64(t.offered) / span
	}
	if s.Duration > 0 {
		s.AchievedRate = float64(t.completed) / float64(s.Duration)
	}
	if !math.IsNaN(s.Attainment) {
		s.Goodput = s.Attainment * s.AchievedRate
	}
	m.engines(&s, at)
	return s
}

// engines adds what the instances of a scope counted.
func (m *measure) engines(s *Stats, at func(*instance) bool) {
	var sum engine.Stats
	var gaps metrics.Sketch
	var busy, there float64
	gpus, kvCapacity := 0, 0.0
	for _, in := range m.f.instances {
		if !at(in) {
			continue
		}
		st := in.core.Stats()
		pool := in.core.Pool()
		gaps.Merge(m.gaps[in.index])
		add(&sum, &st)
		s.Cache.Evictions += pool.Evictions()
		s.Cache.TokensCached += int64(pool.Cached()) * int64(pool.BlockTokens())
		end := min(in.gone, max(m.last, in.created))
		busy += float64(min(in.busy, end-max(in.created, m.first)))
		there += float64(max(0, end-max(in.created, m.first)))
		gpus += in.spec.GPUs
		s.Batch.KVPeak += float64(pool.Peak()) * float64(pool.BlockTokens())
		if c := pool.Capacity(); c < 1<<40 {
			kvCapacity += float64(c) * float64(pool.BlockTokens())
		}
	}
	s.ITL = inSeconds(gaps.Summary())
	s.Cache.Requests, s.Cache.RequestHits = sum.Lookups, sum.Hits
	s.Cache.Blocks, s.Cache.BlockHits = sum.Blocks, sum.BlockHits
	s.Cache.HitTokens, s.Cache.PromptTokens = sum.HitTokens, sum.PromptTokens
	if there > 0 {
		s.Utilization = busy / there
	}
	if gpus > 0 {
		s.PerGPU = s.TotalRate / float64(gpus)
	}
	b := &s.Batch
	b.Steps, b.MaxSequences, b.Preemptions, b.KVCapacity = sum.Steps, sum.MaxSequences, sum.Preemptions, kvCapacity
	if n := float64(sum.Steps); n > 0 {
		b.Sequences, b.Prefills, b.Decodes = float64(sum.Sequences)/n, float64(sum.Prefills)/n, float64(sum.Decodes)/n
		b.Tokens, b.PrefillShare, b.KVMean = float64(sum.Tokens)/n, float64(sum.PrefillSteps)/n, float64(sum.KVTokens)/n
	}
}

func add(sum, s *engine.Stats) {
	sum.Lookups += s.Lookups
	sum.Hits += s.Hits
	sum.Blocks += s.Blocks
	sum.BlockHits += s.BlockHits
	sum.HitTokens += s.HitTokens
	sum.PromptTokens += s.PromptTokens
	sum.Preemptions += s.Preemptions
	sum.Steps += s.Steps
	sum.PrefillSteps += s.PrefillSteps
	sum.Sequences += s.Sequences
	sum.Prefills += s.Prefills
	sum.Decodes += s.Decodes
	sum.Tokens += s.Tokens
	sum.KVTokens += s.KVTokens
	sum.MaxSequences = max(sum.MaxSequences, s.MaxSequences)
}

// pools sums the instances by role.
func (m *measure) pools(r *Result, scored []metrics.Record) {
	for _, role := range []Role{Prefill, Decode} {
		var t tally
		gpus := 0
		for i, in := range m.f.instances {
			if in.spec.Role == role {
				t.offered += m.inst[i].offered
				t.completed += m.inst[i].completed
				t.rejected += m.inst[i].rejected
				gpus += in.spec.GPUs
			}
		}
		of := func(rec *metrics.Record) bool { return m.f.instances[rec.Instance].spec.Role == role }
		s := m.stats(scored, t, of, func(in *instance) bool { return in.spec.Role == role }, m.objectiveOf)
		r.Pools = append(r.Pools, Pool{Role: role.String(), GPUs: gpus, Stats: s})
	}
}

// tiers sums the stores of every tier over the instances.
func (m *measure) tiers(r *Result) {
	for i, spec := range m.f.cfg.Tiers {
		t := Tier{Name: spec.Name}
		var fetch metrics.Sketch
		seen := map[*tier]bool{}
		for _, in := range m.f.instances {
			s := in.tiers.list[i]
			if seen[s] {
				continue
			}
			seen[s] = true
			t.Capacity += spec.Capacity
			t.HitBlocks += s.hits
			t.Written += s.held.Written()
			t.Evicts += s.held.Evictions()
			t.Read += units.Bytes(s.read)
			fetch.Merge(&s.fetch)
		}
		t.Fetch = inSeconds(fetch.Summary())
		r.Tiers = append(r.Tiers, t)
	}
}

// warn says what a reader must know.
func (m *measure) warn(r *Result) {
	add := func(code, format string, args ...any) {
		r.Warnings = append(r.Warnings, Warning{code, fmt.Sprintf(format, args...)})
	}
	t := &r.Total
	if t.Saturated {
		add("saturated", "arrivals outrun the fleet: queues grow to the end, so that the latencies are no operating point")
	}
	if t.Rejected > 0 {
		add("rejected", "%d of %d requests were refused: longer than the longest context, or the queue was full", t.Rejected, t.Offered)
	}
	if t.Unfinished > 0 {
		add("unfinished", "%d of %d requests had not ended when the run was cut off; they are in no latency", t.Unfinished, t.Offered)
	}
	if t.Scored < 100 && t.Completed > 0 {
		add("few_requests", "%d requests are too few for a 99th percentile", t.Scored)
	}
	if n := t.Batch.Preemptions; n > 0 {
		add("preempted", "%d times a request was thrown back for want of cache blocks and computed again", n)
	}
}

// busyBy returns how long the instance has run steps by a moment, the run under
// way included.
func (in *instance) busyBy(at units.Time) units.Time {
	busy := in.busy
	if in.run != nil {
		busy += max(0, at-in.run.Started)
	}
	return busy
}

// inSeconds converts a summary of nanoseconds. Times are counted in whole
// nanoseconds because their sums then do not depend on the order.
func inSeconds(s metrics.Summary) metrics.Summary {
	for _, v := range []*float64{&s.Mean, &s.Min, &s.Max, &s.P50, &s.P90, &s.P95, &s.P99, &s.P999, &s.HalfWidth} {
		*v /= 1e9
	}
	return s
}
