package simulation

import (
	_ "embed" // the page and the chart library
	"fmt"
	"html/template"
	"io"

	"infera/sim/cluster"
	"infera/sim/report"
	"infera/sim/report/page"
)

// The parts of the page; the chart library is described in uplot/README.md.
var (
	//go:embed web/page.tmpl
	pageTemplate string
	//go:embed web/page.css
	pageCSS string
	//go:embed web/page.js
	pageScript string
	//go:embed uplot/uPlot.iife.min.js
	chartScript string
	//go:embed uplot/uPlot.min.css
	chartCSS string
	//go:embed uplot/LICENSE
	chartLicence string
)

// HTML writes the result as one HTML file that loads nothing: charts of the
// latencies, of the sweep, of the course of time, of the instances and of one
// request, with the tables they are drawn from. The JSON contract is inside, as
// the element with the ID data. It returns what w fails with.
func HTML(w io.Writer, r *cluster.Result) error {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("parse the page: %w", err)
	}
	if err := t.Execute(w, newView(JSON(r))); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// view is what the page shows.
type view struct {
	Report                Report // the data of the charts
	CSS                   template.CSS
	Library, Script       template.JS
	Licence               string
	NotOperating          string
	Tiles                 []tile
	Overview, Inner       []facts
	Latency, Sweep        []htmlTable
	Course, Fleet, Caches []htmlTable
	Warnings              []report.Warning
	Knee                  string
	Request               *waterfallView
}

// tile is one figure in large letters.
type tile struct{ Label, Number, Unit, Note string }

// facts is a titled list of labels with their numbers or texts.
type facts struct {
	Title string
	Rows  []page.Row
}

// htmlTable is a block as a table, folded away when it is long.
type htmlTable struct {
	Title   string
	Columns []page.Column
	Rows    [][]string
	Folded  bool
}

// waterfallView is one request with its spans in per cent of its life.
type waterfallView struct {
	Title string
	Spans []spanView
}

type spanView struct {
	Name, Start, Length, Note string
	Left, Width               float64
}

// maxOpen is the most rows of a table that is not folded away.
const maxOpen = 24

func newView(r Report) view {
	v := view{
		Report: r, CSS: template.CSS(chartCSS + pageCSS), Library: template.JS(chartScript), Script: template.JS(pageScript),
		Licence: chartLicence, NotOperating: notOperating, Tiles: r.tiles(), Warnings: r.Warnings, Knee: r.knee(), Request: r.Trace.view(),
		Overview: []facts{{"What was simulated", r.subject()}, {"Requests", r.outcome()}, {"Throughput", r.throughput()}},
		Latency:  tables(r.latencyBlock("±")),
		Sweep:    tables(r.curve()),
		Course:   tables(r.faults(), r.scaling(), r.moments()),
		Fleet:    tables(r.pools(), r.classes()),
		Caches:   tables(r.links(), r.tiers()),
	}
	if rows := r.cache(); len(rows) > 0 {
		v.Inner = append(v.Inner, facts{"Prefix cache", rows})
	}
	v.Inner = append(v.Inner, facts{"Batches", r.batch()})
	if len(r.Instances) > maxInstances {
		v.Fleet = append(v.Fleet, tables(r.spread())...)
	}
	v.Fleet = append(v.Fleet, tables(r.instances())...)
	return v
}

// tables are those of the blocks that have rows.
func tables(blocks ...block) []htmlTable {
	var out []htmlTable
	for _, b := range blocks {
		if len(b.cells) > 0 {
			out = append(out, htmlTable{b.title, b.columns, b.cells, len(b.cells) > maxOpen})
		}
	}
	return out
}

// tiles are the figures that a reader looks for first.
func (r *Report) tiles() []tile {
	out := []tile{}
	for _, l := range latencies(&r.Figures) {
		switch l.key {
		case "ttft_ms", "tpot_ms", "e2e_ms":
			out = append(out, tile{l.name + " p50", page.Fixed(float64(l.summary.P50), 1), "ms", "p99 " + page.Fixed(float64(l.summary.P99), 1) + " ms"})
		}
	}
	out = append(out,
		tile{"Output", page.Fixed(float64(r.OutputTokS), 0), "tok/s", "total per GPU " + page.Fixed(float64(r.TotalTokSPerGPU), 0) + " tok/s"},
		tile{"Achieved", page.Fixed(float64(r.AchievedReqS), 2), "requests/s", "offered " + page.Fixed(float64(r.OfferedReqS), 2)},
	)
	if r.GoodputReqS.Finite() {
		return append(out, tile{"Goodput", page.Fixed(float64(r.GoodputReqS), 2), "requests/s", percent(r.Attainment) + " within objectives"})
	}
	return append(out, tile{"Utilization", page.Fixed(100*float64(r.Utilization), 1), "%", page.Count(int64(r.Requests.Completed)) + " completed"})
}

// moments is the timeline as a table.
func (r *Report) moments() block {
	b := block{title: "Course of time, as numbers"}
	for _, name := range []string{"at, s", "running", "waiting", "KV used", "instances", "arrivals/s", "completed/s", "output tok/s", "TTFT, ms"} {
		b.columns = append(b.columns, page.Column{Name: name, Right: true})
	}
	for _, s := range r.Timeline {
		b.cells = append(b.cells, []string{
			page.Fixed(float64(s.AtS), 2), page.Count(int64(s.Running)), page.Count(int64(s.Waiting)), percent(s.KVUsed), page.Count(int64(s.Instances)),
			page.Fixed(float64(s.ArrivalReqS), 2), page.Fixed(float64(s.CompletedReqS), 2), page.Fixed(float64(s.OutputTokS), 1), page.Fixed(float64(s.TTFTMs), 2),
		})
	}
	return b
}

// view returns the waterfall in per cent of the request's life.
func (t *Trace) view() *waterfallView {
	if t == nil {
		return nil
	}
	v := &waterfallView{Title: t.title()}
	end := t.end()
	for _, s := range t.Spans {
		x := spanView{Name: s.Name, Start: page.Fixed(float64(s.StartMs), 3), Length: page.Fixed(float64(s.EndMs-s.StartMs), 3), Note: s.Note}
		if end > 0 && s.StartMs >= 0 && s.EndMs > s.StartMs && s.EndMs.Finite() {
			x.Left, x.Width = 100*float64(s.StartMs)/end, 100*float64(s.EndMs-s.StartMs)/end
		}
		v.Spans = append(v.Spans, x)
	}
	return v
}
