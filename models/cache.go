package models

import "infera/internal/units"

// KVElementsPerToken returns how many elements one layer of the group adds to
// the cache per token of context, over all heads: keys and values, the latent
// and rotary key of MLA, a 1/Compress share of an entry for compressed
// attention. A sliding window is not applied here (see [Attention.Window]);
// layers that store nothing per token give 0.
func (g LayerGroup) KVElementsPerToken() float64 {
	t := g.Attention
	if t.KVShared {
		return 0
	}
	switch t.Kind {
	case AttentionMLA:
		return float64(t.MLA.KVLoRA + t.MLA.Rope)
	case AttentionGQA:
		n := t.entryElements()
		if t.Sparse.Compress > 1 {
			n /= float64(t.Sparse.Compress)
		}
		return n
	}
	return 0
}

// entryElements is the width of one uncompressed cache entry.
func (t Attention) entryElements() float64 {
	width := t.KDim
	if !t.TiedKV {
		width += t.VDim
	}
	return float64(t.KVHeads) * float64(width)
}

// WindowElementsPerSequence returns the elements that a compressed layer keeps
// besides its per-token cache: the last Window tokens, uncompressed. It is 0
// for other layers, whose window bounds the per-token cache instead.
func (g LayerGroup) WindowElementsPerSequence() float64 {
	if t := g.Attention; t.Kind == AttentionGQA && t.Sparse.Compress > 1 {
		return float64(t.Window) * t.entryElements()
	}
	return 0
}

// Cached returns how many tokens of a context of n tokens one layer of the
// group keeps in its per-token cache: n, or the window if that is less.
func (g LayerGroup) Cached(n int) int {
	if w := g.Attention.Window; w > 0 && g.Attention.Sparse.Compress <= 1 {
		return min(n, w)
	}
	return n
}

// indexScaleBits and indexGroup are the layout of the selector's key cache in
// the open engines: fp8 with one fp32 scale per 128 elements (132 bytes per
// token for a width of 128; vLLM and SGLang, deepseek_v32).
const (
	indexScaleBits = 32
	indexGroup     = 128
)

// IndexElementsPerToken returns the elements that the token selector of one
// layer of the group caches per token of context; 0 for layers without one.
func (g LayerGroup) IndexElementsPerToken() float64 {
	s := g.Attention.Sparse
	if !s.Indexer {
		return 0
	}
	n := float64(s.IndexDim)
	if s.Compress > 1 {
		n /= float64(s.Compress)
	}
	return n
}

// IndexBytesPerToken returns the size of those elements, stored as fp8 with
// one fp32 scale per 128.
func (g LayerGroup) IndexBytesPerToken() units.Bytes {
	f := Format{Element: FP8, Group: indexGroup, ScaleBits: indexScaleBits}
	return f.Bytes(g.IndexElementsPerToken())
}

// KVBytesPerToken returns the cache size of one token of context over the
// whole main stack without parallelism, index caches not included, windows not
// applied. A zero format means [Architecture.KV].
func (a *Architecture) KVBytesPerToken(f Format) units.Bytes {
	if f.IsZero() {
		f = a.KV()
	}
	var n float64
	for _, g := range a.Groups {
		n += float64(g.Count) * g.KVElementsPerToken()
	}
	return f.Bytes(n)
}

// IndexBytesPerToken returns the size of the selector caches of one token of
// context over the whole main stack.
func (a *Architecture) IndexBytesPerToken() units.Bytes {
	var sum units.Bytes
	for _, g := range a.Groups {
		sum += units.Bytes(g.Count) * g.IndexBytesPerToken()
	}
	return sum
}

// StateElements returns the elements of the recurrent state matrix and of the
// convolution history that one layer of the group keeps per sequence.
func (g LayerGroup) StateElements() (state, conv float64) {
	if g.Attention.Kind != AttentionRecurrent {
		return 0, 0
	}
	r := g.Attention.Recurrent
	return float64(r.VHeads) * float64(r.KDim) * float64(r.VDim), float64(r.ConvChannels) * float64(max(r.ConvKernel-1, 0))
}

// StateBytesPerSequence returns the size of what one recurrent layer of the
// group keeps per sequence: the state in its own type and the convolution
// history in the compute type.
func (g LayerGroup) StateBytesPerSequence(compute DType) units.Bytes {
	state, conv := g.StateElements()
	d := g.Attention.Recurrent.StateDType
	if d == DTypeUnknown {
		d = compute
	}
	return units.Bytes((state*d.Bits() + conv*compute.Bits()) / 8)
}

// StateBytesPerSequence returns the recurrent state of one sequence over the
// whole main stack without parallelism.
func (a *Architecture) StateBytesPerSequence() units.Bytes {
	var sum units.Bytes
	for _, g := range a.Groups {
		sum += units.Bytes(g.Count) * g.StateBytesPerSequence(a.Compute)
	}
	return sum
}
