package modules

import "math/bits"

// Part is one kind of parameter tensor of a model.
type Part uint8

// The parts. Projections that are always treated alike share one.
const (
	QueryA     Part = iota // low-rank query compression
	Query                  // query projection, or its second half
	Key                    // key projection
	Value                  // value projection
	LatentA                // key/value compression of latent attention
	LatentB                // its expansion per head
	Output                 // output projection of softmax attention
	OutputGate             // gate of the attention output
	Compressor             // pooling of cached tokens (DeepSeek-V4)
	IndexQuery             // sparse-attention selector, queries
	IndexKey               // the same, keys
	IndexGate              // the same, head weights
	RecurrentIn
	RecurrentGate
	RecurrentOut
	RecurrentConv
	DenseUp // gate and up projections of a dense layer
	DenseDown
	ExpertUp
	ExpertDown
	SharedUp
	SharedDown
	SharedGate // scalar gate of the shared expert
	LatentProj // projections around latent experts
	Router
	Norm // norms, biases and other vectors
	Embedding
	Head
	Draft  // the drafter as a whole
	Vision // the vision or audio tower as a whole
	NumParts
)

// Set is a set of parts.
type Set uint64

// Of returns the set of the given parts.
func Of(parts ...Part) Set {
	var s Set
	for _, p := range parts {
		s |= 1 << p
	}
	return s
}

// Has reports whether p is in the set.
func (s Set) Has(p Part) bool { return s&(1<<p) != 0 }

// Len returns the number of parts in the set.
func (s Set) Len() int { return bits.OnesCount64(uint64(s)) }

// The sets that one module name can stand for.
var (
	// Attention is every matrix of softmax attention, its selector included.
	Attention = Of(QueryA, Query, Key, Value, LatentA, LatentB, Output, OutputGate, Compressor, IndexQuery, IndexKey, IndexGate)
	// Recurrent is every matrix of a recurrent layer.
	Recurrent = Of(RecurrentIn, RecurrentGate, RecurrentOut, RecurrentConv)
	// Dense, Experts and Shared are the feed-forward matrices.
	Dense   = Of(DenseUp, DenseDown)
	Experts = Of(ExpertUp, ExpertDown)
	Shared  = Of(SharedUp, SharedDown)
	// FeedForward is everything under a layer's feed-forward module.
	FeedForward = Dense | Experts | Shared | Of(SharedGate, LatentProj, Router)
	// Layer is everything in a layer.
	Layer = Attention | Recurrent | FeedForward | Of(Norm)
	// Linear is what a quantiser means by every linear module: the matrices
	// of the layers without router, gates, convolutions and the projections
	// around latent experts, which no published checkpoint quantises.
	Linear = (Attention | Recurrent | FeedForward) &^ Of(SharedGate, Router, RecurrentConv, IndexGate, LatentProj)
)
