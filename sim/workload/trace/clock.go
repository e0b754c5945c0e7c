package trace

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"infera/internal/units"
)

// unit is how many powers of ten a unit of time has in nanoseconds.
type unit int

const (
	nanoseconds  unit = 0
	milliseconds unit = 6
	seconds      unit = 9
)

func (u unit) String() string {
	switch u {
	case nanoseconds:
		return "nanoseconds"
	case milliseconds:
		return "milliseconds"
	}
	return "seconds"
}

const (
	// epoch is September 2001: what is later is a date, what is earlier counts
	// from the start of a recording.
	epoch units.Time = 1e18
	// latest is what no timestamp exceeds, the year 2070.
	latest units.Time = 3_155_760_000e9
)

// clock looks at the timestamps of a trace in the order of the file. They are
// either dates or counted from the start of a recording, never both, and they do
// not fall back by orders of magnitude.
type clock struct {
	n           int
	first, last units.Time
	earliest    units.Time
	unsorted    int
	firstFall   int // the line
}

// fall is how far a timestamp may lie below the one before it in a file that was
// sorted so far: a factor, when it is also more than a second. Another unit
// gives a thousand.
const fall = 100

func (c *clock) add(line int, at units.Time) error {
	defer func() { c.n, c.last = c.n+1, at }()
	if c.n == 0 {
		c.first, c.earliest = at, at
		return nil
	}
	switch {
	case at >= epoch && c.first < epoch:
		return lineError(line, "timestamp %s s is a date, those before count from the start of a recording", decimal(at, seconds))
	case at < epoch && c.first >= epoch:
		return lineError(line, "timestamp %s s is no date, those before are", decimal(at, seconds))
	case at >= c.last:
		return nil
	case c.unsorted == 0 && c.n > 1 && at > 0 && c.last/fall >= at && c.last-at > 1e9:
		return lineError(line, "timestamp falls from %s s to %s s: another unit, or another recording", decimal(c.last, seconds), decimal(at, seconds))
	}
	if c.unsorted == 0 {
		c.firstFall = line
	}
	c.unsorted++
	c.earliest = min(c.earliest, at)
	return nil
}

var (
	errNotNumber = errors.New("not a number")
	errTooLate   = errors.New("more than 100 years; is it in another unit?")
)

// timestamp reads a decimal number of a unit, exactly to the nanosecond.
func timestamp(text []byte, u unit) (units.Time, error) {
	if len(text) > 0 && text[0] == '-' {
		return 0, errors.New("negative")
	}
	mantissa, digits, i := uint64(0), 0, 0
	shift := int(u)
	point := false
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			if digits++; mantissa >= 1e18 {
				// More digits than a time has: they are below a nanosecond or
				// make it too late.
				if !point {
					shift++
				}
				continue
			}
			mantissa = mantissa*10 + uint64(c-'0')
			if point {
				shift--
			}
			continue
		case c == '.' && !point:
			point = true
			continue
		}
		break
	}
	if digits == 0 {
		return 0, errNotNumber
	}
	if i < len(text) {
		e, err := exponent(text[i:])
		if err != nil {
			return 0, err
		}
		shift += e
	}
	return scaled(mantissa, shift)
}

// exponent reads "e-3".
func exponent(text []byte) (int, error) {
	if text[0] != 'e' && text[0] != 'E' || len(text) < 2 {
		return 0, errNotNumber
	}
	text = text[1:]
	sign := 1
	if text[0] == '-' || text[0] == '+' {
		if text[0] == '-' {
			sign = -1
		}
		text = text[1:]
	}
	e := 0
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, errNotNumber
		}
		e = min(e*10+int(c-'0'), 1000)
	}
	if len(text) == 0 {
		return 0, errNotNumber
	}
	return sign * e, nil
}

// scaled returns mantissa x 10^shift nanoseconds, rounded.
func scaled(mantissa uint64, shift int) (units.Time, error) {
	for ; shift > 0 && mantissa > 0; shift-- {
		if mantissa > uint64(latest) {
			return 0, errTooLate
		}
		mantissa *= 10
	}
	rest := uint64(0)
	for ; shift < 0 && (mantissa > 0 || rest > 0); shift++ {
		mantissa, rest = mantissa/10, mantissa%10
	}
	if rest >= 5 {
		mantissa++
	}
	if mantissa > uint64(latest) {
		return 0, errTooLate
	}
	return units.Time(mantissa), nil
}

// decimal writes a time in a unit, exactly.
func decimal(t units.Time, u unit) string { return string(appendDecimal(nil, t, u)) }

func appendDecimal(b []byte, t units.Time, u unit) []byte {
	whole := units.Time(1)
	for range int(u) {
		whole *= 10
	}
	b = strconv.AppendInt(b, int64(t/whole), 10)
	rest := t % whole
	if rest == 0 {
		return b
	}
	b = append(b, '.')
	for whole /= 10; rest > 0; whole /= 10 {
		b = append(b, '0'+byte(rest/whole))
		rest %= whole
	}
	return b
}

// date reads a date with a time of day, with or without a zone; without one it
// is UTC.
func date(text string) (units.Time, error) {
	layout := "2006-01-02 15:04:05"
	if len(text) > 10 && text[10] == 'T' {
		layout = "2006-01-02T15:04:05"
	}
	t, err := time.Parse(layout, text)
	if err != nil {
		if t, err = time.Parse(layout+"Z07:00", text); err != nil {
			return 0, fmt.Errorf("%q is not a date such as 2023-11-16 18:17:03.9799600", clip(text))
		}
	}
	if t.Year() < 2002 || t.Year() > 2068 {
		return 0, fmt.Errorf("the year %d", t.Year())
	}
	return units.Time(t.UnixNano()), nil
}
