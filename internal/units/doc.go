// Package units holds the dimensioned values that cross package borders:
// seconds, bytes, rates, counts of floating-point operations, money.
//
// Everything is SI inside (seconds, bytes, hertz); the suffixes people write
// (ms, GiB, TB/s) exist only at the borders, where [ParseBytes],
// [ParseBytesPerSecond] and [ParseSeconds] read them. 1 GB is 1e9 bytes and
// 1 GiB is 2^30 bytes; neither is ever read as the other.
//
// The package knows nothing of GPUs, models or engines.
package units
