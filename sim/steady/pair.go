package steady

import (
	"fmt"
	"math"

	"infera/internal/units"
	"infera/sim/step"
)

// Pair is a pool of prefill replicas that feeds a pool of decode replicas. The
// workload of Prefill is the traffic of the whole pair.
type Pair struct {
	Prefill, Decode                 Replica
	PrefillReplicas, DecodeReplicas float64
	// Transfer is the time to move one request's cache between the pools, and
	// TransferCapacity how many such moves per second all links carry; 0 = not
	// a limit.
	Transfer         units.Seconds
	TransferCapacity float64
}

// PairResult is the steady state of a pair; the embedded result has rates of
// the whole pair and the decode batch of one decode replica.
type PairResult struct {
	Result
	// PrefillCompute is the first-token time without the transfer and Occupancy
	// the share of time a prefill replica is busy.
	PrefillCompute units.Seconds
	Occupancy      float64
	// Limit names what sets the throughput: prefill, decode or transfer.
	Limit string
}

// SolvePair returns the steady state of a pair: prompts and decodes never
// share a step.
func SolvePair(p Pair) (PairResult, error) {
	if err := p.Prefill.validate(); err != nil {
		return PairResult{}, err
	}
	if !(p.PrefillReplicas >= 1) || !(p.DecodeReplicas >= 1) {
		return PairResult{}, fmt.Errorf("%w: pools of %v and %v replicas", ErrBadWorkload, p.PrefillReplicas, p.DecodeReplicas)
	}
	w := p.Prefill.Workload
	p.Prefill.Policy.ExclusivePrefill = true
	s := p.Prefill.shape()
	d := p.Decode
	d.Workload = w
	d.Policy.ExclusivePrefill = true
	ds := d.shape()
	lone := p.Prefill.price(s, 0, 0)
	full := p.Prefill.price(s, 0, 1)
	capacity := p.PrefillReplicas * full.batch / full.service
	if p.TransferCapacity > 0 {
		capacity = min(capacity, p.TransferCapacity)
	}
	most := w.Concurrency
	if most <= 0 {
		most = math.Inf(1)
	}
	limit := math.Inf(1)
	if d.Limits.Sequences > 0 {
		limit = d.Limits.Sequences * p.DecodeReplicas
	}
	q := p.Prefill.queueFactor()
	times := func(rate float64) (first, decode, step float64) {
		rho := min(1, rate/capacity)
		others := 1.0
		if !math.IsInf(most, 1) {
			others = (most - 1) / max(1, most)
		}
		first = lone.service/max(1e-3, 1-q*others*rho) + p.Prefill.outside() + float64(p.Transfer)
		step, decode = p.decodeTime(&d, ds, rate, min(most, limit))
		return first, decode, step
	}
	out := PairResult{}
	rate, saturated := w.RequestRate, false
	top := p.closedRate(times, capacity, most, limit)
	switch {
	case rate <= 0:
		rate = top
	case rate >= top:
		saturated = true
		rate = top
	}
	first, decode, stepTime := times(rate)
	out.Result = p.assemble(&d, ds, rate, first, decode, stepTime, most, limit)
	out.Saturated, out.MaxRate = saturated, top
	if w.RequestRate > 0 {
		out.Utilization = w.RequestRate / top
	}
	out.PrefillTime = units.Seconds(lone.service)
	out.PrefillRate = p.PrefillReplicas * s.span * full.batch / full.service
	out.PrefillCompute = units.Seconds(first - float64(p.Transfer))
	out.QueueWait = units.Seconds(max(0, first-lone.service-p.Prefill.outside()-float64(p.Transfer)))
	out.Occupancy = min(1, rate/(p.PrefillReplicas*full.batch/full.service))
	out.Prefill = step.Chunk{Tokens: s.chunk, Context: s.cached + (s.chunks-1)*s.chunk/2, Final: 1 / s.chunks}
	out.Limit = "decode"
	if rate > 0.97*capacity {
		out.Limit = "prefill"
		if p.TransferCapacity > 0 && p.TransferCapacity <= capacity {
			out.Limit = "transfer"
		}
	}
	return out, nil
}

// decodeTime solves the decode pool at a request rate: running sequences and
// step time depend on each other.
func (p *Pair) decodeTime(d *Replica, s shape, rate, most float64) (step, decode float64) {
	n := 1.0
	for range 12 {
		t := d.Pricer.Price(d.decodeBatch(s, n), nil)
		step = max(float64(t.Latency), max(1, d.Policy.Stages)*float64(t.Interval))
		decode = s.steps * step
		next := max(1, min(most, rate*decode)/p.DecodeReplicas)
		if math.Abs(next-n) < 0.005*n {
			break
		}
		n = next
	}
	return step, decode
}

// closedRate returns the rate at which all requests in flight are accounted
// for, at most the capacity of the prefill path.
func (p *Pair) closedRate(times func(float64) (float64, float64, float64), capacity, most, limit float64) float64 {
	n := min(most, limit) // decode holds at most limit; the rest waits
	if math.IsInf(n, 1) {
		n = 4096 * p.DecodeReplicas
	}
	lo, hi := 0.0, capacity
	for range 40 {
		rate := (lo + hi) / 2
		first, decode, _ := times(rate)
		if rate*(first+decode) < n {
			lo = rate
		} else {
			hi = rate
		}
	}
	return (lo + hi) / 2
}

func (p *Pair) assemble(d *Replica, s shape, rate, first, decode, stepTime, most, limit float64) Result {
	w := d.Workload
	h := &d.Host
	perToken := decode/max(1, w.OutputLen) + float64(h.Detokenize)
	buffered := min(max(1, h.StreamInterval)-1, max(0, w.OutputLen-1)) * perToken
	running := max(1, min(rate*decode, limit)/p.DecodeReplicas)
	r := Result{
		TTFT: units.Seconds(first + buffered), TPOT: units.Seconds(perToken), ITL: units.Seconds(perToken),
		DecodeTime: units.Seconds(perToken*w.OutputLen - buffered),
		DecodeStep: units.Seconds(stepTime), MixedStep: units.Seconds(stepTime),
		RequestRate: rate, OutputRate: rate * w.OutputLen, Running: running, Concurrency: most,
		Decode: d.decodeBatch(s, running),
	}
	if wait := most/rate - first - decode; !math.IsInf(most, 1) && wait > 0.01*(first+decode) && w.RequestRate <= 0 {
		r.AdmissionWait = units.Seconds(wait)
		r.TTFT += r.AdmissionWait
	}
	r.E2E = r.TTFT + r.DecodeTime
	return r
}
