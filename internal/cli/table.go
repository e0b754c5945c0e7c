package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Table is rows of text under a header, laid out without borders within a
// number of columns: wide cells wrap; when even that is not enough each row
// becomes a block of "header: cell" lines.
type Table struct {
	Columns []Column
	Rows    [][]string // as many cells as columns
}

// Column is one column of a [Table].
type Column struct {
	Name  string
	Right bool // align to the right, as numbers are; such a column never wraps
	Whole bool // never wrap: names that are copied
}

// columnGap separates columns; minColumn is the narrowest a column is wrapped to.
const (
	columnGap = 2
	minColumn = 10
)

// Write lays the table out within width columns of w.
func (t Table) Write(w io.Writer, width int) error {
	for i, row := range t.Rows {
		if len(row) != len(t.Columns) {
			return fmt.Errorf("table row %d has %d cells for %d columns", i, len(row), len(t.Columns))
		}
	}
	widths, ok := t.fit(width)
	if !ok {
		return t.writeBlocks(w, width)
	}
	var b strings.Builder
	table := tablewriter.NewTable(&b, tablewriter.WithRenderer(renderer.NewBlueprint(plainRendition())), tablewriter.WithConfig(t.config()))
	header := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		header[i] = wrap(c.Name, widths[i])
	}
	table.Header(header)
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = wrap(cell, widths[i])
		}
		if err := table.Append(cells); err != nil {
			return fmt.Errorf("lay out table: %w", err)
		}
	}
	if err := table.Render(); err != nil {
		return fmt.Errorf("lay out table: %w", err)
	}
	// Without a border on the right the padding of the last column is noise.
	var out strings.Builder
	for line := range strings.Lines(b.String()) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// plainRendition draws a line under the header and nothing else.
func plainRendition() tw.Rendition {
	return tw.Rendition{
		Borders: tw.BorderNone,
		Symbols: tw.NewSymbols(tw.StyleLight),
		Settings: tw.Settings{
			Separators: tw.Separators{ShowHeader: tw.On, ShowFooter: tw.Off, BetweenRows: tw.Off, BetweenColumns: tw.Off},
			Lines:      tw.Lines{ShowTop: tw.Off, ShowBottom: tw.Off, ShowHeaderLine: tw.On, ShowFooterLine: tw.Off},
		},
	}
}

func (t Table) config() tablewriter.Config {
	align := make([]tw.Align, len(t.Columns))
	padding := make([]tw.Padding, len(t.Columns))
	for i, c := range t.Columns {
		align[i] = tw.AlignLeft
		if c.Right {
			align[i] = tw.AlignRight
		}
		padding[i] = tw.Padding{Right: strings.Repeat(" ", columnGap), Overwrite: true}
		if i == len(t.Columns)-1 {
			padding[i] = tw.PaddingNone
		}
	}
	cells := tw.CellConfig{
		Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone, AutoFormat: tw.Off},
		Alignment:  tw.CellAlignment{PerColumn: align},
		Padding:    tw.CellPadding{Global: tw.PaddingNone, PerColumn: padding},
	}
	return tablewriter.Config{Header: cells, Row: cells, Behavior: tw.Behavior{TrimSpace: tw.Off}}
}

// fit chooses the width of each column. It narrows the widest text column,
// again and again, until the table fits; false when it cannot.
func (t Table) fit(width int) ([]int, bool) {
	widths := make([]int, len(t.Columns))
	total := columnGap * (len(t.Columns) - 1)
	for i, c := range t.Columns {
		widths[i] = textWidth(c.Name)
		for _, row := range t.Rows {
			widths[i] = max(widths[i], textWidth(row[i]))
		}
		total += widths[i]
	}
	for total > width {
		widest := -1
		for i, c := range t.Columns {
			if !c.Right && !c.Whole && widths[i] > minColumn && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return nil, false
		}
		widths[widest]--
		total--
	}
	return widths, true
}

// writeBlocks writes each row as lines of its own.
func (t Table) writeBlocks(w io.Writer, width int) error {
	var b strings.Builder
	for i, row := range t.Rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		for j, cell := range row {
			if cell == "" {
				continue
			}
			// Two columns are kept for the indent of continuation lines.
			text := wrap(t.Columns[j].Name+": "+cell, max(width, minColumn)-2)
			b.WriteString(strings.ReplaceAll(text, "\n", "\n  ") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func textWidth(s string) int {
	widest := 0
	for line := range strings.SplitSeq(s, "\n") {
		widest = max(widest, twwidth.Width(line))
	}
	return widest
}

// wrap breaks text at blanks so that no line is wider than width; a word that
// is wider itself is cut, after a separator when it has one.
func wrap(text string, width int) string {
	if textWidth(text) <= width {
		return text
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, wrapLine(line, width)...)
	}
	return strings.Join(lines, "\n")
}

func wrapLine(line string, width int) []string {
	var lines []string
	current := ""
	for _, word := range strings.Fields(line) {
		for {
			joined := word
			if current != "" {
				joined = current + " " + word
			}
			if twwidth.Width(joined) <= width {
				current = joined
				break
			}
			if current != "" {
				lines, current = append(lines, current), ""
				continue
			}
			head, tail := cut(word, width)
			lines, word = append(lines, head), tail
			if word == "" {
				break
			}
		}
	}
	if current != "" || len(lines) == 0 {
		lines = append(lines, current)
	}
	return lines
}

// cut splits a word so that the head fits width and is not empty.
func cut(word string, width int) (head, tail string) {
	end, after := 0, 0
	for i, r := range word {
		next := i + len(string(r))
		if next <= len(word) && twwidth.Width(word[:next]) > width && end > 0 {
			break
		}
		end = next
		if strings.ContainsRune("-_/,.:=", r) {
			after = next
		}
	}
	if after > 0 && end < len(word) {
		end = after
	}
	return word[:end], word[end:]
}
