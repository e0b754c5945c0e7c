package page

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func text(t *testing.T, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Flush(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrap(t *testing.T) {
	cases := []struct {
		in   string
		n    int
		want []string
	}{
		{"", 10, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"a\tb\n\x1b[1mc", 20, []string{"a b [1mc"}}, // control characters are blanks
		{"configs/engines/vllm.yaml", 16, []string{"configs/engines/", "vllm.yaml"}},
		{"abcdefghij", 4, []string{"abcd", "efgh", "ij"}},
		{"ab", 0, []string{"a", "b"}}, // a width below 1 counts as 1
	}
	for _, c := range cases {
		if d := cmp.Diff(c.want, Wrap(c.in, c.n)); d != "" {
			t.Errorf("Wrap(%q, %d) (-want +got):\n%s", c.in, c.n, d)
		}
	}
}

// Wrapped lines fit and lose nothing but blanks.
func TestWrapProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := rapid.String().Draw(t, "s"), rapid.IntRange(1, 30).Draw(t, "n")
		lines := Wrap(s, n)
		for _, l := range lines {
			if Runes(l) > n {
				t.Fatalf("line %q is wider than %d", l, n)
			}
		}
		want := strings.Join(strings.Fields(Clean(s)), "")
		if got := strings.ReplaceAll(strings.Join(lines, ""), " ", ""); got != want {
			t.Fatalf("Wrap(%q, %d) = %q, lost text", s, n, lines)
		}
	})
}

func TestFixed(t *testing.T) {
	cases := []struct {
		v    float64
		n    int
		want string
	}{
		{1.005, 2, "1.00"}, {-0.001, 2, "0.00"}, {-1.5, 1, "-1.5"}, {math.NaN(), 2, "-"}, {math.Inf(-1), 2, "-"}, {1e300, 2, "1e+300"}, {0, 0, "0"},
	}
	for _, c := range cases {
		if got := Fixed(c.v, c.n); got != c.want {
			t.Errorf("Fixed(%g, %d) = %q, want %q", c.v, c.n, got, c.want)
		}
	}
	if got := Share(1, 4); got != "25.0 %" {
		t.Errorf("Share(1, 4) = %q", got)
	}
	if got := Share(1, 0); got != "-" {
		t.Errorf("Share(1, 0) = %q", got)
	}
	if got := Cut("abcdef", 4); got != "ab.." {
		t.Errorf("Cut = %q", got)
	}
}

func TestRows(t *testing.T) {
	p := New(Options{Width: 44, ASCII: true})
	p.Title("Title")
	p.Rows([]Row{
		{Label: "a", Number: "1.00", Unit: "ms", Band: "[0.90 .. 1.10]", Note: "note"},
		{Label: "label", Number: "10.00", Unit: "ms"},
	}, nil, []Row{{Label: "text", Text: "words that are longer than one line of this page"}})
	want := `Title
--------------------------------------------
a       1.00 ms  [0.90 .. 1.10]  note
label  10.00 ms

text   words that are longer than one line
       of this page
`
	if d := cmp.Diff(want, text(t, p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestGridWrapsThenDrops(t *testing.T) {
	cols := []Column{{Name: "name", Flex: true}, {Name: "n", Right: true}, {Name: "detail", Flex: true, Drop: 1}, {Name: "more", Drop: 2}}
	cells := [][]string{{"first", "1", "some longer words here", strings.Repeat("m", 20)}, {"a rather long name", "200", "x", "y"}}
	p := New(Options{Width: 40})
	if err := p.Grid(0, cols, cells); err != nil {
		t.Fatal(err)
	}
	want := `name             n  detail
first            1  some longer words
                    here
a rather long  200  x
name
(not shown at this width: more)
`
	if d := cmp.Diff(want, text(t, p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestPaint(t *testing.T) {
	if got := New(Options{Color: true}).Paint(Red, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("Paint with colour = %q", got)
	}
	if got := New(Options{}).Paint(Red, "x"); got != "x" {
		t.Errorf("Paint without colour = %q", got)
	}
}
