package hfjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Limits on input: the largest known config is 3 MB and nests 8 levels.
const (
	MaxBytes = 64 << 20
	MaxDepth = 64
)

// Object is a JSON object.
type Object map[string]any

// Parse reads one JSON object.
func Parse(data []byte) (Object, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("%d MB, want at most %d", len(data)>>20, MaxBytes>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("the file is empty")
	}
	data, err := plain(data)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, explain(data, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	return m, nil
}

func explain(data []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &syntax) && syntax.Offset >= int64(len(data)) {
		return errors.New("the JSON ends early (truncated file?)")
	}
	if syntax != nil {
		line := 1 + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
		return fmt.Errorf("line %d: %s", line, syntax.Error())
	}
	return err
}

// plain checks the nesting and quotes NaN and Infinity, which Python's json
// writes and JSON does not know.
func plain(data []byte) ([]byte, error) {
	var out []byte
	depth, copied := 0, 0
	inString := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString:
			switch c {
			case '\\':
				i++
			case '"':
				inString = false
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return nil, fmt.Errorf("nested deeper than %d levels", MaxDepth)
			}
		case c == '}' || c == ']':
			depth--
		case c == 'N' || c == 'I' || c == '-':
			for _, word := range [...]string{"NaN", "Infinity", "-Infinity"} {
				if bytes.HasPrefix(data[i:], []byte(word)) {
					out = append(append(out, data[copied:i]...), `"`+word+`"`...)
					i += len(word) - 1
					copied = i + 1
					break
				}
			}
		}
	}
	if out == nil {
		return data, nil
	}
	return append(out, data[copied:]...), nil
}

// Find returns the first of the keys that is present and not null.
func (o Object) Find(keys ...string) (value any, key string, ok bool) {
	for _, k := range keys {
		if v, ok := o[k]; ok && v != nil {
			return v, k, true
		}
	}
	return nil, "", false
}

// Object returns the object under the first of the keys that holds one.
func (o Object) Object(keys ...string) (Object, bool) {
	for _, k := range keys {
		if m, ok := o[k].(map[string]any); ok {
			return m, true
		}
	}
	return nil, false
}

// List returns the list under the first of the keys that holds one.
func (o Object) List(keys ...string) ([]any, bool) {
	for _, k := range keys {
		if l, ok := o[k].([]any); ok {
			return l, true
		}
	}
	return nil, false
}

// Text returns the string under the first of the keys that holds one.
func (o Object) Text(keys ...string) (string, bool) {
	for _, k := range keys {
		if s, ok := o[k].(string); ok {
			return s, true
		}
	}
	return "", false
}

// Flag returns the boolean under the first of the keys that holds one.
func (o Object) Flag(keys ...string) (value, ok bool) {
	for _, k := range keys {
		switch v := o[k].(type) {
		case bool:
			return v, true
		case json.Number:
			if n, err := Int(v); err == nil && (n == 0 || n == 1) {
				return n == 1, true
			}
		}
	}
	return false, false
}

// Int reads a value as a whole number; 4096.0 is one, 1e400, NaN and "12" are
// not.
func Int(v any) (int, error) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("%s is not a number", Show(v))
	}
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return int(i), nil
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.Abs(f) > 1<<53 || f != math.Trunc(f) {
		return 0, fmt.Errorf("%s is not a whole number in range", n)
	}
	return int(f), nil
}

// Count reads the value of a key as a count: a whole number of 0 to 2^40. A
// list counts as its first element, and warn hears of it if the others differ.
// An empty list is 0.
func Count(key string, v any, warn func(key, text string)) (int, error) {
	if list, ok := v.([]any); ok {
		if len(list) == 0 {
			return 0, nil
		}
		first, _ := Int(list[0])
		for _, e := range list[1:] {
			if n, err := Int(e); err != nil || n != first {
				warn(key, "differs by layer or modality; the first value is used")
				break
			}
		}
		v = list[0]
	}
	n, err := Int(v)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: %w", key, err)
	case n < 0:
		return 0, fmt.Errorf("%s is %d", key, n)
	case n > 1<<40:
		return 0, fmt.Errorf("%s is %d, which no model has", key, n)
	}
	return n, nil
}

// Float reads a value as a number.
func Float(v any) (float64, error) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("%s is not a number", Show(v))
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return 0, fmt.Errorf("%s is not a number in range", n)
	}
	return f, nil
}

// Show writes a value shortly, for messages.
func Show(v any) string {
	var s string
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		s = strconv.Quote(v)
	case json.Number:
		s = v.String()
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case map[string]any, Object:
		return "an object"
	default:
		s = fmt.Sprint(v)
	}
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:57], "") + "..."
	}
	return s
}
