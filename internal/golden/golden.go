package golden

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Check compares got with testdata/name.golden, or rewrites the file.
func Check(t testing.TB, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs (-want +got), run with -update when it is meant:\n%s", path, d)
	}
}

// Render returns what write writes.
func Render(t testing.TB, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// CheckText reports lines that are wider than width columns or end in blanks,
// numbers that are none, and, when ascii is set, characters beyond ASCII.
func CheckText(t testing.TB, name string, text []byte, width int, ascii bool) {
	t.Helper()
	for _, l := range strings.Split(string(text), "\n") {
		if n := utf8.RuneCountInString(l); n > width {
			t.Errorf("%s: %d columns: %q", name, n, l)
		}
		if l != strings.TrimRight(l, " ") {
			t.Errorf("%s: trailing blanks: %q", name, l)
		}
		if strings.Contains(l, "NaN") || strings.Contains(l, "Inf") {
			t.Errorf("%s: not a number: %q", name, l)
		}
		if ascii && len(l) != utf8.RuneCountInString(l) {
			t.Errorf("%s: not ASCII: %q", name, l)
		}
	}
}
