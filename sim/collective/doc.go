// Package collective prices one collective operation between the GPUs of a
// group: all-reduce, all-gather, reduce-scatter, all-to-all, point-to-point and
// the dispatch and combine of expert parallelism.
//
// The price comes from two things. A [Table] (configs/fabrics/collectives)
// holds what was measured for each implementation and group size: a lower
// envelope of lines t = floor + bytes/bandwidth, the sizes it was measured
// over, and its spread. The fabric says how many bytes cross which link. A
// table measured on one fabric is carried to another by keeping its share of
// the link bandwidth, and to a group size that was not measured by keeping the
// time between its neighbours.
//
// What always holds for a group and an operation:
//
//   - one rank or no bytes costs nothing;
//   - the time grows with the message and never jumps: where an engine changes
//     the implementation (its own all-reduce below 8 MiB, the library above),
//     the time moves from one curve to the other no faster than the square of
//     the size and never down;
//   - Estimate.Lower <= Estimate.Time, where Lower is the time of the bytes on
//     the wire at the full rate of the links.
//
// Groups beyond one scale-up domain are priced as a hierarchy: inside each
// domain, then between domains over one NIC rail per GPU, then inside again.
// No measurement of ours covers them; their spread says so.
//
// The package knows links, groups and message sizes. It must not know models,
// layers, engines' schedules or how a step overlaps communication with work.
package collective
