package launch

import (
	"strings"

	"infera/internal/units"
	"infera/sim/layout"
)

// The fields of a plan that arguments set, as [Argument.Field] names them. A
// field that is also a flag of the planner has the flag's name.
const (
	FieldModel           = "model"
	FieldTP              = "tp"
	FieldPP              = "pp"
	FieldEP              = "ep"
	FieldDP              = "dp"
	FieldAttentionDP     = "attention_dp_size"
	FieldDecodeCP        = "decode_context_parallel_size"
	FieldNodes           = "nodes"
	FieldRedundant       = "redundant_experts"
	FieldVisibleGPUs     = "visible_gpus"
	FieldDType           = "dtype"
	FieldWeightDType     = "weight_dtype"
	FieldKVCacheDType    = "kv_cache_dtype"
	FieldMaxContext      = "max_context_len"
	FieldMaxSeqs         = "max_num_seqs"
	FieldBatchedTokens   = "max_num_batched_tokens"
	FieldChunkedPrefill  = "chunked_prefill_size"
	FieldBlockSize       = "kv_block_size"
	FieldMemoryFraction  = "kv_cache_memory_fraction"
	FieldKVTokens        = "kv_cache_tokens"
	FieldKVBytes         = "kv_cache_bytes"
	FieldPrefixCaching   = "prefix_caching"
	FieldGraphMode       = "cudagraph_mode"
	FieldGraphMaxBatch   = "cudagraph_max_batch"
	FieldAttention       = "attention_backend"
	FieldMoEBackend      = "moe_backend"
	FieldAllToAll        = "all_to_all_backend"
	FieldSpecMethod      = "speculative_method"
	FieldSpecTokens      = "speculative_num_tokens"
	FieldSpecVerify      = "speculative_verify_tokens"
	FieldSpecDraft       = "speculative_draft_model"
	FieldMixedChunk      = "mixed_chunk"
	FieldAsync           = "async_scheduling"
	FieldStreamInterval  = "stream_interval"
	FieldSchedulePolicy  = "schedule_policy"
	FieldDisaggregation  = "disaggregation_role"
	FieldOffload         = "kv_offload"
	FieldCustomAllReduce = "custom_all_reduce"
	FieldQuickReduce     = "quick_reduce_quantization"
	FieldAITER           = "aiter"
)

// Settings is what the engine's command line fixes. A nil pointer or an empty
// string is "not on the line: the engine's default".
type Settings struct {
	// Model is the checkpoint as written: a Hugging Face id or a path.
	Model string

	// TP, PP and DP are the engine's own sizes: under vLLM and ATOM a replica
	// has TP x DP ranks, under SGLang with attention data parallelism DP lies
	// inside TP. [Settings.Layout] resolves this.
	TP, PP, DP *int
	// EP is the expert-parallel size; 1 = experts are cut by TP.
	EP *int
	// AttentionDP is true when attention runs data-parallel inside the group
	// that shares the experts. Nil: not said on the line.
	AttentionDP *bool
	// DecodeCP is the decode context-parallel size.
	DecodeCP *int
	// Nodes is the number of machines of one replica.
	Nodes *int
	// RedundantExperts counts the extra expert replicas of the load balancer.
	RedundantExperts *int
	// VisibleGPUs is how many devices *_VISIBLE_DEVICES leaves to the engine.
	VisibleGPUs *int

	// DType is the element type of unquantised weights and activations: bf16,
	// fp16 or fp32.
	DType string
	// Quantization is the method as written: fp8, awq, quark, ...
	Quantization string
	// WeightDType is the weight format that the method implies by itself (fp8,
	// mxfp4, int8, ...); "" when the checkpoint decides.
	WeightDType string
	// KVCacheDType is the cache's element type: bf16, fp16, fp8, fp4, int8; ""
	// = auto.
	KVCacheDType string

	// MaxModelLen is the longest sequence in tokens.
	MaxModelLen *int
	// MaxNumSeqs is the most sequences that run at once, per data-parallel rank
	// under vLLM and ATOM, in all under SGLang.
	MaxNumSeqs *int
	// MaxNumBatchedTokens is the token budget of one step, per data-parallel rank
	// under vLLM and ATOM; under SGLang it bounds the prompt tokens of a step only.
	MaxNumBatchedTokens *int
	// ChunkedPrefill says whether long prompts are cut into chunks, and
	// ChunkedPrefillSize how long a chunk is at most, in tokens. Under vLLM the
	// chunk is what the step's budget leaves; SGLang divides the size by DP when
	// attention is data-parallel, so here it is for all groups together.
	ChunkedPrefill     *bool
	ChunkedPrefillSize *int
	// BlockSize is the tokens of one cache block (page).
	BlockSize *int
	// MemoryFraction is the share of device memory the engine may use, 0..1:
	// vLLM and ATOM for everything, SGLang for weights and cache.
	MemoryFraction *float64
	// KVCacheTokens, KVCacheBlocks and KVCacheBytes cap the cache directly, per
	// device.
	KVCacheTokens *int
	KVCacheBlocks *int
	KVCacheBytes  *units.Bytes
	// PrefixCaching says whether the prefix cache is on.
	PrefixCaching *bool

	// GraphMode is none, piecewise, full, full_decode_only or
	// full_and_piecewise.
	GraphMode string
	// GraphMaxBatch is the largest captured batch, in sequences (SGLang, ATOM) or
	// tokens (vLLM).
	GraphMaxBatch *int

	// AttentionBackend, MoEBackend and AllToAll name kernels, in lower case.
	AttentionBackend string
	PrefillAttention string
	DecodeAttention  string
	MoEBackend       string
	AllToAll         string

	// Speculative is nil when the line asks for no speculation.
	Speculative *Speculative

	// MixedChunk says whether prefill chunks ride on decode steps (SGLang).
	MixedChunk *bool
	// AsyncScheduling says whether the host prepares the next step while the
	// device works.
	AsyncScheduling *bool
	// StreamInterval is the tokens per streamed message.
	StreamInterval *int
	// SchedulePolicy is the order of the waiting queue as written.
	SchedulePolicy string

	// Disaggregation is nil for an engine that does both prefill and decode.
	Disaggregation *Disaggregation
	// Offload is nil when the cache has no tier below device memory.
	Offload *Offload

	// CustomAllReduce is false when the engine's own all-reduce kernels are off.
	CustomAllReduce *bool
	// QuickReduce is the quantisation of quick all-reduce: none, fp, int8, int6
	// or int4.
	QuickReduce string
	// AITER says whether the AITER kernels of ROCm are on.
	AITER *bool

	expertParallel bool // vLLM and ATOM: EP = TP x DP
	eager          bool // wins over any graph mode
	specTopK       *int
}

// Speculative is what the line says of speculative decoding.
type Speculative struct {
	// Method is mtp, eagle, eagle3, ngram, draft_model, ... in lower case.
	Method string
	// NumTokens is the longest chain of drafted tokens in one step; 0 = the
	// engine chooses.
	NumTokens int
	// VerifyTokens is the positions per sequence that the target model computes
	// in one step: NumTokens+1 for a chain, more for a tree; 0 = the engine
	// chooses.
	VerifyTokens int
	// DraftModel is the draft checkpoint, "" for a head inside the target.
	DraftModel string
	// DraftTP is the draft's tensor-parallel size; 0 = the target's.
	DraftTP int
}

// Disaggregation is the engine's part in a prefill/decode pair.
type Disaggregation struct {
	// Role is prefill or decode.
	Role string
	// Connector is the transfer backend as written.
	Connector string
}

// Offload is a cache tier below device memory.
type Offload struct {
	// Backend is the connector or storage backend as written.
	Backend string
	// HostBytes is the host memory given to it; 0 = not said.
	HostBytes units.Bytes
	// HostRatio is the host tier's size over the device cache's; 0 = not said.
	HostRatio float64
}

// Layout returns the planner's layout of one replica and how many independent
// replicas the command starts. moe says whether the model has routed experts:
// without them data-parallel ranks share nothing and are replicas.
//
// vLLM spreads the experts of one replica over its TP x DP ranks while each
// data-parallel rank keeps its own attention
// (docs.vllm.ai/en/latest/serving/data_parallel_deployment.html). ATOM does so
// with --enable-dp-attention or with experts spread over the ranks (ROCm/ATOM
// docs/distributed_guide.md), and otherwise starts DP replicas. SGLang's --dp-size
// with --enable-dp-attention divides the TP group, and without it starts DP
// replicas.
func (s Settings) Layout(engine Engine, moe bool) (l layout.Layout, replicas int) {
	tp, dp := value(s.TP, 1), value(s.DP, 1)
	l = layout.Layout{TP: tp, PP: value(s.PP, 1), EP: value(s.EP, 1), AttentionDP: 1}
	l.DecodeCP = value(s.DecodeCP, 0)
	l.RedundantExperts = value(s.RedundantExperts, 0)
	replicas = 1
	joined := engine == VLLM || value(s.AttentionDP, false) || l.EP > tp
	switch {
	case engine == SGLang && value(s.AttentionDP, false):
		l.AttentionDP = dp
	case engine == SGLang || !moe || !joined:
		replicas = dp
	default:
		l.TP, l.AttentionDP = tp*dp, dp
	}
	if !moe {
		l.EP = 1
	}
	return l, replicas
}

// DecodeGraph returns the graphs that pure decode steps run in: none, piecewise,
// full, or "" for the engine's default. full_decode_only and
// full_and_piecewise both run them in full graphs
// (docs.vllm.ai/en/latest/design/cuda_graphs.html).
func (s Settings) DecodeGraph() string {
	if strings.HasPrefix(s.GraphMode, "full") {
		return "full"
	}
	return s.GraphMode
}

// AttentionFamily returns the kernel family behind the attention backend of
// decode steps: aiter, triton, flashinfer, flashattention or trtllm; "" for the
// engine's default and for a backend of no known family.
func (s Settings) AttentionFamily() string {
	b := s.DecodeAttention
	if b == "" {
		b = s.AttentionBackend
	}
	for _, f := range []struct{ part, family string }{
		{"aiter", "aiter"}, {"triton", "triton"}, {"flashinfer", "flashinfer"}, {"trtllm", "trtllm"}, {"flash", "flashattention"}, {"fa3", "flashattention"}, {"fa4", "flashattention"},
	} {
		if strings.Contains(b, f.part) {
			return f.family
		}
	}
	return ""
}

func value[T any](p *T, missing T) T {
	if p == nil {
		return missing
	}
	return *p
}
