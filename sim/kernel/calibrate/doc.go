// Package calibrate fits the efficiency curves of package kernel to measured
// kernel times, and says how well they fit.
//
// It reads the public tables of tuned kernels and micro-benchmarks as CSV
// (columns by name), prices every row with the very model that the planner uses
// and moves the numbers of a curve until the weighted mean of |log(model /
// measured)| is least, by Nelder and Mead's simplex. Rows whose implied bandwidth
// or rate is beyond the part's peak are impossible and dropped; rows beyond
// [WarmShare] of the HBM bandwidth ran from a warm cache, which a decode step
// does not, and are dropped too. Every fifth shape, by a hash of its widths, is
// held out of the fit and reported apart.
//
// Every octave of rows (or bytes) weighs the same, whatever the number of
// measurements in it, and those of decode (up to 256 rows) twice.
//
// The package knows nothing of files or commands: tables arrive as io.Reader,
// curves leave through an io.Writer.
package calibrate
