package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"infera/internal/nearest"
)

// ErrInvalid is the kind of every error of this package.
var ErrInvalid = errors.New("invalid file")

// Error says what is wrong with a file, and where.
type Error struct {
	Path string
	Line int // 1-based; 0 = not known
	Text string
	Hint string
}

// Error returns "path:line: text (hint)".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Path)
	if e.Line > 0 {
		b.WriteString(":" + strconv.Itoa(e.Line))
	}
	b.WriteString(": " + e.Text)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (e *Error) Unwrap() error { return ErrInvalid }

var (
	lineText     = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)
	unknownField = regexp.MustCompile(`^field (\S+) not found in type (\S+)$`)
)

// YAML decodes data, read from path (used in messages only), into v, which
// must be a pointer to a struct or map.
func YAML(path string, data []byte, v any) error {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			return &Error{Path: path, Text: "the file is empty"}
		}
		return explain(path, err, v)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return &Error{Path: path, Text: "more than one YAML document"}
	}
	return nil
}

func explain(path string, err error, v any) error {
	text := err.Error()
	var typeErr *yaml.TypeError
	if errors.As(err, &typeErr) && len(typeErr.Errors) > 0 {
		text = typeErr.Errors[0]
	}
	e := &Error{Path: path, Text: strings.TrimPrefix(text, "yaml: ")}
	if m := lineText.FindStringSubmatch(text); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Text = m[2]
	}
	if m := unknownField.FindStringSubmatch(e.Text); m != nil {
		e.Text = fmt.Sprintf("unknown key %q", m[1])
		e.Hint = nearest.Hint(m[1], keys(reflect.TypeOf(v), m[2]))
	}
	return e
}

// keys lists the YAML keys of the struct type named name reachable from t.
func keys(t reflect.Type, name string) []string {
	seen := map[reflect.Type]bool{}
	var found []string
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Array {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			f := t.Field(i)
			if t.String() == name {
				key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
				if key == "" {
					key = strings.ToLower(f.Name)
				}
				found = append(found, key)
			}
			walk(f.Type)
		}
	}
	walk(t)
	return found
}

// Marshal writes v as YAML.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write yaml: %w", err)
	}
	return b.Bytes(), nil
}
