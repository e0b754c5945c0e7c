package models

import (
	"errors"
	"strings"
	"testing"
)

func TestParseFormat(t *testing.T) {
	for _, tt := range []struct {
		in, out string
		bits    float64
		act     DType
	}{
		{"bf16", "bf16", 16, BF16}, {"BFloat16", "bf16", 16, BF16}, {"float16", "fp16", 16, FP16}, {"fp32", "fp32", 32, FP32},
		{"fp8", "fp8", 8, FP8}, {"fp8_e4m3", "fp8", 8, FP8}, {"e5m2", "fp8", 8, FP8}, {"fp8-channel", "fp8_channel", 8, FP8}, {"fp8_tensor", "fp8_tensor", 8, FP8},
		{"fp8_block", "fp8_block", 8 + 32.0/16384, FP8}, // one fp32 scale per 128x128
		{"mxfp8", "mxfp8", 8.25, FP8}, {"mxfp6", "mxfp6", 6.25, FP6}, {"mxfp4", "mxfp4", 4.25, FP4}, {"fp4", "mxfp4", 4.25, FP4},
		{"nvfp4", "nvfp4", 4.5, FP4}, {"int8", "int8", 8, INT8}, {"w8a8", "int8", 8, INT8},
		{"int4", "int4", 4.125, BF16}, {"w4a16", "int4", 4.125, BF16}, {"int4_g32", "int4_g32", 4.5, BF16}, {"int4_g64_zp", "int4_g64_zp", 4 + 20.0/64, BF16},
		{"mxfp4_a16", "mxfp4_a16", 4.25, BF16}, {"mxfp4_w4a8", "mxfp4_a8", 4.25, FP8}, {"w4a8", "int4_a8", 4.125, FP8}, {"fp8_a16", "fp8_a16", 8, BF16}, {"w8a16", "int8_a16", 8, BF16},
	} {
		f, err := ParseFormat(tt.in)
		if err != nil {
			t.Errorf("ParseFormat(%q): %v", tt.in, err)
			continue
		}
		if f.String() != tt.out || f.BitsPerElement() != tt.bits || f.Activation != tt.act {
			t.Errorf("ParseFormat(%q) = %v, %v bits, activation %v; want %s, %v, %v", tt.in, f, f.BitsPerElement(), f.Activation, tt.out, tt.bits, tt.act)
		}
		if again, err := ParseFormat(f.String()); err != nil || again != f {
			t.Errorf("ParseFormat(%q) = %+v, %v; want %+v", f.String(), again, err, f)
		}
	}
	for in, hint := range map[string]string{"fp88": `did you mean "fp8"?`, "nvfp44": `did you mean "nvfp4"?`, "": "known: fp32", "quaternion": "known: fp32", "int4_gx": "", "int4_g0": "", "bf16_g32": ""} {
		_, err := ParseFormat(in)
		if !errors.Is(err, ErrUnknownFormat) || !strings.Contains(err.Error(), hint) {
			t.Errorf("ParseFormat(%q) = %v, want ErrUnknownFormat with %q", in, err, hint)
		}
	}
}

// Every alias means a format.
func TestFormatAliases(t *testing.T) {
	for from, to := range formatAliases {
		if _, err := ParseFormat(from); err != nil {
			t.Errorf("alias %s -> %s: %v", from, to, err)
		}
	}
}

func TestDTypeOf(t *testing.T) {
	for name, want := range map[string]DType{"half": FP16, "bfloat16": BF16, "float8_e4m3fn": FP8, "mxfp4": FP4} {
		if got, ok := DTypeOf(name); !ok || got != want {
			t.Errorf("DTypeOf(%q) = %v, %v, want %v", name, got, ok, want)
		}
	}
	for _, name := range []string{"", "fp9", "int4_g32"} {
		if got, ok := DTypeOf(name); ok || got != DTypeUnknown {
			t.Errorf("DTypeOf(%q) = %v, %v, want none", name, got, ok)
		}
	}
}

func FuzzParseFormat(f *testing.F) {
	for _, s := range []string{"bf16", "int4_g32", "mxfp4_a16", "fp8_", "_", "int4_g99999999999_zp_a4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseFormat(s)
		if err != nil {
			return
		}
		if b := got.BitsPerElement(); !(b >= 4 && b <= 64) {
			t.Fatalf("ParseFormat(%q) has %v bits", s, b)
		}
	})
}
