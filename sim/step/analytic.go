package step

import (
	"errors"
	"fmt"

	"infera/internal/units"
	"infera/models"
	"infera/sim/collective"
	"infera/sim/hardware"
	"infera/sim/kernel"
	"infera/sim/layout"
	"infera/sim/moe"
	"infera/sim/software"
)

// Config is what an [Analytic] pricer is made of.
type Config struct {
	Arch        *models.Architecture
	GPU         *hardware.GPU
	Layout      layout.Layout
	KV          models.Format
	Kernels     *kernel.Model
	Collectives *collective.Model
	// Routing describes how tokens spread over experts; counts come from the
	// architecture.
	Routing    moe.Options
	Efficiency *software.Efficiency
	Options    Options
}

// Options are the knobs of a recipe that change the price of a step. The zero
// value changes nothing.
type Options struct {
	// StepOverhead is added to every step.
	StepOverhead units.Seconds
	// KernelFloor is the launch latency of one kernel without captured graphs;
	// with KernelsPerLayer it bounds a step from below. 0 = off.
	KernelFloor     units.Seconds
	KernelsPerLayer int
	// FusedKernels scales the fixed layer times (fewer launches); 0 = 1.
	FusedKernels float64
	// MixedPenalty is the extra share of a step that mixes prompt chunks and
	// decodes (no captured graph); 0 = none.
	MixedPenalty float64
	// AttentionScale multiplies the attention cores; 0 = 1.
	AttentionScale float64
	// PrefillOverlap and DecodeOverlap are the shares of collectives hidden
	// behind compute, 0 to 1.
	PrefillOverlap, DecodeOverlap float64
	// NoSampling drops the sampling passes; SamplingPasses adds passes over
	// the logits (temperature, top-k or top-p).
	NoSampling     bool
	SamplingPasses float64
	// DraftTokens is how many tokens the built-in drafter proposes per step; 0
	// = no speculation. DraftCost, when positive, replaces the drafter's own
	// price by this share of a plain step per draft token.
	DraftTokens float64
	DraftCost   float64
	// Dispatch and Combine are the formats of expert dispatch and combine on
	// the wire; zero = bf16.
	Dispatch, Combine models.Format
	// SparseIndexerScale multiplies the token selector; 0 = 1.
	SparseIndexerScale float64
	// BoundsOnly prices kernels at their lower bounds.
	BoundsOnly bool
	// KernelOccupancy, when positive, is the fixed time of one kernel and
	// replaces the fitted fixed times of layers: half of KernelsPerLayer for the
	// token mixer, half for the feed-forward part.
	KernelOccupancy units.Seconds
}

// Analytic prices steps from kernel, collective and routing models and an
// engine's efficiencies.
type Analytic struct {
	cfg    Config
	stages []stage
	draft  stage
	dp     float64 // attention-data-parallel groups
	ranks  int     // ranks that experts are spread over
	layers float64
}

var errConfig = errors.New("incomplete pricer configuration")

// NewAnalytic compiles a pricer. The layout must be legal for the architecture.
func NewAnalytic(cfg Config) (*Analytic, error) {
	switch {
	case cfg.Arch == nil || cfg.Arch.Layers() == 0:
		return nil, fmt.Errorf("%w: no architecture", errConfig)
	case cfg.GPU == nil || cfg.Kernels == nil || cfg.Collectives == nil:
		return nil, fmt.Errorf("%w: no hardware models", errConfig)
	case cfg.Efficiency == nil:
		return nil, fmt.Errorf("%w: no engine efficiency", errConfig)
	}
	if cfg.KV.IsZero() {
		cfg.KV = cfg.Arch.KV()
	}
	a := &Analytic{cfg: cfg, dp: float64(cfg.Layout.AttentionGroups()), ranks: max(1, cfg.Layout.EP), layers: float64(cfg.Arch.Layers())}
	var err error
	if a.stages, err = compile(&a.cfg); err != nil {
		return nil, err
	}
	if cfg.Options.DraftTokens > 0 && cfg.Options.DraftCost <= 0 && cfg.Arch.Draft.Layers > 0 {
		if a.draft, err = draftStage(&a.cfg); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// view is what one rank sees of a batch.
type view struct {
	all, group float64 // tokens of the step; of one attention group
	decodes    float64 // decoding sequences of one attention group
	decodeKV   float64
	perSeq     float64 // tokens per decoding sequence
	sampled    float64 // tokens that the head sees, whole step
	prompt     float64 // prompt tokens of the step
	chunks     []Chunk
	dp         float64
	// spread is the busiest attention group's share of the prompts over that of a
	// step whose prompts all came to one group: the engine gives them to the groups
	// in turn.
	spread float64
}

func (a *Analytic) look(b *Batch) view {
	v := view{perSeq: max(1, b.TokensPerSequence), chunks: b.Chunks, dp: a.dp}
	for i := range b.Chunks {
		c := &b.Chunks[i]
		n := c.sequences()
		v.prompt += c.Tokens * n
		v.sampled += c.Final * n
	}
	v.sampled += b.Decodes * v.perSeq
	v.all = v.prompt + b.Decodes*v.perSeq
	// The slowest attention group decides: it holds at least one whole
	// sequence, and a lone chunk occupies one group only.
	v.decodes = max(min(1, b.Decodes), b.Decodes/a.dp)
	if b.Decodes > 0 {
		v.decodeKV = b.DecodeKV * v.decodes / b.Decodes
	}
	v.spread = 1
	whole := a.groupPrompt(b.Chunks)
	if whole > 0 {
		busiest := v.prompt / a.dp
		for i := range b.Chunks {
			busiest = max(busiest, b.Chunks[i].Tokens)
		}
		v.spread = busiest / whole
	}
	v.group = v.decodes*v.perSeq + whole*v.spread
	return v
}

// groupPrompt returns the prompt tokens of the busiest attention group: equal
// pieces spread over the groups, one piece stays whole.
func (a *Analytic) groupPrompt(chunks []Chunk) float64 {
	var t float64
	for i := range chunks {
		c := &chunks[i]
		t += c.Tokens * max(1, c.sequences()/a.dp)
	}
	return t
}

// Price implements [Pricer].
func (a *Analytic) Price(b Batch, into *Breakdown) Time {
	if into != nil {
		*into = Breakdown{}
	}
	if pp := float64(len(a.stages)); pp > 1 && b.Decodes > 0 {
		// Decoding sequences travel in as many micro-batches as there are
		// stages; each is priced at its own size.
		b.Decodes, b.DecodeKV = b.Decodes/pp, b.DecodeKV/pp
	}
	v := a.look(&b)
	if v.all <= 0 {
		return Time{}
	}
	var t Time
	for i := range a.stages {
		s := a.stageTime(&a.stages[i], &v, into)
		if i > 0 {
			p := a.cfg.Collectives.PointToPoint(units.Bytes(v.all*float64(2*a.cfg.Arch.Hidden)), false).Time
			s += p
			if into != nil {
				into.add(OpPointToPoint, p, p, 0, 0, kernel.BoundFabric)
			}
		}
		t.Latency += s
		t.Interval = max(t.Interval, s)
	}
	extra := a.stepExtras(&b, &v, t, into)
	t.Latency += extra
	t.Interval += extra
	return t
}

// stepExtras prices what a step pays once: host time, the drafter, penalties.
func (a *Analytic) stepExtras(b *Batch, v *view, t Time, into *Breakdown) units.Seconds {
	e, o := &a.cfg.Efficiency.Values, &a.cfg.Options
	host := e[software.HostStep] + e[software.HostSequence]*(v.decodes+float64(len(v.chunks)))
	if v.prompt > 0 {
		host += e[software.HostPrefill]
	}
	extra := units.Seconds(host) + o.StepOverhead
	if v.prompt > 0 && b.Decodes > 0 && o.MixedPenalty > 0 {
		extra += units.Seconds(o.MixedPenalty) * t.Latency
	}
	if f := e[software.AttentionDP]; a.dp > 1 && f > 1 {
		extra += units.Seconds(f-1) * t.Latency
	}
	if o.KernelFloor > 0 && o.KernelsPerLayer > 0 {
		floor := o.KernelFloor * units.Seconds(a.layers*float64(o.KernelsPerLayer)+6)
		extra = max(extra, floor-t.Latency)
	}
	if into != nil {
		into.add(OpHost, extra, 0, 0, 0, kernel.BoundHost)
	}
	draft := a.draftTime(b, t)
	if draft > 0 && into != nil {
		into.add(OpDraft, draft, 0, 0, 0, kernel.BoundHBM)
	}
	return extra + draft
}

// draftTime prices the drafter's passes over the decoding sequences: one per
// proposed token.
func (a *Analytic) draftTime(b *Batch, t Time) units.Seconds {
	o := &a.cfg.Options
	if o.DraftTokens <= 0 || b.Decodes <= 0 {
		return 0
	}
	if o.DraftCost > 0 {
		return units.Seconds(o.DraftCost*o.DraftTokens) * t.Latency / units.Seconds(max(1, b.TokensPerSequence))
	}
	if len(a.draft.ops) == 0 {
		return 0
	}
	db := Batch{Decodes: b.Decodes, DecodeKV: b.DecodeKV, TokensPerSequence: 1}
	v := a.look(&db)
	return units.Seconds(o.DraftTokens) * a.stageTime(&a.draft, &v, nil)
}

func (a *Analytic) stageTime(s *stage, v *view, into *Breakdown) units.Seconds {
	var total units.Seconds
	for i := range s.ops {
		total += a.opTime(&s.ops[i], v, into)
	}
	return total
}

// SetEfficiency returns a pricer that shares everything with a but the
// engine's efficiencies; the calibration fit uses it.
func (a *Analytic) SetEfficiency(e *software.Efficiency) *Analytic {
	c := *a
	c.cfg.Efficiency = e
	return &c
}

// elementFormat returns the un-quantised format of activations.
func elementFormat(d models.DType) models.Format {
	return models.Format{Name: d.String(), Element: d, Activation: d}
}
