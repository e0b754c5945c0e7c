package strict

import (
	"errors"
	"testing"
)

type sample struct {
	Name  string           `yaml:"name"`
	Inner map[string]inner `yaml:"inner"`
	Count int              `yaml:"count"`
	Sizes []uint16         `yaml:"sizes"`
	Other *inner           `yaml:"other"`
}

type inner struct {
	Bandwidth float64 `yaml:"bandwidth"`
}

func TestYAML(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"good", "name: a\ninner: {x: {bandwidth: 2}}\n", ""},
		{"empty", "", "f.yaml: the file is empty"},
		{"unknown", "name: a\ninner:\n  x:\n    bandwith: 2\n", `f.yaml:4: unknown key "bandwith"; did you mean "bandwidth"?`},
		{"unknown in a pointer", "other: {bandwidht: 2}\n", `f.yaml:1: unknown key "bandwidht"; did you mean "bandwidth"?`},
		{"unknown in an alias", "inner: {x: &x {bandwidth: 2}, y: *x}\nother: {<<: *x, z: 1}\n", `f.yaml:2: unknown key "z"`},
		{"merged", "inner: {x: &x {bandwidth: 2}}\nother: {<<: *x}\n", ""},
		{"unknown in a merge", "other: {<<: {z: 1}}\n", `f.yaml:1: unknown key "z"`},
		{"another case", "inner: {}\nInner: {}\n", `f.yaml:2: unknown key "Inner"; did you mean "inner"?`},
		{"whole", "count: 12e2\nsizes: [1, 2.0]\n", ""},
		{"fraction", "name: a\ncount: 1.5\n", "f.yaml:2: 1.5 is not a whole number"},
		{"fraction in a list", "sizes: [1, 2.5]\n", "f.yaml:1: 2.5 is not a whole number"},
		{"infinite", "count: -.inf\n", "f.yaml:1: -.inf is not a whole number"},
		{"too large", "sizes: [70000]\n", "f.yaml:1: cannot unmarshal !!int `70000` into uint16"},
		{"alias of itself", "inner: &a {x: *a}\n", `f.yaml:1: unknown key "x"`},
		{"twice", "name: a\nname: b\n", `f.yaml:2: mapping key "name" already defined at line 1`},
		{"type", "inner: {x: {bandwidth: fast}}\n", "f.yaml:1: cannot unmarshal !!str `fast` into float64"},
		{"syntax", "name: [\n", "f.yaml:1: did not find expected node content"},
		{"two documents", "name: a\n---\nname: b\n", "f.yaml: more than one YAML document"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s sample
			err := YAML("f.yaml", []byte(tt.in), &s)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || err.Error() != tt.want {
				t.Fatalf("YAML() = %v, want %s", err, tt.want)
			}
			if !errors.Is(err, ErrInvalid) {
				t.Error("errors.Is(err, ErrInvalid) = false")
			}
		})
	}
}

func FuzzYAML(f *testing.F) {
	f.Add([]byte("name: a\ninner: {x: {bandwidth: 2}}\n"))
	f.Add([]byte("&a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sample
		if err := YAML("f.yaml", data, &s); err != nil && !errors.Is(err, ErrInvalid) {
			t.Fatalf("error of another kind: %v", err)
		}
	})
}
