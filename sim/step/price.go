package step

import (
	"infera/internal/units"
	"infera/models"
	"infera/sim/collective"
	"infera/sim/kernel"
	"infera/sim/software"
)

// opTime prices one operation for what a rank sees of the step.
func (a *Analytic) opTime(o *op, v *view, into *Breakdown) units.Seconds {
	tokens := v.all
	if o.view == viewGroup {
		tokens = v.group
	}
	switch o.kind {
	case opGEMM:
		k := a.cfg.Kernels.GEMM(tokens, o.n, o.k, o.weights)
		return a.charge(o, o.class, k, a.factor(o, k.Time, o.stream), into)
	case opHead:
		if v.sampled <= 0 {
			return 0
		}
		k := a.cfg.Kernels.GEMM(v.sampled/v.dp, o.n, o.k, o.weights)
		return a.charge(o, o.class, k, a.factor(o, k.Time, o.stream), into)
	case opStream:
		b := o.perToken * units.Bytes(tokens)
		return a.charge(o, o.class, a.cfg.Kernels.Stream(b/2, b/2), a.value(software.Stream), into)
	case opSample:
		if a.cfg.Options.NoSampling || v.sampled <= 0 {
			return 0
		}
		b := o.perToken * units.Bytes(v.sampled/v.dp*(1+a.cfg.Options.SamplingPasses/4))
		return a.charge(o, o.class, a.cfg.Kernels.Stream(b/2, b/2), a.value(software.Stream), into)
	case opExperts:
		return a.experts(o, v, into)
	case opAttention:
		return a.attentionCores(o, v, into)
	case opIndexer:
		return a.indexerCores(o, v, into)
	case opScan:
		return a.scanCores(o, v, into)
	case opAllReduce:
		return a.allReduce(o, v, tokens, into)
	case opAllToAll:
		return a.allToAll(o, v, into)
	case opFixed:
		return a.fixedTime(o, v, into)
	}
	return 0
}

func (a *Analytic) value(c software.Coefficient) float64 { return a.cfg.Efficiency.Values[c] }

// factor returns the efficiency of an operation that takes t as tuned, of
// which stream is what it takes for a single row: the stream of its weights at
// decode efficiency, what more rows add at prefill efficiency. Time then never
// falls with rows, whichever of the two is the better.
func (a *Analytic) factor(o *op, t, stream units.Seconds) float64 {
	if !(t > 0) {
		return 1
	}
	e := &a.cfg.Efficiency.Values
	w := float64(min(1, stream/t))
	return e[o.decode]*w + e[o.prefill]*(1-w)
}

// charge adds the kernels of an operation at factor times their tuned time,
// never below their lower bound.
func (a *Analytic) charge(o *op, class Op, k kernel.Estimate, factor float64, into *Breakdown) units.Seconds {
	return a.repeat(o.count, class, k, factor, into)
}

// repeat adds n equal kernels.
func (a *Analytic) repeat(n float64, class Op, k kernel.Estimate, factor float64, into *Breakdown) units.Seconds {
	t := max(k.Lower, k.Time*units.Seconds(factor)) * units.Seconds(n)
	if a.cfg.Options.BoundsOnly {
		t = k.Lower * units.Seconds(n)
	}
	if into != nil {
		into.add(class, t, k.Lower*units.Seconds(n), k.Bytes*units.Bytes(n), k.FLOPs*units.FLOPs(n), k.Bound)
	}
	return t
}

func (a *Analytic) fixedTime(o *op, v *view, into *Breakdown) units.Seconds {
	e := &a.cfg.Efficiency.Values
	t := e[o.decode]
	if v.prompt > 0 && (o.decode == software.LayerDense || o.decode == software.LayerMoE) {
		t += e[software.LayerPrefill]
	}
	if k := &a.cfg.Options; k.KernelOccupancy > 0 {
		t = float64(k.KernelOccupancy) * float64(k.KernelsPerLayer) / 2
	}
	if f := a.cfg.Options.FusedKernels; f > 0 {
		t *= f
	}
	s := units.Seconds(t * o.count)
	if into != nil {
		into.add(o.class, s, 0, 0, 0, kernel.BoundLaunch)
	}
	return s
}

func (a *Analytic) experts(o *op, v *view, into *Breakdown) units.Seconds {
	r, ranks := o.routing, a.ranks
	m := kernel.FusedMoE{
		Tokens: v.all, Rows: r.RowsPerRank(v.all, ranks), Active: r.ActiveOnRank(v.all, ranks), Busiest: 1,
		Hidden: o.k, Intermediate: o.ffn.ExpertIntermediate, Gated: o.ffn.Gated, Weights: o.weights,
	}
	if ranks > 1 {
		m.Rows = r.RowsBusiestRank(v.all, ranks)
	}
	k := a.cfg.Kernels.FusedMoE(m)
	m.Rows = min(m.Rows, m.Active) // one row per touched expert
	factor := a.factor(o, k.Time, a.cfg.Kernels.FusedMoE(m).Time)
	if ranks > 1 {
		factor *= a.value(software.ExpertParallel) * r.Multiplier(ranks)
	}
	return a.charge(o, o.class, k, factor, into)
}

// visible returns how many cached tokens a query at position ctx reads.
func visible(at *models.Attention, ctx float64) float64 {
	s := &at.Sparse
	if s.Compress > 1 {
		entries := ctx / float64(s.Compress)
		if s.TopK > 0 {
			entries = min(entries, float64(s.TopK))
		}
		return min(ctx, float64(at.Window)) + entries
	}
	if at.Window > 0 {
		ctx = min(ctx, float64(at.Window))
	}
	if s.TopK > 0 {
		ctx = min(ctx, float64(s.TopK))
	}
	return ctx
}

func (a *Analytic) attentionCores(o *op, v *view, into *Breakdown) units.Seconds {
	at := o.attention
	scale := 1.0
	if s := a.cfg.Options.AttentionScale; s > 0 {
		scale = s
	}
	var t units.Seconds
	if v.decodes > 0 {
		cached := visible(at, v.decodeKV/v.decodes) * v.decodes
		if cp := a.cfg.Layout.DecodeCP; cp > 1 {
			cached /= float64(cp)
		}
		d := kernel.DecodeAttention{
			Sequences: v.decodes, Tokens: v.perSeq, KVTokens: cached,
			Heads: at.Heads, KVHeads: at.KVHeads, KDim: at.KDim, VDim: at.VDim, KV: a.cfg.KV,
		}
		if at.Kind == models.AttentionMLA {
			d.LatentDim, d.RopeDim = at.MLA.KVLoRA, at.MLA.Rope
		}
		t += a.charge(o, OpAttentionDecode, a.cfg.Kernels.DecodeAttention(d), scale*a.value(o.decode), into)
	}
	for i := range v.chunks {
		c := &v.chunks[i]
		if c.Tokens <= 0 {
			continue
		}
		p := kernel.PrefillAttention{
			Tokens: c.Tokens, Context: c.Context, Heads: at.Heads, KVHeads: at.KVHeads, KDim: at.KDim, VDim: at.VDim,
			Window: at.Window, MLA: at.Kind == models.AttentionMLA, KV: a.cfg.KV,
		}
		if s := &at.Sparse; s.Compress > 1 || s.TopK > 0 {
			p.Window = 0
			p.TopK = visible(at, c.Context+c.Tokens/2)
		}
		n := v.spread * max(1, c.sequences()/v.dp)
		t += a.repeat(o.count*n, OpAttentionPrefill, a.cfg.Kernels.PrefillAttention(p), scale*a.value(o.prefill), into)
	}
	return t
}

func (a *Analytic) indexerCores(o *op, v *view, into *Breakdown) units.Seconds {
	s := &o.attention.Sparse
	per := float64(max(1, s.Compress))
	scale := 1.0
	if f := a.cfg.Options.SparseIndexerScale; f > 0 {
		scale = f
	}
	keys := elementFormat(models.FP8)
	var t units.Seconds
	if v.decodes > 0 {
		t += a.charge(o, OpIndexer, a.cfg.Kernels.DecodeAttention(kernel.DecodeAttention{
			Sequences: v.decodes, Tokens: v.perSeq, KVTokens: v.decodeKV / per,
			Heads: s.IndexHeads, KVHeads: 1, LatentDim: s.IndexDim, KDim: s.IndexDim, KV: keys,
		}), scale*a.value(o.decode), into)
	}
	for i := range v.chunks {
		c := &v.chunks[i]
		if c.Tokens <= 0 {
			continue
		}
		// Half the work of an attention core: scores only, no weighted sum.
		n := 0.5 * v.spread * max(1, c.sequences()/v.dp) / per
		t += a.repeat(o.count*n, OpIndexer, a.cfg.Kernels.PrefillAttention(kernel.PrefillAttention{
			Tokens: c.Tokens, Context: c.Context, Heads: s.IndexHeads, KVHeads: 1, KDim: s.IndexDim, VDim: s.IndexDim, KV: keys,
		}), scale*a.value(o.prefill), into)
	}
	return t
}

func (a *Analytic) scanCores(o *op, v *view, into *Breakdown) units.Seconds {
	r := &o.attention.Recurrent
	scan := kernel.Scan{KHeads: r.KHeads, VHeads: r.VHeads, KDim: r.KDim, VDim: r.VDim, StateBytes: o.state}
	var t units.Seconds
	if v.decodes > 0 {
		scan.Sequences, scan.Tokens, scan.Decode = v.decodes, v.perSeq, true
		t += a.charge(o, OpRecurrent, a.cfg.Kernels.Scan(scan), a.value(o.decode), into)
	}
	for i := range v.chunks {
		c := &v.chunks[i]
		if c.Tokens <= 0 {
			continue
		}
		scan.Sequences, scan.Tokens, scan.Decode = v.spread*max(1, c.sequences()/v.dp), c.Tokens, false
		t += a.charge(o, OpRecurrent, a.cfg.Kernels.Scan(scan), a.value(o.prefill), into)
	}
	return t
}

// exposed returns the share of a collective that is not hidden behind compute.
func (a *Analytic) exposed(v *view) float64 {
	hidden := a.cfg.Options.DecodeOverlap
	if v.prompt > 0 {
		hidden = a.cfg.Options.PrefillOverlap
	}
	return 1 - min(1, max(0, hidden))
}

func (a *Analytic) allReduce(o *op, v *view, tokens float64, into *Breakdown) units.Seconds {
	e := a.cfg.Collectives.AllReduce(o.n, o.perToken*units.Bytes(tokens))
	return a.fabric(o, e.Time, e.Lower, e.Bytes, a.factor(o, e.Time, o.stream), v, into)
}

func (a *Analytic) allToAll(o *op, v *view, into *Breakdown) units.Seconds {
	e := a.cfg.Collectives.Dispatch(collective.Exchange{
		Ranks: a.ranks, Experts: o.ffn.Experts, TopK: o.ffn.TopK, Hidden: o.k,
		TokensPerRank: v.group / float64(a.cfg.Layout.AttentionTP()),
		Dispatch:      a.cfg.Options.Dispatch, Combine: a.cfg.Options.Combine,
	})
	lower := e.Dispatch.Lower + e.Combine.Lower
	return a.fabric(o, e.Exposed(), lower, e.Dispatch.Bytes+e.Combine.Bytes, a.value(software.AllToAll), v, into)
}

func (a *Analytic) fabric(o *op, time, lower units.Seconds, bytes units.Bytes, factor float64, v *view, into *Breakdown) units.Seconds {
	n := units.Seconds(o.count * a.exposed(v))
	t := max(lower, time*units.Seconds(factor)) * n
	if into != nil {
		into.add(o.class, t, lower*n, bytes*units.Bytes(o.count), 0, kernel.BoundFabric)
	}
	return t
}
