package inspection

import (
	"fmt"
	"io"
	"strings"

	"infera/sim/report"
	"infera/sim/report/page"
)

// WriteTable writes the trace for people: arrivals, lengths and what prompts
// share, with histograms.
func (t Trace) WriteTable(w io.Writer, o page.Options) error {
	p := page.New(o)
	p.Title("Trace " + t.File)
	p.Rows(t.subject(), t.sharing())
	var cells [][]string
	for _, d := range []struct {
		name string
		of   Tokens
	}{{"input", t.InputTokens}, {"output", t.OutputTokens}} {
		line := []string{d.name}
		for _, q := range d.of.quantities() {
			line = append(line, page.Fixed(float64(q.value), 0))
		}
		cells = append(cells, line)
	}
	columns := []page.Column{{Name: "tokens"}}
	for _, q := range t.InputTokens.quantities() {
		columns = append(columns, page.Column{Name: q.name, Right: true})
	}
	p.Subtitle("Lengths")
	if err := p.Grid(2, columns, cells); err != nil {
		return fmt.Errorf("lengths: %w", err)
	}
	histogram(p, "Requests by input tokens", t.Histograms.InputTokens, tokenRange)
	histogram(p, "Requests by output tokens", t.Histograms.OutputTokens, tokenRange)
	histogram(p, "Requests over time, s", merged(t.Histograms.Arrivals), timeRange)
	if len(t.Classes) > 0 {
		cells = nil
		for _, c := range t.Classes {
			cells = append(cells, []string{page.OrDash(c.Name), page.Count(int64(c.Requests)), page.Share(float64(c.Requests), float64(t.Requests))})
		}
		p.Subtitle("Classes")
		if err := p.Grid(2, []page.Column{{Name: "class", Flex: true}, {Name: "requests", Right: true}, {Name: "share", Right: true}}, cells); err != nil {
			return fmt.Errorf("classes: %w", err)
		}
	}
	report.PutWarnings(p, t.Warnings)
	return p.Flush(w)
}

// subject says what was read and how requests arrive.
func (t *Trace) subject() []page.Row {
	rows := []page.Row{
		{Label: "Format", Text: t.Format},
		{Label: "Requests", Number: page.Count(int64(t.Requests))},
	}
	if t.Started != "" {
		rows = append(rows, page.Row{Label: "Start", Text: t.Started})
	}
	if !t.Timed {
		return append(rows, page.Row{Label: "Arrivals", Text: "none in this format"})
	}
	return append(rows,
		page.Row{Label: "Span", Number: page.Fixed(float64(t.SpanS), 1), Unit: "s"},
		page.Row{Label: "Rate", Number: page.Fixed(float64(t.RateReqS), 2), Unit: "req/s", Note: fmt.Sprintf("at most %d within a second", t.BusiestSecond)},
		page.Row{Label: "Gaps", Number: page.Fixed(float64(t.GapS.Mean), 3), Unit: "s", Note: "variation " + page.Fixed(float64(t.GapS.CV), 2) + " (independent arrivals: 1)"},
	)
}

// sharing says what prompts have in common.
func (t *Trace) sharing() []page.Row {
	var rows []page.Row
	if s := &t.Sessions; s.Count > 0 {
		rows = append(rows, page.Row{
			Label: "Conversations", Number: page.Count(int64(s.Count)),
			Note: "of " + page.Fixed(float64(s.TurnsMean), 1) + " turns on average, at most " + page.Fixed(float64(s.TurnsMax), 0),
		})
	}
	if t.BlockSize == 0 {
		return rows
	}
	u := &t.Reuse
	rows = append(rows,
		page.Row{Label: "Unlimited cache", Number: page.Fixed(100*float64(t.HitRate), 1), Unit: "% of blocks found", Note: fmt.Sprintf("%d of %d", u.Hits, u.Blocks)},
		page.Row{Label: "It would hold", Number: page.Count(u.Distinct), Unit: fmt.Sprintf("blocks of %d tokens", t.BlockSize)},
	)
	if u.Age.P50.Finite() {
		rows = append(rows, page.Row{
			Label: "Found again after", Number: page.Fixed(float64(u.Age.P50), 1), Unit: "s",
			Note: "median; 90 % within " + page.Fixed(float64(u.Age.P90), 1) + " s",
		})
	}
	return rows
}

// histogram draws a bar per bin.
func histogram(p *page.Page, title string, bins []Bin, label func(Bin) string) {
	if len(bins) == 0 {
		return
	}
	most, wide, digits := 0, 0, 0
	for _, b := range bins {
		most, wide = max(most, b.Count), max(wide, page.Runes(label(b)))
		digits = max(digits, len(page.Count(int64(b.Count))))
	}
	p.Subtitle(title)
	bar := max(4, p.Width()-wide-digits-6)
	for _, b := range bins {
		name := label(b)
		p.Line("  " + strings.Repeat(" ", wide-page.Runes(name)) + name + fmt.Sprintf("  %*d  ", digits, b.Count) +
			p.Bar(0, float64(b.Count), float64(most), bar))
	}
	p.Blank()
}

func tokenRange(b Bin) string {
	if b.High-b.Low <= 1 {
		return page.Fixed(float64(b.Low), 0)
	}
	return page.Fixed(float64(b.Low), 0) + ".." + page.Fixed(float64(b.High-1), 0)
}

func timeRange(b Bin) string {
	digits := 0
	if b.High-b.Low < 10 {
		digits = 2
	}
	return page.Fixed(float64(b.Low), digits) + ".." + page.Fixed(float64(b.High), digits)
}

// together is how many bins of arrivals are one bar.
const together = 4

// merged joins neighbouring bins.
func merged(bins []Bin) []Bin {
	var out []Bin
	for i, b := range bins {
		if i%together == 0 {
			out = append(out, b)
			continue
		}
		last := &out[len(out)-1]
		last.High, last.Count = b.High, last.Count+b.Count
	}
	return out
}
