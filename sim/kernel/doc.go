// Package kernel prices one GPU kernel: dense and grouped matrix products,
// attention in prefill and decode, recurrent scans and streaming passes.
//
// A [Model] binds the calibrated [Curves] of configs/kernels to a part of
// configs/hardware and answers with an [Estimate]: the likely time, the physical
// lower bound, bytes, operations and the bound that decides. Time is of the kernel
// alone: its ramp, but neither the gap to the next kernel nor the host, which
// belong to the engine.
//
// # The model
//
// Every kernel is ramp + the larger of memory and arithmetic + a felt share of the
// smaller.
//
//   - Memory is the compulsory traffic over the achievable share of the HBM
//     bandwidth. The ramp is the small-transfer correction: 5 MB at 6.5 TB/s take
//     0.8 us, a kernel takes 3.
//   - Arithmetic of a product is a tile and wave model: tiles of seven shapes are
//     dealt to the compute units; a tile of a x b reaches a share of the peak that
//     falls with its operand traffic (a+b)/(2ab) and pays a prologue; fewer tiles
//     than units share K (split-K) at the cost of reducing partial sums, and never
//     take less than the serial time of a K loop; more tiles make waves, of which
//     the last, partly filled one counts in part. The best tile wins, as in a tuned
//     library. Rounding up to tiles and waves is continuous (a quarter of a tile
//     beyond the edge), so adjacent row counts differ by no cliff.
//   - Grouped products round up per expert, for random row counts. A fused expert
//     network is two such kernels and the partly cached write of its per-row output.
//   - Prefill attention computes causal scores in query tiles of 128 rows with the
//     softmax beside the products; the longest tile bounds a short launch; K and V
//     are re-read from the caches once per query tile, or once per query
//     when each picks entries of its own.
//   - Decode attention reads the cache once per KV head (once for all heads over
//     absorbed latents), packs the queries of a KV head into one tile and splits long
//     sequences.
//
// # Invariants
//
// Time >= Lower = max(bytes / HBM bandwidth, operations / peak of the operand type),
// whatever the curves say. More rows, width, context, experts or sequences never
// cost less. Counts are float64 because callers pass expectations. Methods do not
// allocate. A count of zero or less (or not a number) is no kernel and costs
// nothing.
//
// # Data
//
// The curves are fitted by package calibrate to public tables of tuned kernels:
// best of the tuner and kernel-only, so that an engine is slower by what it does not
// tune. A family without measurements says so in its source and has a wide spread;
// a part without curves takes those of the nearest relative, wider still.
//
// The package knows nothing of models' layers, engines, layouts or links.
package kernel
