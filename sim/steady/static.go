package steady

import (
	"fmt"
	"math"

	"infera/internal/units"
	"infera/sim/step"
)

// SolveStatic returns the steady state of a replica that processes batches
// from first to last token: all prompts of a batch, then its decode steps at
// full width, then the next batch. The batch is at most the running limit; the
// requests of a closed loop beyond it wait for whole batches.
//
// TTFT is the time to the first token of a whole batch, and the decode step is
// priced half-way through the output.
func SolveStatic(r Replica, batch float64) (Result, error) {
	if err := r.validate(); err != nil {
		return Result{}, err
	}
	w := &r.Workload
	if w.RequestRate > 0 {
		return Result{}, fmt.Errorf("%w: static batches have no request rate", ErrBadWorkload)
	}
	if !(batch >= 1) || math.IsInf(batch, 0) {
		return Result{}, fmt.Errorf("%w: static batch of %v", ErrBadWorkload, batch)
	}
	if r.Limits.Sequences > 0 {
		batch = min(batch, r.Limits.Sequences)
	}
	r.Policy.ExclusivePrefill = true
	s := r.shape()
	prefill := r.prefillBatch(s, batch)
	d := r.Pricer.Price(r.decodeBatch(s, batch), nil)
	each := max(float64(d.Latency), max(1, r.Policy.Stages)*float64(d.Interval))
	decode := s.steps * each
	cycle := prefill + decode
	out := Result{
		DecodeStep: units.Seconds(each), MixedStep: units.Seconds(each),
		RequestRate: batch / cycle, OutputRate: batch / cycle * w.OutputLen,
		PrefillRate: batch * s.span / prefill, PrefillTime: units.Seconds(prefill),
		Running: batch, Concurrency: max(batch, w.Concurrency),
		Decode:  r.decodeBatch(s, batch),
		Prefill: step.Chunk{Tokens: s.chunk, Context: s.cached + (s.chunks-1)*s.chunk/2, Final: 1 / s.chunks},
	}
	if w.Concurrency > batch {
		out.AdmissionWait = units.Seconds((w.Concurrency/batch - 1) * cycle)
	}
	perToken := decode/max(1, w.OutputLen) + float64(r.Host.Detokenize)
	buffered := min(max(1, r.Host.StreamInterval)-1, max(0, w.OutputLen-1)) * perToken
	out.TTFT = units.Seconds(r.outside()+prefill+buffered) + out.AdmissionWait
	out.TPOT, out.ITL = units.Seconds(perToken), units.Seconds(perToken)
	out.DecodeTime = units.Seconds(max(0, perToken*w.OutputLen-buffered))
	out.E2E = out.TTFT + out.DecodeTime
	return out, nil
}

// prefillBatch returns the time to process the prompts of a batch, as many to
// a step as the policy packs.
func (r *Replica) prefillBatch(s shape, batch float64) float64 {
	most := s.groups * s.pack
	var total float64
	for left := batch; left > 1e-9; {
		n := min(most, left)
		rounds := math.Floor(left / n)
		piece := [1]step.Chunk{{Tokens: s.chunk, Context: s.cached + (s.chunks-1)*s.chunk/2, Sequences: n, Final: 1 / s.chunks}}
		t := r.Pricer.Price(step.Batch{Chunks: piece[:]}, nil)
		total += rounds * s.chunks * float64(t.Interval)
		left -= rounds * n
	}
	return total
}
