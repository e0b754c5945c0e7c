package models

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"infera/internal/strict"
)

// presetFile is the schema of configs/models/NAME.yaml.
type presetFile struct {
	Name    string   `yaml:"name"`
	Aliases []string `yaml:"aliases,omitempty,flow"`
	Family  string   `yaml:"family"`
	// Source is where the shapes are published; Notes what is doubtful.
	Source string `yaml:"source"`
	Notes  string `yaml:"notes,omitempty"`
	// Released is the month of publication, YYYY-MM.
	Released string `yaml:"released,omitempty"`
	Partial  bool   `yaml:"partial,omitempty"`

	Hidden            int  `yaml:"hidden"`
	Vocab             int  `yaml:"vocab"`
	PaddedVocab       int  `yaml:"padded_vocab,omitempty"`
	MaxContext        int  `yaml:"max_context,omitempty"`
	Tied              bool `yaml:"tied,omitempty"`
	ResidualStreams   int  `yaml:"residual_streams,omitempty"`
	PerLayerEmbedding int  `yaml:"per_layer_embedding,omitempty"`
	PerLayerVocab     int  `yaml:"per_layer_vocab,omitempty"`

	Groups []presetGroup `yaml:"groups"`
	// Pattern lists the groups in layer order, as in "15*(3*0 1)".
	Pattern string       `yaml:"pattern"`
	Draft   *presetDraft `yaml:"draft,omitempty"`

	// Compute is the unquantised dtype; Formats the classes stored otherwise.
	Compute   string             `yaml:"compute"`
	Formats   map[string]string  `yaml:"formats,omitempty,flow"`
	MixedBits map[string]float64 `yaml:"mixed_bits,omitempty,flow"`
	KVFormat  string             `yaml:"kv_format,omitempty"`

	VisionParams    int64   `yaml:"vision_params,omitempty"`
	PublishedParams float64 `yaml:"published_params,omitempty"`
	PublishedActive float64 `yaml:"published_active,omitempty"`
}

type presetGroup struct {
	Attention presetAttention `yaml:"attention,flow"`
	FFN       presetFFN       `yaml:"ffn,flow"`
	Norms     int             `yaml:"norms,omitempty"`
}

type presetDraft struct {
	Layers        int         `yaml:"layers"`
	Layer         presetGroup `yaml:"layer"`
	OwnEmbeddings bool        `yaml:"own_embeddings,omitempty"`
}

type presetAttention struct {
	Kind    string `yaml:"kind"`
	Heads   int    `yaml:"heads,omitempty"`
	KVHeads int    `yaml:"kv_heads,omitempty"`
	// HeadDim sets KDim and VDim at once.
	HeadDim      int           `yaml:"head_dim,omitempty"`
	KDim         int           `yaml:"k_dim,omitempty"`
	VDim         int           `yaml:"v_dim,omitempty"`
	Window       int           `yaml:"window,omitempty"`
	QLoRA        int           `yaml:"q_lora,omitempty"`
	KVLoRA       int           `yaml:"kv_lora,omitempty"`
	Rope         int           `yaml:"rope,omitempty"`
	NoPE         int           `yaml:"nope,omitempty"`
	OutputLoRA   int           `yaml:"output_lora,omitempty"`
	OutputGroups int           `yaml:"output_groups,omitempty"`
	Type         string        `yaml:"type,omitempty"` // of a recurrent layer
	KHeads       int           `yaml:"k_heads,omitempty"`
	VHeads       int           `yaml:"v_heads,omitempty"`
	ConvKernel   int           `yaml:"conv_kernel,omitempty"`
	ConvChannels int           `yaml:"conv_channels,omitempty"`
	DecayRank    int           `yaml:"decay_rank,omitempty"`
	GateRank     int           `yaml:"gate_rank,omitempty"`
	State        string        `yaml:"state,omitempty"` // element type of the recurrent state
	Sparse       *presetSparse `yaml:"sparse,omitempty,flow"`
	With         []string      `yaml:"with,omitempty,flow"`
}

type presetSparse struct {
	TopK       int  `yaml:"top_k,omitempty"`
	IndexHeads int  `yaml:"index_heads,omitempty"`
	IndexDim   int  `yaml:"index_dim,omitempty"`
	Indexer    bool `yaml:"indexer,omitempty"`
	Compress   int  `yaml:"compress,omitempty"`
	Block      int  `yaml:"block,omitempty"`
}

type presetFFN struct {
	Kind        string   `yaml:"kind"`
	Width       int      `yaml:"width,omitempty"`
	Experts     int      `yaml:"experts,omitempty"`
	TopK        int      `yaml:"top_k,omitempty"`
	ExpertWidth int      `yaml:"expert_width,omitempty"`
	SharedWidth int      `yaml:"shared_width,omitempty"`
	Latent      int      `yaml:"latent,omitempty"`
	With        []string `yaml:"with,omitempty,flow"`
}

// ParsePreset reads one preset file; path is for messages.
func ParsePreset(path string, data []byte) (*Architecture, error) {
	var f presetFile
	if err := strict.YAML(path, data, &f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadConfig, err)
	}
	a, err := f.architecture()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBadConfig, path, err)
	}
	if err := a.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

func (f *presetFile) architecture() (*Architecture, error) {
	if f.Name == "" || f.Source == "" {
		return nil, fmt.Errorf("a preset needs a name and a source")
	}
	a := &Architecture{
		Name: f.Name, Aliases: f.Aliases, Family: f.Family, Source: f.Source, Released: f.Released, Partial: f.Partial,
		Hidden: f.Hidden, Vocab: f.Vocab, PaddedVocab: f.PaddedVocab, MaxContext: f.MaxContext, Tied: f.Tied,
		ResidualStreams: f.ResidualStreams, PerLayerEmbedding: f.PerLayerEmbedding, PerLayerVocab: f.PerLayerVocab,
		VisionParams: f.VisionParams, PublishedParams: int64(f.PublishedParams), PublishedActive: int64(f.PublishedActive),
	}
	if a.PublishedParams < 0 || a.PublishedActive < 0 || !(f.PublishedParams <= maxParams) || !(f.PublishedActive <= maxParams) {
		return nil, fmt.Errorf("published_params %g and published_active %g are not sizes of a model", f.PublishedParams, f.PublishedActive)
	}
	if f.Released != "" {
		if _, err := time.Parse("2006-01", f.Released); err != nil {
			return nil, fmt.Errorf("released %q is not a month such as 2025-08", f.Released)
		}
	}
	pattern, err := parsePattern(f.Pattern)
	if err != nil {
		return nil, err
	}
	a.Pattern = pattern
	for i, g := range f.Groups {
		group, err := g.group()
		if err != nil {
			return nil, fmt.Errorf("group %d: %w", i, err)
		}
		for _, p := range pattern {
			if int(p) == i {
				group.Count++
			}
		}
		a.Groups = append(a.Groups, group)
	}
	if f.Draft != nil {
		group, err := f.Draft.Layer.group()
		if err != nil {
			return nil, fmt.Errorf("draft: %w", err)
		}
		group.Count = f.Draft.Layers
		a.Draft = Draft{Layers: f.Draft.Layers, Layer: group, SharesEmbedding: !f.Draft.OwnEmbeddings}
	}
	if err := f.formats(a); err != nil {
		return nil, err
	}
	return a, nil
}

func (f *presetFile) formats(a *Architecture) error {
	compute, err := ParseFormat(f.Compute)
	if err != nil {
		return fmt.Errorf("compute: %w", err)
	}
	a.Compute = compute.Element
	for c := range a.Formats {
		a.Formats[c] = FormatOf(a.Compute)
	}
	classes := make([]string, 0, len(f.Formats))
	for name := range f.Formats {
		classes = append(classes, name)
	}
	slices.Sort(classes)
	for _, name := range classes {
		c := slices.Index(classNames[:], name)
		if c < 0 {
			return fmt.Errorf("formats: unknown tensor class %q; known: %s", name, strings.Join(classNames[:], ", "))
		}
		if a.Formats[c], err = ParseFormat(f.Formats[name]); err != nil {
			return fmt.Errorf("formats: %s: %w", name, err)
		}
	}
	for name, bits := range f.MixedBits {
		c := slices.Index(classNames[:], name)
		if c < 0 || !(bits > 0 && bits <= 64) {
			return fmt.Errorf("mixed_bits: %s: %g", name, bits)
		}
		a.Formats[c].MixedBits = bits
	}
	if f.KVFormat != "" {
		if a.KVFormat, err = ParseFormat(f.KVFormat); err != nil {
			return fmt.Errorf("kv_format: %w", err)
		}
	}
	return nil
}

func (g presetGroup) group() (LayerGroup, error) {
	t, err := g.Attention.attention()
	if err != nil {
		return LayerGroup{}, err
	}
	f, err := g.FFN.ffn()
	if err != nil {
		return LayerGroup{}, err
	}
	return LayerGroup{Attention: t, FFN: f, Norms: g.Norms}, nil
}

func (p presetAttention) attention() (Attention, error) {
	kind := slices.Index(attentionNames[:], p.Kind)
	if kind < 0 {
		return Attention{}, fmt.Errorf("attention kind %q; known: %s", p.Kind, strings.Join(attentionNames[:], ", "))
	}
	t := Attention{
		Kind: AttentionKind(kind), Heads: p.Heads, KVHeads: p.KVHeads, KDim: p.KDim, VDim: p.VDim, Window: p.Window,
		MLA: MLA{QLoRA: p.QLoRA, KVLoRA: p.KVLoRA, Rope: p.Rope, NoPE: p.NoPE, OutputLoRA: p.OutputLoRA, OutputGroups: p.OutputGroups},
	}
	if p.HeadDim > 0 {
		t.KDim, t.VDim = p.HeadDim, p.HeadDim
	}
	switch t.Kind {
	case AttentionMLA:
		t.KVHeads, t.KDim = t.Heads, p.NoPE+p.Rope
	case AttentionRecurrent:
		if err := p.recurrent(&t); err != nil {
			return t, err
		}
	}
	if s := p.Sparse; s != nil {
		t.Sparse = Sparse{TopK: s.TopK, IndexHeads: s.IndexHeads, IndexDim: s.IndexDim, Indexer: s.Indexer, Compress: s.Compress, BlockTokens: s.Block}
	}
	err := setFlags("attention", p.With, t.flags())
	return t, err
}

func (p presetAttention) recurrent(t *Attention) error {
	kind, ok := RecurrentKindOf(p.Type)
	if !ok || kind == RecurrentNone {
		return fmt.Errorf("recurrent type %q; known: %s", p.Type, strings.Join(recurrentNames[1:], ", "))
	}
	t.Heads, t.KVHeads, t.KDim, t.VDim = 0, 0, 0, 0
	t.Recurrent = Recurrent{
		Kind: kind, KHeads: p.KHeads, VHeads: p.VHeads, KDim: p.KDim, VDim: p.VDim, ConvKernel: p.ConvKernel,
		ConvChannels: p.ConvChannels, DecayRank: p.DecayRank, GateRank: p.GateRank,
	}
	if p.HeadDim > 0 {
		t.Recurrent.KDim, t.Recurrent.VDim = p.HeadDim, p.HeadDim
	}
	if p.State != "" {
		f, err := ParseFormat(p.State)
		if err != nil {
			return fmt.Errorf("state: %w", err)
		}
		t.Recurrent.StateDType = f.Element
	}
	return nil
}

// namedFlag is a boolean of the architecture under its name in presets.
type namedFlag struct {
	name string
	at   *bool
}

func (t *Attention) flags() []namedFlag {
	return []namedFlag{
		{"tied_kv", &t.TiedKV}, {"output_gate", &t.OutputGate}, {"bias", &t.Bias}, {"output_bias", &t.OutputBias},
		{"sinks", &t.Sinks}, {"qk_norm", &t.QKNorm}, {"kv_shared", &t.KVShared}, {"linear", &t.Linear},
	}
}

func (f *FFN) flags() []namedFlag {
	return []namedFlag{{"gated", &f.Gated}, {"bias", &f.Bias}, {"shared_gate", &f.SharedGate}, {"linear", &f.Linear}}
}

func setFlags(where string, names []string, flags []namedFlag) error {
	for _, n := range names {
		i := slices.IndexFunc(flags, func(f namedFlag) bool { return f.name == n })
		if i < 0 {
			known := make([]string, len(flags))
			for k, f := range flags {
				known[k] = f.name
			}
			return fmt.Errorf("%s with %q; known: %s", where, n, strings.Join(known, ", "))
		}
		*flags[i].at = true
	}
	return nil
}

func (p presetFFN) ffn() (FFN, error) {
	kind := slices.Index(ffnNames[:], p.Kind)
	if kind < 0 {
		return FFN{}, fmt.Errorf("ffn kind %q; known: %s", p.Kind, strings.Join(ffnNames[:], ", "))
	}
	f := FFN{
		Kind: FFNKind(kind), Intermediate: p.Width, Experts: p.Experts, TopK: p.TopK, ExpertIntermediate: p.ExpertWidth,
		SharedIntermediate: p.SharedWidth, LatentDim: p.Latent,
	}
	err := setFlags("ffn", p.With, f.flags())
	return f, err
}
