package report

import (
	"fmt"
	"io"
	"sort"
	"strings"

	"infera/sim/report/page"
)

// WriteExplain prints the waterfall of one decode step and of one prefill: each
// operation is a bar that starts where the one before ends, scaled so that the
// whole pass fills the width.
func (p Projection) WriteExplain(w io.Writer, o page.Options) error {
	g := page.New(o)
	if !p.Feasible || p.Performance == nil {
		g.Title("Waterfall")
		verdict(g, p.Reason)
		return g.Flush(w)
	}
	perf := p.Performance
	waterfall(g, fmt.Sprintf("One decode step at concurrency %d", perf.Concurrency), perf.Breakdown.Decode)
	overlap(g, sumMs(perf.Breakdown.Decode), perf.DecodeStepMs.Value)
	head := "One prefill"
	if n := p.Request.Text("input_len"); n != "" {
		head += " of " + n + " tokens"
	}
	waterfall(g, head, perf.Breakdown.Prefill)
	return g.Flush(w)
}

// The columns of a waterfall beside its bar.
const (
	waterfallTime  = 9     // "12345.678"
	waterfallShare = 7     // "100.0 %"
	waterfallBound = 7     // "compute"
	waterfallGaps  = 4 * 2 // blanks between columns
)

func waterfall(p *page.Page, title string, ops []Op) {
	total := sumMs(ops)
	p.Title(title + ": " + fixed(total, 3) + " ms")
	if len(ops) == 0 {
		p.Line("(no operations)")
		p.Blank()
		return
	}
	name := 4
	for _, o := range ops {
		name = max(name, page.Runes(page.Clean(o.Name)))
	}
	fixedPart := waterfallTime + waterfallShare + waterfallBound + waterfallGaps
	name = min(name, max(8, (p.Width()-fixedPart)/2))
	columns := max(4, p.Width()-fixedPart-name)
	p.Line(p.Paint(page.Dim, fmt.Sprintf("%s  %*s  %*s  %-*s  time",
		page.PadRight("op", name), waterfallTime, "ms", waterfallShare, "share", waterfallBound, "bound")))
	var at Number
	for _, o := range ops {
		t := o.TimeMs
		if !t.Finite() {
			t = 0
		}
		p.Line(fmt.Sprintf("%s  %*s  %*s  %s  %s",
			page.PadRight(page.Cut(page.Clean(o.Name), name), name), waterfallTime, fixed(o.TimeMs, 3),
			waterfallShare, share(o.TimeMs, total),
			p.Paint(boundStyle(o.Bound), page.PadRight(page.Cut(page.Clean(page.OrDash(o.Bound)), waterfallBound), waterfallBound)),
			p.Paint(boundStyle(o.Bound), p.Bar(float64(at), float64(t), float64(total), columns))))
		at += t
	}
	p.Blank()
	p.Paragraph(page.None, "By bound: ", byBound(ops))
	p.Blank()
}

// overlap says when the operations do not add up to the step, which happens
// when some run beside others.
func overlap(p *page.Page, sum, step Number) {
	if sum > 0 && step > 0 && (sum/step > 1.01 || sum/step < 0.99) {
		p.Paragraph(page.None, "", fmt.Sprintf("The operations add up to %s ms; the step takes %s ms.", fixed(sum, 3), fixed(step, 3)))
		p.Blank()
	}
}

func boundStyle(bound string) page.Style {
	switch bound {
	case "hbm":
		return page.Blue
	case "compute":
		return page.Green
	case "fabric":
		return page.Purple
	case "launch":
		return page.Yellow
	case "host":
		return page.Red
	}
	return page.None
}

// byBound sums the time per active bound, largest first, in words.
func byBound(ops []Op) string {
	var names []string
	sum, total := map[string]Number{}, sumMs(ops)
	for _, o := range ops {
		b := page.OrDash(o.Bound)
		if _, seen := sum[b]; !seen {
			names = append(names, b)
		}
		if o.TimeMs.Finite() {
			sum[b] += o.TimeMs
		}
	}
	sort.SliceStable(names, func(i, j int) bool { return sum[names[i]] > sum[names[j]] })
	parts := make([]string, 0, len(names))
	for _, n := range names {
		parts = append(parts, fmt.Sprintf("%s %s ms (%s)", n, fixed(sum[n], 3), strings.ReplaceAll(share(sum[n], total), " ", "")))
	}
	return strings.Join(parts, ", ")
}
