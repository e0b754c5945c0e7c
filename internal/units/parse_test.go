package units

import (
	"errors"
	"math"
	"testing"
)

func TestParseBytes(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Bytes
	}{
		{"288", 288e9}, // bare numbers count in GB here
		{"80GiB", 80 * 1073741824},
		{"80 GB", 80e9},
		{"1.5gib", 1610612736}, // 1.5 * 2^30
		{"512B", 512},
		{"2e3 MB", 2e9},
		{"0", 0},
		{"-0", 0},
		{" .5 TiB ", 549755813888}, // 2^39
		{"1e3B", 1000},
	} {
		got, err := ParseBytes(tt.in, GB)
		if err != nil || got != tt.want || math.Signbit(float64(got)) {
			t.Errorf("ParseBytes(%q) = %v, %v, want %v", tt.in, got, err, tt.want)
		}
	}
	for in, want := range map[string]string{
		"":        `"" is not an amount of memory: it does not begin with a number`,
		"GiB":     `"GiB" is not an amount of memory: it does not begin with a number`,
		"NaN":     `"NaN" is not an amount of memory: it does not begin with a number`,
		"Inf":     `"Inf" is not an amount of memory: it does not begin with a number`,
		"-1GB":    `"-1GB" is not an amount of memory: it is negative`,
		"1e999":   `"1e999" is not an amount of memory: it is too large`,
		"1e308T":  `"1e308T" is not an amount of memory: unit "T" is not one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB`,
		"1e300TB": `"1e300TB" is not an amount of memory: it is too large`,
		"8b":      `"8b" is not an amount of memory: unit "b" is not one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB`,
		"1,5GB":   `"1,5GB" is not an amount of memory: unit ",5GB" is not one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB`,
		"1 2GB":   `"1 2GB" is not an amount of memory: unit "2GB" is not one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB`,
	} {
		_, err := ParseBytes(in, GB)
		if err == nil || err.Error() != want || !errors.Is(err, ErrSyntax) {
			t.Errorf("ParseBytes(%q): %v, want %s", in, err, want)
		}
	}
}

func TestParseBytesPerSecond(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want BytesPerSecond
	}{
		{"900", 900e9},
		{"3.35TB/s", 3.35e12},
		{"400Gb/s", 50e9}, // eight bits a byte
		{"400Gbps", 50e9},
		{"900 GBps", 900e9},
		{"1GiB/s", 1073741824},
		{"8b/s", 1},
		{"8B/s", 8},
		{"100Mb/s", 12.5e6},
	} {
		got, err := ParseBytesPerSecond(tt.in, 1e9)
		if err != nil || math.Abs(float64(got-tt.want)) > 1e-12*float64(tt.want) {
			t.Errorf("ParseBytesPerSecond(%q) = %v, %v, want %v", tt.in, got, err, tt.want)
		}
	}
	for _, in := range []string{"", "1GB", "1 /s", "1ps", "-1GB/s", "1 gbit/s", "1GB/s/s", "1e308TB/s"} {
		if got, err := ParseBytesPerSecond(in, 1e9); !errors.Is(err, ErrSyntax) {
			t.Errorf("ParseBytesPerSecond(%q) = %v, %v", in, got, err)
		}
	}
}

func TestParseSeconds(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Seconds
	}{
		{"12", 0.012}, {"12ms", 0.012}, {"1.5 s", 1.5}, {"250us", 250e-6}, {"250µs", 250e-6}, {"3ns", 3e-9}, {"2m", 120}, {"2min", 120}, {"1h", 3600},
	} {
		got, err := ParseSeconds(tt.in, 1e-3)
		if err != nil || math.Abs(float64(got-tt.want)) > 1e-12*float64(tt.want) {
			t.Errorf("ParseSeconds(%q) = %v, %v, want %v", tt.in, got, err, tt.want)
		}
	}
	for _, in := range []string{"", "1m30s", "-1s", "1 MS", "NaN", "1e308h"} {
		if got, err := ParseSeconds(in, 1); !errors.Is(err, ErrSyntax) {
			t.Errorf("ParseSeconds(%q) = %v, %v", in, got, err)
		}
	}
}

func TestFormat(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{FormatBytes(0), "0 B"},
		{FormatBytes(512), "512 B"},
		{FormatBytes(1.5 * MiB), "1.5 MiB"},
		{FormatBytes(288 * GB), "268.2 GiB"}, // 288e9 / 2^30 = 268.22
		{FormatBytes(2048 * TiB), "2048 TiB"},
		{FormatBytes(-2 * KiB), "-2 KiB"},
		{FormatBytes(0.5), "0.5 B"},
		{FormatBytesPerSecond(3.35e12), "3.35 TB/s"},
		{FormatBytesPerSecond(999.96e9), "1 TB/s"}, // four digits carry it over
		{FormatSeconds(0.012), "12 ms"},
		{FormatSeconds(90), "1.5 min"},
		{FormatSeconds(0), "0 s"},
		{FormatSeconds(1e-10), "0.1 ns"},
		{FormatSeconds(Seconds(math.NaN())), "NaN s"},
		{FormatSeconds(Seconds(math.Inf(1))), "+Inf s"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

// Whatever is taken is finite and not negative, and reading back what is
// written gives the same to four digits.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"80GiB", "288", "3.35TB/s", "400Gb/s", "12ms", "1e", "1e+", "-.5e-3 B", "1e400", "0x10", "µs", "1 µs"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ParseBytes(text, GB)
		check(t, text, float64(b), err)
		if err == nil {
			again, err := ParseBytes(FormatBytes(b), 1)
			if err != nil || math.Abs(float64(again-b)) > 1e-3*float64(b) {
				t.Errorf("%q is %v, written %q, read back %v, %v", text, b, FormatBytes(b), again, err)
			}
		}
		r, err := ParseBytesPerSecond(text, 1)
		check(t, text, float64(r), err)
		s, err := ParseSeconds(text, 1)
		check(t, text, float64(s), err)
	})
}

func check(t *testing.T, text string, v float64, err error) {
	t.Helper()
	switch {
	case err != nil && !errors.Is(err, ErrSyntax):
		t.Errorf("%q: error of another kind: %v", text, err)
	case err == nil && !(v >= 0 && !math.IsInf(v, 0)):
		t.Errorf("%q is taken as %g", text, v)
	}
}
