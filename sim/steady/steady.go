package steady

import (
	"errors"
	"fmt"
	"math"

	"infera/internal/units"
	"infera/sim/step"
)

// ErrBadWorkload is the kind of errors about impossible workloads.
var ErrBadWorkload = errors.New("bad workload")

// Workload is the traffic of one replica: means, not distributions.
type Workload struct {
	// InputLen and OutputLen are mean tokens per request.
	InputLen, OutputLen float64
	// Concurrency is the number of clients of a closed loop, or the largest
	// number of requests in flight of an open one.
	Concurrency float64
	// RequestRate makes the loop open: requests per second; 0 = closed.
	RequestRate float64
	// Deterministic marks evenly spaced arrivals of an open loop.
	Deterministic bool
	// PrefixHitRate is the share of prompt tokens found in the cache.
	PrefixHitRate float64
	// Lockstep marks a closed loop of requests with equal lengths: all of a
	// round start together, queue for the prompt path together and end
	// together.
	Lockstep bool
	// BurstShare is the share of requests that arrive all at once when the
	// clients start together, as a benchmark of N rounds does (1/N); it weighs
	// into the mean time to first token only.
	BurstShare float64
}

// Policy is how the engine schedules.
type Policy struct {
	// TokenBudget is the most tokens one step may carry; 0 = no limit.
	TokenBudget float64
	// ChunkSize is the most prompt tokens one step takes; 0 = the budget.
	ChunkSize float64
	// ExclusivePrefill runs prompts in steps of their own; otherwise they share
	// steps with decoding sequences.
	ExclusivePrefill bool
	// AdmissionSteps is how many decode steps pass between looks at the
	// waiting queue.
	AdmissionSteps float64
	// Groups is the number of attention-data-parallel groups that take prompts
	// side by side; 0 = 1.
	Groups float64
	// Stages is the number of pipeline stages; 0 = 1.
	Stages float64
}

// Speculation is the draft-and-verify scheme; the zero value is off.
type Speculation struct {
	// Tokens is the number of drafted tokens per step and Accepted the mean
	// tokens a step yields (1 to Tokens+1).
	Tokens, Accepted float64
}

// Host holds the costs outside the engine's steps.
type Host struct {
	// RequestFixed is paid once per request before its first step, Tokenize
	// per prompt token, Detokenize per output token.
	RequestFixed, Tokenize, Detokenize units.Seconds
	// StreamInterval is how many tokens are sent at once; 0 = 1.
	StreamInterval float64
	// Interference multiplies what a prompt adds to the decode time of the
	// sequences beside it; 0 = 1.
	Interference float64
	// QueueFactor multiplies the wait behind other requests' prompts; 0 = 1.
	QueueFactor float64
}

// Limits bound the running sequences of a replica.
type Limits struct {
	// Sequences is the most that may run at once (memory or max_num_seqs);
	// 0 = no limit.
	Sequences float64
	// FetchPerRequest is the time to bring cached prompt tokens back from a
	// slower tier.
	FetchPerRequest units.Seconds
}

// Replica is one engine with everything the solution needs.
type Replica struct {
	Pricer      step.Pricer
	Workload    Workload
	Policy      Policy
	Speculation Speculation
	Host        Host
	Limits      Limits

	piece [1]step.Chunk // of the step being priced, kept off the heap
	// arrivals is the rate of random arrivals while the state of an open loop is
	// sought; 0 where clients wait for answers, or prompts queue.
	arrivals float64
}

// Result is the steady state of one replica. Rates are per replica.
type Result struct {
	TTFT, TPOT, ITL, E2E  units.Seconds
	DecodeTime            units.Seconds // first to last token
	DecodeStep, MixedStep units.Seconds
	// MixedFraction is the share of steps that carry prompt tokens; Pollution
	// the share of wall time they take.
	MixedFraction, Pollution float64
	// RequestRate, OutputRate and PrefillRate are requests, output tokens and
	// prompt tokens per second. PrefillRate is what the engine reaches when it
	// does nothing else.
	RequestRate, OutputRate, PrefillRate float64
	// Running is the mean number of decoding sequences and Concurrency the
	// requests in flight.
	Running, Concurrency float64
	// QueueWait is the part of TTFT spent behind other requests, AdmissionWait
	// the part spent waiting for memory.
	QueueWait, AdmissionWait units.Seconds
	// ArrivalWait is the further wait of random arrivals in an open loop; it is
	// part of QueueWait and not of TTFT.
	ArrivalWait units.Seconds
	// PrefillTime is the service time of one prompt.
	PrefillTime units.Seconds
	// Utilization is the offered over the largest sustainable rate of an open
	// loop; Saturated when it reaches 1. MaxRate is that largest rate.
	Utilization float64
	Saturated   bool
	MaxRate     float64
	// Decode and Prefill are the batches whose prices are reported.
	Decode  step.Batch
	Prefill step.Chunk
}

func (r *Replica) validate() error {
	w := &r.Workload
	for _, c := range []struct {
		name string
		v    float64
		min  float64
	}{
		{"input length", w.InputLen, 1}, {"output length", w.OutputLen, 0}, {"concurrency", w.Concurrency, 0},
		{"request rate", w.RequestRate, 0}, {"prefix hit rate", w.PrefixHitRate, 0},
	} {
		if math.IsNaN(c.v) || math.IsInf(c.v, 0) || c.v < c.min {
			return fmt.Errorf("%w: %s %v", ErrBadWorkload, c.name, c.v)
		}
	}
	if w.Concurrency == 0 && w.RequestRate == 0 {
		return fmt.Errorf("%w: neither a concurrency nor a request rate", ErrBadWorkload)
	}
	return nil
}

// shape is the geometry of prompts under a policy.
type shape struct {
	span   float64 // prompt tokens to process per request
	cached float64
	chunk  float64 // tokens per chunk
	chunks float64 // chunks per prompt
	pack   float64 // prompts that fit into one step
	groups float64
	steps  float64 // decode steps per request
}

func (r *Replica) shape() shape {
	w, p := &r.Workload, &r.Policy
	s := shape{groups: max(1, p.Groups)}
	hit := min(0.999, max(0, w.PrefixHitRate))
	s.cached = min(math.Floor(w.InputLen*hit), w.InputLen-1)
	s.span = w.InputLen - s.cached
	limit := math.Inf(1)
	if p.ChunkSize > 0 {
		limit = p.ChunkSize
	}
	if p.TokenBudget > 0 {
		decodes := 0.0
		if !p.ExclusivePrefill {
			decodes = w.Concurrency / s.groups * (1 + r.Speculation.Tokens)
		}
		limit = min(limit, max(p.TokenBudget/8, p.TokenBudget-decodes))
	}
	s.chunks = max(1, math.Ceil(s.span/limit))
	s.chunk = s.span / s.chunks
	s.pack = 1
	if s.chunks == 1 && !math.IsInf(limit, 1) {
		s.pack = max(1, math.Floor(limit/s.span))
	}
	s.steps = w.OutputLen / max(1, r.Speculation.Accepted)
	return s
}

// prices holds the step times the fixed point needs at one running count.
type prices struct {
	decode  float64 // seconds a running sequence takes for one step
	mixed   float64 // a step that also carries prompt pieces
	added   float64 // wall time one prompt adds for the others
	service float64 // time one prompt takes through the engine
	batch   float64 // prompts per prompt-carrying step
}

// mostOpen is how many requests an open loop has in flight at most when nothing
// else bounds them.
const mostOpen = 4096

// Solve returns the steady state of the replica.
func Solve(r Replica) (Result, error) {
	if err := r.validate(); err != nil {
		return Result{}, err
	}
	limit := math.Inf(1)
	if r.Limits.Sequences > 0 {
		limit = r.Limits.Sequences
	}
	if r.Workload.RequestRate > 0 {
		return r.open(limit), nil
	}
	return r.closed(r.shape(), r.Workload.Concurrency, limit), nil
}

// The fixed point of a closed loop converges in a handful of secant steps; the
// tolerance keeps results smooth enough to be differentiated numerically.
const (
	maxIterations = 16
	tolerance     = 1e-3
)

// closed solves the loop of c clients of which at most limit run at once.
func (r *Replica) closed(s shape, c, limit float64) Result {
	active := min(c, limit)
	floor := min(1, active)
	running, busy := active, 0.5
	var p prices
	var rate, wait, decode, lastRunning, lastGap float64
	// The running count and the load of the prompt path decide the prices,
	// which decide both. The running count takes secant steps on the gap to its
	// next value; the load only matters where prompts are packed and follows.
	for i := range maxIterations {
		p = r.price(s, running, busy)
		rate, wait, decode = r.balance(s, p, active)
		gap := min(active, max(floor, rate*decode)) - running
		load := min(1, rate*p.service/(s.groups*p.batch))
		if math.Abs(gap) < tolerance*running && math.Abs(load-busy) < 10*tolerance {
			break
		}
		next := running + gap
		if slope := (gap - lastGap) / (running - lastRunning); i > 0 && slope < -0.05 && !math.IsInf(slope, 0) {
			next = running - gap/slope
		}
		lastRunning, lastGap = running, gap
		running = min(active, max(floor, next))
		busy = load
	}
	if r.Workload.Lockstep && c <= limit {
		rate, wait, decode = r.rounds(s, wait, decode, c)
	}
	return r.result(s, p, rate, wait, decode, running, c)
}

// rounds corrects the wait and the decode time of independent requests for a
// loop of c equal requests. Were they to start and end together, their prompts
// would go through one after the other (packed as the budget allows), then all
// would decode together, and a request that was early would wait while the
// prompts of the others pass. In fact rounds drift apart, since early requests
// also end early: measured waits grow with the square root of the concurrency
// (configs/measured/clients.yaml), so the geometric mean of both is taken.
func (r *Replica) rounds(s shape, wait, decode, c float64) (rate, w, d float64) {
	p := r.price(s, c, 1)
	passes := math.Ceil(c / p.batch)
	service := p.service
	if !r.Policy.ExclusivePrefill {
		// The decodes that share these steps are half of the round on average.
		service = r.price(s, c/2, 1).service
	}
	prompts := passes * service
	first := service * (passes + 1) / 2
	together := s.steps*p.decode + prompts - first
	if !r.Policy.ExclusivePrefill {
		// Early requests advance in the steps that carry others' prompts.
		together -= (prompts - first) * p.decode / max(p.decode, service/s.chunks)
	}
	w, d = math.Sqrt(wait*first), math.Sqrt(decode*together)
	return c / (w + d + r.outside() + r.detokenize()), w, d
}

// decodeBatch is the mean decode batch of n running sequences: a sequence is
// half-way through its output.
func (r *Replica) decodeBatch(s shape, n float64) step.Batch {
	return step.Batch{
		Decodes: n, DecodeKV: n * (r.Workload.InputLen + r.Workload.OutputLen/2),
		TokensPerSequence: 1 + r.Speculation.Tokens,
	}
}

// promptStep is the time of a step with pieces of so many prompts, beside n
// running sequences where they share steps.
func (r *Replica) promptStep(s shape, n, prompts float64) step.Time {
	r.piece = [1]step.Chunk{{Tokens: s.chunk, Context: s.cached + (s.chunks-1)*s.chunk/2, Sequences: prompts, Final: 1 / s.chunks}}
	if r.Policy.ExclusivePrefill || n < 1 {
		return r.Pricer.Price(step.Batch{Chunks: r.piece[:]}, nil)
	}
	b := r.decodeBatch(s, n)
	b.Chunks = r.piece[:]
	return r.Pricer.Price(b, nil)
}

// collected is how many prompts that arrive at random a step finds: one, and
// those that came while the step before it ran. Step times are taken as linear
// in the prompts.
func (r *Replica) collected(s shape, n, most float64) float64 {
	if most <= 1 {
		return 1
	}
	one, all := float64(r.promptStep(s, n, 1).Interval), float64(r.promptStep(s, n, most).Interval)
	each := max(0, all-one) / (most - 1)
	rest := 1 - r.arrivals*each
	if rest <= 0 {
		return most
	}
	return min(most, max(1, (1+r.arrivals*(one-each))/rest))
}

// price evaluates the steps of an engine with n running sequences, whose
// prompt path is busy for the share busy of the time.
func (r *Replica) price(s shape, n, busy float64) prices {
	stages := max(1, r.Policy.Stages)
	var p prices
	d := r.Pricer.Price(r.decodeBatch(s, n), nil)
	p.decode = max(float64(d.Latency), stages*float64(d.Interval))
	most := s.groups * s.pack
	if s.groups > 1 {
		// Groups step together, so an engine collects prompts for all of them
		// before it stops the decodes.
		busy = 1
	}
	most = min(most, max(1, r.Workload.Concurrency))
	p.batch = 1 + (most-1)*min(1, busy)
	if r.arrivals > 0 && s.groups == 1 && !r.Policy.ExclusivePrefill {
		p.batch = r.collected(s, n, most)
	}
	t := r.promptStep(s, n, p.batch)
	if r.Policy.ExclusivePrefill || n < 1 {
		p.mixed = float64(t.Latency)
		p.added = s.chunks * float64(t.Interval) / p.batch
	} else {
		p.mixed = max(float64(t.Latency), p.decode)
		p.added = s.chunks * max(0, p.mixed-p.decode) / p.batch
	}
	if f := r.Host.Interference; f > 0 {
		p.added *= f
	}
	p.service = s.chunks * p.mixed
	return p
}

// balance solves rate, wait for the first token and decode time of a closed
// loop of c clients at fixed step prices.
func (r *Replica) balance(s shape, p prices, c float64) (rate, wait, decode float64) {
	q := r.queueFactor()
	outside := r.outside() + r.detokenize()
	// Prompts per second through the prompt path: it is full when every step
	// carries prompts, whether decodes share those steps or not.
	capacity := p.batch / p.service
	lo, hi := 0.0, min(capacity, c/(p.service+s.steps*p.decode))
	if p.added > 0 {
		hi = min(hi, (1-1e-9)/p.added)
	}
	// A request is held up by the prompts of the others only.
	others := max(0, c-1) / max(1, c)
	times := func(x float64) (w, d float64) {
		d = s.steps * p.decode / max(1e-9, 1-others*x*p.added)
		d = min(d, s.steps*max(p.mixed, p.decode)+c*p.added)
		w = p.service / max(1e-3, 1-q*others*min(1, x/capacity))
		return w + r.residual(p, s), d
	}
	for range 40 {
		rate = (lo + hi) / 2
		wait, decode = times(rate)
		if rate*(outside+wait+decode) < c {
			lo = rate
		} else {
			hi = rate
		}
		if hi-lo < 1e-6*hi {
			break
		}
	}
	// The prompt path is the bottleneck: what is left of the cycle is queueing.
	if left := c/rate - outside - wait - decode; left > 0 && rate > 0.999*capacity {
		wait += left
	}
	return rate, wait, decode
}

func (r *Replica) queueFactor() float64 {
	if q := r.Host.QueueFactor; q > 0 {
		return min(1, q)
	}
	return 1
}

// residual is the wait until the engine looks at a new request: the rest of
// the running step, or of the polling interval.
func (r *Replica) residual(p prices, s shape) float64 {
	return 0.5 * max(1, r.Policy.AdmissionSteps) * p.decode
}

// outside is the time of a request before its first step.
func (r *Replica) outside() float64 {
	h := &r.Host
	return float64(h.RequestFixed) + float64(h.Tokenize)*r.Workload.InputLen + float64(r.Limits.FetchPerRequest)
}

// detokenize is the time a request's output tokens take after their steps.
func (r *Replica) detokenize() float64 {
	return float64(r.Host.Detokenize) * r.Workload.OutputLen
}

func (r *Replica) result(s shape, p prices, rate, wait, decode, running, c float64) Result {
	w, h := &r.Workload, &r.Host
	out := Result{
		DecodeStep: units.Seconds(p.decode), MixedStep: units.Seconds(p.mixed),
		RequestRate: rate, OutputRate: rate * w.OutputLen, Running: running, Concurrency: c,
		PrefillTime: units.Seconds(p.service), PrefillRate: s.span * p.batch / p.service,
	}
	if admission := c/rate - r.outside() - r.detokenize() - wait - decode; admission > 0.01*(wait+decode) && !w.Lockstep {
		out.AdmissionWait = units.Seconds(admission)
	}
	out.QueueWait = units.Seconds(max(0, wait-p.service))
	steady := r.outside() + wait + float64(out.AdmissionWait)
	if b := w.BurstShare; b > 0 && !w.Lockstep {
		// In the opening burst the prompts of all clients queue up together.
		full := r.price(s, 1, 1)
		burst := r.outside() + full.service*(1+(c/full.batch-1)/2)
		steady = (1-b)*steady + b*max(steady, burst)
	}
	tokens := w.OutputLen
	perToken := decode / max(1, tokens)
	buffered := min(max(1, h.StreamInterval)-1, max(0, tokens-1)) * perToken
	out.TTFT = units.Seconds(steady + buffered)
	out.DecodeTime = units.Seconds(max(0, decode-buffered) + r.detokenize())
	out.TPOT = units.Seconds(perToken) + h.Detokenize
	out.ITL = out.TPOT
	out.E2E = out.TTFT + out.DecodeTime
	if steps := rate*s.chunks/p.batch + 1e-12; p.mixed > 0 {
		busy := min(1, steps*p.mixed)
		pure := max(0, 1-busy) / p.decode
		out.MixedFraction = steps / (steps + pure)
		out.Pollution = busy
	}
	out.Decode = r.decodeBatch(s, max(1, running))
	out.Prefill = step.Chunk{Tokens: s.chunk, Context: s.cached + (s.chunks-1)*s.chunk/2, Final: 1 / s.chunks}
	return out
}

// open solves an open stream: the number in flight follows from Little's law
// at the offered rate; beyond the largest closed-loop rate it is saturated.
func (r *Replica) open(limit float64) Result {
	w := &r.Workload
	// An open loop with c requests in flight is a closed one of c clients.
	inFlight := func(c float64) Result {
		w.Concurrency = max(c, 1e-3)
		return r.closed(r.shape(), w.Concurrency, limit)
	}
	most := w.Concurrency
	if most <= 0 {
		most = min(limit, mostOpen)
	}
	top := inFlight(most)
	lambda := w.RequestRate
	if lambda >= top.RequestRate {
		top.Saturated, top.Utilization, top.MaxRate = true, lambda/top.RequestRate, top.RequestRate
		return top
	}
	r.arrivals = lambda
	lo, hi := 0.0, most
	var at Result
	for range 24 {
		c := (lo + hi) / 2
		if at = inFlight(c); at.RequestRate < lambda {
			lo = c
		} else {
			hi = c
		}
	}
	at.RequestRate, at.OutputRate = lambda, lambda*w.OutputLen
	at.MaxRate, at.Utilization = top.RequestRate, lambda/top.RequestRate
	rho := at.Utilization
	// Random arrivals queue for the prompt path of an open system; evenly
	// spaced ones wait half as long.
	queue := float64(at.PrefillTime) * rho / (1 - rho) / 2
	if w.Deterministic {
		queue /= 2
	}
	at.ArrivalWait = units.Seconds(queue)
	at.QueueWait += at.ArrivalWait
	return at
}
