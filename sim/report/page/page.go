package page

import (
	"bytes"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Options says how text is laid out.
type Options struct {
	// Width is the number of columns; 0 means 80, less than 40 means 40.
	Width int
	// Color adds ANSI colours; leave it off when the output is not a terminal.
	Color bool
	// ASCII replaces block characters and lines by ASCII.
	ASCII bool
}

// Style is the ANSI escape sequence that begins a colour or a weight.
type Style string

// The styles.
const (
	None   Style = ""
	Bold   Style = "\x1b[1m"
	Dim    Style = "\x1b[2m"
	Red    Style = "\x1b[31m"
	Green  Style = "\x1b[32m"
	Yellow Style = "\x1b[33m"
	Blue   Style = "\x1b[34m"
	Purple Style = "\x1b[35m"

	reset = "\x1b[0m"
)

// Page collects text; [Page.Flush] writes it.
type Page struct {
	b     bytes.Buffer
	o     Options
	width int
}

// New returns an empty page.
func New(o Options) *Page {
	w := o.Width
	if w == 0 {
		w = 80
	}
	return &Page{o: o, width: max(w, 40)}
}

// Flush writes the page without trailing blanks and blank last lines.
func (p *Page) Flush(w io.Writer) error {
	out := bytes.TrimRight(p.b.Bytes(), "\n")
	_, err := w.Write(append(out, '\n'))
	return err
}

// Width returns the number of columns.
func (p *Page) Width() int { return p.width }

// ASCII reports whether block characters are to be avoided.
func (p *Page) ASCII() bool { return p.o.ASCII }

// Paint puts text in a style, when there are colours.
func (p *Page) Paint(s Style, text string) string {
	if !p.o.Color || s == None || text == "" {
		return text
	}
	return string(s) + text + reset
}

// Line writes one line as it is; the caller keeps it within the width.
func (p *Page) Line(s string) {
	p.b.WriteString(strings.TrimRight(s, " "))
	p.b.WriteByte('\n')
}

// Blank writes an empty line.
func (p *Page) Blank() { p.b.WriteByte('\n') }

// Title starts a section.
func (p *Page) Title(s string) {
	rule := "─"
	if p.o.ASCII {
		rule = "-"
	}
	p.Line(p.Paint(Bold, Cut(Clean(s), p.width)))
	p.Line(p.Paint(Dim, strings.Repeat(rule, p.width)))
}

// Subtitle starts a block within a section.
func (p *Page) Subtitle(s string) {
	for _, l := range Wrap(s, p.width) {
		p.Line(p.Paint(Bold, l))
	}
}

// Paragraph writes wrapped text; the first line starts with head and the
// others are indented to the same column.
func (p *Page) Paragraph(s Style, head, text string) {
	indent := Runes(head)
	for i, l := range Wrap(text, p.width-indent) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		p.Line(p.Paint(s, head) + l)
	}
}

// Item is one entry of a list: a head in a style, then wrapped text.
type Item struct{ Head, Text string }

// List writes a list under a heading; nothing when it is empty.
func (p *Page) List(title string, s Style, items []Item) {
	if len(items) == 0 {
		return
	}
	p.Subtitle(title)
	for _, x := range items {
		head, text := "  - ", x.Text
		switch {
		case x.Head == "":
		case Runes(x.Head) < p.width/2:
			head += Clean(x.Head) + ": "
		default:
			text = x.Head + ": " + text
		}
		p.Paragraph(s, head, text)
	}
	p.Blank()
}

// Row is one line of a section: a label, then either a number with its unit
// and its band or free text (when Number is ""), then a note.
type Row struct {
	Label, Number, Unit, Band, Text, Note string
	Style                                 Style // of the number or the text
}

// columns holds the widths shared by the rows of a section.
type columns struct{ label, number, unit int }

// Rows writes groups of rows with one set of columns and a blank line between
// groups that are not empty.
func (p *Page) Rows(groups ...[]Row) {
	var c columns
	for _, g := range groups {
		for _, r := range g {
			c.label = max(c.label, Runes(r.Label))
			c.number = max(c.number, Runes(r.Number))
			if r.Band != "" {
				c.unit = max(c.unit, Runes(r.Unit))
			}
		}
	}
	c.label = min(c.label, p.width*45/100)
	first := true
	for _, g := range groups {
		if len(g) == 0 {
			continue
		}
		if !first {
			p.Blank()
		}
		first = false
		for _, r := range g {
			p.row(c, r)
		}
	}
	p.Blank()
}

func (p *Page) row(c columns, r Row) {
	indent := c.label + 2
	head := PadRight(Cut(Clean(r.Label), c.label), indent)
	if r.Number == "" {
		text := r.Text
		if r.Note != "" {
			text += " " + r.Note
		}
		for i, l := range Wrap(text, p.width-indent) {
			if i > 0 {
				head = strings.Repeat(" ", indent)
			}
			p.Line(head + p.Paint(r.Style, l))
		}
		return
	}
	used := indent + c.number + 1 + Runes(r.Unit)
	line := head + p.Paint(r.Style, padLeft(r.Number, c.number)) + " " + r.Unit
	rest := []string{}
	if r.Band != "" {
		at := max(used, indent+c.number+1+c.unit) + 2
		if at+Runes(r.Band) <= p.width {
			line += strings.Repeat(" ", at-used) + p.Paint(Dim, r.Band)
			used = at + Runes(r.Band)
		} else {
			rest = append(rest, r.Band)
		}
	}
	if r.Note != "" {
		note := Clean(r.Note)
		if len(rest) == 0 && used+2+Runes(note) <= p.width {
			line += "  " + note
		} else {
			rest = append(rest, note)
		}
	}
	p.Line(line)
	for _, s := range rest {
		for _, l := range Wrap(s, p.width-indent) {
			p.Line(strings.Repeat(" ", indent) + l)
		}
	}
}

// Fixed prints v with n decimals; "-" when v is not a finite number.
func Fixed(v float64, n int) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case math.Abs(v) >= 1e15:
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	s := strconv.FormatFloat(v, 'f', n, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-")
	}
	return s
}

// Share prints part of whole in per cent; "-" when there is no such share.
func Share(part, whole float64) string {
	if whole == 0 {
		return "-"
	}
	s := Fixed(100*part/whole, 1)
	if s == "-" {
		return s
	}
	return s + " %"
}

// OrDash returns s, or "-" when it is empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Count prints a whole number.
func Count(n int64) string { return strconv.FormatInt(n, 10) }

// Runes counts the characters of s, each taken as one column.
func Runes(s string) int { return utf8.RuneCountInString(s) }

// PadRight fills s with blanks up to n columns.
func PadRight(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-Runes(s)))
}

func padLeft(s string, n int) string {
	return strings.Repeat(" ", max(0, n-Runes(s))) + s
}

// Cut shortens s to n columns and marks the cut.
func Cut(s string, n int) string {
	if Runes(s) <= n {
		return s
	}
	r := []rune(s)
	if n <= 2 {
		return string(r[:max(0, n)])
	}
	return string(r[:n-2]) + ".."
}

// Clean makes a foreign string safe for a terminal: control characters (escape
// sequences, line breaks) become blanks.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
}

// Wrap breaks s at blanks into lines of at most n columns; a word longer than
// a line is broken. It returns at least one line.
func Wrap(s string, n int) []string {
	n = max(n, 1)
	var lines []string
	line := ""
	for _, word := range strings.Fields(Clean(s)) {
		if line != "" && Runes(line)+1+Runes(word) <= n {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for Runes(word) > n {
			r := []rune(word)
			at := breakPoint(r, n)
			lines = append(lines, string(r[:at]))
			word = string(r[at:])
		}
		line = word
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// breakPoint returns where to break a word for n columns: after the last comma,
// slash, hyphen or underscore of its second half, or at n.
func breakPoint(r []rune, n int) int {
	for i := n; i > n/2; i-- {
		if strings.ContainsRune(",/-_", r[i-1]) {
			return i
		}
	}
	return n
}
