package page

import (
	"math"
	"strings"
)

// Bar draws the part [at, at+length] of total on width columns: it starts in
// the column of at and ends at at+length, in eighths of a column. Anything that
// has a length is visible; what is not a positive number is not drawn.
func (p *Page) Bar(at, length, total float64, width int) string {
	if !(total > 0) || !(length > 0) || math.IsInf(length, 0) || !(at >= 0) || width < 1 {
		return ""
	}
	w := float64(width)
	start := int(min(at/total*w, w-1))
	size := min((at+length)/total*w, w) - float64(start)
	eighths := max(1, int(math.Round(size*8)))
	lead := strings.Repeat(" ", start)
	if p.ASCII() {
		return lead + strings.Repeat("#", max(1, (eighths+4)/8))
	}
	out := lead + strings.Repeat("█", eighths/8)
	if r := eighths % 8; r > 0 {
		out += string([]rune("▏▎▍▌▋▊▉")[r-1])
	}
	return out
}
