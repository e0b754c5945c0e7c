package planner

import (
	"fmt"
	"math"

	"infera/internal/units"
	"infera/sim/layout"
	"infera/sim/memory"
	"infera/sim/software"
	"infera/sim/steady"
	"infera/sim/step"
)

// Band is a value with the range it is expected to lie in.
type Band struct{ Value, Low, High float64 }

// around returns the band of a value whose logarithm has the half-width w.
func around(v, w float64) Band {
	return Band{Value: v, Low: v * math.Exp(-w), High: v * math.Exp(w)}
}

// Projection is the answer to a request.
type Projection struct {
	Request  *Request
	Feasible bool
	// Reason says in one line why the recipe is infeasible.
	Reason     string
	Violations []layout.Violation
	Memory     memory.Fit
	// Concurrency is the requests in flight over all replicas; Capped is set
	// when memory holds fewer than were asked for.
	Concurrency float64
	Capped      bool
	// Sustainable is how many requests memory holds at once, over all replicas.
	Sustainable float64

	// Steady is the steady state of one replica (of one decode replica, with
	// the first-token path of the prefill pool, when disaggregated).
	Steady steady.Result
	// Decode and Prefill are the waterfalls of one decode step and of one
	// prompt.
	Decode, Prefill step.Breakdown
	// TTFT and the others are the headline numbers: seconds, tokens per second.
	TTFT, TPOT, E2E, DecodeStep, MixedStep Band
	OutputRate, TotalRate                  Band // over all replicas
	OutputPerGPU, TotalPerGPU              Band
	PrefillRate                            Band
	GPUs                                   int
	Transfer                               *Transfer

	// RequestFixed is the host time that every request pays before its first
	// step, fitted and asked for.
	RequestFixed units.Seconds

	Efficiency software.Match
	Warnings   []Warning
}

// Transfer is the cache hand-over between pools.
type Transfer struct {
	Bytes units.Bytes
	Time  units.Seconds
	// PrefillCompute is the first-token time without the transfer; Limit names
	// the pool that sets the throughput.
	PrefillCompute              units.Seconds
	Limit                       string
	PrefillLayout, DecodeLayout layout.Layout
	PrefillReplicas, Decodes    int
	Occupancy                   float64 // of a prefill replica, 0 to 1
}

// Project answers a request. An infeasible recipe is an answer, not an error.
func (l *Library) Project(r *Request) (*Projection, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	on, err := l.engine(r.Engine, r.Release, r.GPU)
	if err != nil {
		return nil, err
	}
	if r.Disagg != nil {
		return l.disaggregated(r, on)
	}
	p := &Projection{Request: r, GPUs: r.Layout.GPUs() * max(1, r.Replica), Efficiency: on.match}
	if ok, err := l.feasible(p, r, on, r.Layout, r.Concurrency/float64(max(1, r.Replica))); err != nil || !ok {
		return p, err
	}
	replicas := float64(max(1, r.Replica))
	running := r.running(&p.Memory, on)
	p.Sustainable = running * replicas
	asked := *r
	if asked.Serving == Static && asked.Concurrency == 0 {
		asked.Concurrency = asked.Batch * replicas
	}
	if asked.Concurrency == 0 && asked.RequestRate == 0 {
		asked.Concurrency = math.Floor(running) * replicas
	}
	p.Concurrency = asked.Concurrency
	p.Capped = asked.Concurrency > p.Sustainable
	prepared, err := l.Prepare(&asked, running)
	if err != nil {
		return nil, err
	}
	if p.Steady, err = prepared.Solve(&on.efficiency); err != nil {
		return nil, err
	}
	p.Warnings = append(p.Warnings, prepared.warnings...)
	prepared.waterfalls(p, on)
	p.finish(r, on, p.Steady.RequestRate*replicas)
	p.Request = r
	return p, nil
}

// feasible checks layout and memory; a false answer has filled in the reason.
func (l *Library) feasible(p *Projection, r *Request, on *engineOn, lay layout.Layout, concurrency float64) (bool, error) {
	p.Violations = layout.Check(r.Arch, lay, r.Fabric)
	for _, v := range p.Violations {
		if !v.Note {
			if p.Reason == "" {
				p.Reason = v.String()
			}
			continue
		}
		p.Warnings = append(p.Warnings, Warning{v.Code, v.Text})
	}
	if p.Reason != "" {
		near := layout.Nearest(r.Arch, lay)
		p.Reason += fmt.Sprintf(" (nearest legal layout: %s)", near)
		return false, nil
	}
	var err error
	if p.Memory, err = l.fit(r, on, lay, concurrency); err != nil {
		return false, err
	}
	if !p.Memory.OK {
		p.Reason = p.shortfall()
		return false, nil
	}
	p.Feasible = true
	return true, nil
}

// shortfall says which term does not fit, and by how much.
func (p *Projection) shortfall() string {
	m := &p.Memory
	what := string(m.Short)
	if m.Cause != "" && m.Cause != m.Short {
		what += " (because of " + string(m.Cause) + ")"
	}
	return fmt.Sprintf("does not fit: %s is short by %.2f GiB of %.2f GiB per GPU", what, m.By.GiB(), m.HBM.GiB())
}

// waterfalls prices the reported decode step and a whole prompt once more,
// with their breakdowns.
func (pr *Prepared) waterfalls(p *Projection, on *engineOn) {
	price := pr.priced(&on.efficiency)
	price.Price(p.Steady.Decode, &p.Decode)
	chunk := [1]step.Chunk{p.Steady.Prefill}
	price.Price(step.Batch{Chunks: chunk[:]}, &p.Prefill)
}

// finish fills in the bands and rates from the steady state and the rate of
// requests over all replicas.
func (p *Projection) finish(r *Request, on *engineOn, rate float64) {
	s, w := &p.Steady, on.efficiency.Spread
	scale := 1.0
	if r.LengthScale > 0 {
		scale = r.LengthScale
	}
	if r.Drain > 0 {
		rate *= r.Drain
	}
	p.RequestFixed = r.Host.Request + units.Seconds(on.efficiency.Values[software.RequestFixed])
	in, out := r.InputLen*scale, r.OutputLen*scale
	p.TPOT = around(float64(s.TPOT), w.TPOT)
	p.TTFT = around(float64(s.TTFT), w.TTFT)
	p.DecodeStep = around(float64(s.DecodeStep), w.TPOT)
	p.MixedStep = around(float64(s.MixedStep), w.TPOT)
	p.E2E = Band{
		Value: float64(s.E2E),
		Low:   p.TTFT.Low + float64(s.E2E-s.TTFT)*p.TPOT.Low/p.TPOT.Value,
		High:  p.TTFT.High + float64(s.E2E-s.TTFT)*p.TPOT.High/p.TPOT.Value,
	}
	p.OutputRate = around(rate*out, w.Throughput)
	p.TotalRate = around(rate*(in+out), w.Throughput)
	p.OutputPerGPU = around(rate*out/float64(p.GPUs), w.Throughput)
	p.TotalPerGPU = around(rate*(in+out)/float64(p.GPUs), w.Throughput)
	p.PrefillRate = around(s.PrefillRate*float64(max(1, r.Replica)), w.TTFT)
	p.warn(r, on)
}

func (p *Projection) warn(r *Request, on *engineOn) {
	add := func(code, format string, args ...any) {
		p.Warnings = append(p.Warnings, Warning{code, fmt.Sprintf(format, args...)})
	}
	if !on.match.Exact {
		add("unmeasured_stack", "no measured points of %s on %s; priced as %s, band widened", r.Engine.Name, r.GPU.ISA, on.match.Text)
	}
	if r.GPU.Announced {
		add("announced_hardware", "%s is announced; its numbers are not final", r.GPU.Name)
	}
	if p.Capped {
		add("concurrency_capped", "memory holds %.0f of the %.0f requests at once; the others wait", p.Sustainable, p.Concurrency)
	}
	if p.Steady.Saturated {
		add("saturated", "offered rate exceeds the largest sustainable %.3g requests/s", p.Steady.MaxRate*float64(max(1, r.Replica)))
	}
	if r.Arch.Partial {
		add("partial_model", "the source of %s is incomplete; sizes are approximate", r.Arch.Name)
	}
}
