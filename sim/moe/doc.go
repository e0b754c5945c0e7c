// Package moe holds the routing statistics of mixture-of-experts layers: how
// many different experts a batch of tokens touches, how many rows the busiest
// rank or expert gets, and what redundant experts change about it.
//
// Token counts are real numbers, since a steady state has fractional batches. A
// [Routing] is built once per model and recipe; its methods do not allocate and
// are safe for concurrent use. For a uniform router everything is closed form;
// for a skewed one the distinct count is tabulated at construction.
//
// What always holds: for one token or more, topK <= Active <= min(topK*tokens,
// experts); Active grows with the tokens (a measured coverage may bend it); a
// busiest rank has at least the mean and at most what its tokens can send it.
//
// The package knows probabilities only. It must not know kernels, links or
// weights.
package moe
