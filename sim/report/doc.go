// Package report turns one result model into a table, JSON, CSV and a
// waterfall of bars.
//
// It knows how a result is shown: which keys a JSON contract has and in which
// order, which units and digits a line carries, how a section fits 60 columns.
// It must not know physics: every number arrives finished, in the unit its
// field name says, and nothing here is derived beyond sums and shares of what
// is printed. It reads no flag, no terminal and no clock: width, colour and
// character set are [page.Options].
//
// A number that does not exist (NaN, infinity) is null in JSON, an empty cell
// in CSV and "-" in a table, in every place. A list is never null in JSON.
package report
