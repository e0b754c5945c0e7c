package units

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ErrSyntax is the kind of every error of the parsers of this package.
var ErrSyntax = errors.New("invalid quantity")

// ParseError says which text is not a quantity, and why.
type ParseError struct {
	Text string // as it was given
	Want string // what it should have been: "a duration"
	Why  string
}

// Error returns the sentence `"x" is not a duration: why`.
func (e *ParseError) Error() string {
	return fmt.Sprintf("%q is not %s: %s", e.Text, e.Want, e.Why)
}

// Unwrap makes errors.Is(err, ErrSyntax) true.
func (e *ParseError) Unwrap() error { return ErrSyntax }

// ParseBytes reads an amount of memory such as "80GiB", "288 GB", "1.5e9B" or,
// when the text carries no unit, a bare number counted in unit ("288" with
// unit GB is 288e9 bytes). GB is always 1e9 and GiB always 2^30; the letters
// may be in any case, except that "b" alone, a bit, is refused.
// Negative, infinite and not-a-number values are errors.
func ParseBytes(text string, unit Bytes) (Bytes, error) {
	number, suffix, why := split(text)
	if why != "" {
		return 0, &ParseError{text, "an amount of memory", why}
	}
	scale := unit
	if suffix != "" {
		var ok bool
		if scale, ok = byteUnit(suffix); !ok {
			return 0, &ParseError{text, "an amount of memory", fmt.Sprintf("unit %q is not one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB", suffix)}
		}
	}
	b := Bytes(number) * scale
	if math.IsInf(float64(b), 0) {
		return 0, &ParseError{text, "an amount of memory", "it is too large"}
	}
	return b, nil
}

// ParseBytesPerSecond reads a bandwidth such as "3.35TB/s", "900 GBps",
// "400Gb/s" or "400Gbps" (a small b is a bit, eight of which make a byte), or
// a bare number counted in unit.
func ParseBytesPerSecond(text string, unit BytesPerSecond) (BytesPerSecond, error) {
	number, suffix, why := split(text)
	if why != "" {
		return 0, &ParseError{text, "a bandwidth", why}
	}
	scale := unit
	if suffix != "" {
		amount, perSecond := strings.CutSuffix(suffix, "/s")
		if !perSecond {
			amount, perSecond = strings.CutSuffix(suffix, "ps")
		}
		bytes, ok := rateUnit(amount)
		if !perSecond || !ok {
			return 0, &ParseError{text, "a bandwidth", fmt.Sprintf("unit %q is not one of GB/s, TB/s, GiB/s, Gb/s and their like", suffix)}
		}
		scale = BytesPerSecond(bytes)
	}
	r := BytesPerSecond(number) * scale
	if math.IsInf(float64(r), 0) {
		return 0, &ParseError{text, "a bandwidth", "it is too large"}
	}
	return r, nil
}

// ParseSeconds reads a duration such as "12ms", "1.5 s", "250us", "2m", "1h",
// or a bare number counted in unit. One number and one unit: "1m30s" is an
// error.
func ParseSeconds(text string, unit Seconds) (Seconds, error) {
	number, suffix, why := split(text)
	if why != "" {
		return 0, &ParseError{text, "a duration", why}
	}
	scale := unit
	if suffix != "" {
		var ok bool
		if scale, ok = timeUnit(suffix); !ok {
			return 0, &ParseError{text, "a duration", fmt.Sprintf("unit %q is not one of ns, us, ms, s, m, h", suffix)}
		}
	}
	s := Seconds(number) * scale
	if math.IsInf(float64(s), 0) {
		return 0, &ParseError{text, "a duration", "it is too large"}
	}
	return s, nil
}

// split parts "80 GiB" into 80 and "GiB". The number is finite and not
// negative; otherwise the last result says why the text is refused.
func split(text string) (number float64, suffix, why string) {
	t := strings.TrimSpace(text)
	end := numberLength(t)
	if end == 0 {
		return 0, "", "it does not begin with a number"
	}
	number, err := strconv.ParseFloat(t[:end], 64)
	if err != nil { // out of the range of a float64
		return 0, "", "it is too large"
	}
	if math.Signbit(number) && number != 0 {
		return 0, "", "it is negative"
	}
	return math.Abs(number), strings.TrimSpace(t[end:]), ""
}

// numberLength returns how many leading bytes of t are a decimal number. An
// exponent counts only when digits follow it, so that a unit may begin with e.
func numberLength(t string) int {
	i := 0
	if i < len(t) && (t[i] == '+' || t[i] == '-') {
		i++
	}
	digits := func() int {
		n := 0
		for i < len(t) && t[i] >= '0' && t[i] <= '9' {
			i++
			n++
		}
		return n
	}
	n := digits()
	if i < len(t) && t[i] == '.' {
		i++
		n += digits()
	}
	if n == 0 {
		return 0
	}
	if i < len(t) && (t[i] == 'e' || t[i] == 'E') {
		mark := i
		i++
		if i < len(t) && (t[i] == '+' || t[i] == '-') {
			i++
		}
		if digits() == 0 {
			i = mark
		}
	}
	return i
}

// byteUnit knows B, KB..TB, KiB..TiB, in any case but for a bare "b".
func byteUnit(s string) (Bytes, bool) {
	if s == "b" {
		return 0, false
	}
	switch strings.ToLower(s) {
	case "b":
		return 1, true
	case "kb":
		return KB, true
	case "mb":
		return MB, true
	case "gb":
		return GB, true
	case "tb":
		return TB, true
	case "kib":
		return KiB, true
	case "mib":
		return MiB, true
	case "gib":
		return GiB, true
	case "tib":
		return TiB, true
	}
	return 0, false
}

// rateUnit reads the amount part of a bandwidth unit, where the case of the
// last letter tells bits from bytes.
func rateUnit(s string) (Bytes, bool) {
	if prefix, bits := strings.CutSuffix(s, "b"); bits {
		b, ok := byteUnit(prefix + "B")
		return b / 8, ok
	}
	if !strings.HasSuffix(s, "B") {
		return 0, false
	}
	return byteUnit(s)
}

func timeUnit(s string) (Seconds, bool) {
	switch s {
	case "ns":
		return 1e-9, true
	case "us", "µs", "μs":
		return 1e-6, true
	case "ms":
		return 1e-3, true
	case "s":
		return 1, true
	case "m", "min":
		return 60, true
	case "h":
		return 3600, true
	}
	return 0, false
}

// FormatBytes writes b in the largest binary unit that leaves at least one,
// with four significant digits: "80 GiB", "1.5 MiB", "512 B".
func FormatBytes(b Bytes) string {
	return scaled(float64(b), []step{{float64(TiB), "TiB"}, {float64(GiB), "GiB"}, {float64(MiB), "MiB"}, {float64(KiB), "KiB"}, {1, "B"}})
}

// FormatBytesPerSecond writes r in the largest decimal unit that leaves at
// least one: "3.35 TB/s".
func FormatBytesPerSecond(r BytesPerSecond) string {
	return scaled(float64(r), []step{{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "KB/s"}, {1, "B/s"}})
}

// FormatSeconds writes s in h, min, s, ms, us or ns, whichever is the largest that
// leaves at least one: "12 ms".
func FormatSeconds(s Seconds) string {
	return scaled(float64(s), []step{{3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}})
}

type step struct {
	size float64
	name string
}

// scaled picks the first step that is not larger than v; rounding to four
// digits may carry v up to the next step, hence the comparison with the
// rounded value.
func scaled(v float64, steps []step) string {
	last := steps[len(steps)-1]
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		for _, s := range steps {
			if s.size == 1 {
				return strconv.FormatFloat(v, 'g', 4, 64) + " " + s.name
			}
		}
	}
	for _, s := range steps {
		if round4(math.Abs(v)) >= s.size {
			return plain(v/s.size) + " " + s.name
		}
	}
	return plain(v/last.size) + " " + last.name
}

func round4(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 3, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// plain writes four significant digits without an exponent.
func plain(v float64) string {
	return strconv.FormatFloat(round4(v), 'f', -1, 64)
}
