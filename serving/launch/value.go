package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// maxCount bounds every whole number of a command line: no engine knob means
// anything above it, and products of two stay exact.
const maxCount = 1 << 30

// count reads a whole number of at least least. Engines also accept 16k (16,000)
// and 16K (16,384), with M and G alike
// (docs.vllm.ai/en/latest/configuration/engine_args.html).
func count(text string, least int) (int, error) {
	scale := 1.0
	number := text
	if n := len(text); n > 1 {
		if s, ok := suffixes[text[n-1]]; ok {
			scale, number = s, text[:n-1]
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	f *= scale
	if err != nil || math.IsNaN(f) || f != math.Trunc(f) || f < float64(least) || strings.ContainsAny(number, "xXpP_eE") {
		return 0, wrong("%q is not a whole number of at least %d", text, least)
	}
	if f > maxCount {
		return 0, wrong("%q is too large", text)
	}
	return int(f), nil
}

var suffixes = map[byte]float64{'k': 1e3, 'm': 1e6, 'g': 1e9, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}

// fraction reads a number in (0, 1].
func fraction(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f > 0 && f <= 1) {
		return 0, wrong("%q is not a fraction above 0 and up to 1", text)
	}
	return f, nil
}

// amount reads a finite number of at least 0.
func amount(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0) || math.IsInf(f, 0) {
		return 0, wrong("%q is not a number of at least 0", text)
	}
	return f, nil
}

// boolean reads a switch's value.
func boolean(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off", "":
		return false, nil
	}
	return false, wrong("%q is not true or false", text)
}

// list reads whole numbers separated by blanks or commas, in brackets or not.
func list(text string) ([]int, error) {
	var out []int
	for _, f := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("[](), ", r) }) {
		n, err := count(f, 1)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// object reads a JSON object.
func object(text string) (map[string]any, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil || v == nil {
		return nil, wrong("%s is not a JSON object; is it quoted for the shell?", clip(text))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, wrong("%s has text after the JSON object", clip(text))
	}
	return v, nil
}

// scalar reads a value of the dotted form: JSON when it is JSON, Python's True,
// False and None, and otherwise text.
func scalar(text string) any {
	switch text {
	case "True":
		return true
	case "False":
		return false
	case "None":
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err == nil {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return v
		}
	}
	return text
}

// asText renders a JSON value as the text of a plain argument.
func asText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// merge puts src over dst, object by object.
func merge(dst, src map[string]any) {
	for k, v := range src {
		if from, ok := v.(map[string]any); ok {
			if to, ok := dst[k].(map[string]any); ok {
				merge(to, from)
				continue
			}
		}
		dst[k] = v
	}
}

// digits reports whether s is a run of decimal digits.
func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// clip shortens a value for a message.
func clip(text string) string {
	if len(text) > 80 {
		text = text[:77] + "..."
	}
	return strconv.Quote(text)
}

// wrong is an error about a value, to which [parser.apply] adds the argument's
// name and the kind.
func wrong(format string, args ...any) error { return fmt.Errorf(format, args...) }
