// Package rng gives every purpose its own stream of random numbers, so that
// changing how many one of them draws leaves the others alone: two runs that
// differ in the router see the same arrivals and lengths.
//
// It knows nothing of what is drawn. There is no global state: a stream is a
// function of a seed and a name.
package rng
