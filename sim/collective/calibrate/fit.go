package calibrate

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"infera/internal/units"
	"infera/sim/collective"
)

// Result is a fitted envelope and how well it holds.
type Result struct {
	Fit collective.Fit
	// Worst is the largest |ln(measured/fitted)|.
	Worst float64
}

// Fit returns the envelope of at most lines lines that minimises the squared
// error of ln t over rows, which must all be of one implementation and group
// size. It tries every way to cut the sizes into contiguous runs, fits each run
// by least squares of the relative error, and scores the envelope of all lines
// over all rows; a further line is kept only when it lowers the spread by a
// tenth.
func Fit(rows []Row, lines int) (Result, error) {
	if len(rows) < 2 {
		return Result{}, errors.New("fit: two rows or more are needed")
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.Message, b.Message) })
	var best []collective.Line
	bestScore := math.Inf(1)
	for n := 1; n <= lines; n++ {
		candidate, score := search(rows, n)
		if score < 0.9*bestScore {
			best, bestScore = candidate, score
		}
	}
	if best == nil {
		return Result{}, errors.New("fit: the rows admit no line with a positive slope")
	}
	r := Result{Fit: collective.Fit{
		Ranks: rows[0].Ranks, Smallest: rows[0].Message, Largest: rows[len(rows)-1].Message,
		Lines: best, Spread: bestScore,
	}}
	for _, row := range rows {
		r.Worst = max(r.Worst, math.Abs(math.Log(float64(row.Time)/envelope(best, row.Message))))
	}
	return r, nil
}

// search finds the best cut of sorted rows into n runs.
func search(rows []Row, n int) ([]collective.Line, float64) {
	var best []collective.Line
	score := math.Inf(1)
	lines := make([]collective.Line, 0, n)
	var walk func(from, left int)
	walk = func(from, left int) {
		if left == 1 {
			l, ok := line(rows[from:])
			if !ok {
				return
			}
			all := append(lines, l)
			if s := spread(rows, all); s < score {
				best, score = slices.Clone(all), s
			}
			return
		}
		for to := from + 2; to+2*(left-1) <= len(rows); to++ {
			if l, ok := line(rows[from:to]); ok {
				lines = append(lines, l)
				walk(to, left-1)
				lines = lines[:len(lines)-1]
			}
		}
	}
	walk(0, n)
	return best, score
}

// line fits t = floor + bytes*slope with weights 1/t^2, floor and slope >= 0.
func line(rows []Row) (collective.Line, bool) {
	var s, sx, sxx, sy, sxy float64
	for _, r := range rows {
		x, y := float64(r.Message), float64(r.Time)
		w := 1 / (y * y)
		s, sx, sxx, sy, sxy = s+w, sx+w*x, sxx+w*x*x, sy+w*y, sxy+w*x*y
	}
	d := s*sxx - sx*sx
	if len(rows) < 2 || d <= 0 {
		return collective.Line{}, false
	}
	slope := (s*sxy - sx*sy) / d
	floor := (sy - slope*sx) / s
	if floor < 0 {
		floor, slope = 0, sxy/sxx
	}
	if slope <= 0 {
		return collective.Line{}, false
	}
	return collective.Line{Floor: units.Seconds(floor), PerByte: slope}, true
}

func envelope(lines []collective.Line, b units.Bytes) float64 {
	t := math.Inf(1)
	for _, l := range lines {
		t = min(t, float64(l.Floor)+float64(b)*l.PerByte)
	}
	return t
}

func spread(rows []Row, lines []collective.Line) float64 {
	var sum float64
	for _, r := range rows {
		e := math.Log(float64(r.Time) / envelope(lines, r.Message))
		sum += e * e
	}
	return math.Sqrt(sum / float64(len(rows)))
}
