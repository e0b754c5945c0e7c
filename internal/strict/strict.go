package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
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
	lineText            = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)
	unmarshaler         = reflect.TypeFor[yaml.Unmarshaler]()
	obsoleteUnmarshaler = reflect.TypeFor[interface{ UnmarshalYAML(func(any) error) error }]()
)

// YAML decodes data, read from path (used in messages only), into v, which
// must be a pointer to a struct or map. What data does not mention keeps its
// value in v.
func YAML(path string, data []byte, v any) error {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := dec.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return &Error{Path: path, Text: "the file is empty"}
		}
		return explain(path, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return &Error{Path: path, Text: "more than one YAML document"}
	}
	// Decoding comes first: it refuses aliases that hold themselves or expand
	// without end, which the walk below then need not.
	if err := document.Decode(v); err != nil {
		return explain(path, err)
	}
	if e := check(&document, reflect.TypeOf(v)); e != nil {
		e.Path = path
		return e
	}
	return nil
}

func explain(path string, err error) error {
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
	return e
}

// check finds what the decoder forgives in a value of type t: a key no field
// has, and a fraction where a whole number stands, which it would cut.
func check(n *yaml.Node, t reflect.Type) *Error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case n.Kind == yaml.AliasNode:
		return check(n.Alias, t)
	case reflect.PointerTo(t).Implements(unmarshaler), reflect.PointerTo(t).Implements(obsoleteUnmarshaler):
		return nil
	case n.Kind == yaml.DocumentNode:
		return checkAll(n.Content, t)
	case n.Kind == yaml.SequenceNode && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		return checkAll(n.Content, t.Elem())
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Map:
		for i := 1; i < len(n.Content); i += 2 {
			if e := check(n.Content[i], t.Elem()); e != nil {
				return e
			}
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		return checkFields(n, t)
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!float" && t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		if v, err := strconv.ParseFloat(n.Value, 64); err != nil || v != math.Trunc(v) || math.IsInf(v, 0) {
			return &Error{Line: n.Line, Text: n.Value + " is not a whole number"}
		}
	}
	return nil
}

func checkAll(nodes []*yaml.Node, t reflect.Type) *Error {
	for _, n := range nodes {
		if e := check(n, t); e != nil {
			return e
		}
	}
	return nil
}

func checkFields(n *yaml.Node, t reflect.Type) *Error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			at := t
			if value.Kind == yaml.SequenceNode {
				at = reflect.SliceOf(t)
			}
			if e := check(value, at); e != nil {
				return e
			}
			continue
		}
		field, ok := fieldOf(t, key.Value)
		if !ok {
			return &Error{Line: key.Line, Text: fmt.Sprintf("unknown key %q", key.Value), Hint: nearest.Hint(key.Value, keys(t))}
		}
		if e := check(value, field.Type); e != nil {
			return e
		}
	}
	return nil
}

// fieldOf returns the exported field that a key of a mapping fills.
func fieldOf(t reflect.Type, key string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && keyOf(f) == key {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// keyOf returns the key of a field, "-" for one that no key fills.
func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	if key == "" {
		key = strings.ToLower(f.Name)
	}
	return key
}

// keys lists the YAML keys of a struct type.
func keys(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && keyOf(f) != "-" {
			out = append(out, keyOf(f))
		}
	}
	return out
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
