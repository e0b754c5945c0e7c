package planner

import (
	"fmt"
	"math"

	"infera/internal/units"
	"infera/sim/cluster"
	"infera/sim/engine"
	"infera/sim/kvcache"
	"infera/sim/layout"
	"infera/sim/memory"
	"infera/sim/software"
)

// Fleet is a request made ready to be simulated: every replica an instance of
// the discrete-event simulator, with the step prices, the scheduler and the
// cache pool that a projection of the same request stands on.
type Fleet struct {
	// Feasible, Reason and Memory are those of a [Projection].
	Feasible bool
	Reason   string
	Memory   memory.Fit
	// Instances are the replicas, prefill ones first when disaggregated.
	Instances []*cluster.Spec
	Handoff   *cluster.Handoff
	Host      cluster.Host
	GPUs      int
	// Sustainable is how many requests of the request's lengths memory holds.
	Sustainable float64
	Efficiency  software.Match
	Warnings    []Warning
}

// contentBlock is the least granule in which the simulator knows content. An
// engine that shares single tokens (page size 1) finds up to 15 tokens more per
// prompt than it does.
const contentBlock = 16

// Fleet returns the instances of a request. Like [Library.Project] it answers
// for a recipe that does not fit with a reason, not with an error.
func (l *Library) Fleet(r *Request) (*Fleet, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	on, err := l.engine(r.Engine, r.Release, r.GPU)
	if err != nil {
		return nil, err
	}
	out := &Fleet{Efficiency: on.match, Host: cluster.Host{
		RequestFixed: r.Host.Request + units.Seconds(on.efficiency.Values[software.RequestFixed]),
		Tokenize:     r.Host.Tokenize, Detokenize: r.Host.Detokenize,
	}}
	pools := []pool{{cluster.Mixed, r.Layout, max(1, r.Replica), nil}}
	if d := r.Disagg; d != nil {
		pools = []pool{
			{cluster.Prefill, d.Prefill, max(1, d.PrefillReplicas), d.PrefillOn}, {cluster.Decode, d.Decode, max(1, d.DecodeReplicas), d.DecodeOn},
		}
		if out.Handoff, err = l.handoff(r, d); err != nil {
			return nil, err
		}
	}
	for _, p := range pools {
		if err := l.addPool(out, r.on(p.machine), p); err != nil || out.Reason != "" {
			return out, err
		}
	}
	out.Feasible = true
	return out, nil
}

// pool is replicas of one layout and role.
type pool struct {
	role     cluster.Role
	layout   layout.Layout
	replicas int
	machine  *Machine
}

// addPool adds the instances of a pool, or the reason why there can be none.
func (l *Library) addPool(out *Fleet, r *Request, p pool) error {
	on, err := l.engine(r.Engine, r.Release, r.GPU)
	if err != nil {
		return err
	}
	v := &Projection{Request: r}
	ok, err := l.feasible(v, r, on, p.layout, 1)
	if err != nil {
		return err
	}
	out.Warnings = append(out.Warnings, v.Warnings...)
	if !ok {
		out.Reason = v.Reason
		if p.role != cluster.Mixed {
			out.Reason = prefix(v.Reason, p.role.String()+" pool: ")
		}
		return nil
	}
	out.Memory = v.Memory
	out.Sustainable = r.running(&v.Memory, on) * float64(p.replicas)
	asked := *r
	asked.Layout, asked.Replica = p.layout, 1
	asked.Concurrency = max(1, asked.Concurrency)
	prepared, err := l.Prepare(&asked, 0)
	if err != nil {
		return err
	}
	out.Warnings = append(out.Warnings, prepared.warnings...)
	scheduler, err := r.scheduler(on, p.layout)
	if err != nil {
		return err
	}
	perToken := r.Arch.KVBytesPerToken(r.kv())
	spec := &cluster.Spec{
		Role: p.role, Name: fmt.Sprintf("%s %s %s", r.GPU.Name, p.layout, r.Engine.Name), GPUs: p.layout.GPUs(),
		Scheduler: scheduler, Pool: r.cachePool(&v.Memory, on),
		Prices:          cluster.NewPrices(prepared.priced(&on.efficiency), on.efficiency.Values[software.PrefillInterference]),
		KVBytesPerToken: perToken, StateBytes: units.Bytes(r.Arch.StateBytesPerSequence()),
		Network: l.network(r, p.layout),
	}
	for range p.replicas {
		out.Instances = append(out.Instances, spec)
		out.GPUs += spec.GPUs
	}
	return nil
}

// scheduler translates the engine's defaults and the request's overrides.
func (r *Request) scheduler(on *engineOn, lay layout.Layout) (engine.Options, error) {
	d, e := on.defaults, &r.Engineering
	first := func(a, b int) int {
		if a > 0 {
			return a
		}
		return b
	}
	groups := max(1, lay.AttentionGroups())
	s := &d.Scheduler
	o := engine.Options{
		MaxSequences:     groups * first(first(e.MaxSeqs, d.MaxSequences), unlimitedSequences),
		MaxBatchedTokens: groups * first(e.MaxBatchedTokens, d.MaxBatchedTokens),
		PrefillChunk:     first(e.ChunkedPrefill, d.PrefillChunk),
		MaxContext:       r.longestContext(),
		WholePrompts:     !d.ChunkedPrefill && e.ChunkedPrefill == 0,
		AnswerShare: engine.AnswerShare{
			Initial: s.AnswerShare, Least: s.LeastAnswerShare, Steps: s.AnswerShareSteps, Longest: s.LongestAnswer, RetractSteps: s.RetractSteps,
		},
		PrefixOrderLimit: s.PrefixOrderLimit, AsyncScheduling: s.Ahead,
		StreamInterval: r.Host.StreamInterval, Stages: max(1, lay.PP),
	}
	switch s.Policy {
	case "", "vllm":
	case "sglang":
		o.Policy = engine.SGLang
		// The chunk bounds the prompt tokens of a step, whoever they are of.
		if c := groups * o.PrefillChunk; c > 0 && (o.MaxBatchedTokens == 0 || c < o.MaxBatchedTokens) {
			o.MaxBatchedTokens = c
		}
	case "atom":
		o.Policy = engine.ATOM
	default:
		return o, fmt.Errorf("%w: %s has an unknown scheduler %q", ErrBadRequest, r.Engine.Name, s.Policy)
	}
	if sp := &r.Speculation; sp.Tokens > 0 {
		o.DraftTokens = int(math.Round(sp.Tokens))
		a := sp.chance()
		for range o.DraftTokens {
			o.Acceptance = append(o.Acceptance, a)
		}
	}
	return o, nil
}

// longestContext returns the longest sequence that the engine accepts in tokens,
// 0 = any: what was asked for, else what the model's config allows. Nominal
// lengths beyond that were asked for, too.
func (r *Request) longestContext() int {
	if r.MaxContext > 0 || r.Arch.MaxContext == 0 {
		return r.MaxContext
	}
	return max(r.Arch.MaxContext, int(math.Ceil(r.InputLen+r.OutputLen)))
}

// unlimitedSequences stands for an engine that is bounded by its pool alone.
const unlimitedSequences = 1 << 16

// chance returns the probability that one draft is accepted: the one given, or
// the one that yields the accepted length given.
func (s Speculation) chance() float64 {
	if s.AcceptedLength <= 0 {
		return s.Acceptance
	}
	low, high := 0.0, 1.0
	for range 60 {
		middle := (low + high) / 2
		if (Speculation{Tokens: s.Tokens, Acceptance: middle}).Yield() < s.AcceptedLength {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// cachePool translates what memory holds into blocks. What a sequence takes
// besides its tokens (recurrent state, windows that are full) is counted in
// blocks of the same size.
func (r *Request) cachePool(f *memory.Fit, on *engineOn) kvcache.Options {
	block := max(contentBlock, f.BlockTokens)
	o := kvcache.Options{BlockTokens: block, Blocks: max(1, f.KVCapacityTokens/block), Prefix: on.defaults.PrefixCaching}
	if f.StateBytesPerSequence > 0 && f.KVBytesPerToken > 0 && on.defaults.State == software.StatePages {
		fixed := float64(f.StateBytesPerSequence) / (float64(f.KVBytesPerToken) * float64(block))
		o.Groups = append(o.Groups, kvcache.Group{Fixed: int(math.Ceil(fixed))})
		// Recurrent state cannot be cut off where a prefix ends.
		o.Prefix = false
	}
	return o
}

// handoff returns how caches go from the prefill to the decode pool.
func (l *Library) handoff(r *Request, d *Disaggregation) (*cluster.Handoff, error) {
	t, err := l.transfer(r, d)
	if err != nil {
		return nil, err
	}
	h := &cluster.Handoff{Latency: r.KVTransferLatency}
	if r.TransferBackend != "" && h.Latency <= 0 {
		if _, h.Latency, err = l.transferRate(r.TransferBackend); err != nil {
			return nil, err
		}
	}
	if span := float64(t.Time - h.Latency); span > 0 {
		h.Bandwidth = units.BytesPerSecond(float64(t.Bytes) / span)
	}
	return h, nil
}

// network returns what the NICs of an instance carry together. A fabric without
// any has no limit of its own; the transfer's bandwidth then is the only one.
func (l *Library) network(r *Request, lay layout.Layout) units.BytesPerSecond {
	per := float64(r.Fabric.NIC) * r.Fabric.NICEfficiency
	if per <= 0 {
		per = math.Max(float64(r.KVTransferBandwidth), 1e12)
	}
	return units.BytesPerSecond(per * float64(lay.GPUs()))
}
