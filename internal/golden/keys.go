package golden

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Keys lists the keys of a JSON object in their order, nested ones as paths
// (a.b, a[].b); of an array it reads the first element.
func Keys(t testing.TB, data []byte) []string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	var out []string
	token := func() json.Token {
		tok, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	var value func(path string)
	value = func(path string) {
		switch token() {
		case json.Delim('{'):
			for d.More() {
				key, _ := token().(string)
				sub := strings.TrimPrefix(path+"."+key, ".")
				out = append(out, sub)
				value(sub)
			}
			token()
		case json.Delim('['):
			for i := 0; d.More(); i++ {
				before := len(out)
				value(path + "[]")
				if i > 0 {
					out = out[:before]
				}
			}
			token()
		}
	}
	value("")
	return out
}

// Children returns those of the paths that are direct keys under a prefix, such
// as "" for the object itself or "groups[].".
func Children(paths []string, prefix string) []string {
	var out []string
	for _, p := range paths {
		rest, ok := strings.CutPrefix(p, prefix)
		if ok && rest != "" && !strings.ContainsAny(rest, ".[") {
			out = append(out, rest)
		}
	}
	return out
}
