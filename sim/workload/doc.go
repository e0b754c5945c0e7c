// Package workload is what clients ask of a fleet: when requests arrive, how
// long they are, what their prompts share, and which depend on the answers to
// others. It generates workloads from a description and replays recorded ones,
// which package trace reads.
//
// Content is a list of segments with identities instead of tokens: enough to
// know which prompts begin alike, whatever the block size of an engine.
//
// Every lever draws from a random stream of its own, and what a conversation is
// follows from the numbers of its session and turn, so that two simulations of a
// workload see the same requests whatever they answer first. Requests are made
// when they are asked for; only those under way are held.
//
// The package knows nothing of engines, caches and prices, and has no clock and
// no files. Times are simulated nanoseconds, lengths are tokens, rates are
// requests per second.
package workload
