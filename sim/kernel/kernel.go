package kernel

import (
	"infera/internal/units"
	"infera/models"
)

// Bound names the resource that decides the time of an operation.
type Bound uint8

// The bounds. A kernel of this package is bound by memory, arithmetic or its
// own start-up and latency; callers add the fabric and the host.
const (
	BoundHBM Bound = iota
	BoundCompute
	BoundLaunch
	BoundFabric
	BoundHost
)

var boundNames = [...]string{"hbm", "compute", "launch", "fabric", "host"}

// String returns the lower-case name used in reports.
func (b Bound) String() string {
	if int(b) < len(boundNames) {
		return boundNames[b]
	}
	return "unknown"
}

// Estimate is the price of one kernel.
type Estimate struct {
	// Time is the likely duration on the GPU: the kernel with its own ramp and
	// tail, without the gap to the next kernel. Time >= Lower always.
	Time units.Seconds
	// Lower is the physical bound: the larger of Bytes over the data-sheet HBM
	// bandwidth and FLOPs over the data-sheet rate of the operand type.
	Lower units.Seconds
	// Bytes is the compulsory HBM traffic: every operand once.
	Bytes units.Bytes
	// FLOPs is the useful arithmetic, without tile padding.
	FLOPs units.FLOPs
	// Bound is the resource that decides Time.
	Bound Bound
}

// Grouped is a matrix product per expert: Rows activations [., K] are spread
// over Active weight matrices [N, K].
type Grouped struct {
	// Rows is the total number of routed rows on this rank.
	Rows float64
	// Active is the number of distinct experts touched on this rank.
	Active float64
	// Busiest is the rows of the busiest expert over the mean of the active
	// ones; 1 = balanced, values below 1 count as 1.
	Busiest float64
	N, K    int
	Weights models.Format
}

// FusedMoE is the expert feed-forward network as engines run it: stage 1
// (gate and up projection with activation) and stage 2 (down projection and
// weighted sum over the chosen experts).
type FusedMoE struct {
	// Tokens is the number of distinct tokens on this rank; Rows the routed
	// rows (Tokens x experts per token for a rank that holds all experts).
	Tokens, Rows float64
	// Active and Busiest as in [Grouped].
	Active, Busiest float64
	// Hidden is the model width; Intermediate the expert width on this rank.
	Hidden, Intermediate int
	// Gated means a gate and an up projection (SwiGLU and kin).
	Gated   bool
	Weights models.Format
}

// PrefillAttention is the attention core over one chunk of one sequence.
type PrefillAttention struct {
	// Sequences is how many chunks of this shape one launch holds; 0 counts
	// as 1.
	Sequences float64
	// Tokens is the number of new tokens, Context the tokens before them.
	Tokens, Context float64
	// Heads and KVHeads on this rank; KDim and VDim per head.
	Heads, KVHeads, KDim, VDim int
	// Window limits how many tokens back a query looks; 0 = all.
	Window int
	// TopK limits how many entries a query reads (sparse attention); 0 = all.
	TopK float64
	// MLA marks multi-head latent attention: with its heads expanded (KVHeads =
	// Heads), or absorbed (KVHeads = 1), where one entry of KDim serves as key
	// and, in its first VDim elements, as value.
	MLA bool
	// KV is the format of the cache that holds the context.
	KV models.Format
}

// DecodeAttention is the attention core of one decode step over a batch.
type DecodeAttention struct {
	// Sequences in the batch and query tokens per sequence (more than one
	// when drafts are verified).
	Sequences, Tokens float64
	// KVTokens is the sum over sequences of the cached tokens read.
	KVTokens float64
	// Heads and KVHeads on this rank; KDim and VDim per head.
	Heads, KVHeads, KDim, VDim int
	// LatentDim and RopeDim select absorbed multi-head latent attention: one
	// latent of LatentDim+RopeDim per token serves all heads.
	LatentDim, RopeDim int
	// KV is the format of the cache.
	KV models.Format
}

// Scan is the core of one recurrent layer: Mamba-2, gated delta rule, KDA.
type Scan struct {
	// Sequences in the batch and new tokens per sequence.
	Sequences, Tokens          float64
	KHeads, VHeads, KDim, VDim int
	// StateBytes is the recurrent state of one sequence on this rank.
	StateBytes units.Bytes
	// Decode selects the step-by-step kernel over the chunked one.
	Decode bool
}
