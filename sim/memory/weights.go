package memory

import (
	"math"

	"infera/internal/units"
	"infera/models"
)

// layer is what the weights of one layer of a group come to, in parameters,
// split by how they are sharded.
type layer struct {
	class [models.NumTensorClasses]float64
	// Of the attention class: key and value projections, which follow the
	// key/value heads, and what every rank holds whole.
	kvProjection, replicated float64
	// absorbed is the latent up-projection, of which engines keep a second
	// copy in the compute type.
	absorbed float64
}

// layerOf splits the parameters of one layer. Down-projections to a latent,
// single key/value heads, compressors, routers, selectors and norms have no
// head dimension to divide.
func layerOf(a *models.Architecture, g models.LayerGroup) layer {
	var l layer
	for class, n := range a.GroupParams(g) {
		l.class[class] = float64(n)
	}
	h, t := float64(a.Hidden), g.Attention
	width := float64(t.Heads) * float64(t.VDim)
	switch t.Kind {
	case models.AttentionMLA:
		l.replicated = h * float64(t.MLA.QLoRA+t.MLA.KVLoRA+t.MLA.Rope)
		l.absorbed = float64(t.MLA.KVLoRA) * float64(t.Heads) * float64(t.MLA.NoPE+t.VDim)
	case models.AttentionGQA, models.AttentionCross:
		if !t.KVShared {
			l.kvProjection = h * float64(t.KVHeads) * float64(t.KDim)
			if !t.TiedKV {
				l.kvProjection += h * float64(t.KVHeads) * float64(t.VDim)
			}
		}
		from := h
		if t.MLA.QLoRA > 0 {
			from = float64(t.MLA.QLoRA)
		}
		sharded := from * float64(t.Heads) * float64(t.KDim)
		if r := float64(t.MLA.OutputLoRA); r > 0 {
			sharded += width*r + float64(max(t.MLA.OutputGroups, 1))*r*h
		} else {
			sharded += width * h
		}
		if t.OutputGate {
			sharded += h * width
		}
		l.replicated = max(0, l.class[models.ClassAttention]-sharded-l.kvProjection)
	}
	return l
}

// kvHeads returns the key/value heads one rank holds: at least one, so that
// fewer heads than ranks are replicated.
func kvHeads(t *models.Attention, ranks int) int {
	return max(1, ceilDiv(t.KVHeads, ranks))
}

// weights holds the bytes of one rank.
type weights struct {
	class    [models.NumTensorClasses]units.Bytes
	absorbed units.Bytes
	total    units.Bytes
}

func (w *weights) add(c models.TensorClass, params, bits float64) {
	b := units.Bytes(params * bits / 8)
	w.class[c] += b
	w.total += b
}

// rankParams adds n layers' parameters on one rank to out; expert is the
// format of the routed experts.
func (q *resolved) rankParams(l *layer, g *models.LayerGroup, expert models.Format, hidden int, n float64, out *[models.NumTensorClasses]float64) {
	at, dense := float64(q.attentionTP), float64(q.denseTP)
	for class, v := range l.class {
		if v == 0 {
			continue
		}
		switch models.TensorClass(class) {
		case models.ClassAttention:
			kv := 0.0
			if l.kvProjection > 0 {
				kv = l.kvProjection * float64(kvHeads(&g.Attention, q.attentionTP)) / float64(g.Attention.KVHeads)
			}
			v = (v-l.kvProjection-l.replicated)/at + kv + l.replicated
		case models.ClassRecurrent:
			v /= at
		case models.ClassDenseFFN, models.ClassSharedExpert:
			v /= dense
		case models.ClassRoutedExpert:
			v *= q.expertShare(g.FFN.Experts) * q.expertPad(&g.FFN, expert, hidden)
		}
		out[class] += n * v
	}
}

// expertShare is the share of a layer's routed experts one rank holds: whole
// experts over the expert group, each divided over ExpertTP ranks.
func (q *resolved) expertShare(experts int) float64 {
	ep := max(1, q.Layout.EP)
	if ep == 1 || experts == 0 {
		return 1 / float64(q.expertRanks)
	}
	local := ceilDiv(experts+q.Layout.RedundantExperts, ep)
	return float64(local) / float64(experts) / float64(q.expertTP)
}

// expertPad is the growth of the routed experts from rounding their widths up
// to what the engine's kernels want.
func (q *resolved) expertPad(f *models.FFN, expert models.Format, hidden int) float64 {
	width, in := q.Engine.ExpertPadding(expert, q.GPU)
	grow := func(n, multiple int) float64 {
		if n < 1 || multiple < 2 {
			return 1
		}
		return float64(ceilDiv(n, multiple)*multiple) / float64(n)
	}
	return grow(ceilDiv(f.ExpertIntermediate, q.expertTP), width) * grow(or(f.LatentDim, hidden), in)
}

// vocabularyPad is the multiple engines round the vocabulary up to before they
// divide it over ranks (vLLM and SGLang VocabParallelEmbedding).
const vocabularyPad = 64

// vocabularyRows returns the rows of the embedding one of n ranks holds.
func (s *Sizer) vocabularyRows(n int) float64 {
	rows := ceilDiv(s.arch.Rows(), vocabularyPad) * vocabularyPad
	return float64(ceilDiv(rows, n))
}

// stageWeights sums the weights of one rank of a pipeline stage.
func (s *Sizer) stageWeights(q *resolved, st *stage) weights {
	var w weights
	if q.WeightBytes > 0 {
		w.total = q.WeightBytes
		return w
	}
	var params [models.NumTensorClasses]float64
	var absorbed float64
	for i := range s.layers {
		n := float64(st.layers[i])
		if n == 0 {
			continue
		}
		q.rankParams(&s.layers[i], &s.arch.Groups[i], s.arch.Formats[models.ClassRoutedExpert], s.arch.Hidden, n, &params)
		absorbed += n * s.layers[i].absorbed / float64(q.attentionTP)
	}
	if st.first {
		params[models.ClassEmbedding] += s.vocabularyRows(q.embeddingTP())*float64(s.arch.Hidden) + s.perLayerEmbedding/float64(q.denseTP)
	}
	if st.last {
		params[models.ClassNorm] += float64(s.arch.Hidden)
		if !s.arch.Tied {
			params[models.ClassHead] += s.vocabularyRows(q.denseTP) * float64(s.arch.Hidden)
		} else if !st.first {
			params[models.ClassEmbedding] += s.vocabularyRows(q.denseTP) * float64(s.arch.Hidden)
		}
	}
	for c, n := range params {
		if n > 0 {
			bits, _ := q.Engine.Weight(s.arch.Formats[c], models.TensorClass(c), q.GPU)
			w.add(models.TensorClass(c), n, bits)
		}
	}
	w.absorbed = units.Bytes(absorbed * s.arch.Compute.Bits() / 8)
	w.total += w.absorbed
	if st.first && !q.TextOnly && s.arch.VisionParams > 0 {
		bits := s.classBits(q, models.ClassVision)
		w.add(models.ClassVision, float64(s.arch.VisionParams)/float64(q.attentionTP), bits)
	}
	if st.last {
		s.addDraft(q, &w)
	}
	return w
}

// embeddingTP returns the ranks that share the input embedding: engines that
// keep dense weights sharded under attention data parallelism still look
// tokens up locally.
func (q *resolved) embeddingTP() int {
	if q.groups > 1 {
		return q.attentionTP
	}
	return q.denseTP
}

// classBits returns the stored bits per element of a class, in the compute
// type when the checkpoint does not say.
func (s *Sizer) classBits(q *resolved, c models.TensorClass) float64 {
	f := s.arch.Formats[c]
	if f.IsZero() {
		return s.arch.Compute.Bits()
	}
	bits, _ := q.Engine.Weight(f, c, q.GPU)
	return bits
}

// addDraft adds the drafter, when speculation is on.
func (s *Sizer) addDraft(q *resolved, w *weights) {
	if q.SpeculativeTokens == 0 {
		return
	}
	if q.DraftWeights > 0 {
		b := q.DraftWeights / units.Bytes(q.denseTP)
		w.class[models.ClassDraft] += b
		w.total += b
		return
	}
	if s.arch.Draft.Layers == 0 {
		return
	}
	own := s.arch.Formats[models.ClassDraft]
	var params [models.NumTensorClasses]float64
	n := float64(s.arch.Draft.Layers)
	expert := own
	if own.IsZero() {
		expert = s.arch.Formats[models.ClassRoutedExpert]
	}
	q.rankParams(&s.draft, &s.arch.Draft.Layer, expert, s.arch.Hidden, n, &params)
	if q.Engine.DraftEmbedding && s.arch.Draft.SharesEmbedding {
		head := s.vocabularyRows(q.denseTP) * float64(s.arch.Hidden)
		w.add(models.ClassDraft, head, s.classBits(q, models.ClassEmbedding))
		w.add(models.ClassDraft, head, s.classBits(q, models.ClassHead))
	}
	for c, extra := range s.draftExtra {
		if c == int(models.ClassEmbedding) || c == int(models.ClassHead) {
			extra /= float64(q.denseTP)
		}
		params[c] += extra
	}
	for c, p := range params {
		if p == 0 {
			continue
		}
		bits := s.classBits(q, models.TensorClass(c))
		if !own.IsZero() {
			bits, _ = q.Engine.Weight(own, models.TensorClass(c), q.GPU)
		}
		w.add(models.ClassDraft, p, bits)
	}
}

// stage is one pipeline stage: how many layers of each group it has.
type stage struct {
	layers      [maxGroups]int32
	first, last bool
	count       int
}

// maxGroups bounds the layer groups of an architecture, so that a stage needs
// no allocation.
const maxGroups = 128

// stageOf returns stage i of n. Layers are divided evenly; the remainder goes
// to the stages before the last, which already holds the head (vLLM's rule).
func (s *Sizer) stageOf(i, n int) stage {
	st := stage{first: i == 0, last: i == n-1}
	if n == 1 {
		for k, g := range s.arch.Groups {
			st.layers[k] = int32(min(g.Count, math.MaxInt32))
			st.count += g.Count
		}
		return st
	}
	from, to := stageBounds(len(s.arch.Pattern), i, n)
	for _, k := range s.arch.Pattern[from:to] {
		st.layers[k]++
	}
	st.count = to - from
	return st
}

// stageBounds returns the layers [from, to) of stage i of n.
func stageBounds(layers, i, n int) (from, to int) {
	base, rest := layers/n, layers%n
	size := func(k int) int {
		// The remainder sits on the stages just before the last one.
		if k < n-1 && k >= n-1-rest {
			return base + 1
		}
		return base
	}
	for k := range i {
		from += size(k)
	}
	return from, from + size(i)
}
