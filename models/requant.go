package models

// Requant says which formats to store a model in instead of those of its
// checkpoint. A zero format leaves the checkpoint's.
type Requant struct {
	// Weight replaces the classes that checkpoints of that format quantise:
	// for 8-bit and wider formats attention, recurrent, indexer and all
	// feed-forward weights; for narrower ones the feed-forward weights, with
	// shared experts and attention only where the checkpoint already stores
	// them that narrow, or where the model has no experts.
	Weight Format
	// Linear replaces attention, recurrent and dense feed-forward weights, and
	// Expert the routed experts; both win over Weight.
	Linear, Expert Format
	// KV replaces the cache format.
	KV Format
}

// WithFormats returns a copy of the architecture stored in other formats.
// Router, norms, embedding and head keep theirs, except that an unquantised
// Weight of another element type applies to every class. A class that the
// checkpoint stores in the asked-for element type already keeps its scales
// when the name asked for is the plain one (fp8 on an fp8_block checkpoint).
func (a *Architecture) WithFormats(o Requant) *Architecture {
	b := *a
	if !o.Weight.IsZero() {
		for c := range b.Formats {
			if class := TensorClass(c); a.quantises(class, o.Weight) {
				b.Formats[c] = adopt(a.Formats[c], o.Weight)
			}
		}
		if o.Weight.Element.Bits() >= 16 {
			b.Compute = o.Weight.Element
		}
	}
	if !o.Linear.IsZero() {
		for _, c := range [...]TensorClass{ClassAttention, ClassRecurrent, ClassDenseFFN} {
			b.Formats[c] = adopt(a.Formats[c], o.Linear)
		}
	}
	if !o.Expert.IsZero() {
		b.Formats[ClassRoutedExpert] = adopt(a.Formats[ClassRoutedExpert], o.Expert)
	}
	if !o.KV.IsZero() {
		b.KVFormat = o.KV
	}
	return &b
}

// adopt returns want, or have when it is already what a plain name asks for.
func adopt(have, want Format) Format {
	if have.Element != want.Element || have.MixedBits > 0 {
		return want
	}
	if have.Group == want.Group || want.Name == want.Element.String() || want.Name == "mxfp4" && have.Element == FP4 && have.Group == 32 {
		return have
	}
	return want
}

func (a *Architecture) quantises(c TensorClass, f Format) bool {
	bits := f.Element.Bits()
	switch c {
	case ClassRoutedExpert, ClassDenseFFN:
		return true
	case ClassRouter, ClassNorm, ClassEmbedding, ClassHead, ClassVision:
		return bits >= 16
	case ClassAttention, ClassSharedExpert:
		if bits > 6 {
			return true
		}
		have := a.Formats[c].Element.Bits()
		return !a.hasExperts() || have > 0 && have <= bits
	case ClassRecurrent, ClassIndexer:
		return bits > 6
	case ClassDraft:
		return bits > 6
	}
	return false
}

func (a *Architecture) hasExperts() bool {
	for _, g := range a.Groups {
		if g.FFN.Kind == FFNMoE {
			return true
		}
	}
	return false
}
