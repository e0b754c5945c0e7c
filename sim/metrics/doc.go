// Package metrics turns what a simulation observed into figures: distributions,
// confidence intervals, the end of the warm-up, saturation, goodput.
//
// It knows requests as records of moments (Record) and nothing of engines,
// caches or routing. Times are seconds in every result, simulated nanoseconds
// in every record.
package metrics
