// Package page lays text out for a terminal of a given width: sections, lines of
// label, number, unit and band, grids whose columns wrap or are left out (and
// named) when they do not fit, lists, bars.
//
// It must not know what the text is about. Foreign strings are made safe for a
// terminal: control characters become blanks. No line is wider than the page,
// unless a grid cannot be made narrower.
package page
