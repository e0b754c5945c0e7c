package models

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"infera/internal/nearest"
)

// ErrUnknownFormat is the kind of error [ParseFormat] returns for a spelling
// it does not know.
var ErrUnknownFormat = errors.New("unknown format")

// baseFormats defines the formats by name. The widths are the definitions of
// the formats, not measurements: OCP Microscaling v1.0 for the mx types (one
// 8-bit scale per 32), NVIDIA's NVFP4 (one 8-bit scale per 16), DeepSeek-V3's
// 128x128 blocks with an fp32 scale, and the usual group of 128 with a 16-bit
// scale for int4.
var baseFormats = []Format{
	{Name: "fp32", Element: FP32, Activation: FP32},
	{Name: "bf16", Element: BF16, Activation: BF16},
	{Name: "fp16", Element: FP16, Activation: FP16},
	{Name: "fp8", Element: FP8, Activation: FP8},
	{Name: "fp8_tensor", Element: FP8, Activation: FP8},
	{Name: "fp8_channel", Element: FP8, Activation: FP8},
	{Name: "fp8_block", Element: FP8, Group: 128 * 128, ScaleBits: 32, Activation: FP8},
	{Name: "mxfp8", Element: FP8, Group: 32, ScaleBits: 8, Activation: FP8},
	{Name: "mxfp6", Element: FP6, Group: 32, ScaleBits: 8, Activation: FP6},
	{Name: "mxfp4", Element: FP4, Group: 32, ScaleBits: 8, Activation: FP4},
	{Name: "nvfp4", Element: FP4, Group: 16, ScaleBits: 8, Activation: FP4},
	{Name: "int8", Element: INT8, Activation: INT8},
	{Name: "int4", Element: INT4, Group: 128, ScaleBits: 16, Activation: BF16},
}

// formatAliases maps other spellings to names that [ParseFormat] reads. fp4
// alone means mxfp4, the fp4 of the OCP standard.
var formatAliases = map[string]string{
	"float32": "fp32", "f32": "fp32", "float": "fp32",
	"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "f16": "fp16",
	"fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "e4m3": "fp8", "e5m2": "fp8",
	"float8_e4m3fn": "fp8", "fp8_e4m3fn": "fp8", "fp8_e4m3fnuz": "fp8", "float8": "fp8", "f8": "fp8",
	"float8_e5m2": "fp8", "float8_e4m3": "fp8", "float8_e4m3fnuz": "fp8",
	"fp8_per_tensor": "fp8_tensor", "fp8_per_channel": "fp8_channel", "ptpc_fp8": "fp8_channel",
	"fp8_blockwise": "fp8_block", "block_fp8": "fp8_block", "w8a8_fp8": "fp8",
	"fp4": "mxfp4", "e2m1": "mxfp4", "fp4_e2m1": "mxfp4", "mxfp4_w4a4": "mxfp4", "w4a4": "mxfp4",
	"mxfp4_w4a16": "mxfp4_a16", "mxfp4_w4a8": "mxfp4_a8",
	"nvfp4_w4a16": "nvfp4_a16", "nvfp4_w4a4": "nvfp4",
	"fp6": "mxfp6", "w8a8": "int8", "w8a8_int8": "int8", "w8a16": "int8_a16",
	"w4a16": "int4", "w4a8": "int4_a8", "awq": "int4", "gptq": "int4", "int4_awq": "int4",
}

// ParseFormat reads a format name as flags, files and presets spell it:
// bf16, fp8_block, mxfp4, nvfp4, int4, w4a16 and so on. A name may carry
// qualifiers: _gN (group size), _zp (a zero point as wide as the element in
// each group), _a16, _a8, _a4 (activation width), as in int4_g32 or mxfp4_a16.
// An unknown spelling is an [ErrUnknownFormat] with the nearest name.
func ParseFormat(name string) (Format, error) {
	s := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "-", "_")
	if f, ok := lookupFormat(s); ok {
		return f, nil
	}
	base, rest := s, []string(nil)
	for {
		i := strings.LastIndexByte(base, '_')
		if i < 0 {
			break
		}
		rest = append(rest, base[i+1:])
		base = base[:i]
		f, ok := lookupFormat(base)
		if !ok {
			continue
		}
		slices.Reverse(rest)
		if f, ok = qualify(f, rest); ok {
			return f, nil
		}
		break
	}
	known := FormatNames()
	hint := nearest.Hint(name, known)
	if hint == "" {
		hint = "known: " + strings.Join(known, ", ")
	}
	return Format{}, fmt.Errorf("%w %q; %s", ErrUnknownFormat, name, hint)
}

// FormatNames lists the base names that [ParseFormat] reads, in width order.
func FormatNames() []string {
	names := make([]string, len(baseFormats))
	for i, f := range baseFormats {
		names[i] = f.Name
	}
	return names
}

func lookupFormat(s string) (Format, bool) {
	if to, ok := formatAliases[s]; ok {
		s = to
	}
	for _, f := range baseFormats {
		if f.Name == s {
			return f, true
		}
	}
	for _, a := range [...]string{"_a16", "_a8", "_a4"} { // an alias may name a qualified form
		if b, ok := strings.CutSuffix(s, a); ok {
			for _, f := range baseFormats {
				if f.Name == b {
					return qualify(f, []string{a[1:]})
				}
			}
		}
	}
	return Format{}, false
}

// DTypeOf returns the element type that a lower-case name of a type or of a
// format stores, in any spelling that [ParseFormat] knows as a whole: bfloat16,
// half, float8_e4m3fn, mxfp4.
func DTypeOf(name string) (DType, bool) {
	f, ok := lookupFormat(name)
	return f.Element, ok
}

// qualify applies the _gN, _zp and _aN parts of a spelling.
func qualify(f Format, parts []string) (Format, bool) {
	for _, p := range parts {
		switch {
		case p == "a16":
			f.Activation = BF16
		case p == "a8":
			f.Activation = FP8
			if f.Element == INT8 {
				f.Activation = INT8
			}
		case p == "a4" && f.Element.Bits() <= 4:
			f.Activation = FP4
		case p == "zp" && f.Group > 0:
			f.ScaleBits += f.Element.Bits()
		case len(p) > 1 && p[0] == 'g' && f.Element.Bits() <= 8:
			n, err := strconv.Atoi(p[1:])
			if err != nil || n < 1 || n > 1<<20 {
				return Format{}, false
			}
			f.Group = n
			if f.ScaleBits == 0 {
				f.ScaleBits = 16
			}
		default:
			return Format{}, false
		}
	}
	return f, true
}

// String returns the spelling that [ParseFormat] reads back: the name, with
// qualifiers where the format departs from the definition of the name.
func (f Format) String() string {
	base, ok := lookupFormat(f.Name)
	if !ok {
		return f.Name
	}
	s := f.Name
	if f.Group != base.Group && f.Group > 0 {
		s += "_g" + strconv.Itoa(f.Group)
		if base.ScaleBits == 0 {
			base.ScaleBits = 16
		}
	}
	if f.ScaleBits == base.ScaleBits+f.Element.Bits() {
		s += "_zp"
	}
	if f.Activation != base.Activation {
		switch f.Activation {
		case BF16, FP16:
			s += "_a16"
		case FP8, INT8:
			s += "_a8"
		case FP4:
			s += "_a4"
		}
	}
	return s
}

// FormatOf returns the plain format of an unquantised element type.
func FormatOf(d DType) Format {
	return Format{Name: d.String(), Element: d, Activation: d}
}
