package models

import "infera/internal/units"

// DType is the element type of a stored tensor or of an activation.
type DType uint8

// The element types that checkpoints and engines use.
const (
	DTypeUnknown DType = iota
	FP32
	BF16
	FP16
	FP8 // e4m3 or e5m2
	FP6 // e2m3 or e3m2
	FP4 // e2m1
	INT8
	INT4
)

var dtypeNames = [...]string{"unknown", "fp32", "bf16", "fp16", "fp8", "fp6", "fp4", "int8", "int4"}

// String returns the lower-case name used in flags, files and reports.
func (d DType) String() string {
	if int(d) < len(dtypeNames) {
		return dtypeNames[d]
	}
	return dtypeNames[0]
}

var dtypeBits = [...]float64{0, 32, 16, 16, 8, 6, 4, 8, 4}

// Bits returns the width of one element in bits, without scales; 0 for an
// unknown type.
func (d DType) Bits() float64 {
	if int(d) < len(dtypeBits) {
		return dtypeBits[d]
	}
	return 0
}

// Format is how the elements of one tensor class are stored and computed: the
// element type, the scales that go with it, and the type that activations are
// cast to before a matrix product with it.
type Format struct {
	// Name is the spelling in flags, files and reports: bf16, fp8, fp8_block,
	// mxfp8, mxfp6, mxfp4, nvfp4, int8, int4, ...
	Name string
	// Element is the stored element type.
	Element DType
	// Group is how many elements share one scale; 0 means one scale per tensor
	// or per channel, whose size is negligible.
	Group int
	// ScaleBits is the width of one group's scale (and zero point) in bits.
	ScaleBits float64
	// Activation is the element type of the other operand of a matrix product:
	// BF16 for weight-only formats, FP8 for fp8, FP4 for mxfp4 with fp4
	// activations. It decides the arithmetic rate.
	Activation DType
	// MixedBits, if above 0, is the mean of stored bits per element, scales
	// included, of a class whose members are stored in several formats; the
	// other fields are then those of the largest share.
	MixedBits float64
}

// BitsPerElement returns the stored bits per element, scales included.
func (f Format) BitsPerElement() float64 {
	if f.MixedBits > 0 {
		return f.MixedBits
	}
	b := f.Element.Bits()
	if f.Group > 0 {
		b += f.ScaleBits / float64(f.Group)
	}
	return b
}

// Bytes returns the stored size of n elements, scales included.
func (f Format) Bytes(n float64) units.Bytes {
	return units.Bytes(n * f.BitsPerElement() / 8)
}

// IsZero reports whether the format is unset.
func (f Format) IsZero() bool { return f.Element == DTypeUnknown }
