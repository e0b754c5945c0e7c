// Package workload is what clients ask of a fleet: when requests arrive, how
// long they are, what their prompts share, and which depend on the answers to
// others. It generates workloads from a description and reads recorded ones.
//
// Content is a list of segments with identities instead of tokens: enough to
// know which prompts begin alike, whatever the block size of an engine.
//
// The package knows nothing of engines, caches and prices. It has no clock and
// no files: traces come as io.Reader, random numbers as named streams.
package workload
