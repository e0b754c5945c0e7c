package models

import (
	"errors"
	"fmt"
)

// ErrBadConfig is the kind of every error about a model description that
// cannot be used: a malformed config.json, a missing or impossible dimension.
var ErrBadConfig = errors.New("bad model config")

// Upper bounds on dimensions, which [Architecture.Validate] refuses to see
// passed. They are far above any model and keep every product within exact
// float64 and int64 range. Readers of model descriptions check against them
// before they multiply or allocate.
const (
	MaxLayers  = 4096    // layers of the main stack
	MaxHeads   = 1 << 16 // heads, of queries as of keys and values
	MaxWidth   = 1 << 24 // width of a head, a rank or a feed-forward part
	MaxVocab   = 1 << 26 // rows of the embedding
	MaxExperts = 1 << 16 // routed experts of a layer
	maxHidden  = 1 << 20
	maxParams  = 1e15
)

// Validate reports the first dimension that is missing or impossible, as an
// [ErrBadConfig].
func (a *Architecture) Validate() error {
	if err := a.validate(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBadConfig, a.Name, err)
	}
	return nil
}

func (a *Architecture) validate() error {
	var c checks
	c.positive("hidden", a.Hidden, maxHidden)
	c.positive("vocab", a.Vocab, MaxVocab)
	c.within("padded_vocab", a.PaddedVocab, MaxVocab)
	c.within("residual_streams", a.ResidualStreams, 64)
	c.within("per_layer_embedding", a.PerLayerEmbedding, maxHidden)
	c.within("per_layer_vocab", a.PerLayerVocab, MaxVocab)
	c.positive("layers", len(a.Pattern), MaxLayers)
	c.within("draft layers", a.Draft.Layers, 64)
	if a.MaxContext < 0 || a.VisionParams < 0 || a.VisionParams > maxParams {
		c.fail("negative context length or impossible vision tower")
	}
	if len(a.Groups) == 0 || len(a.Groups) > 255 {
		c.fail("%d layer groups, want 1 to 255", len(a.Groups))
	}
	counts := make([]int, len(a.Groups))
	for i, g := range a.Pattern {
		if int(g) >= len(counts) {
			c.fail("layer %d is of group %d of %d", i, g, len(counts))
			return c.err
		}
		counts[g]++
	}
	for i := range a.Groups {
		g := &a.Groups[i]
		if g.Count != counts[i] || g.Count == 0 {
			c.fail("group %d counts %d layers, the pattern has %d", i, g.Count, counts[i])
		}
		c.group(fmt.Sprintf("group %d: ", i), g)
	}
	if a.Draft.Layers > 0 {
		c.group("draft: ", &a.Draft.Layer)
	}
	if c.err != nil {
		return c.err
	}
	return a.validateSize()
}

func (a *Architecture) validateSize() error {
	if a.Compute.Bits() < 16 {
		return fmt.Errorf("compute dtype %v, want bf16, fp16 or fp32", a.Compute)
	}
	for c, f := range a.Formats {
		if f.IsZero() {
			return fmt.Errorf("no format for %v", TensorClass(c))
		}
	}
	total := float64(a.Rows()) * float64(a.Hidden) * 2
	for _, g := range a.Groups {
		for _, p := range a.Tensors(g) {
			total += p.Params * float64(g.Count)
		}
	}
	if !(total <= maxParams) {
		return fmt.Errorf("%.3g parameters", total)
	}
	return nil
}

// checks keeps the first problem found.
type checks struct{ err error }

func (c *checks) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *checks) positive(name string, v, limit int) {
	if v < 1 || v > limit {
		c.fail("%s is %d, want 1 to %d", name, v, limit)
	}
}

func (c *checks) within(name string, v, limit int) {
	if v < 0 || v > limit {
		c.fail("%s is %d, want 0 to %d", name, v, limit)
	}
}

func (c *checks) group(at string, g *LayerGroup) {
	c.attention(at, &g.Attention)
	c.ffn(at, &g.FFN)
	c.within(at+"norms", g.Norms, 64)
	if g.Attention.Kind == AttentionNone && g.FFN.Kind == FFNNone && g.Norms > 0 && !g.Attention.Linear && !g.FFN.Linear {
		c.fail("%slayer without mixer and feed-forward", at)
	}
}

func (c *checks) attention(at string, t *Attention) {
	c.within(at+"window", t.Window, 1<<30)
	switch t.Kind {
	case AttentionGQA, AttentionCross:
		c.positive(at+"heads", t.Heads, MaxHeads)
		c.positive(at+"kv_heads", t.KVHeads, MaxHeads)
		c.positive(at+"k_dim", t.KDim, MaxWidth)
		c.positive(at+"v_dim", t.VDim, MaxWidth)
		if c.err == nil && t.Heads%t.KVHeads != 0 {
			c.fail("%s%d heads do not divide into %d key/value heads", at, t.Heads, t.KVHeads)
		}
	case AttentionMLA:
		c.positive(at+"heads", t.Heads, MaxHeads)
		c.positive(at+"kv_lora", t.MLA.KVLoRA, MaxWidth)
		c.within(at+"rope", t.MLA.Rope, MaxWidth)
		c.within(at+"nope", t.MLA.NoPE, MaxWidth)
		c.positive(at+"v_dim", t.VDim, MaxWidth)
	case AttentionRecurrent:
		c.recurrent(at, &t.Recurrent)
	}
	c.within(at+"q_lora", t.MLA.QLoRA, MaxWidth)
	c.within(at+"output_lora", t.MLA.OutputLoRA, MaxWidth)
	c.within(at+"output_groups", t.MLA.OutputGroups, MaxHeads)
	s := t.Sparse
	c.within(at+"top_k", s.TopK, 1<<30)
	c.within(at+"compress", s.Compress, 1<<20)
	c.within(at+"block_tokens", s.BlockTokens, 1<<20)
	if s.Indexer {
		c.positive(at+"index_heads", s.IndexHeads, MaxHeads)
		c.positive(at+"index_dim", s.IndexDim, MaxWidth)
	}
}

func (c *checks) recurrent(at string, r *Recurrent) {
	c.within(at+"conv_kernel", r.ConvKernel, 1<<16)
	c.within(at+"conv_channels", r.ConvChannels, MaxWidth)
	c.within(at+"decay_rank", r.DecayRank, MaxWidth)
	c.within(at+"gate_rank", r.GateRank, MaxWidth)
	if r.Kind == ShortConv {
		c.positive(at+"conv_channels", r.ConvChannels, MaxWidth)
		return
	}
	if r.Kind == RecurrentNone {
		c.fail("%srecurrent layer of unknown kind", at)
	}
	c.positive(at+"k_heads", r.KHeads, MaxHeads)
	c.positive(at+"v_heads", r.VHeads, MaxHeads)
	c.positive(at+"k_dim", r.KDim, MaxWidth)
	c.positive(at+"v_dim", r.VDim, MaxWidth)
}

func (c *checks) ffn(at string, f *FFN) {
	c.within(at+"intermediate", f.Intermediate, MaxWidth)
	switch f.Kind {
	case FFNDense:
		c.positive(at+"intermediate", f.Intermediate, MaxWidth)
	case FFNMoE:
		c.positive(at+"experts", f.Experts, MaxExperts)
		c.positive(at+"top_k", f.TopK, MaxExperts)
		c.positive(at+"expert_intermediate", f.ExpertIntermediate, MaxWidth)
		c.within(at+"shared_intermediate", f.SharedIntermediate, MaxWidth)
		c.within(at+"latent_dim", f.LatentDim, MaxWidth)
		if c.err == nil && f.TopK > f.Experts {
			c.fail("%stop_k %d of %d experts", at, f.TopK, f.Experts)
		}
	}
}
