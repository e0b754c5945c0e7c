package page

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Column is one column of a grid.
type Column struct {
	Name  string
	Right bool // numbers
	// Flex columns are wrapped when the grid is too wide, but not below 10
	// columns.
	Flex bool
	// Drop says which columns are left out first when wrapping is not enough:
	// the highest; 0 = never.
	Drop int
}

const (
	flexMin = 10
	gap     = 2 // blanks between columns
)

// Grid writes a table without lines, indented. Columns that do not fit are
// wrapped, then left out, and what is left out is named.
func (p *Page) Grid(indent int, cols []Column, cells [][]string) error {
	for _, r := range cells {
		for i := range r {
			r[i] = Clean(r[i])
		}
	}
	keep, widths := fit(cols, cells, p.width-indent)
	text, err := draw(cols, keep, widths, cells)
	if err != nil {
		return fmt.Errorf("draw table: %w", err)
	}
	for i, l := range strings.Split(text, "\n") {
		l = strings.Repeat(" ", indent) + strings.TrimRight(l, " ")
		if i == 0 {
			l = p.Paint(Dim, l)
		}
		p.Line(l)
	}
	var hidden []string
	for i, c := range cols {
		if !keep[i] {
			hidden = append(hidden, c.Name)
		}
	}
	if len(hidden) > 0 {
		p.Paragraph(Dim, strings.Repeat(" ", indent), "(not shown at this width: "+strings.Join(hidden, ", ")+")")
	}
	p.Blank()
	return nil
}

// fit chooses which columns to keep and how wide each is.
func fit(cols []Column, cells [][]string, width int) (keep []bool, widths []int) {
	keep, natural := make([]bool, len(cols)), make([]int, len(cols))
	for i, c := range cols {
		keep[i], natural[i] = true, Runes(c.Name)
		for _, r := range cells {
			natural[i] = max(natural[i], Runes(r[i]))
		}
	}
	for {
		widths = append([]int(nil), natural...)
		if shrink(cols, keep, widths, width) {
			return keep, widths
		}
		worst := -1
		for i, c := range cols {
			if keep[i] && c.Drop > 0 && (worst < 0 || c.Drop > cols[worst].Drop) {
				worst = i
			}
		}
		if worst < 0 {
			return keep, widths
		}
		keep[worst] = false
	}
}

// shrink narrows the widest flexible column until the kept columns fit; false
// when they cannot.
func shrink(cols []Column, keep []bool, widths []int, width int) bool {
	total := -gap
	for i := range cols {
		if keep[i] {
			total += widths[i] + gap
		}
	}
	for ; total > width; total-- {
		widest := -1
		for i, c := range cols {
			if keep[i] && c.Flex && widths[i] > flexMin && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

// draw renders the kept columns, cells wrapped to their widths.
func draw(cols []Column, keep []bool, widths []int, cells [][]string) (string, error) {
	var b bytes.Buffer
	var head []string
	var align tw.Alignment
	for i, c := range cols {
		if !keep[i] {
			continue
		}
		head = append(head, c.Name)
		a := tw.AlignLeft
		if c.Right {
			a = tw.AlignRight
		}
		align = append(align, a)
	}
	t := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Settings: tw.Settings{
				Separators: tw.Separators{BetweenColumns: tw.Off},
				Lines:      tw.Lines{ShowHeaderLine: tw.Off},
			},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithAlignment(align),
		tablewriter.WithPadding(tw.Padding{Right: strings.Repeat(" ", gap), Overwrite: true}),
	)
	t.Header(head)
	for _, r := range cells {
		var out []string
		for i, s := range r {
			if keep[i] {
				out = append(out, strings.Join(Wrap(s, widths[i]), "\n"))
			}
		}
		if err := t.Append(out); err != nil {
			return "", err
		}
	}
	if err := t.Render(); err != nil {
		return "", err
	}
	return strings.TrimRight(b.String(), "\n"), nil
}
