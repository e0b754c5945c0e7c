// Package software says what an inference engine is to a planner: its releases
// and their dates, the settings it starts with on a given card, how it divides
// a card's memory, how it lays out the key/value cache, and what it does with
// a number format the card has no instructions for.
//
// Every number comes from configs/engines/<engine>.yaml, one ordered list of
// rules per engine. A rule says under which conditions it holds (releases,
// vendor, instruction set, card memory) and which settings it gives; a later
// rule overrides an earlier one. [Engine.Defaults] folds the rules into one
// [Defaults] value and remembers the source of each setting.
//
// Releases are ordered by date, because nightly builds, images and plug-in
// builds have no other common order. The package knows nothing of models, of
// parallel layouts or of time spent: the cost of an engine's kernels is not
// here.
package software
