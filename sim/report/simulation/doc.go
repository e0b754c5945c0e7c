// Package simulation shows the result of a simulated fleet: a table for people,
// a JSON contract, a CSV of one row per part of the fleet, a page of charts in
// one HTML file, and the steps of the engines as JSON lines or as a trace for a
// timeline viewer.
//
// It knows how a result is shown and nothing of how it came about: every number
// arrives finished in a cluster.Result, in seconds, and leaves in the unit its
// name says (ms for latencies, s for moments). What is derived here are shares,
// and the least, the middle and the largest of many instances. It reads no flag,
// terminal, file or clock. The chart library inside the HTML is embedded, see
// the folder uplot; the page loads nothing.
//
// A number that does not exist (NaN, infinity) is null in JSON, an empty cell in
// CSV and "-" for people. A list is never null in JSON.
package simulation
