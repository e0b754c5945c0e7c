// Package hfjson reads the JSON that Python tools write: like encoding/json
// into a tree, but accepting NaN and Infinity (as the strings "NaN" and
// "Infinity", which no number accessor takes), and with limits on size and
// nesting so that hostile input costs a bounded amount of memory. It knows
// nothing of what the keys mean.
package hfjson
