package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"infera/internal/units"
	"infera/sim/workload"
)

// column is a value that the records of a format have, under one of several
// names; capitals do not matter.
type column struct {
	names    []string
	optional bool
}

func required(names ...string) column { return column{names: names} }
func optional(names ...string) column { return column{names: names, optional: true} }

// row is one record: the values of the columns asked for, nil where there is
// none.
type row struct {
	line  int
	names []string // of the columns
	cells [][]byte
	json  bool
}

// table yields the records of a format.
type table struct {
	columns []column
	byName  map[string]int
	unused  []string // names of columns that were not asked for
	row     row
	load    func() error // fills the row
	// folded remembers names in small letters.
	folded map[string]string
}

// maxUnused bounds the names that are listed as not read.
const maxUnused = 20

func newTable(columns []column) *table {
	t := &table{columns: columns, byName: map[string]int{}, folded: map[string]string{}}
	t.row.cells = make([][]byte, len(columns))
	for i, c := range columns {
		t.row.names = append(t.row.names, c.names[0])
		for _, n := range c.names {
			t.byName[n] = i
		}
	}
	return t
}

// find returns the column of a name, -1 when it was not asked for.
func (t *table) find(name []byte) int {
	folded, ok := t.folded[string(name)]
	if !ok {
		folded = strings.ToLower(strings.TrimSpace(string(name)))
		if len(t.folded) < 1000 {
			t.folded[string(name)] = folded
		}
	}
	if i, ok := t.byName[folded]; ok {
		return i
	}
	if len(t.unused) < maxUnused && !slices.Contains(t.unused, folded) {
		t.unused = append(t.unused, folded)
	}
	return -1
}

// next returns the next record, valid until the next call, or io.EOF.
func (t *table) next() (*row, error) {
	if err := t.load(); err != nil {
		return nil, err
	}
	for i, c := range t.columns {
		if t.row.cells[i] == nil && !c.optional {
			return nil, lineError(t.row.line, "no %s", strings.Join(c.names, " or "))
		}
	}
	return &t.row, nil
}

// objects returns the table of records that are JSON objects.
func (in *input) objects(columns ...column) *table { return objects(in.values(), columns...) }

func objects(next func() ([]byte, int, error), columns ...column) *table {
	t := newTable(columns)
	t.row.json = true
	var fields []member
	t.load = func() error {
		value, line, err := next()
		if err != nil {
			return err
		}
		t.row.line = line
		if fields, err = members(fields[:0], value); err != nil {
			return lineError(line, "%w", err)
		}
		clear(t.row.cells)
		for _, f := range fields {
			i := t.find(f.key)
			if i < 0 || string(f.value) == "null" {
				continue
			}
			if t.row.cells[i] != nil {
				return lineError(line, "%s is given twice", t.row.names[i])
			}
			t.row.cells[i] = f.value
		}
		return nil
	}
	return t
}

// csv returns the table of records of CSV under a header line.
func (in *input) csv(columns ...column) (*table, error) {
	t := newTable(columns)
	r := in.csvLines()
	header, err := r.Read()
	if err != nil {
		return nil, csvError(err)
	}
	at := make([]int, len(header))
	have := make([]bool, len(columns))
	for i, name := range header {
		at[i] = t.find([]byte(name))
		if at[i] < 0 {
			continue
		}
		if have[at[i]] {
			return nil, lineError(1, "%s is given twice", t.row.names[at[i]])
		}
		have[at[i]] = true
	}
	for i, c := range columns {
		if !have[i] && !c.optional {
			return nil, lineError(1, "no column %s", strings.Join(c.names, " or "))
		}
	}
	var cells []byte
	t.load = func() error {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return err
		}
		if err != nil {
			return csvError(err)
		}
		t.row.line, _ = r.FieldPos(0)
		clear(t.row.cells)
		cells = cells[:0]
		for i, text := range record {
			if text = strings.TrimSpace(text); at[i] >= 0 && text != "" {
				start := len(cells)
				cells = append(cells, text...)
				t.row.cells[at[i]] = cells[start:]
			}
		}
		return nil
	}
	return t, nil
}

// each calls take with every record of a table.
func (b *builder) each(t *table, take func(*row) error) error {
	for {
		r, err := t.next()
		if errors.Is(err, io.EOF) {
			b.unused = t.unused
			return nil
		}
		if err != nil {
			return err
		}
		if err := take(r); err != nil {
			return err
		}
	}
}

// has reports whether there is a value.
func (r *row) has(column int) bool { return r.cells[column] != nil }

// fail is the error about a value.
func (r *row) fail(column int, err error) error {
	return lineError(r.line, "%s %s: %w", r.names[column], clip(string(r.cells[column])), err)
}

// tokens reads a count of tokens.
func (r *row) tokens(column int) (int, error) {
	n, err := wholeNumber(r.cells[column])
	if err == nil && (n < 1 || n > workload.MaxTokens) {
		err = fmt.Errorf("want 1 to %d tokens", workload.MaxTokens)
	}
	if err != nil {
		return 0, r.fail(column, err)
	}
	return int(n), nil
}

// whole reads a whole number between bounds.
func (r *row) whole(column int, least, most int64) (int64, error) {
	n, err := wholeNumber(r.cells[column])
	if err == nil && (n < least || n > most) {
		err = fmt.Errorf("want %d to %d", least, most)
	}
	if err != nil {
		return 0, r.fail(column, err)
	}
	return n, nil
}

// time reads a timestamp of a unit.
func (r *row) time(column int, u unit) (units.Time, error) {
	t, err := timestamp(r.cells[column], u)
	if err != nil {
		if errors.Is(err, errTooLate) {
			err = fmt.Errorf("in %s, %w", u, err)
		}
		return 0, r.fail(column, err)
	}
	return t, nil
}

// text reads a string; a number is taken as it is written.
func (r *row) text(column int) (string, error) {
	cell := r.cells[column]
	if !r.json {
		return string(cell), nil
	}
	switch cell[0] {
	case '"':
		var s string
		if err := json.Unmarshal(cell, &s); err != nil {
			return "", r.fail(column, err)
		}
		return s, nil
	case '{', '[':
		return "", r.fail(column, errors.New("not a string"))
	}
	return string(cell), nil
}

// lengths reads the prompt's and the answer's tokens.
func (r *row) lengths(input, output int) (workload.Request, error) {
	in, err := r.tokens(input)
	if err != nil {
		return workload.Request{}, err
	}
	out, err := r.tokens(output)
	return workload.Request{Input: in, Output: out}, err
}

// wholeNumber reads a whole number, which may be written as a decimal (512.0).
func wholeNumber(text []byte) (int64, error) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err == nil {
		return n, nil
	}
	whole, fraction, _ := bytes.Cut(text, []byte("."))
	if n, err := strconv.ParseInt(string(whole), 10, 64); err == nil && len(bytes.Trim(fraction, "0")) == 0 {
		return n, nil
	}
	return 0, errors.New("not a whole number")
}

// clip makes foreign text fit for a message: short and without control
// characters.
func clip(s string) string {
	const most = 40
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s[:min(len(s), 4*most)])
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}
