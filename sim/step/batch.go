package step

import (
	"infera/internal/units"
	"infera/sim/kernel"
)

// Chunk is a piece of one prompt: Tokens new tokens after Context tokens that
// are already in the cache. Sequences is how many equal pieces of different
// prompts the step carries; 0 means 1.
type Chunk struct {
	Tokens, Context float64
	Sequences       float64
	// Final is the share of the pieces that end their prompt and so produce a
	// token (1 for the last chunk, 0 for the others).
	Final float64
}

func (c Chunk) sequences() float64 { return max(1, c.Sequences) }

// Batch is one engine step of one replica, as aggregates: counts are real
// numbers because a steady state prices expectations.
type Batch struct {
	// Decodes is the number of decoding sequences, DecodeKV the sum of their
	// cached tokens, and TokensPerSequence how many tokens each advances
	// through the model (1 + drafts to verify; 0 means 1).
	Decodes, DecodeKV float64
	TokensPerSequence float64
	// Chunks are the prompt pieces of the step.
	Chunks []Chunk
}

// Time is the price of a step.
type Time struct {
	// Latency is the time from the start of the step to its tokens: the sum of
	// all pipeline stages.
	Latency units.Seconds
	// Interval is the time until the next step can start: the slowest stage.
	// Without pipeline parallelism it equals Latency.
	Interval units.Seconds
}

// A Pricer prices engine steps. Implementations are immutable and safe for
// concurrent use. When into is not nil it receives the breakdown of the step.
type Pricer interface {
	Price(b Batch, into *Breakdown) Time
}

// Op names one class of operations in a breakdown.
type Op uint8

// The operation classes, in report order.
const (
	OpAttentionProjection Op = iota
	OpAttentionDecode
	OpAttentionPrefill
	OpIndexer
	OpRecurrent
	OpDenseFFN
	OpExperts
	OpSharedExpert
	OpRouter
	OpElementwise
	OpEmbedding
	OpHead
	OpSampling
	OpAllReduce
	OpAllToAll
	OpPointToPoint
	OpLayerFixed
	OpHost
	OpDraft
	NumOps
)

var opNames = [NumOps]string{
	"attention_projection", "attention_decode", "attention_prefill", "indexer", "recurrent",
	"dense_ffn", "experts", "shared_expert", "router", "elementwise", "embedding", "head", "sampling",
	"all_reduce", "all_to_all", "point_to_point", "layer_fixed", "host", "draft",
}

// String returns the name used in reports.
func (o Op) String() string {
	if o < NumOps {
		return opNames[o]
	}
	return "unknown"
}

// OpCost is what one operation class adds to a step.
type OpCost struct {
	Time, Lower units.Seconds
	Bytes       units.Bytes
	FLOPs       units.FLOPs
	// Bound is the resource that decides the largest part of Time.
	Bound kernel.Bound

	largest units.Seconds
}

// Breakdown is the waterfall of one step by operation class.
type Breakdown struct {
	Ops [NumOps]OpCost
}

// Total returns the summed time of all classes, which is the step's latency.
func (b *Breakdown) Total() units.Seconds {
	var t units.Seconds
	for i := range b.Ops {
		t += b.Ops[i].Time
	}
	return t
}

func (b *Breakdown) add(o Op, time, lower units.Seconds, bytes units.Bytes, flops units.FLOPs, bound kernel.Bound) {
	c := &b.Ops[o]
	c.Time += time
	c.Lower += lower
	c.Bytes += bytes
	c.FLOPs += flops
	if time > c.largest {
		c.largest, c.Bound = time, bound
	}
}
