package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Field is one key of an object whose keys are not known to this package.
type Field struct {
	Key   string
	Value any
}

// Fields is an object with its keys in the order they were added: a resolved
// request, the key of a validation group. It marshals as a JSON object; values
// are what encoding/json accepts, and numbers that are not finite become null.
type Fields []Field

// Request is the resolved request: every field, also those left at their
// default, named like its flag with underscores (input_len, gpu_arch,
// kv_cache_dtype).
type Request = Fields

// Set replaces the value of key, or adds it at the end.
func (f *Fields) Set(key string, value any) {
	for i := range *f {
		if (*f)[i].Key == key {
			(*f)[i].Value = value
			return
		}
	}
	*f = append(*f, Field{key, value})
}

// Get returns the value of key.
func (f Fields) Get(key string) (any, bool) {
	for i := range f {
		if f[i].Key == key {
			return f[i].Value, true
		}
	}
	return nil, false
}

// Text returns the value of key as a table prints it; "" when it is absent,
// nil or not a finite number.
func (f Fields) Text(key string) string {
	v, _ := f.Get(key)
	return plain(v)
}

// Float returns the value of key as a number; false when it is absent or not
// a finite number.
func (f Fields) Float(key string) (float64, bool) {
	v, _ := f.Get(key)
	x, err := strconv.ParseFloat(plain(v), 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// MarshalJSON writes the object with its keys in order.
func (f Fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, x := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := Marshal(x.Key)
		if err != nil {
			return nil, fmt.Errorf("encode key %q: %w", x.Key, err)
		}
		b.Write(key)
		b.WriteByte(':')
		value, err := Marshal(finite(x.Value))
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", x.Key, err)
		}
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads an object and keeps the order of its keys.
func (f *Fields) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return fmt.Errorf("decode fields: got %v, want an object", t)
	}
	*f = nil
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value any
		if err := d.Decode(&value); err != nil {
			return err
		}
		*f = append(*f, Field{fmt.Sprint(key), value})
	}
	return nil
}

// finite turns bare floats into [Number], which knows null; the values of a
// request are scalars.
func finite(v any) any {
	switch x := v.(type) {
	case float64:
		return Number(x)
	case float32:
		return Number(x)
	}
	return v
}

// plain prints a scalar without surplus digits; "" for nil, nil pointers and
// numbers that are not finite.
func plain(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case Number:
		return x.Text()
	case *Number:
		if x == nil {
			return ""
		}
		return x.Text()
	case float64:
		return Number(x).Text()
	case float32:
		return Number(x).Text()
	}
	return fmt.Sprint(v)
}
