// Package fit turns measured serving points into engine efficiencies.
//
// An efficiency is a set of named coefficients (sim/software). Its logarithm
// is modelled as a sum of effects: one common to all points, one per
// instruction-set architecture, one per engine, one per engine on an
// architecture, one per release epoch of that and one per single build. Effects are drawn towards zero,
// so an epoch with few points keeps what its stack says, and a stack with few
// points keeps what its engine and architecture say. A coefficient may have a
// floor, above which its effects work. There is no effect per model or per row.
//
// The fit is a damped Gauss-Newton iteration on the log residuals of the time
// per output token and the time to first token, with a robust loss; the
// prediction is whatever the caller's function says, so the fitted values
// belong to exactly the predictor that will use them.
package fit
