// Package inspection shows what a recorded workload holds: a table with small
// histograms, a JSON contract and a CSV of one row.
//
// It knows how the figures are shown. It counts nothing: they arrive finished in
// a trace.Statistics, and leave in the units of their names (s for times, tokens
// for lengths). It reads no flag, terminal, file or clock.
package inspection
