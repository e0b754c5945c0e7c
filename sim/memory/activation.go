package memory

import (
	"infera/internal/units"
	"infera/models"
)

// logitBytes is the width of the type samplers work in.
const logitBytes = 4

// activation returns the peak of temporary tensors of one rank: the widest
// layer on a full step of tokens, or the sampler on a full batch, whichever is
// larger (the forward pass has ended when the sampler runs). The counts of
// live copies belong to the engine.
func (s *Sizer) activation(q *resolved, st *stage) (forward, sampler units.Bytes) {
	a := &q.Engine.Activation
	width := 0.0
	for i := range s.layers {
		if st.layers[i] > 0 {
			width = max(width, q.layerWidth(&s.arch.Groups[i], s.arch.Hidden))
		}
	}
	streams := float64(max(1, s.arch.ResidualStreams) - 1)
	width += (a.HiddenCopies + streams) * float64(s.arch.Hidden)
	forward = units.Bytes(float64(q.batched) * width * s.arch.Compute.Bits() / 8)
	if st.last {
		rows := q.sequences
		if rows == 0 {
			rows = q.Engine.Graphs.Largest()
		}
		rows = min(rows, q.batched)
		sampler = units.Bytes(a.LogitCopies * float64(rows) * float64(s.arch.Rows()) * logitBytes)
	}
	return forward, sampler
}

// layerWidth is the widest set of live elements per token inside one layer of
// a group, besides the hidden state: attention or feed-forward.
func (q *resolved) layerWidth(g *models.LayerGroup, hidden int) float64 {
	a := &q.Engine.Activation
	t, f := &g.Attention, &g.FFN
	attention := 0.0
	switch t.Kind {
	case models.AttentionGQA, models.AttentionMLA, models.AttentionCross:
		attention = a.AttentionCopies * float64(t.Heads) * float64(max(t.KDim, t.VDim)) / float64(q.attentionTP)
		if t.Sparse.TopK > 0 && t.Sparse.Compress > 1 {
			attention += a.CompressedCopies * float64(min(t.Sparse.TopK, q.longest)) * float64(t.KDim)
		}
	case models.AttentionRecurrent:
		r := &t.Recurrent
		attention = a.AttentionCopies * float64(r.VHeads) * float64(r.VDim) / float64(q.attentionTP)
	}
	ffn := 0.0
	switch f.Kind {
	case models.FFNDense:
		ffn = a.FFNCopies * float64(f.Intermediate) / float64(q.denseTP)
	case models.FFNMoE:
		in := or(f.LatentDim, hidden)
		k := float64(f.TopK)
		ffn = a.ExpertCopies*k*float64(f.ExpertIntermediate)/float64(q.expertTP) + a.ScatterCopies*k*float64(in) +
			a.FFNCopies*float64(f.SharedIntermediate+f.Intermediate)/float64(q.denseTP)
	}
	return max(attention, ffn)
}
