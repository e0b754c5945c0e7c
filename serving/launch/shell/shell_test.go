package shell

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// render writes the commands of a line with "|" between words and a newline
// between commands; redirections follow " > ".
func render(statements []Statement) string {
	var lines []string
	for _, s := range statements {
		var words []string
		for _, w := range s.Words {
			words = append(words, w.Text)
		}
		line := strings.Join(words, "|")
		for _, r := range s.Redirects {
			line += " > " + r.Text
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestSplit(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"  a\tb  ", "a|b"},
		{`a 'b c' "d e"f`, "a|b c|d ef"},
		{`a ''`, "a|"},
		{`a\ b \"c`, `a b|"c`},
		{`"a\"b\\c\n"`, `a"b\c\n`},
		{"a \\\n  b", "a|b"},
		{"a \\\r\n  b\r\n", "a|b"},
		{"\"a\\\nb\"", "ab"},
		{"a # c\nb#c", "a\nb#c"},
		{"a; b && c || d | e & f", "a\nb\nc\nd\ne\nf"},
		{"a > log 2>&1 &", "a > >log > 2>&1"},
		{"a &> log >>x 3<y b", "a|b > &>log > >>x > 3<y"},
		{"a b2>c", "a|b2 > >c"},
		{`a '2'>c`, "a|2 > >c"},
		{`{"a":[1,2]}`, `{a:[1,2]}`},
		{`'{"a": "'"$B"'"}'`, `{"a": "$B"}`},
		{"a $(b (c) d) `e f`", "a|$(b (c) d)|`e f`"},
		{"$", "$"},
	} {
		got, err := Split(tt.in)
		if err != nil {
			t.Errorf("Split(%q): %v", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.want, render(got)); diff != "" {
			t.Errorf("Split(%q) (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestVariable(t *testing.T) {
	for in, want := range map[string]string{
		"a": "", "$A": "$A", "x$A_1-y": "$A_1", `'$A'`: "", `"$A"`: "$A", `\$A`: "", `"\$A"`: "", "${A:-1}x": "${A:-1}", "$(a b)": "$(a b)", "`a`": "`a`", "$?": "$?", "a$": "", `"a$"`: "", "$A$B": "$A",
	} {
		got, err := Split(in)
		if err != nil || len(got) != 1 || got[0].Words[0].Variable != want {
			t.Errorf("Split(%q) = %+v, %v; want variable %q", in, got, err, want)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, in := range []string{`'a`, `"a`, `a\`, "a (b)", "a <<EOF", "a >", "a > | b", "${A", "$(a", "`a", "$'a", "a \\ \nb"} {
		if got, err := Split(in); !errors.Is(err, ErrSyntax) {
			t.Errorf("Split(%q) = %+v, %v; want an ErrSyntax", in, got, err)
		}
	}
}

func TestAssignment(t *testing.T) {
	for in, want := range map[string]string{"A=1": "A|1", "_a9=": "_a9|", "A=b=c": "A|b=c", "9a=1": "", "=1": "", "a": "", "a-b=1": ""} {
		name, value, ok := Assignment(in)
		if got := name + "|" + value; ok != (want != "") || ok && got != want {
			t.Errorf("Assignment(%q) = %q, %v; want %q", in, got, ok, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(`A=1 a 'b' "c $D" \` + "\n e > f 2>&1 | g # h")
	f.Fuzz(func(t *testing.T, line string) {
		if _, err := Split(line); err != nil && !errors.Is(err, ErrSyntax) {
			t.Fatalf("Split(%q) = %v, not an ErrSyntax", line, err)
		}
	})
}
