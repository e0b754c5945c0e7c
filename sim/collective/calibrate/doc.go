// Package calibrate turns measured collective times into the envelopes of lines
// that configs/fabrics/collectives ships: it reads benchmark tables, groups the
// rows by implementation and group size, and fits t = min(floor + bytes/rate).
//
// It is how the shipped tables were made and how another machine's tables are
// made. It knows rows and lines; it must not know how the model uses them.
package calibrate
