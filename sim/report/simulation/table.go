package simulation

import (
	"fmt"
	"io"

	"infera/sim/cluster"
	"infera/sim/report"
	"infera/sim/report/page"
)

// maxInstances is the most instances that a table lists one by one.
const maxInstances = 16

// Table writes the result for people: what was simulated and what came out,
// latencies, cache and batches, the parts of the fleet, the load sweep, the
// course of time and the waterfall of a request. It returns what w or the
// layout of a grid fails with.
func Table(w io.Writer, r *cluster.Result, o page.Options) error {
	x := JSON(r)
	p := page.New(o)
	p.Title("Simulation")
	if x.Saturated {
		p.Line(p.Paint(page.Bold+page.Red, "SATURATED: NOT AN OPERATING POINT"))
		p.Paragraph(page.None, "", notOperating)
		p.Blank()
	}
	p.Rows(x.subject(), x.outcome(), x.throughput())
	plusMinus := "±"
	if p.ASCII() {
		plusMinus = "+/-"
	}
	if err := grids(p, x.latencyBlock(plusMinus)); err != nil {
		return err
	}
	for _, s := range []struct {
		title string
		rows  []page.Row
	}{{"Prefix cache", x.cache()}, {"Batches", x.batch()}} {
		if len(s.rows) > 0 {
			p.Subtitle(s.title)
			p.Rows(s.rows)
		}
	}
	instances := x.instances
	if len(x.Instances) > maxInstances {
		instances = x.spread
	}
	if err := grids(p, x.pools(), x.classes(), instances(), x.links(), x.tiers()); err != nil {
		return err
	}
	if err := x.sweep(p); err != nil {
		return err
	}
	x.course(p)
	if err := grids(p, x.faults(), x.scaling()); err != nil {
		return err
	}
	x.waterfall(p)
	report.PutWarnings(p, x.Warnings)
	return p.Flush(w)
}

// grids writes those of the blocks that have rows.
func grids(p *page.Page, blocks ...block) error {
	for _, b := range blocks {
		if len(b.cells) == 0 {
			continue
		}
		p.Subtitle(b.title)
		if err := p.Grid(2, b.columns, b.cells); err != nil {
			return fmt.Errorf("%s: %w", b.title, err)
		}
	}
	return nil
}

// sweep writes the rates of a load sweep, the knee and two plots over the rate.
func (r *Report) sweep(p *page.Page) error {
	if len(r.Curve) == 0 {
		return nil
	}
	if err := grids(p, r.curve()); err != nil {
		return err
	}
	p.Paragraph(page.Bold, "Knee: ", r.knee())
	p.Blank()
	var marks []float64
	if r.KneeReqS > 0 {
		marks = []float64{float64(r.KneeReqS)}
	}
	for _, c := range []struct {
		title string
		of    func(*Stats) report.Number
	}{
		{"TTFT p99 in ms over the offered rate", func(s *Stats) report.Number { return s.TTFTMs.P99 }},
		{"Output tok/s over the offered rate", func(s *Stats) report.Number { return s.OutputTokS }},
	} {
		points := make([]point, 0, len(r.Curve))
		for i := range r.Curve {
			x := &r.Curve[i]
			points = append(points, point{float64(x.RateReqS), float64(c.of(&x.Stats))})
		}
		plot{title: c.title, points: points, rows: 6, unit: "requests/s", marks: marks, mark: "knee, " + short(float64(r.KneeReqS)) + " requests/s"}.draw(p)
	}
	return nil
}

// knee says what the highest sustained rate is.
func (r *Report) knee() string {
	within := ""
	if r.Attainment.Finite() {
		within = " within the objectives"
	}
	if !(r.KneeReqS > 0) {
		return "no rate of the sweep was sustained" + within + "."
	}
	return "the highest rate sustained" + within + " is " + page.Fixed(float64(r.KneeReqS), 2) + " requests/s."
}

// course plots the requests under way over time, with the faults.
func (r *Report) course(p *page.Page) {
	var marks []float64
	for _, f := range r.Faults {
		marks = append(marks, float64(f.AtS))
	}
	for _, c := range []struct {
		title string
		of    func(*Sample) float64
	}{
		{"Running requests over time", func(s *Sample) float64 { return float64(s.Running) }},
		{"Waiting requests over time", func(s *Sample) float64 { return float64(s.Waiting) }},
	} {
		points := make([]point, 0, len(r.Timeline))
		for i := range r.Timeline {
			s := &r.Timeline[i]
			points = append(points, point{float64(s.AtS), c.of(s)})
		}
		plot{title: c.title, points: points, rows: 4, unit: "s", marks: marks, mark: "fault"}.draw(p)
	}
}

// waterfall draws the life of the traced request: every stretch is a bar at its
// place in time.
func (r *Report) waterfall(p *page.Page) {
	t := r.Trace
	if t == nil {
		return
	}
	p.Subtitle(t.title())
	if len(t.Spans) == 0 {
		p.Line("  (nothing happened to it)")
		p.Blank()
		return
	}
	const number = 10 // "123456.789"
	name, starts := 4, p.Width() >= 60
	for _, s := range t.Spans {
		name = max(name, page.Runes(page.Clean(s.Name)))
	}
	end := t.end()
	name = min(name, 14)
	head := func(name, start, length string) string {
		if starts { // else the bars are too short to tell anything
			name += fmt.Sprintf("  %*s", number, start)
		}
		return fmt.Sprintf("  %s  %*s  ", name, number, length)
	}
	bar := max(4, p.Width()-page.Runes(head(page.PadRight("", name), "", "")))
	p.Line(p.Paint(page.Dim, head(page.PadRight("span", name), "start, ms", "length, ms")+"time"))
	for _, s := range t.Spans {
		length := float64(s.EndMs - s.StartMs)
		p.Line(head(page.PadRight(page.Cut(page.Clean(s.Name), name), name), page.Fixed(float64(s.StartMs), 3), page.Fixed(length, 3)) +
			p.Paint(spanStyle(s.Name), p.Bar(float64(s.StartMs), length, end, bar)))
		if s.Note != "" {
			indent := 2 + name + 2
			for _, l := range page.Wrap(s.Note, p.Width()-indent) {
				p.Line(fmt.Sprintf("%*s%s", indent, "", p.Paint(page.Dim, l)))
			}
		}
	}
	p.Blank()
}

// title says which request it is.
func (t *Trace) title() string {
	return fmt.Sprintf("Request %d on instance %d: %d tokens in (%d from the cache), %d out, %s ms",
		t.ID, t.Instance, t.Input, t.Cached, t.Output, page.Fixed(t.end(), 2))
}

// end returns when the last stretch ends, in ms.
func (t *Trace) end() float64 {
	end := 0.0
	for _, s := range t.Spans {
		if s.EndMs.Finite() {
			end = max(end, float64(s.EndMs))
		}
	}
	return end
}

func spanStyle(name string) page.Style {
	switch name {
	case "queue":
		return page.Yellow
	case "prefill":
		return page.Green
	case "interference":
		return page.Red
	case "transfer", "restore":
		return page.Purple
	case "decode":
		return page.Blue
	}
	return page.None
}
