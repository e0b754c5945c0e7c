package cli

import (
	"math"
	"testing"

	"github.com/spf13/pflag"

	"infera/internal/units"
)

func TestValues(t *testing.T) {
	var (
		f    float64
		n    int
		b    units.Bytes
		rate units.BytesPerSecond
		s    units.Seconds
	)
	inf := math.Inf(1)
	for _, tt := range []struct {
		value    pflag.Value
		in, want string // want: String(), or the error
		ok       bool
	}{
		{Float(&f, 0, inf), "1e3", "1000", true},
		{Float(&f, 0, inf), "Inf", `"Inf" is not a finite number; allowed: at least 0`, false},
		{Float(&f, 0, inf), "-1", "-1 is out of range; allowed: at least 0", false},
		{Float(&f, -inf, 5), "6", "6 is out of range; allowed: at most 5", false},
		{Float(&f, -inf, inf), "x", `"x" is not a number; allowed: any number`, false},
		{Positive(&f, inf), "0", "0 is out of range; allowed: a number above 0", false},
		{Positive(&f, 2), "x", `"x" is not a number; allowed: a number above 0 and at most 2`, false},
		{Positive(&f, 2), "1e-3", "0.001", true},
		{Int(&n, 0, math.MaxInt), "65536", "65536", true},
		{Int(&n, 0, math.MaxInt), "-2", "-2 is out of range; allowed: a whole number of at least 0", false},
		{Int(&n, math.MinInt, math.MaxInt), "x", `"x" is not a whole number; allowed: any whole number`, false},
		// A bare 288 in GB is 288e9 bytes = 268.22 * 2^30.
		{Bytes(&b, units.GB, 1), "288", "268.2 GiB", true},
		{Bytes(&b, units.GB, 1), "256GiB", "256 GiB", true},
		{Bytes(&b, units.GB, 1), "-1", `"-1" is not an amount of memory: it is negative`, false},
		// 400 gigabits are 50 gigabytes.
		{Rate(&rate, 1e9, 0), "400Gb/s", "50 GB/s", true},
		{Rate(&rate, 1e9, 1), "0", "0 is too small; allowed: at least 1 B/s", false},
		{Duration(&s, 1e-3, 0), "2", "2 ms", true},
		{Duration(&s, 1e-3, 1e-3), "1us", "1us is too small; allowed: at least 1 ms", false},
	} {
		err := tt.value.Set(tt.in)
		got := tt.value.String()
		if err != nil {
			got = err.Error()
		}
		if (err == nil) != tt.ok || got != tt.want {
			t.Errorf("%s: Set(%q) gives %q, want %q", tt.value.Type(), tt.in, got, tt.want)
		}
	}
}

// A refused value leaves the variable as it was, and a value can be checked
// without being set.
func TestValuesKeepOnError(t *testing.T) {
	n := 3
	v := Int(&n, 1, 8)
	if v.Set("9") == nil || n != 3 {
		t.Errorf("n = %d after a refused value", n)
	}
	var p *int
	o := Optional(&p, func(p *int) pflag.Value { return Int(p, 1, 8) })
	if o.Set("9") == nil || p != nil || o.String() != "" {
		t.Error("a refused value set an optional")
	}
	if err := o.(checker).check("4"); err != nil || p != nil {
		t.Errorf("check: %v, %v", err, p)
	}
	if err := o.Set("4"); err != nil || *p != 4 || o.String() != "4" {
		t.Errorf("Set: %v, %v", err, p)
	}
}

func FuzzValues(f *testing.F) {
	for _, seed := range []string{"1", "-0", "1e308", "NaN", "0x1p-2", "1_000", " 7 "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var x float64
		if Float(&x, 0, 1).Set(text) == nil && !(x >= 0 && x <= 1) {
			t.Errorf("Float took %q as %g", text, x)
		}
		var n int
		if Int(&n, 1, 8).Set(text) == nil && (n < 1 || n > 8) {
			t.Errorf("Int took %q as %d", text, n)
		}
	})
}
