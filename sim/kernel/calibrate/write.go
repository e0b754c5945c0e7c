package calibrate

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"infera/sim/kernel"
)

// Write writes the curves as the YAML that kernel.Decode reads, families in their
// order, comment above it line by line.
func Write(w io.Writer, c *kernel.Curves, comment string) error {
	var b strings.Builder
	for line := range strings.Lines(comment) {
		b.WriteString("# " + strings.TrimRight(line, "\n") + "\n")
	}
	fmt.Fprintf(&b, "name: %s\nvendor: %s\nisa: %s\narch: %s\ncompute_units: %d\n", c.Name, c.Vendor, c.ISA, c.Arch, c.ComputeUnits)
	fmt.Fprintf(&b, "power_w: %v\nstands_in_for: [%s]\nstand_in_spread: %v\nsource: >-\n  %s\n", c.Power, strings.Join(c.StandsInFor, ", "), c.StandInSpread, c.Source)
	section(&b, "matrix", c.Matrix)
	section(&b, "prefill", c.Prefill)
	section(&b, "decode", c.Decode)
	section(&b, "pass", c.Pass)
	_, err := io.WriteString(w, b.String())
	return err
}

func section[T any](b *strings.Builder, title string, m map[string]T) {
	b.WriteString(title + ":\n")
	for _, f := range kernel.Families() {
		curve, ok := m[f.String()]
		if !ok {
			continue
		}
		b.WriteString("  " + f.String() + ":\n")
		fields(b, "    ", reflect.ValueOf(curve))
	}
}

func fields(b *strings.Builder, indent string, v reflect.Value) {
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("yaml")
		switch f := v.Field(i); f.Kind() {
		case reflect.Struct:
			var parts []string
			for j := range f.NumField() {
				parts = append(parts, f.Type().Field(j).Tag.Get("yaml")+": "+scalar(f.Field(j)))
			}
			b.WriteString(indent + key + ": {" + strings.Join(parts, ", ") + "}\n")
		case reflect.String:
			b.WriteString(indent + key + ": " + strconv.Quote(f.String()) + "\n")
		default:
			b.WriteString(indent + key + ": " + scalar(f) + "\n")
		}
	}
}

func scalar(v reflect.Value) string {
	if v.Kind() == reflect.Int {
		return strconv.FormatInt(v.Int(), 10)
	}
	return strconv.FormatFloat(v.Float(), 'g', -1, 64)
}
