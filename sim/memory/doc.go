// Package memory says what one GPU of a replica holds and what is left for the
// key/value cache: weights by tensor class, drafter, cache and recurrent state,
// activations, captured graphs, the engine's own overhead, and the reserve.
//
// A [Sizer] is prepared once per architecture; [Sizer.Fit] answers for one
// layout, card and engine in about a microsecond without allocating, and
// [Sizer.Report] gives the same verdict with every term, the reason when it
// does not fit, and what would make it fit.
//
// Ranks differ: the first pipeline stage holds the embedding, the last the
// head, and stages may have unequal layers. The verdict is that of the binding
// rank, the one that caches the fewest tokens.
//
// All sizes are bytes; reports print GiB (2^30) and say so. The package reads
// the engine's rules from sim/software and holds no number of its own. It
// knows nothing of time.
package memory
