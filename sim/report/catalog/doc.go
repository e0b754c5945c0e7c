// Package catalog shows what is known before anything is projected: models and
// hardware, as a table, JSON and CSV.
//
// It must not know physics and counts nothing itself: parameter counts, bytes
// and rates arrive finished, in the unit a field's name says.
package catalog
