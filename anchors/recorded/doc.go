// Package recorded fits the price of an engine step to a recorded run of a real
// engine: when each request arrived, got its first token and got its last.
//
// A run holds no step times, and needs none. Replaying its arrivals and lengths
// through the simulator at some price says which steps each request waited for
// and what those computed. The measured times then are sums of known work at
// unknown costs, and least squares gives the costs; with them the run is
// replayed again, until nothing changes. What a fitted price leaves of the
// measured times is what the simulated scheduler does otherwise than the real
// one, which is what the package is for: the price is fitted on the first
// requests of a run and scored on the rest.
//
// A price belongs to one engine with its model, layout and GPU. It says nothing
// about another one; prices from first principles are package step's.
//
// The package knows vLLM's name for a setting, the simulated fleet and
// schedulers, and no file system and clock. Times are simulated time from the
// first arrival, costs are seconds.
package recorded
