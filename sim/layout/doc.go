// Package layout says how one replica of a model is spread over GPUs: which
// splits are legal and why not ([Check]), the closest legal one ([Nearest]),
// what part of each tensor a rank holds ([HeadsPerRank], [ExpertsPerRank],
// [Stages], ...) and how the groups of ranks fall on scale-up domains
// ([Place]).
//
// Invariants: the shards of all ranks together cover the whole at least once
// (more where heads are replicated or widths are padded); Nearest returns a
// layout that Check accepts, and a legal layout unchanged.
//
// It counts heads, layers, experts and columns. It knows nothing of bytes,
// time, or the flags by which an engine is told; a rule that only one engine
// has does not belong here.
package layout
