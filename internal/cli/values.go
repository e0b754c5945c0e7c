package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"infera/internal/nearest"
	"infera/internal/units"
)

// The values below are for pflag.FlagSet.Var. Each keeps the variable's content
// as its default and refuses what is out of bounds with a text that names the
// value and what is allowed; the flag's, variable's or key's name is put in
// front by whoever read it.

// Float is a number between low and high, both included; infinite bounds are
// no bounds. NaN and infinities are refused.
func Float[T ~float64](p *T, low, high T) pflag.Value {
	return &number[T]{p: p, kind: "number", parse: func(text string) (T, error) {
		v, err := parseFloat(text)
		if err != nil {
			return 0, fmt.Errorf("%q is %w; allowed: %s", text, err, between(float64(low), float64(high)))
		}
		if v < float64(low) || v > float64(high) {
			return 0, fmt.Errorf("%s is out of range; allowed: %s", text, between(float64(low), float64(high)))
		}
		return T(v), nil
	}}
}

// Positive is a number above 0 and at most high.
func Positive[T ~float64](p *T, high T) pflag.Value {
	allowed := "a number above 0"
	if !math.IsInf(float64(high), 1) {
		allowed += " and at most " + format(float64(high))
	}
	return &number[T]{p: p, kind: "number", parse: func(text string) (T, error) {
		v, err := parseFloat(text)
		if err != nil {
			return 0, fmt.Errorf("%q is %w; allowed: %s", text, err, allowed)
		}
		if v <= 0 || v > float64(high) {
			return 0, fmt.Errorf("%s is out of range; allowed: %s", text, allowed)
		}
		return T(v), nil
	}}
}

// Int is a whole number between low and high, both included. Text such as
// "1e6" or "4k" is refused.
func Int[T ~int | ~int64](p *T, low, high T) pflag.Value {
	return &number[T]{p: p, kind: "int", parse: func(text string) (T, error) {
		v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return 0, fmt.Errorf("%s is out of range; allowed: %s", text, wholeBetween(int64(low), int64(high)))
		case err != nil:
			return 0, fmt.Errorf("%q is not a whole number; allowed: %s", text, wholeBetween(int64(low), int64(high)))
		case v < int64(low) || v > int64(high):
			return 0, fmt.Errorf("%s is out of range; allowed: %s", text, wholeBetween(int64(low), int64(high)))
		}
		return T(v), nil
	}}
}

// Bytes is an amount of memory of at least low: a number with a suffix
// ("80GiB"), or a bare number counted in unit.
func Bytes(p *units.Bytes, unit, low units.Bytes) pflag.Value {
	return &number[units.Bytes]{p: p, kind: "bytes", show: units.FormatBytes, parse: func(text string) (units.Bytes, error) {
		v, err := units.ParseBytes(text, unit)
		if err == nil && v < low {
			err = fmt.Errorf("%s is too small; allowed: at least %s", text, units.FormatBytes(low))
		}
		return v, err
	}}
}

// Rate is a bandwidth of at least low: "400Gb/s", "3.35TB/s", or a bare number
// counted in unit.
func Rate(p *units.BytesPerSecond, unit, low units.BytesPerSecond) pflag.Value {
	return &number[units.BytesPerSecond]{p: p, kind: "rate", show: units.FormatBytesPerSecond, parse: func(text string) (units.BytesPerSecond, error) {
		v, err := units.ParseBytesPerSecond(text, unit)
		if err == nil && v < low {
			err = fmt.Errorf("%s is too small; allowed: at least %s", text, units.FormatBytesPerSecond(low))
		}
		return v, err
	}}
}

// Duration is a time of at least low: "12ms", or a bare number counted in unit.
func Duration(p *units.Seconds, unit, low units.Seconds) pflag.Value {
	return &number[units.Seconds]{p: p, kind: "duration", show: units.FormatSeconds, parse: func(text string) (units.Seconds, error) {
		v, err := units.ParseSeconds(text, unit)
		if err == nil && v < low {
			err = fmt.Errorf("%s is too small; allowed: at least %s", text, units.FormatSeconds(low))
		}
		return v, err
	}}
}

// number is a flag value with a parser; it is also used for amounts.
type number[T ~float64 | ~int | ~int64] struct {
	p     *T
	kind  string
	parse func(string) (T, error)
	show  func(T) string
}

func (n *number[T]) Set(text string) error {
	v, err := n.parse(text)
	if err != nil {
		return err
	}
	*n.p = v
	return nil
}

func (n *number[T]) check(text string) error {
	_, err := n.parse(text)
	return err
}

func (n *number[T]) Type() string { return n.kind }

// String shows zero as "0", which pflag takes for "no default worth printing".
func (n *number[T]) String() string {
	if n.p == nil || *n.p == 0 {
		return "0"
	}
	if n.show != nil {
		return n.show(*n.p)
	}
	return strconv.FormatFloat(float64(*n.p), 'f', -1, 64)
}

// Choice is one of values, in any case; the canonical spelling is stored.
func Choice[T ~string](p *T, values ...T) pflag.Value {
	return &choice[T]{p: p, values: values}
}

type choice[T ~string] struct {
	p      *T
	values []T
}

func (c *choice[T]) Set(text string) error {
	for _, v := range c.values {
		if strings.EqualFold(text, string(v)) {
			*c.p = v
			return nil
		}
	}
	return WithHint(Errorf(BadInput, "%q is not known; allowed: %s", text, strings.Join(c.Values(), ", ")), nearest.Hint(text, c.Values()))
}

func (c *choice[T]) check(text string) error {
	return Choice(new(T), c.values...).Set(text)
}

// Type shows a few values in full, as help prints it.
func (c *choice[T]) Type() string {
	if all := strings.Join(c.Values(), "|"); len(all) <= 32 {
		return all
	}
	return "name"
}

func (c *choice[T]) String() string {
	if c.p == nil {
		return ""
	}
	return string(*c.p)
}

// Values lists what is allowed, for messages, help and shell completion; an
// empty value, "not given", is not worth naming.
func (c *choice[T]) Values() []string {
	out := make([]string, 0, len(c.values))
	for _, v := range c.values {
		if v != "" {
			out = append(out, string(v))
		}
	}
	return out
}

// Optional makes a flag value whose variable stays nil until it is set, for
// settings where "not given" differs from every value:
//
//	fs.Var(cli.Optional(&r.HBM, func(p *units.Bytes) pflag.Value {
//		return cli.Bytes(p, units.GB, 1)
//	}), "hbm-capacity-gb", "...")
func Optional[T any](p **T, of func(*T) pflag.Value) pflag.Value {
	return &optional[T]{p: p, of: of}
}

type optional[T any] struct {
	p  **T
	of func(*T) pflag.Value
}

func (o *optional[T]) Set(text string) error {
	v := new(T)
	if err := o.of(v).Set(text); err != nil {
		return err
	}
	*o.p = v
	return nil
}

func (o *optional[T]) check(text string) error { return o.of(new(T)).Set(text) }

func (o *optional[T]) Type() string { return o.of(new(T)).Type() }

func (o *optional[T]) String() string {
	if o.p == nil || *o.p == nil {
		return ""
	}
	return o.of(*o.p).String()
}

// Values passes on what the inner value allows.
func (o *optional[T]) Values() []string {
	if v, ok := o.of(new(T)).(interface{ Values() []string }); ok {
		return v.Values()
	}
	return nil
}

var (
	errNotNumber = errors.New("not a number")
	errNotFinite = errors.New("not a finite number")
)

func parseFloat(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, errNotNumber
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, errNotFinite
	}
	return v, nil
}

func format(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func between(low, high float64) string {
	switch {
	case math.IsInf(low, -1) && math.IsInf(high, 1):
		return "any number"
	case math.IsInf(high, 1):
		return "at least " + format(low)
	case math.IsInf(low, -1):
		return "at most " + format(high)
	}
	return format(low) + " to " + format(high)
}

func wholeBetween(low, high int64) string {
	switch {
	case low == math.MinInt64 && high == math.MaxInt64:
		return "any whole number"
	case high == math.MaxInt64:
		return "a whole number of at least " + strconv.FormatInt(low, 10)
	}
	return fmt.Sprintf("a whole number from %d to %d", low, high)
}
