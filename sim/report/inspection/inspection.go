package inspection

import (
	"strconv"

	"infera/sim/report"
	"infera/sim/workload/trace"
)

// Schema names the JSON contract of [Trace].
const Schema = "inferasim.trace/v1"

// Trace is what a recorded workload holds. The order of the fields is the order
// of the keys.
type Trace struct {
	Format       string        `json:"format"`
	Requests     int           `json:"requests"`
	SpanS        report.Number `json:"span_s"` // from the first arrival to the last
	InputTokens  Tokens        `json:"input_tokens"`
	OutputTokens Tokens        `json:"output_tokens"`
	// HitRate is the share of the blocks of all prompts that a cache that never
	// forgets finds, each after all before it; 0 when nothing is known of
	// content, and BlockSize is 0 too.
	HitRate   report.Number               `json:"unlimited_cache_block_hit_rate"`
	BlockSize int                         `json:"block_size"` // tokens
	Warnings  report.List[report.Warning] `json:"warnings"`

	File string `json:"file"`
	// Timed is false when the format has no arrivals. Started is the date of the
	// first one in UTC, "" when timestamps were no dates.
	Timed   bool   `json:"timed"`
	Started string `json:"started"`
	// RateReqS is null without a span.
	RateReqS report.Number `json:"rate_req_s"`
	// BusiestSecond is the most arrivals within one second.
	BusiestSecond int                `json:"busiest_second_requests"`
	GapS          Gap                `json:"gap_s"`
	Sessions      Sessions           `json:"sessions"`
	Classes       report.List[Class] `json:"classes"`
	Reuse         Reuse              `json:"reuse"`
	Histograms    Histograms         `json:"histograms"`
}

// Tokens is a distribution of lengths.
type Tokens struct {
	Mean report.Number `json:"mean"`
	P50  report.Number `json:"p50"`
	P90  report.Number `json:"p90"`
	P99  report.Number `json:"p99"`
	Min  report.Number `json:"min"`
	Max  report.Number `json:"max"`
}

// Gap is the distribution of the times between arrivals; null when there are
// none.
type Gap struct {
	Mean report.Number `json:"mean"`
	P50  report.Number `json:"p50"`
	P99  report.Number `json:"p99"`
	Max  report.Number `json:"max"`
	// CV is the standard deviation over the mean: 1 for independent arrivals,
	// more for bursts.
	CV report.Number `json:"cv"`
}

// Sessions are the conversations of at least two turns.
type Sessions struct {
	Count     int           `json:"count"`
	TurnsMean report.Number `json:"turns_mean"` // null without any
	TurnsMax  report.Number `json:"turns_max"`
}

// Class is how many requests a class has.
type Class struct {
	Name     string `json:"name"`
	Requests int    `json:"requests"`
}

// Reuse counts the blocks of all prompts, those that a cache that never forgets
// finds, and those that it holds in the end.
type Reuse struct {
	Blocks   int64 `json:"blocks"`
	Hits     int64 `json:"hits"`
	Distinct int64 `json:"distinct"`
	// Age is how long ago the blocks that were found were used last.
	Age Age `json:"age_s"`
}

// Age is a distribution of times; null when nothing was found.
type Age struct {
	Mean report.Number `json:"mean"`
	P50  report.Number `json:"p50"`
	P90  report.Number `json:"p90"`
	P99  report.Number `json:"p99"`
	Max  report.Number `json:"max"`
}

// Histograms are requests over time in seconds, and by their lengths in tokens.
type Histograms struct {
	Arrivals     report.List[Bin] `json:"arrivals"`
	InputTokens  report.List[Bin] `json:"input_tokens"`
	OutputTokens report.List[Bin] `json:"output_tokens"`
}

// Bin counts the values from Low up to, not including, High.
type Bin struct {
	Low   report.Number `json:"low"`
	High  report.Number `json:"high"`
	Count int           `json:"count"`
}

// MarshalJSON writes the contract, schema first.
func (t Trace) MarshalJSON() ([]byte, error) {
	type body Trace
	return report.Marshal(struct {
		Schema string `json:"schema"`
		body
	}{Schema, body(t)})
}

// Of puts a trace and its figures into the form they are shown in; file is what
// it was read from.
func Of(t *trace.Trace, s *trace.Statistics, file string) Trace {
	out := Trace{
		Format: string(t.Format), Requests: s.Requests, SpanS: report.Number(s.Span.Seconds()),
		InputTokens: tokens(&s.Input), OutputTokens: tokens(&s.Output),
		HitRate: report.Number(s.Reuse.HitRate()), BlockSize: t.BlockSize, Warnings: Warnings(t.Warnings),
		File: file, Timed: t.Timed, Started: t.Started(), RateReqS: report.None(), BusiestSecond: s.Busiest,
		GapS:     Gap{report.None(), report.None(), report.None(), report.None(), report.None()},
		Sessions: Sessions{Count: s.Sessions, TurnsMean: report.None(), TurnsMax: report.None()},
		Reuse: Reuse{
			Blocks: s.Reuse.Blocks, Hits: s.Reuse.Hits, Distinct: s.Reuse.Distinct,
			Age: Age{report.None(), report.None(), report.None(), report.None(), report.None()},
		},
		Histograms: Histograms{bins(s.Arrivals), bins(s.Inputs), bins(s.Outputs)},
	}
	if s.Span > 0 {
		out.RateReqS = report.Number(s.Rate)
	}
	if g := &s.Gaps; g.Count > 0 {
		out.GapS = Gap{report.Number(g.Mean), report.Number(g.P50), report.Number(g.P99), report.Number(g.Max), report.Number(g.CoefficientOfVariation)}
	}
	if s.Sessions > 0 {
		out.Sessions.TurnsMean, out.Sessions.TurnsMax = report.Number(s.Turns.Mean), report.Number(s.Turns.Max)
	}
	if a := &s.Reuse.Age; a.Count > 0 {
		out.Reuse.Age = Age{report.Number(a.Mean), report.Number(a.P50), report.Number(a.P90), report.Number(a.P99), report.Number(a.Max)}
	}
	for _, c := range s.Classes {
		out.Classes = append(out.Classes, Class(c))
	}
	return out
}

func tokens(d *trace.Distribution) Tokens {
	return Tokens{report.Number(d.Mean), report.Number(d.P50), report.Number(d.P90), report.Number(d.P99), report.Number(d.Min), report.Number(d.Max)}
}

func bins(list []trace.Bin) report.List[Bin] {
	var out report.List[Bin]
	for _, b := range list {
		out = append(out, Bin{report.Number(b.Low), report.Number(b.High), b.Count})
	}
	return out
}

// Warnings puts the warnings of a trace into the form they are shown in.
func Warnings(list []trace.Warning) report.List[report.Warning] {
	var out report.List[report.Warning]
	for _, w := range list {
		out = append(out, report.Warning{Code: w.Code, Text: w.Text})
	}
	return out
}

// Records returns the CSV form: a header and one row. Lists are in the JSON
// only.
func (t Trace) Records() [][]string {
	cells := []struct{ name, text string }{
		{"file", t.File}, {"format", t.Format}, {"requests", strconv.Itoa(t.Requests)}, {"span_s", t.SpanS.Text()},
		{"rate_req_s", t.RateReqS.Text()}, {"gap_s_mean", t.GapS.Mean.Text()}, {"gap_cv", t.GapS.CV.Text()},
		{"busiest_second_requests", strconv.Itoa(t.BusiestSecond)},
	}
	for _, d := range []struct {
		name string
		of   *Tokens
	}{{"input_tokens", &t.InputTokens}, {"output_tokens", &t.OutputTokens}} {
		for _, q := range d.of.quantities() {
			cells = append(cells, struct{ name, text string }{d.name + "_" + q.name, q.value.Text()})
		}
	}
	cells = append(cells, []struct{ name, text string }{
		{"unlimited_cache_block_hit_rate", t.HitRate.Text()}, {"block_size", strconv.Itoa(t.BlockSize)},
		{"blocks", strconv.FormatInt(t.Reuse.Blocks, 10)}, {"block_hits", strconv.FormatInt(t.Reuse.Hits, 10)},
		{"distinct_blocks", strconv.FormatInt(t.Reuse.Distinct, 10)}, {"block_age_s_p50", t.Reuse.Age.P50.Text()},
		{"sessions", strconv.Itoa(t.Sessions.Count)}, {"turns_mean", t.Sessions.TurnsMean.Text()},
		{"classes", strconv.Itoa(len(t.Classes))}, {"started", t.Started}, {"warnings", strconv.Itoa(len(t.Warnings))},
	}...)
	records := make([][]string, 2)
	for _, c := range cells {
		records[0], records[1] = append(records[0], c.name), append(records[1], c.text)
	}
	return records
}

// quantity is one figure of a distribution.
type quantity struct {
	name  string
	value report.Number
}

func (d *Tokens) quantities() []quantity {
	return []quantity{{"mean", d.Mean}, {"p50", d.P50}, {"p90", d.P90}, {"p99", d.P99}, {"min", d.Min}, {"max", d.Max}}
}
