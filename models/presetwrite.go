package models

import (
	"slices"

	"infera/internal/strict"
)

// MarshalPreset writes an architecture in the schema of configs/models, which
// [ParsePreset] reads back to an equal one.
func MarshalPreset(a *Architecture) ([]byte, error) {
	f := presetFile{
		Name: a.Name, Aliases: a.Aliases, Family: a.Family, Source: a.Source, Released: a.Released, Partial: a.Partial,
		Hidden: a.Hidden, Vocab: a.Vocab, PaddedVocab: a.PaddedVocab, MaxContext: a.MaxContext, Tied: a.Tied,
		ResidualStreams: a.ResidualStreams, PerLayerEmbedding: a.PerLayerEmbedding, PerLayerVocab: a.PerLayerVocab,
		Pattern: formatPattern(a.Pattern), Compute: a.Compute.String(), VisionParams: a.VisionParams,
		PublishedParams: float64(a.PublishedParams), PublishedActive: float64(a.PublishedActive),
	}
	for _, g := range a.Groups {
		f.Groups = append(f.Groups, presetOf(g))
	}
	if a.Draft.Layers > 0 {
		f.Draft = &presetDraft{Layers: a.Draft.Layers, Layer: presetOf(a.Draft.Layer), OwnEmbeddings: !a.Draft.SharesEmbedding}
	}
	for c, format := range a.Formats {
		name := TensorClass(c).String()
		if plain := format; plain.Element != a.Compute {
			if f.Formats == nil {
				f.Formats = map[string]string{}
			}
			f.Formats[name] = plain.String()
		}
		if format.MixedBits > 0 {
			if f.MixedBits == nil {
				f.MixedBits = map[string]float64{}
			}
			f.MixedBits[name] = format.MixedBits
		}
	}
	if !a.KVFormat.IsZero() {
		f.KVFormat = a.KVFormat.String()
	}
	return strict.Marshal(&f)
}

func presetOf(g LayerGroup) presetGroup {
	return presetGroup{Attention: presetAttentionOf(g.Attention), FFN: presetFFNOf(g.FFN), Norms: g.Norms}
}

func presetAttentionOf(t Attention) presetAttention {
	p := presetAttention{
		Kind: t.Kind.String(), Heads: t.Heads, KVHeads: t.KVHeads, KDim: t.KDim, VDim: t.VDim, Window: t.Window,
		QLoRA: t.MLA.QLoRA, KVLoRA: t.MLA.KVLoRA, Rope: t.MLA.Rope, NoPE: t.MLA.NoPE,
		OutputLoRA: t.MLA.OutputLoRA, OutputGroups: t.MLA.OutputGroups,
		With: setNames(t.flags()),
	}
	switch t.Kind {
	case AttentionMLA:
		p.KVHeads, p.KDim = 0, 0
	case AttentionRecurrent:
		r := t.Recurrent
		p.Type, p.KHeads, p.VHeads, p.KDim, p.VDim = r.Kind.String(), r.KHeads, r.VHeads, r.KDim, r.VDim
		p.ConvKernel, p.ConvChannels, p.DecayRank, p.GateRank = r.ConvKernel, r.ConvChannels, r.DecayRank, r.GateRank
		if r.StateDType != DTypeUnknown {
			p.State = r.StateDType.String()
		}
	}
	if p.KDim > 0 && p.KDim == p.VDim {
		p.HeadDim, p.KDim, p.VDim = p.KDim, 0, 0
	}
	if s := t.Sparse; s != (Sparse{}) {
		p.Sparse = &presetSparse{TopK: s.TopK, IndexHeads: s.IndexHeads, IndexDim: s.IndexDim, Indexer: s.Indexer, Compress: s.Compress, Block: s.BlockTokens}
	}
	return p
}

func presetFFNOf(f FFN) presetFFN {
	return presetFFN{
		Kind: f.Kind.String(), Width: f.Intermediate, Experts: f.Experts, TopK: f.TopK, ExpertWidth: f.ExpertIntermediate,
		SharedWidth: f.SharedIntermediate, Latent: f.LatentDim, With: setNames(f.flags()),
	}
}

func setNames(flags []namedFlag) []string {
	var names []string
	for _, f := range flags {
		if *f.at {
			names = append(names, f.name)
		}
	}
	return slices.Clip(names)
}
