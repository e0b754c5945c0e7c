package report

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strconv"

	"infera/internal/units"
)

// Number is a value at the border: its unit is in the name of the field that
// holds it. NaN and the infinities mean "there is no such number" and become
// null in JSON. Fractions carry 10 significant digits, so that a last-bit
// difference between processors does not change the bytes of a report; whole
// numbers up to 2^53 are exact.
type Number float64

// None is the number that does not exist.
func None() Number { return Number(math.NaN()) }

// Maybe returns a pointer to v, or nil when v is not a finite number; for the
// fields that are null without an answer (the cost without a price).
func Maybe(v float64) *Number {
	n := Number(v)
	if !n.Finite() {
		return nil
	}
	return &n
}

// Finite reports whether n is an ordinary number.
func (n Number) Finite() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// maxExact is the largest magnitude below which every whole float64 is exact.
const maxExact = 1 << 53

// Text returns the shortest exact or 10-digit form of n without an exponent
// for everyday magnitudes, "" when n is not finite.
func (n Number) Text() string {
	v := float64(n)
	switch {
	case !n.Finite():
		return ""
	case v == 0:
		return "0" // also for -0
	case v == math.Trunc(v) && math.Abs(v) <= maxExact:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 10, 64), 64)
	if err != nil {
		return ""
	}
	if a := math.Abs(r); a >= 1e-6 && a < 1e21 {
		return strconv.FormatFloat(r, 'f', -1, 64)
	}
	return strconv.FormatFloat(r, 'g', -1, 64)
}

// MarshalJSON writes the number, or null when it is not finite.
func (n Number) MarshalJSON() ([]byte, error) {
	if s := n.Text(); s != "" {
		return []byte(s), nil
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads a number; null reads as [None].
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = None()
		return nil
	}
	var v float64
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*n = Number(v)
	return nil
}

// Band is a value with the range it is expected to lie in.
type Band struct {
	Value Number `json:"value"`
	Low   Number `json:"low"`
	High  Number `json:"high"`
}

// Point returns a band without a spread.
func Point(v float64) Band { return Band{Number(v), Number(v), Number(v)} }

// Milliseconds returns a band in milliseconds.
func Milliseconds(value, low, high units.Seconds) Band {
	return Band{Number(value.Milliseconds()), Number(low.Milliseconds()), Number(high.Milliseconds())}
}

// List is a slice that is [] in JSON when it is empty or nil.
type List[T any] []T

// MarshalJSON writes the elements as an array.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if len(l) == 0 {
		return []byte("[]"), nil
	}
	return Marshal([]T(l))
}

// Marshal is json.Marshal without the escapes that protect HTML: reports hold
// "<" and "&" as they are.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// WriteJSON writes v, indented, with a final newline. Same value, same bytes.
func WriteJSON(w io.Writer, v any) error { return encode(w, v, "  ") }

// WriteJSONLine writes v on one line, with a final newline: one record of a
// JSON Lines stream.
func WriteJSONLine(w io.Writer, v any) error { return encode(w, v, "") }

func encode(w io.Writer, v any, indent string) error {
	// A contract encoded directly is not scanned a second time, as the result
	// of a MarshalJSON would be: half the time of a line of a stream.
	if c, ok := v.(interface{ contract() any }); ok {
		v = c.contract()
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(v)
}
