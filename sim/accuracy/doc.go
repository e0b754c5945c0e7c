// Package accuracy reads tables of measured serving points and says how far
// predictions are from them: absolute percentage errors, bias, rank
// correlation within a curve, and how often the stated band holds.
//
// It knows the columns of such tables and the statistics, not how a
// prediction is made.
package accuracy
