package simulation

import (
	"math"
	"slices"
	"strings"

	"infera/sim/report/page"
)

// plot is a value over an axis, drawn as an area of blocks for a terminal.
type plot struct {
	title string
	// points are where the value is known; it is joined by lines in between.
	// Points that are no numbers or below 0 are left out.
	points []point
	// rows is the height; unit is what the axis counts.
	rows int
	unit string
	// marks are places on the axis, mark what they mean.
	marks []float64
	mark  string
}

type point struct{ x, y float64 }

// draw writes the plot; nothing when there are not two places on the axis.
func (c plot) draw(p *page.Page) {
	points := slices.DeleteFunc(slices.Clone(c.points), func(q point) bool { return !finite(q.x) || !finite(q.y) || q.y < 0 })
	slices.SortStableFunc(points, func(a, b point) int {
		switch {
		case a.x < b.x:
			return -1
		case a.x > b.x:
			return 1
		}
		return 0
	})
	if len(points) < 2 || points[0].x == points[len(points)-1].x {
		return
	}
	top := 0.0
	for _, q := range points {
		top = max(top, q.y)
	}
	high := short(top)
	label := max(page.Runes(high), 1)
	width := p.Width() - label - 2
	heights := columns(points, width)

	p.Subtitle(c.title)
	side, corner, rule, tick := "│", "└", "─", "▲"
	if p.ASCII() {
		side, corner, rule, tick = "|", "+", "-", "^"
	}
	for row := c.rows - 1; row >= 0; row-- {
		text := ""
		if row == c.rows-1 {
			text = high
		}
		line := strings.Repeat(" ", label-page.Runes(text)) + text + " " + side
		p.Line(line + p.Paint(page.Blue, strings.TrimRight(levels(heights, top, row, c.rows, p.ASCII()), " ")))
	}
	p.Line(strings.Repeat(" ", label-1) + "0 " + corner + strings.Repeat(rule, width))
	first, last := points[0].x, points[len(points)-1].x
	indent := strings.Repeat(" ", label+2)
	for _, l := range markLines(c.marks, c.mark, first, last, width, tick) {
		p.Line(indent + p.Paint(page.Red, l))
	}
	left, right := short(first), short(last)+" "+c.unit
	p.Line(indent + left + strings.Repeat(" ", max(1, width-page.Runes(left)-page.Runes(right))) + right)
	p.Blank()
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// columns returns the value of every column: the largest of the points in it,
// or where there is none what a line between its neighbours has in its middle.
// Points are in order and span more than nothing.
func columns(points []point, n int) []float64 {
	out := make([]float64, n)
	first, span := points[0].x, points[len(points)-1].x-points[0].x
	i := 0
	for c := range out {
		end := first + span*float64(c+1)/float64(n)
		begun := i
		for ; i < len(points) && (points[i].x < end || c == n-1); i++ {
			out[c] = max(out[c], points[i].y)
		}
		if i > begun {
			continue
		}
		a, b := points[max(i-1, 0)], points[min(i, len(points)-1)]
		out[c] = a.y
		if b.x > a.x {
			middle := end - span/float64(2*n)
			out[c] += (b.y - a.y) * (middle - a.x) / (b.x - a.x)
		}
	}
	return out
}

// levels draws one row of the area, from the bottom row 0 up.
func levels(heights []float64, top float64, row, rows int, ascii bool) string {
	blocks := []rune(" ▁▂▃▄▅▆▇█")
	if ascii {
		blocks = []rune("  ..:::##")
	}
	var b strings.Builder
	for _, h := range heights {
		eighths := 0
		if top > 0 {
			eighths = int(math.Round(h/top*float64(8*rows))) - 8*row
		}
		if row == 0 && h > 0 {
			eighths = max(eighths, 1) // anything is visible
			if ascii {
				eighths = max(eighths, 2)
			}
		}
		b.WriteRune(blocks[min(max(eighths, 0), 8)])
	}
	return b.String()
}

// markLines puts a tick under every mark that lies on the axis and says what
// they mean: on the same line when there is room, else on the next. Nothing
// without marks.
func markLines(marks []float64, meaning string, first, last float64, width int, tick string) []string {
	line, begin, end := []rune(strings.Repeat(" ", width)), width, 0
	for _, m := range marks {
		if m >= first && m <= last {
			at := min(int((m-first)/(last-first)*float64(width)), width-1)
			line[at] = []rune(tick)[0]
			begin, end = min(begin, at), max(end, at+1)
		}
	}
	text := []rune(page.Clean(meaning))
	switch n := len(text) + 1; {
	case end == 0:
		return nil
	case end+n <= width:
		copy(line[end+1:], text)
	case begin >= n:
		copy(line[begin-n:], text)
	default:
		return []string{strings.TrimRight(string(line), " "), page.Cut(tick+" "+string(text), width)}
	}
	return []string{strings.TrimRight(string(line), " ")}
}

// short prints a number in a few characters: 0.25, 12.5, 940, 1.2k, 35M.
func short(v float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if v >= u.size {
			return trim(v/u.size) + u.name
		}
	}
	return trim(v)
}

// trim prints three digits at most, without zeros at the end.
func trim(v float64) string {
	n := 2
	switch {
	case v >= 100:
		n = 0
	case v >= 10:
		n = 1
	}
	s := page.Fixed(v, n)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
