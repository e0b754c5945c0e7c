package hfjson

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	o, err := Parse([]byte("\xef\xbb\xbf{\"a\": [NaN, -Infinity, Infinity], \"b\": \"NaN in text\", \"n\": 4096.0, \"t\": true, \"one\": 1}"))
	if err != nil {
		t.Fatal(err)
	}
	if l, _ := o.List("a"); len(l) != 3 || l[0] != "NaN" || l[1] != "-Infinity" {
		t.Errorf("a = %v", l)
	}
	if s, _ := o.Text("b"); s != "NaN in text" {
		t.Errorf("b = %q", s)
	}
	if n, err := Int(o["n"]); err != nil || n != 4096 {
		t.Errorf("n = %d, %v", n, err)
	}
	if v, ok := o.Flag("t"); !v || !ok {
		t.Error("t is not true")
	}
	if v, ok := o.Flag("one"); !v || !ok {
		t.Error("1 does not count as true")
	}
	for _, s := range []string{"", " ", "{", `{"a":`, `{"a":1}x`, "[]", "nul", `{"a":` + strings.Repeat("[", 70)} {
		if _, err := Parse([]byte(s)); err == nil {
			t.Errorf("Parse(%q) succeeded", s)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"a":[NaN,"\"",{"b":-Infinity}]}`))
	f.Add([]byte(`{"a":"\\`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := Parse(data)
		if err == nil && o == nil {
			t.Fatal("no object and no error")
		}
	})
}
