package models

// TensorClass groups parameters that are stored in one format and sharded in
// one way.
type TensorClass uint8

// The tensor classes, in report order.
const (
	ClassAttention    TensorClass = iota // projections of softmax attention (GQA, MLA)
	ClassRecurrent                       // projections, convolution and gates of recurrent layers
	ClassDenseFFN                        // feed-forward weights of dense layers
	ClassRoutedExpert                    // routed experts of mixture-of-experts layers
	ClassSharedExpert                    // experts that see every token
	ClassRouter                          // gate of a mixture-of-experts layer
	ClassIndexer                         // token selector of sparse attention
	ClassEmbedding                       // input embedding
	ClassHead                            // output projection to the vocabulary
	ClassNorm                            // norms, biases, sinks and other vectors
	ClassDraft                           // multi-token-prediction layers and other built-in drafters
	ClassVision                          // vision or audio tower and its projector
	NumTensorClasses
)

var classNames = [NumTensorClasses]string{
	"attention", "recurrent", "dense_ffn", "routed_expert", "shared_expert", "router",
	"indexer", "embedding", "head", "norm", "draft", "vision",
}

// String returns the name used in files and reports.
func (c TensorClass) String() string {
	if c < NumTensorClasses {
		return classNames[c]
	}
	return "unknown"
}

// AttentionKind is how a layer mixes tokens.
type AttentionKind uint8

// The token mixers.
const (
	// AttentionNone is a layer without a token mixer (a Nemotron-H MLP layer).
	AttentionNone AttentionKind = iota
	// AttentionGQA is softmax attention with per-head keys and values:
	// multi-head (KVHeads = Heads), grouped-query, multi-query (KVHeads = 1).
	AttentionGQA
	// AttentionMLA is multi-head latent attention: one compressed latent and
	// one rotary key per token, shared by all heads.
	AttentionMLA
	// AttentionRecurrent keeps a fixed state per sequence (Mamba-2, gated
	// delta net, KDA).
	AttentionRecurrent
	// AttentionCross attends to an encoder's fixed output.
	AttentionCross
)

var attentionNames = [...]string{"none", "gqa", "mla", "recurrent", "cross"}

// String returns the name used in files and reports.
func (k AttentionKind) String() string {
	if int(k) < len(attentionNames) {
		return attentionNames[k]
	}
	return "unknown"
}

// Attention describes the token mixer of a layer group. Only the fields of its
// kind are set.
type Attention struct {
	Kind AttentionKind

	// Heads and KVHeads count query heads and key/value heads before any
	// parallelism; KDim and VDim are the per-head widths of keys (and queries)
	// and values. For MLA they are the un-absorbed widths: KDim is
	// no-position + rotary.
	Heads, KVHeads, KDim, VDim int
	// Window is the sliding-window length in tokens; 0 means full attention.
	Window int
	// TiedKV is set when values are the keys (stored once).
	TiedKV bool
	// OutputGate is set when an extra projection gates the attention output.
	OutputGate bool
	// Bias is set when the q, k and v projections have biases; OutputBias the
	// same for the output projection; Sinks when each head has a sink logit.
	Bias, OutputBias, Sinks bool
	// QKNorm is set when queries and keys are normalised per head.
	QKNorm bool
	// KVShared is set when the layer reuses another layer's keys and values
	// and so stores none itself.
	KVShared bool
	// Linear is set on a layer whose mixer was replaced by one square
	// projection (Nemotron-NAS); Kind is then AttentionNone.
	Linear bool

	MLA       MLA
	Sparse    Sparse
	Recurrent Recurrent
}

// MLA holds the ranks of multi-head latent attention. QLoRA and the output
// ranks also occur without a latent cache: DeepSeek-V4 and Step-3 are
// AttentionGQA with one key/value head and a low-rank query.
type MLA struct {
	QLoRA  int // rank of the query compression; 0 = a full query projection
	KVLoRA int // width of the latent
	Rope   int // rotary width shared by all heads
	NoPE   int // per-head width without position
	// OutputLoRA and OutputGroups describe a grouped low-rank output
	// projection (DeepSeek-V4); 0 = an ordinary one.
	OutputLoRA, OutputGroups int
}

// Sparse describes attention over a selected subset of tokens.
type Sparse struct {
	// TopK is how many cached tokens (or compressed entries) a query reads; 0
	// means not sparse.
	TopK int
	// IndexHeads and IndexDim are the shape of the selector; Indexer is false
	// for layers that reuse the selection of an earlier layer.
	IndexHeads, IndexDim int
	Indexer              bool
	// Compress is how many tokens share one cache entry (DeepSeek-V4
	// compress_ratios: 4 or 128); 0 or 1 = none. Layers with Compress > 1 also
	// read a Window of uncompressed tokens.
	Compress int
	// BlockTokens is the selection granule for block-sparse attention; 0 = 1.
	BlockTokens int
}

// RecurrentKind names the state update of a recurrent layer.
type RecurrentKind uint8

// The recurrent layers.
const (
	RecurrentNone RecurrentKind = iota
	Mamba2
	GatedDelta
	KDA
	ShortConv // LFM2: a gated short convolution, no state matrix
	Lightning // MiniMax-M1: linear attention with decay
	Mamba1    // Jamba: a selective scan per channel
)

var recurrentNames = [...]string{"none", "mamba2", "gated_delta", "kda", "short_conv", "lightning", "mamba1"}

// String returns the name used in files and reports.
func (k RecurrentKind) String() string {
	if int(k) < len(recurrentNames) {
		return recurrentNames[k]
	}
	return "unknown"
}

// RecurrentKindOf returns the kind that [RecurrentKind.String] names so.
func RecurrentKindOf(name string) (RecurrentKind, bool) {
	for k, n := range recurrentNames {
		if n == name {
			return RecurrentKind(k), true
		}
	}
	return RecurrentNone, false
}

// Recurrent describes a layer with a fixed state per sequence: KHeads heads of
// keys of width KDim, VHeads heads of values of width VDim, a state of
// VHeads x KDim x VDim elements, and a depthwise convolution of ConvKernel
// taps over ConvChannels channels.
type Recurrent struct {
	Kind                       RecurrentKind
	KHeads, VHeads, KDim, VDim int
	ConvKernel, ConvChannels   int
	// DecayRank and GateRank are the ranks of the low-rank projections that
	// make the decay and the output gate (KDA), and of the time step (Mamba-1);
	// 0 = full rank, or none where the kind has none.
	DecayRank, GateRank int
	StateDType          DType
}

// FFNKind is what a layer does to each token alone.
type FFNKind uint8

// The feed-forward kinds.
const (
	FFNNone FFNKind = iota
	FFNDense
	FFNMoE
)

var ffnNames = [...]string{"none", "dense", "moe"}

// String returns the name used in files and reports.
func (k FFNKind) String() string {
	if int(k) < len(ffnNames) {
		return ffnNames[k]
	}
	return "unknown"
}

// FFN describes the feed-forward part of a layer group. For a dense layer only
// Intermediate is set; for a mixture of experts the expert fields are, and
// Intermediate is the width of a dense branch beside the experts, if any.
type FFN struct {
	Kind         FFNKind
	Intermediate int
	// Gated is set when gate and up projections are separate (SwiGLU).
	Gated bool

	Experts, TopK      int // routed experts, and how many a token visits
	ExpertIntermediate int // width of one routed expert
	SharedIntermediate int // summed width of the shared experts; 0 = none
	// LatentDim is the width experts work in when tokens are projected down
	// before and up after them; 0 = the hidden size.
	LatentDim int
	// Bias is set when the feed-forward projections have biases.
	Bias bool
	// SharedGate is set when a scalar gate weighs the shared expert.
	SharedGate bool
	// Linear is set on a layer whose feed-forward part was replaced by one
	// square projection (Nemotron-NAS); Kind is then FFNNone.
	Linear bool
}

// LayerGroup is a set of identical layers.
type LayerGroup struct {
	Count     int
	Attention Attention
	FFN       FFN
	// Norms is how many norm vectors of the hidden width the layer has.
	Norms int
}

// Draft describes the built-in drafter (multi-token-prediction layers).
type Draft struct {
	// Layers is how many drafter layers the checkpoint ships; 0 = none.
	Layers int
	// Layer is their shape.
	Layer LayerGroup
	// SharesEmbedding is set when they use the main model's embedding and head.
	SharesEmbedding bool
}

// Architecture is one model: shapes, formats and where they come from.
type Architecture struct {
	Name    string   // preset name, or the last part of the import path
	Aliases []string // other spellings, Hugging Face ids among them
	Family  string   // model_type of the config
	Source  string   // where the shapes come from
	// Released is the month of publication, YYYY-MM; "" = not stated. No engine
	// build older than that can have run the model.
	Released string

	Hidden      int
	Vocab       int // rows of the embedding as published
	PaddedVocab int // rows as stored by the checkpoint (0 = Vocab)
	MaxContext  int // longest context of the checkpoint; 0 = not stated
	Tied        bool
	// ResidualStreams is how many copies of the hidden state travel between
	// layers (hyper-connections of DeepSeek-V4: 4); 0 or 1 = one.
	ResidualStreams int
	// PerLayerEmbedding is the width each layer gets from its own embedding
	// table of PerLayerVocab rows (Gemma-3n, Gemma-4 E2B); 0 = none.
	PerLayerEmbedding, PerLayerVocab int

	Groups []LayerGroup
	// Pattern gives for each layer, in order, its index in Groups.
	Pattern []uint8

	Draft Draft
	// VisionParams is the size of the vision or audio tower, in parameters.
	VisionParams int64

	// Formats holds the storage of each tensor class; Compute is the dtype of
	// un-quantised tensors and activations.
	Formats [NumTensorClasses]Format
	Compute DType
	// KVFormat is the cache format the checkpoint asks for; zero = Compute.
	KVFormat Format

	// PublishedParams is the size the publisher states, for the check that
	// [Architecture.Params] closes; 0 = not stated.
	PublishedParams int64
	// PublishedActive is the same for active parameters.
	PublishedActive int64

	// Partial is set when the source was incomplete or reassembled.
	Partial bool
}

// Layers returns the number of layers of the main stack.
func (a *Architecture) Layers() int { return len(a.Pattern) }

// KV returns how the cache stores keys and values unless overridden.
func (a *Architecture) KV() Format {
	if !a.KVFormat.IsZero() {
		return a.KVFormat
	}
	return Format{Name: a.Compute.String(), Element: a.Compute, Activation: a.Compute}
}
