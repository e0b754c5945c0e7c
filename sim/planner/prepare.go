package planner

import (
	"fmt"
	"math"

	"infera/internal/units"
	"infera/models"
	"infera/sim/hardware"
	"infera/sim/layout"
	"infera/sim/software"
	"infera/sim/steady"
	"infera/sim/step"
)

// Prepared is a request compiled for pricing: everything that does not depend
// on the engine's fitted efficiencies.
type Prepared struct {
	req      *Request
	on       *engineOn
	pricer   *step.Analytic
	replica  steady.Replica
	replicas float64
	// prefill multiplies the kernels of prompts; 0 = as fitted.
	prefill  float64
	warnings []Warning
}

// Warning is a remark on an answer, with a stable code.
type Warning struct{ Code, Text string }

// resident returns the architecture as the engine holds it on the GPU: formats
// without kernels there are expanded, and products run in the type the engine
// uses.
func resident(a *models.Architecture, d *software.Defaults, g *hardware.GPU) *models.Architecture {
	out := *a
	for c := range out.Formats {
		f := out.Formats[c]
		if f.IsZero() {
			continue
		}
		bits, compute := d.Weight(f, models.TensorClass(c), g)
		if math.Abs(bits-f.BitsPerElement()) > 0.01 {
			f.Element, f.Group, f.ScaleBits = models.BF16, 0, 0
			if bits < 12 {
				f.Element = models.FP8
			}
		}
		f.Activation = compute
		out.Formats[c] = f
	}
	return &out
}

// activations applies the request's activation format to the products of
// quantised weights; a is the caller's own copy.
func (r *Request) activations(a *models.Architecture) *models.Architecture {
	if r.Activation == models.DTypeUnknown {
		return a
	}
	for c := range a.Formats {
		if f := &a.Formats[c]; !f.IsZero() && f.Element.Bits() < 16 {
			f.Activation = r.Activation
		}
	}
	return a
}

// sparse applies the request's overrides of the attention pattern.
func (s SparseSettings) apply(a *models.Architecture) *models.Architecture {
	if s.TopK == 0 && s.Window == 0 {
		return a
	}
	out := *a
	out.Groups = append([]models.LayerGroup(nil), a.Groups...)
	left := math.MaxInt
	if s.WindowFraction > 0 {
		left = int(math.Round(s.WindowFraction * float64(a.Layers())))
	}
	for i := range out.Groups {
		at := &out.Groups[i].Attention
		if at.Kind != models.AttentionGQA && at.Kind != models.AttentionMLA {
			continue
		}
		if s.TopK > 0 {
			at.Sparse.TopK = s.TopK
		}
		if s.Window > 0 && left >= out.Groups[i].Count {
			at.Window = s.Window
			left -= out.Groups[i].Count
		}
	}
	return &out
}

// stepOptions translates the request's knobs.
func (r *Request) stepOptions() step.Options {
	e, c := &r.Engineering, &r.Communication
	o := step.Options{
		StepOverhead: e.StepOverhead, KernelFloor: e.KernelLaunch, KernelsPerLayer: e.KernelsPerLayer,
		MixedPenalty: e.MixedPenalty, BoundsOnly: e.BoundsOnly, KernelOccupancy: e.KernelOccupancy,
		PrefillOverlap: c.PrefillOverlap, DecodeOverlap: c.DecodeOverlap,
		NoSampling: r.Sampling.Off, SamplingPasses: r.Sampling.Passes(),
		DraftTokens: r.Speculation.Tokens, DraftCost: r.Speculation.DraftCost,
		SparseIndexerScale: r.Sparse.IndexerScale,
	}
	return o
}

// policy translates the engine's defaults and the request's overrides.
func (r *Request) policy(d *software.Defaults, l layout.Layout) steady.Policy {
	first := func(a, b int) float64 {
		if a > 0 {
			return float64(a)
		}
		return float64(b)
	}
	e := &r.Engineering
	return steady.Policy{
		TokenBudget:      first(e.MaxBatchedTokens, d.MaxBatchedTokens),
		ChunkSize:        first(e.ChunkedPrefill, d.PrefillChunk),
		ExclusivePrefill: d.ExclusivePrefill,
		AdmissionSteps:   e.AdmissionSteps,
		Groups:           float64(max(1, l.AttentionDP)),
		Stages:           float64(max(1, l.PP)),
	}
}

// pricer compiles the request's model under a layout.
func (l *Library) pricer(r *Request, on *engineOn, lay layout.Layout, knob *effects) (*step.Analytic, error) {
	k, err := l.kernel(r.GPU)
	if err != nil {
		return nil, err
	}
	options, communication := r.stepOptions(), r.Collective
	knob.apply(&options)
	communication.Eager = communication.Eager || knob.eager
	c, err := l.collectives(r.GPU, r.Fabric, communication)
	if err != nil {
		return nil, err
	}
	p, err := step.NewAnalytic(step.Config{
		Arch: r.activations(resident(r.Sparse.apply(r.Arch), on.defaults, r.GPU)), GPU: r.GPU, Layout: lay, KV: r.KV,
		Kernels: k, Collectives: c, Routing: r.Routing, Efficiency: &on.efficiency, Options: options,
	})
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", r.Arch.Name, err)
	}
	return p, nil
}

// Prepare compiles a request whose layout is legal and whose memory fits;
// sequences is the most that may run at once on one replica (0 = no limit).
func (l *Library) Prepare(r *Request, sequences float64) (*Prepared, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	on, err := l.engine(r.Engine, r.Release, r.GPU)
	if err != nil {
		return nil, err
	}
	p := &Prepared{req: r, on: on, replicas: float64(max(1, r.Replica))}
	knob, err := l.effects(r, on)
	if err != nil {
		return nil, err
	}
	p.warnings = knob.warnings
	if p.pricer, err = l.pricer(r, on, r.Layout, &knob); err != nil {
		return nil, err
	}
	if rate := r.Engineering.Prefill; rate.PerToken > 0 {
		p.matchPrefill(rate)
	}
	scale := 1.0
	if r.LengthScale > 0 {
		scale = r.LengthScale
	}
	p.replica = steady.Replica{
		Workload: steady.Workload{
			InputLen: max(1, r.InputLen*scale), OutputLen: max(1, r.OutputLen*scale),
			Concurrency: r.Concurrency / p.replicas, RequestRate: r.RequestRate / p.replicas,
			Deterministic: r.Deterministic, PrefixHitRate: r.PrefixHitRate, BurstShare: r.BurstShare, Lockstep: r.Lockstep,
		},
		Policy:      r.policy(on.defaults, r.Layout),
		Speculation: steady.Speculation{Tokens: r.Speculation.Tokens, Accepted: r.Speculation.Yield()},
		Host: steady.Host{
			Tokenize: r.Host.Tokenize, Detokenize: r.Host.Detokenize, StreamInterval: float64(r.Host.StreamInterval),
		},
		Limits: steady.Limits{Sequences: sequences, FetchPerRequest: r.fetch()},
	}
	return p, nil
}

// fetch is the time to bring the cached part of a prompt back from the host
// tier, when the request has one.
func (r *Request) fetch() units.Seconds {
	m := &r.Memory
	if m.Offload <= 0 || m.OffloadRate <= 0 || r.PrefixHitRate <= 0 {
		return 0
	}
	perToken := units.Bytes(r.Arch.KVBytesPerToken(r.kv()))
	cached := units.Bytes(r.InputLen*r.PrefixHitRate) * perToken / units.Bytes(r.Layout.AttentionTP())
	return units.Seconds(float64(min(cached, m.Offload)) / float64(m.OffloadRate))
}

func (r *Request) kv() models.Format {
	if !r.KV.IsZero() {
		return r.KV
	}
	return r.Arch.KV()
}

// Solve returns the steady state of one replica at given efficiencies.
func (p *Prepared) Solve(e *software.Efficiency) (steady.Result, error) {
	if p.req.Serving == Static {
		batch := p.req.Batch
		if batch <= 0 {
			batch = p.replica.Workload.Concurrency
		}
		return steady.SolveStatic(p.at(e), max(1, batch))
	}
	return steady.Solve(p.at(e))
}

// at returns the replica with its pricer and host costs at given efficiencies.
func (p *Prepared) at(e *software.Efficiency) steady.Replica {
	r := p.replica
	r.Pricer = p.priced(e)
	r.Host.RequestFixed = p.req.Host.Request + units.Seconds(e.Values[software.RequestFixed])
	r.Host.Interference = e.Values[software.PrefillInterference]
	r.Host.QueueFactor = e.Values[software.PrefillQueue]
	return r
}

// TotalPerGPU returns the input and output tokens per second and GPU that a
// replica's rate of requests means, as the request's client would report it.
func (p *Prepared) TotalPerGPU(rate float64) float64 {
	w := &p.replica.Workload
	if d := p.req.Drain; d > 0 {
		rate *= d
	}
	return rate * (w.InputLen + w.OutputLen) / float64(p.req.Layout.GPUs())
}
