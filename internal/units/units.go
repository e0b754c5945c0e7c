package units

// Seconds is a duration in seconds.
type Seconds float64

// Milliseconds returns s in milliseconds, for a border that prints them.
func (s Seconds) Milliseconds() float64 { return float64(s) * 1e3 }

// Microseconds returns s in microseconds, for a border that prints them.
func (s Seconds) Microseconds() float64 { return float64(s) * 1e6 }

// Bytes is an amount of memory or traffic in bytes. It is a float64 because
// sub-byte formats give fractions per element; every whole number up to 2^53
// is exact.
type Bytes float64

// Decimal and binary multiples of a byte.
const (
	KB Bytes = 1e3
	MB Bytes = 1e6
	GB Bytes = 1e9
	TB Bytes = 1e12

	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

// GiB returns b in binary gigabytes (2^30 bytes), for a border that prints them.
func (b Bytes) GiB() float64 { return float64(b / GiB) }

// GB returns b in decimal gigabytes (1e9 bytes), for a border that prints them.
func (b Bytes) GB() float64 { return float64(b / GB) }

// BytesPerSecond is a bandwidth.
type BytesPerSecond float64

// FLOPs is a count of floating-point (or integer tensor-core) operations; one
// multiply-add counts as two.
type FLOPs float64

// FLOPsPerSecond is an arithmetic rate.
type FLOPsPerSecond float64

// Hertz is a clock rate.
type Hertz float64

// Watts is a power.
type Watts float64

// Dollars is an amount of money in US dollars.
type Dollars float64
