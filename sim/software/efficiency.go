package software

import (
	"fmt"

	"infera/models"
)

// Coefficient names one efficiency of an engine on a GPU architecture. Fixed
// times are in seconds; the rest multiply the time that the kernel or
// collective model gives, so 1 means "as fast as the tuned kernel alone".
type Coefficient uint8

// The coefficients. Those with four formats or six token mixers are followed
// by the others: see [ByFormat] and [ByMixer].
const (
	// HostStep is the host time of one engine step that the GPU waits for:
	// scheduling, input preparation, sampling round trip.
	HostStep Coefficient = iota
	// HostSequence is the host time per running sequence and step.
	HostSequence
	// HostPrefill is the further host time of a step that carries prompt
	// tokens (no captured graph, block allocation).
	HostPrefill
	// RequestFixed is the time from arrival to the first step that a request
	// always pays: HTTP, tokenizer, queue hand-over.
	RequestFixed
	// LayerGQA and the five after it are the fixed time of one token-mixer
	// layer beyond its kernels' streaming time: launches, gaps, small kernels.
	LayerGQA
	LayerMLA
	LayerSparseMLA
	LayerSparseGQA
	LayerCompressed
	LayerRecurrent
	// LayerDense and LayerMoE are the same for one feed-forward layer.
	LayerDense
	LayerMoE
	// LayerPrefill is the further fixed time of one layer in a step that
	// carries prompt tokens.
	LayerPrefill

	GEMMDecodeBF16
	GEMMDecodeFP8
	GEMMDecodeFP4
	GEMMDecodeINT4
	GEMMPrefillBF16
	GEMMPrefillFP8
	GEMMPrefillFP4
	GEMMPrefillINT4
	MoEDecodeBF16
	MoEDecodeFP8
	MoEDecodeFP4
	MoEDecodeINT4
	MoEPrefillBF16
	MoEPrefillFP8
	MoEPrefillFP4
	MoEPrefillINT4
	AttentionDecodeGQA
	AttentionDecodeMLA
	AttentionDecodeSparseMLA
	AttentionDecodeSparseGQA
	AttentionDecodeCompressed
	AttentionDecodeRecurrent
	AttentionPrefillGQA
	AttentionPrefillMLA
	AttentionPrefillSparseMLA
	AttentionPrefillSparseGQA
	AttentionPrefillCompressed
	AttentionPrefillRecurrent
	// Stream multiplies norms, activations, casts and sampling passes.
	Stream
	// AllReduceSmall and AllReduceLarge multiply tensor-parallel all-reduces
	// of decode steps and of prefill steps.
	AllReduceSmall
	AllReduceLarge
	// AllToAll multiplies expert dispatch and combine.
	AllToAll
	// ExpertParallel multiplies the expert kernels when experts are spread
	// over ranks (imbalance and permutation beyond the routing statistics).
	ExpertParallel
	// AttentionDP multiplies the step when attention is data parallel: ranks
	// wait for the slowest.
	AttentionDP
	// PrefillInterference multiplies what a prompt adds to the decode time of
	// the sequences that run beside it.
	PrefillInterference
	// PrefillQueue multiplies the wait for other requests' prompts.
	PrefillQueue

	NumCoefficients
)

var coefficientNames = [NumCoefficients]string{
	"host_step", "host_sequence", "host_prefill", "request_fixed",
	"layer_gqa", "layer_mla", "layer_sparse_mla", "layer_sparse_gqa", "layer_compressed", "layer_recurrent",
	"layer_dense", "layer_moe", "layer_prefill",
	"gemm_decode_bf16", "gemm_decode_fp8", "gemm_decode_fp4", "gemm_decode_int4",
	"gemm_prefill_bf16", "gemm_prefill_fp8", "gemm_prefill_fp4", "gemm_prefill_int4",
	"moe_decode_bf16", "moe_decode_fp8", "moe_decode_fp4", "moe_decode_int4",
	"moe_prefill_bf16", "moe_prefill_fp8", "moe_prefill_fp4", "moe_prefill_int4",
	"attention_decode_gqa", "attention_decode_mla", "attention_decode_sparse_mla", "attention_decode_sparse_gqa",
	"attention_decode_compressed", "attention_decode_recurrent",
	"attention_prefill_gqa", "attention_prefill_mla", "attention_prefill_sparse_mla", "attention_prefill_sparse_gqa",
	"attention_prefill_compressed", "attention_prefill_recurrent",
	"stream", "all_reduce_small", "all_reduce_large", "all_to_all", "expert_parallel", "attention_dp", "prefill_interference", "prefill_queue",
}

// String returns the key used in configs/engines/efficiency.
func (c Coefficient) String() string {
	if c < NumCoefficients {
		return coefficientNames[c]
	}
	return "unknown"
}

// IsTime reports whether the coefficient is a fixed time in seconds rather
// than a multiplier.
func (c Coefficient) IsTime() bool { return c <= LayerPrefill }

// ParseCoefficient returns the coefficient spelled name.
func ParseCoefficient(name string) (Coefficient, error) {
	for i, n := range coefficientNames {
		if n == name {
			return Coefficient(i), nil
		}
	}
	return 0, fmt.Errorf("unknown coefficient %q", name)
}

// ByFormat returns the member for weights stored as f of a family of four
// coefficients whose first is the bf16 one.
func (c Coefficient) ByFormat(f models.Format) Coefficient {
	switch f.Element {
	case models.FP8, models.INT8:
		return c + 1
	case models.FP4, models.FP6:
		return c + 2
	case models.INT4:
		return c + 3
	}
	return c
}

// Mixer is the token-mixer family that attention coefficients are kept for.
type Mixer uint8

// The token-mixer families: full or windowed attention with heads of keys and
// values, latent attention, the two with a token selector in front, attention
// over compressed entries, and recurrent layers.
const (
	MixerGQA Mixer = iota
	MixerMLA
	MixerSparseMLA
	MixerSparseGQA
	MixerCompressed
	MixerRecurrent
)

// MixerOf returns the family of a layer's token mixer.
func MixerOf(a *models.Attention) Mixer {
	latent := a.Kind == models.AttentionMLA
	switch {
	case a.Kind == models.AttentionRecurrent:
		return MixerRecurrent
	case a.Sparse.Compress > 1:
		return MixerCompressed
	case a.Sparse.TopK > 0 && latent:
		return MixerSparseMLA
	case a.Sparse.TopK > 0:
		return MixerSparseGQA
	case latent:
		return MixerMLA
	}
	return MixerGQA
}

// ByMixer returns the member for mixer m of a family of six coefficients
// whose first is the GQA one.
func (c Coefficient) ByMixer(m Mixer) Coefficient { return c + Coefficient(m) }

// Efficiency is how well one release of an engine uses one GPU architecture.
type Efficiency struct {
	Values [NumCoefficients]float64
	// Spread is how far measurements lie from predictions.
	Spread Spread
	// Source says what the values were fitted on.
	Source string
}

// Spread holds half-widths of bands in the logarithm: measured values lie
// within prediction x exp(+-w) for [BandCoverage] of the points that an
// efficiency was cross-validated on.
type Spread struct {
	TPOT       float64 `yaml:"tpot"`
	TTFT       float64 `yaml:"ttft"`
	Throughput float64 `yaml:"throughput"`
}

// BandCoverage is the share of cross-validated points that bands hold.
const BandCoverage = 0.87
