package step

import (
	"infera/internal/units"
	"infera/models"
	"infera/sim/layout"
	"infera/sim/moe"
	"infera/sim/software"
)

// opKind selects how an operation is priced.
type opKind uint8

const (
	opGEMM      opKind = iota // weights [n, k] times the step's tokens
	opHead                    // the same for tokens that are sampled only
	opExperts                 // routed experts of one layer
	opAttention               // softmax attention core
	opIndexer                 // token selector of sparse attention
	opScan                    // recurrent core
	opStream                  // bytes per token through memory
	opSample                  // bytes per sampled token
	opAllReduce               // bytes per token
	opAllToAll                // expert dispatch and combine
	opFixed                   // a fixed time
)

// tokenView says which tokens one rank processes in an operation.
type tokenView uint8

const (
	viewAll   tokenView = iota // every token of the step
	viewGroup                  // the tokens of one attention-data-parallel group
)

// op is one operation of a step on one rank, repeated count times.
type op struct {
	kind  opKind
	class Op
	view  tokenView
	count float64

	n, k    int
	weights models.Format
	// stream is the tuned time of a product or collective of one row.
	stream units.Seconds
	// decode and prefill are the efficiencies at few and at many tokens.
	decode, prefill software.Coefficient

	attention *models.Attention // shapes on this rank, for cores
	state     units.Bytes       // recurrent state per sequence on this rank
	perToken  units.Bytes       // opStream, opSample, opAllReduce
	ffn       *models.FFN       // opExperts: widths on this rank
	routing   *moe.Routing      // opExperts
}

// stage is the operation list of one pipeline stage.
type stage struct {
	ops []op
}

// compiler turns an architecture and a layout into operation lists.
type compiler struct {
	cfg  *Config
	arch *models.Architecture
	// atp shards the heads of one attention group, dtp dense feed-forward
	// parts; ep spreads experts.
	tp, atp, dtp, ep int
	ops              []op
	// shapes and widths back the pointers of ops; they have room for every
	// group of a stage, so they never move.
	shapes []models.Attention
	widths []models.FFN
	err    error
}

func (c *compiler) shape(a *models.Attention) *models.Attention {
	c.shapes = append(c.shapes, *a)
	return &c.shapes[len(c.shapes)-1]
}

func (c *compiler) width(f *models.FFN) *models.FFN {
	c.widths = append(c.widths, *f)
	return &c.widths[len(c.widths)-1]
}

func newCompiler(cfg *Config) compiler {
	l := cfg.Layout
	return compiler{
		cfg: cfg, arch: cfg.Arch, tp: max(1, l.TP), atp: l.AttentionTP(), dtp: l.DenseTP(),
		ep: max(1, l.EP), ops: make([]op, 0, 16+6*len(cfg.Arch.Groups)),
		shapes: make([]models.Attention, 0, len(cfg.Arch.Groups)+1), widths: make([]models.FFN, 0, len(cfg.Arch.Groups)+1),
	}
}

func compile(cfg *Config) ([]stage, error) {
	plan := layout.Stages(cfg.Arch, cfg.Layout)
	stages := make([]stage, len(plan))
	for i := range plan {
		p := &plan[i]
		c := newCompiler(cfg)
		for g, n := range p.Groups {
			if n > 0 {
				c.group(&cfg.Arch.Groups[g], float64(n))
			}
		}
		if p.Embedding {
			c.embedding()
		}
		if p.Head {
			c.head()
		}
		if c.err != nil {
			return nil, c.err
		}
		stages[i].ops = c.ops
	}
	return stages, nil
}

// draftStage compiles the built-in drafter: its layers and the shared head.
func draftStage(cfg *Config) (stage, error) {
	c := newCompiler(cfg)
	c.group(&cfg.Arch.Draft.Layer, 1)
	c.gemm(OpAttentionProjection, viewGroup, 1, cfg.Arch.Hidden, 2*cfg.Arch.Hidden, models.ClassDraft)
	c.head()
	return stage{ops: c.ops}, c.err
}

func (c *compiler) group(g *models.LayerGroup, count float64) {
	c.attention(&g.Attention, count)
	c.feedForward(&g.FFN, count)
	c.norms(g, count)
}

func shard(n, ranks int) int {
	if n == 0 {
		return 0
	}
	return max(1, (n+ranks-1)/ranks)
}

// format returns how a tensor class is stored; unstated means un-quantised.
func (c *compiler) format(t models.TensorClass) models.Format {
	if f := c.arch.Formats[t]; !f.IsZero() {
		return f
	}
	return elementFormat(c.arch.Compute)
}

// gemm adds a matrix product; products of one shape and class are merged.
func (c *compiler) gemm(class Op, view tokenView, count float64, n, k int, t models.TensorClass) {
	if n <= 0 || k <= 0 {
		return
	}
	f := c.format(t)
	for i := range c.ops {
		o := &c.ops[i]
		if o.kind == opGEMM && o.class == class && o.view == view && o.n == n && o.k == k && o.weights == f {
			o.count += count
			return
		}
	}
	c.ops = append(c.ops, op{
		kind: opGEMM, class: class, view: view, count: count, n: n, k: k, weights: f,
		stream: c.cfg.Kernels.GEMM(1, n, k, f).Time,
		decode: software.GEMMDecodeBF16.ByFormat(f), prefill: software.GEMMPrefillBF16.ByFormat(f),
	})
}

func (c *compiler) fixed(class software.Coefficient, count float64) {
	for i := range c.ops {
		if o := &c.ops[i]; o.kind == opFixed && o.decode == class {
			o.count += count
			return
		}
	}
	c.ops = append(c.ops, op{kind: opFixed, class: OpLayerFixed, count: count, decode: class})
}

// stream adds bytes per token through memory; all of a view are merged.
func (c *compiler) stream(class Op, view tokenView, count float64, perToken units.Bytes) {
	for i := range c.ops {
		if o := &c.ops[i]; o.kind == opStream && o.class == class && o.view == view && o.perToken == perToken {
			o.count += count
			return
		}
	}
	c.ops = append(c.ops, op{kind: opStream, class: class, view: view, count: count, perToken: perToken})
}

func (c *compiler) allReduce(count float64, view tokenView, ranks int) {
	if ranks <= 1 {
		return
	}
	perToken := units.Bytes(2 * c.arch.Hidden)
	for i := range c.ops {
		if o := &c.ops[i]; o.kind == opAllReduce && o.view == view && o.n == ranks {
			o.count += count
			return
		}
	}
	c.ops = append(c.ops, op{
		kind: opAllReduce, class: OpAllReduce, view: view, count: count, n: ranks, perToken: perToken,
		stream: c.cfg.Collectives.AllReduce(ranks, perToken).Time,
		decode: software.AllReduceSmall, prefill: software.AllReduceLarge,
	})
}

// mixerLaunches returns the launches of a token mixer over those of the
// plainest of its family: projection, rotary embedding, core and output
// projection, plus the norms of queries and keys and the output gate.
func mixerLaunches(a *models.Attention) float64 {
	const plain = 4
	n := float64(plain)
	if a.QKNorm {
		n++
	}
	if a.OutputGate {
		n++
	}
	return n / plain
}

// expertLaunches returns the launches of a mixture of experts over those of
// one without shared experts: router, top-k, permutation, two products, the
// activation and the sum, plus the three kernels of the shared expert.
func expertLaunches(f *models.FFN) float64 {
	const plain = 7
	n := float64(plain)
	if f.SharedIntermediate > 0 {
		n += 3
	}
	return n / plain
}

func (c *compiler) attention(a *models.Attention, count float64) {
	if a.Kind == models.AttentionNone {
		return
	}
	mixer := software.MixerOf(a)
	c.fixed(software.LayerGQA.ByMixer(mixer), count*mixerLaunches(a))
	hidden := c.arch.Hidden
	if a.Kind == models.AttentionRecurrent {
		c.recurrent(a, count)
		return
	}
	rank := *a
	rank.Heads = layout.HeadsPerRank(*a, c.cfg.Layout)
	rank.KVHeads = layout.KVHeadsPerRank(*a, c.cfg.Layout)
	switch {
	case a.Kind == models.AttentionMLA:
		c.latentProjections(a, &rank, count)
	default:
		kv := rank.KVHeads * a.KDim
		if !a.TiedKV {
			kv += rank.KVHeads * a.VDim
		}
		if a.KVShared {
			kv = 0
		}
		q := rank.Heads * a.KDim
		if a.OutputGate {
			q += rank.Heads * a.VDim
		}
		if a.MLA.QLoRA > 0 {
			c.gemm(OpAttentionProjection, viewGroup, count, a.MLA.QLoRA+kv, hidden, models.ClassAttention)
			c.gemm(OpAttentionProjection, viewGroup, count, q, a.MLA.QLoRA, models.ClassAttention)
		} else {
			c.gemm(OpAttentionProjection, viewGroup, count, q+kv, hidden, models.ClassAttention)
		}
	}
	c.outputProjection(a, &rank, count)
	if a.Sparse.Indexer {
		c.indexer(a, count)
	}
	c.ops = append(c.ops, op{
		kind: opAttention, view: viewGroup, count: count, attention: c.shape(&rank),
		decode: software.AttentionDecodeGQA.ByMixer(mixer), prefill: software.AttentionPrefillGQA.ByMixer(mixer),
	})
	c.allReduce(count, viewGroup, c.atp)
}

// latentProjections adds the down- and up-projections of multi-head latent
// attention. The down-projections are replicated; the up-projection of keys
// and values is the same weight stream whether it is applied to new tokens
// (prefill) or absorbed into queries and outputs (decode).
func (c *compiler) latentProjections(a, rank *models.Attention, count float64) {
	hidden, m := c.arch.Hidden, a.MLA
	q := rank.Heads * (m.NoPE + m.Rope)
	if m.QLoRA > 0 {
		c.gemm(OpAttentionProjection, viewGroup, count, m.QLoRA+m.KVLoRA+m.Rope, hidden, models.ClassAttention)
		c.gemm(OpAttentionProjection, viewGroup, count, q, m.QLoRA, models.ClassAttention)
	} else {
		c.gemm(OpAttentionProjection, viewGroup, count, q+m.KVLoRA+m.Rope, hidden, models.ClassAttention)
	}
	c.gemm(OpAttentionProjection, viewGroup, count, rank.Heads*(m.NoPE+a.VDim), m.KVLoRA, models.ClassAttention)
	if a.OutputGate {
		c.gemm(OpAttentionProjection, viewGroup, count, rank.Heads*a.VDim, hidden, models.ClassAttention)
	}
}

func (c *compiler) outputProjection(a, rank *models.Attention, count float64) {
	hidden, m := c.arch.Hidden, a.MLA
	if m.OutputLoRA > 0 && m.OutputGroups > 0 {
		groups := shard(m.OutputGroups, c.atp)
		c.gemm(OpAttentionProjection, viewGroup, count*float64(groups), m.OutputLoRA, rank.Heads*a.VDim/groups, models.ClassAttention)
		c.gemm(OpAttentionProjection, viewGroup, count, hidden, groups*m.OutputLoRA, models.ClassAttention)
		return
	}
	c.gemm(OpAttentionProjection, viewGroup, count, hidden, rank.Heads*a.VDim, models.ClassAttention)
}

// indexer adds the selector of sparse attention: replicated projections and a
// score of every cached entry.
func (c *compiler) indexer(a *models.Attention, count float64) {
	s, hidden := a.Sparse, c.arch.Hidden
	from := hidden
	if a.MLA.QLoRA > 0 {
		from = a.MLA.QLoRA
	}
	c.gemm(OpIndexer, viewGroup, count, s.IndexHeads*s.IndexDim, from, models.ClassIndexer)
	c.gemm(OpIndexer, viewGroup, count, s.IndexDim+s.IndexHeads, hidden, models.ClassIndexer)
	c.ops = append(c.ops, op{
		kind: opIndexer, class: OpIndexer, view: viewGroup, count: count, attention: a,
		decode:  software.AttentionDecodeGQA.ByMixer(software.MixerOf(a)),
		prefill: software.AttentionPrefillGQA.ByMixer(software.MixerOf(a)),
	})
}

func (c *compiler) recurrent(a *models.Attention, count float64) {
	r, hidden := a.Recurrent, c.arch.Hidden
	vHeads, kHeads := layout.HeadsPerRank(*a, c.cfg.Layout), layout.KVHeadsPerRank(*a, c.cfg.Layout)
	value, key := vHeads*r.VDim, kHeads*r.KDim
	rank := *a
	rank.Recurrent.VHeads, rank.Recurrent.KHeads = vHeads, kHeads
	rank.Recurrent.ConvChannels = shard(r.ConvChannels, c.atp)
	c.gemm(OpRecurrent, viewGroup, count, 2*value+2*key+2*vHeads, hidden, models.ClassRecurrent)
	c.gemm(OpRecurrent, viewGroup, count, hidden, value, models.ClassRecurrent)
	c.stream(OpRecurrent, viewGroup, count, units.Bytes(2*(2*rank.Recurrent.ConvChannels+3*value)))
	state := units.Bytes(float64(vHeads*r.KDim*r.VDim)*r.StateDType.Bits()/8 + float64(rank.Recurrent.ConvChannels*max(0, r.ConvKernel-1)*2))
	c.ops = append(c.ops, op{
		kind: opScan, class: OpRecurrent, view: viewGroup, count: count, attention: c.shape(&rank), state: state,
		decode: software.AttentionDecodeRecurrent, prefill: software.AttentionPrefillRecurrent,
	})
	c.allReduce(count, viewGroup, c.atp)
}

func (c *compiler) feedForward(f *models.FFN, count float64) {
	hidden := c.arch.Hidden
	switch f.Kind {
	case models.FFNDense:
		c.fixed(software.LayerDense, count)
		c.denseBranch(OpDenseFFN, layout.DenseWidthPerRank(*f, c.format(models.ClassDenseFFN), c.cfg.Layout), f.Gated, count, models.ClassDenseFFN)
		c.allReduce(count, viewGroup, c.dtp)
	case models.FFNMoE:
		c.fixed(software.LayerMoE, count*expertLaunches(f))
		c.gemm(OpRouter, viewGroup, count, f.Experts, hidden, models.ClassRouter)
		if f.Intermediate > 0 {
			c.denseBranch(OpDenseFFN, layout.DenseWidthPerRank(*f, c.format(models.ClassDenseFFN), c.cfg.Layout), f.Gated, count, models.ClassDenseFFN)
		}
		if f.SharedIntermediate > 0 {
			c.denseBranch(OpSharedExpert, layout.SharedWidthPerRank(*f, c.format(models.ClassSharedExpert), c.cfg.Layout), f.Gated, count, models.ClassSharedExpert)
		}
		w := c.format(models.ClassRoutedExpert)
		rank := *f
		rank.ExpertIntermediate = layout.ExpertWidthPerRank(*f, w, c.cfg.Layout)
		width := hidden
		if f.LatentDim > 0 {
			width = f.LatentDim
			c.gemm(OpExperts, viewGroup, count, width, hidden, models.ClassRoutedExpert)
			c.gemm(OpExperts, viewGroup, count, hidden, width, models.ClassRoutedExpert)
		}
		routing, err := moe.New(f.Experts, f.TopK, c.cfg.Routing)
		if err != nil {
			c.err = err
			return
		}
		c.ops = append(c.ops, op{
			kind: opExperts, class: OpExperts, view: viewAll, count: count, k: width, ffn: c.width(&rank), weights: w, routing: routing,
			decode: software.MoEDecodeBF16.ByFormat(w), prefill: software.MoEPrefillBF16.ByFormat(w),
		})
		if c.ep > 1 && c.cfg.Layout.AttentionGroups() > 1 {
			c.ops = append(c.ops, op{kind: opAllToAll, class: OpAllToAll, view: viewGroup, count: count, k: width, ffn: f})
		} else {
			c.allReduce(count, viewAll, max(c.tp, c.ep))
		}
	}
}

func (c *compiler) denseBranch(class Op, width int, gated bool, count float64, t models.TensorClass) {
	hidden, up := c.arch.Hidden, width
	if gated {
		c.gemm(class, viewGroup, count, 2*up, hidden, t)
		c.stream(OpElementwise, viewGroup, count, units.Bytes(2*3*up))
	} else {
		c.gemm(class, viewGroup, count, up, hidden, t)
		c.stream(OpElementwise, viewGroup, count, units.Bytes(2*2*up))
	}
	c.gemm(class, viewGroup, count, hidden, up, t)
}

// norms adds the fused residual-add and norm before each half of a layer:
// two reads and two writes of the activations, and the cast of the norm's
// output where weights are quantised.
func (c *compiler) norms(g *models.LayerGroup, count float64) {
	per := units.Bytes(4 * 2 * c.arch.Hidden)
	if g.Attention.Kind != models.AttentionNone {
		c.stream(OpElementwise, viewGroup, count, per)
		if g.Attention.Kind != models.AttentionRecurrent {
			q := (layout.HeadsPerRank(g.Attention, c.cfg.Layout) + 2*layout.KVHeadsPerRank(g.Attention, c.cfg.Layout)) * g.Attention.KDim
			c.stream(OpElementwise, viewGroup, count, units.Bytes(2*2*q)) // rotary embedding and cache write
		}
	}
	if g.FFN.Kind != models.FFNNone {
		c.stream(OpElementwise, viewGroup, count, per)
	}
}

func (c *compiler) embedding() {
	c.stream(OpEmbedding, viewGroup, 1, units.Bytes(2*2*c.arch.Hidden))
	c.allReduce(1, viewGroup, c.dtp)
}

func (c *compiler) head() {
	rows := layout.VocabPerRank(c.arch, c.cfg.Layout)
	f := c.format(models.ClassHead)
	c.ops = append(c.ops, op{
		kind: opHead, class: OpHead, count: 1, n: rows, k: c.arch.Hidden, weights: f,
		stream: c.cfg.Kernels.GEMM(1, rows, c.arch.Hidden, f).Time,
		decode: software.GEMMDecodeBF16.ByFormat(f), prefill: software.GEMMPrefillBF16.ByFormat(f),
	})
	// Logits are gathered in 16 bits, cast to 32 and read twice by the sampler.
	c.ops = append(c.ops, op{kind: opSample, class: OpSampling, count: 1, perToken: units.Bytes(c.arch.Vocab * (2 + 4 + 2*4))})
}
