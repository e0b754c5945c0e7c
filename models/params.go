package models

import (
	"infera/internal/units"
	"infera/models/modules"
)

// Counts is the number of parameters of a model.
type Counts struct {
	// ByClass counts each tensor class over the whole model, the drafter and
	// the vision tower in classes of their own. A tied head counts as
	// embedding.
	ByClass [NumTensorClasses]int64
	// Total counts the language model without drafter and vision tower.
	Total int64
	// Active counts what one token reads: Total without the experts it does
	// not visit and without the rows of an input embedding it does not look
	// up (a tied embedding counts once, as the head).
	Active int64
	// Draft and Vision count the drafter and the vision tower.
	Draft, Vision int64
}

// Tensor is one kind of parameter tensor of a layer: what it is, the class it
// counts in, and how many parameters it has. The number is whole; it is a
// float so that the product of any dimensions fits.
type Tensor struct {
	Part   modules.Part
	Class  TensorClass
	Params float64
}

// GroupParams returns the parameters of one layer of the group by class.
func (a *Architecture) GroupParams(g LayerGroup) [NumTensorClasses]int64 {
	var out [NumTensorClasses]int64
	for _, p := range a.Tensors(g) {
		out[p.Class] += int64(p.Params)
	}
	return out
}

// ActiveExpertShare returns the share of the routed experts of a layer that
// one token visits; 1 when the layer has none.
func (g LayerGroup) ActiveExpertShare() float64 {
	if g.FFN.Kind != FFNMoE || g.FFN.Experts == 0 {
		return 1
	}
	return float64(g.FFN.TopK) / float64(g.FFN.Experts)
}

// Rows returns the rows of the embedding and of the head as stored.
func (a *Architecture) Rows() int { return max(a.Vocab, a.PaddedVocab) }

// EmbeddingParams returns the parameters of the input embedding, per-layer
// tables included.
func (a *Architecture) EmbeddingParams() int64 {
	return int64(a.Rows())*int64(a.Hidden) + int64(a.PerLayerVocab)*int64(a.PerLayerEmbedding)*int64(len(a.Pattern))
}

// HeadParams returns the size of the matrix that the output projection reads,
// which is the embedding itself when the model is tied.
func (a *Architecture) HeadParams() int64 { return int64(a.Rows()) * int64(a.Hidden) }

// DraftParams returns the parameters of the built-in drafter by class of the
// tensors inside it (attention, routed experts and so on), with the projection
// that joins hidden state and embedding under dense_ffn.
func (a *Architecture) DraftParams() [NumTensorClasses]int64 {
	var out [NumTensorClasses]int64
	n := int64(a.Draft.Layers)
	if n == 0 {
		return out
	}
	for c, v := range a.GroupParams(a.Draft.Layer) {
		out[c] = v * n
	}
	h := int64(a.Hidden)
	out[ClassDenseFFN] += n * 2 * h * h // eh_proj: [hidden; embedding] -> hidden
	out[ClassNorm] += n * 3 * h         // norms of both inputs and of the output
	if !a.Draft.SharesEmbedding {
		out[ClassEmbedding] += n * a.HeadParams()
		out[ClassHead] += n * a.HeadParams()
	}
	return out
}

// Params counts the model.
func (a *Architecture) Params() Counts {
	var c Counts
	for _, g := range a.Groups {
		per := a.GroupParams(g)
		n := int64(g.Count)
		for class, v := range per {
			c.ByClass[class] += v * n
			if TensorClass(class) == ClassRoutedExpert && g.FFN.Experts > 0 {
				c.Active += n * (v / int64(g.FFN.Experts)) * int64(g.FFN.TopK)
				continue
			}
			c.Active += v * n
		}
	}
	c.ByClass[ClassNorm] += int64(a.Hidden) // final norm
	c.Active += int64(a.Hidden) + a.HeadParams()
	c.ByClass[ClassEmbedding] = a.EmbeddingParams()
	if a.PerLayerEmbedding > 0 { // context projection hidden -> layers x width
		n := int64(a.Hidden) * int64(a.PerLayerEmbedding) * int64(len(a.Pattern))
		c.ByClass[ClassDenseFFN] += n
		c.Active += n
	}
	if !a.Tied {
		c.ByClass[ClassHead] = a.HeadParams()
	}
	for _, v := range c.ByClass {
		c.Total += v
	}
	for _, v := range a.DraftParams() {
		c.Draft += v
	}
	c.Vision = a.VisionParams
	c.ByClass[ClassDraft], c.ByClass[ClassVision] = c.Draft, c.Vision
	return c
}

// ClassBytes returns the stored size of each tensor class, scales included.
func (a *Architecture) ClassBytes() [NumTensorClasses]units.Bytes {
	var out [NumTensorClasses]units.Bytes
	for class, n := range a.Params().ByClass {
		out[class] = a.Formats[class].Bytes(float64(n))
	}
	return out
}

// WeightBytes returns the stored size of the language model without drafter
// and vision tower.
func (a *Architecture) WeightBytes() units.Bytes {
	var sum units.Bytes
	for class, b := range a.ClassBytes() {
		if c := TensorClass(class); c != ClassDraft && c != ClassVision {
			sum += b
		}
	}
	return sum
}

// Tensors lists the tensors of one layer of the group. A part may come more
// than once.
func (a *Architecture) Tensors(g LayerGroup) []Tensor {
	ps := make([]Tensor, 0, 24)
	h := float64(a.Hidden)
	switch g.Attention.Kind {
	case AttentionGQA, AttentionCross:
		ps = gqaParts(ps, h, g.Attention)
	case AttentionMLA:
		ps = mlaParts(ps, h, g.Attention)
	case AttentionRecurrent:
		ps = recurrentParts(ps, h, g.Attention.Recurrent)
	case AttentionNone:
		if g.Attention.Linear {
			ps = append(ps, Tensor{modules.Output, ClassAttention, h * h})
		}
	}
	ps = sparseParts(ps, h, g.Attention)
	ps = ffnParts(ps, h, g.FFN)
	norms := float64(g.Norms) * h
	if a.ResidualStreams > 1 { // mixing matrices of the hyper-connections, before each sub-layer
		s := float64(a.ResidualStreams)
		norms += 2 * (s + 2) * s * s * h
	}
	if w := float64(a.PerLayerEmbedding); w > 0 { // gate and projection of the per-layer input
		ps = append(ps, Tensor{modules.DenseUp, ClassDenseFFN, h * w}, Tensor{modules.DenseDown, ClassDenseFFN, w * h})
	}
	return append(ps, Tensor{modules.Norm, ClassNorm, norms})
}

func gqaParts(ps []Tensor, h float64, t Attention) []Tensor {
	heads, kv, kd, vd := float64(t.Heads), float64(t.KVHeads), float64(t.KDim), float64(t.VDim)
	var vectors float64
	if r := float64(t.MLA.QLoRA); r > 0 {
		ps = append(ps, Tensor{modules.QueryA, ClassAttention, h * r}, Tensor{modules.Query, ClassAttention, r * heads * kd})
		vectors += r
	} else {
		ps = append(ps, Tensor{modules.Query, ClassAttention, h * heads * kd})
	}
	if !t.KVShared {
		ps = append(ps, Tensor{modules.Key, ClassAttention, h * kv * kd})
		if !t.TiedKV {
			ps = append(ps, Tensor{modules.Value, ClassAttention, h * kv * vd})
		}
	}
	ps = outputParts(ps, h, t)
	if t.Bias {
		vectors += heads*kd + kv*(kd+vd)
	}
	if t.OutputBias {
		vectors += h
	}
	if t.Sinks {
		vectors += heads
	}
	if t.QKNorm {
		vectors += 2 * kd
	}
	return append(ps, Tensor{modules.Norm, ClassNorm, vectors})
}

// outputParts lists the output projection, whole or grouped low-rank, and the
// gate of the attention output.
func outputParts(ps []Tensor, h float64, t Attention) []Tensor {
	width := float64(t.Heads) * float64(t.VDim)
	if r := float64(t.MLA.OutputLoRA); r > 0 {
		groups := float64(max(t.MLA.OutputGroups, 1))
		// Each group projects its share of the heads to rank r.
		ps = append(ps, Tensor{modules.Output, ClassAttention, width*r + groups*r*h})
	} else {
		ps = append(ps, Tensor{modules.Output, ClassAttention, width * h})
	}
	if t.OutputGate {
		ps = append(ps, Tensor{modules.OutputGate, ClassAttention, h * width})
	}
	return ps
}

// mlaParts lists multi-head latent attention (DeepSeek-V2, section 2.1.2).
func mlaParts(ps []Tensor, h float64, t Attention) []Tensor {
	heads := float64(t.Heads)
	kd, vd := float64(t.MLA.NoPE+t.MLA.Rope), float64(t.VDim)
	latent := float64(t.MLA.KVLoRA)
	vectors := latent
	if r := float64(t.MLA.QLoRA); r > 0 {
		ps = append(ps, Tensor{modules.QueryA, ClassAttention, h * r}, Tensor{modules.Query, ClassAttention, r * heads * kd})
		vectors += r
	} else {
		ps = append(ps, Tensor{modules.Query, ClassAttention, h * heads * kd})
	}
	ps = append(ps,
		Tensor{modules.LatentA, ClassAttention, h * (latent + float64(t.MLA.Rope))},
		Tensor{modules.LatentB, ClassAttention, latent * heads * (float64(t.MLA.NoPE) + vd)})
	ps = outputParts(ps, h, t)
	return append(ps, Tensor{modules.Norm, ClassNorm, vectors})
}

// sparseParts lists the token selector (DeepSeek-V3.2 section 2) and the
// pooling of DeepSeek-V4: key and gate projections, twice as wide where
// windows overlap, which they do at ratio 4.
func sparseParts(ps []Tensor, h float64, t Attention) []Tensor {
	s := t.Sparse
	if s.Compress > 1 {
		ps = append(ps, Tensor{modules.Compressor, ClassAttention, compressorParams(h, float64(t.KDim), s.Compress)})
	}
	if !s.Indexer {
		return ps
	}
	d := float64(s.IndexDim)
	from := h
	if t.MLA.QLoRA > 0 {
		from = float64(t.MLA.QLoRA)
	}
	key := h * d
	if s.Compress > 1 {
		key = compressorParams(h, d, s.Compress)
	}
	ps = append(ps,
		Tensor{modules.IndexQuery, ClassIndexer, from * float64(s.IndexHeads) * d},
		Tensor{modules.IndexKey, ClassIndexer, key})
	if s.BlockTokens <= 1 { // block selectors take the maximum over heads, without head weights
		ps = append(ps, Tensor{modules.IndexGate, ClassIndexer, h * float64(s.IndexHeads)})
	}
	return append(ps, Tensor{modules.Norm, ClassNorm, 2 * d})
}

func compressorParams(h, d float64, ratio int) float64 {
	overlap := 1.0
	if ratio <= 4 {
		overlap = 2
	}
	return 2*h*overlap*d + float64(ratio)*overlap*d
}

func ffnParts(ps []Tensor, h float64, f FFN) []Tensor {
	ups := 1.0
	if f.Gated {
		ups = 2
	}
	if f.Linear {
		ps = append(ps, Tensor{modules.DenseDown, ClassDenseFFN, h * h})
	}
	bias := func(n float64) {
		if f.Bias {
			ps = append(ps, Tensor{modules.Norm, ClassNorm, n})
		}
	}
	if w := float64(f.Intermediate); w > 0 && f.Kind != FFNNone {
		ps = append(ps, Tensor{modules.DenseUp, ClassDenseFFN, ups * h * w}, Tensor{modules.DenseDown, ClassDenseFFN, h * w})
		bias(ups*w + h)
	}
	if f.Kind != FFNMoE {
		return ps
	}
	in, e, w := h, float64(f.Experts), float64(f.ExpertIntermediate)
	if f.LatentDim > 0 {
		in = float64(f.LatentDim)
		ps = append(ps, Tensor{modules.LatentProj, ClassSharedExpert, 2 * h * in})
	}
	ps = append(ps,
		Tensor{modules.ExpertUp, ClassRoutedExpert, e * ups * in * w},
		Tensor{modules.ExpertDown, ClassRoutedExpert, e * in * w},
		Tensor{modules.Router, ClassRouter, h * e})
	if f.Bias { // with the experts, since a token reads only those it visits
		ps = append(ps, Tensor{modules.Norm, ClassRoutedExpert, e * (ups*w + in)})
	}
	if s := float64(f.SharedIntermediate); s > 0 {
		ps = append(ps, Tensor{modules.SharedUp, ClassSharedExpert, ups * h * s}, Tensor{modules.SharedDown, ClassSharedExpert, h * s})
	}
	if f.SharedGate {
		ps = append(ps, Tensor{modules.SharedGate, ClassRouter, h})
	}
	return ps
}

// recurrentParts lists the tensors of recurrent layers as their Hugging Face
// modelling files define them.
func recurrentParts(ps []Tensor, h float64, r Recurrent) []Tensor {
	k, v := float64(r.KHeads)*float64(r.KDim), float64(r.VHeads)*float64(r.VDim)
	heads := float64(r.VHeads)
	add := func(m modules.Part, n float64) { ps = append(ps, Tensor{m, ClassRecurrent, n}) }
	conv := float64(r.ConvChannels) * float64(r.ConvKernel)
	low := func(rank int, to float64) float64 { // a projection, through a low rank if one is set
		if rank > 0 {
			return float64(rank) * (h + to)
		}
		return h * to
	}
	switch r.Kind {
	case Mamba2:
		add(modules.RecurrentIn, h*(2*v+2*k+heads))
		add(modules.RecurrentOut, v*h)
		conv += float64(r.ConvChannels) + 3*heads + v // bias, A, D, dt, norm
	case Mamba1:
		rank, state := float64(r.DecayRank), float64(r.KDim)
		add(modules.RecurrentIn, h*2*v)
		add(modules.RecurrentGate, v*(rank+2*state)+rank*v)
		add(modules.RecurrentOut, v*h)
		conv += v*(state+3) + rank + 2*state
	case GatedDelta:
		add(modules.RecurrentIn, h*(2*k+2*v))
		add(modules.RecurrentGate, h*2*heads)
		add(modules.RecurrentOut, v*h)
		conv += 2*heads + float64(r.VDim)
	case KDA:
		add(modules.RecurrentIn, h*(2*k+v))
		add(modules.RecurrentGate, low(r.DecayRank, k)+low(r.GateRank, v)+h*heads)
		add(modules.RecurrentOut, v*h)
		conv += heads + k + float64(r.VDim)
	case Lightning:
		add(modules.RecurrentIn, h*(2*k+v))
		add(modules.RecurrentGate, h*v)
		add(modules.RecurrentOut, v*h)
		conv += v
	case ShortConv:
		c := float64(r.ConvChannels)
		add(modules.RecurrentIn, h*3*c)
		add(modules.RecurrentOut, c*h)
	}
	if conv > 0 {
		add(modules.RecurrentConv, conv)
	}
	return ps
}
