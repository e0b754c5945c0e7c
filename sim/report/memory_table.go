package report

import (
	"fmt"
	"io"
	"strings"

	"infera/internal/units"
	"infera/sim/report/page"
)

// WriteTable prints the memory verdict.
func (f Fit) WriteTable(w io.Writer, o page.Options) error {
	g := page.New(o)
	g.Title("Memory fit")
	if !f.Feasible {
		verdict(g, f.Reason)
	}
	rows := []page.Row{
		{Label: "Model", Text: sized(f.Model)},
		{Label: "Recipe", Text: Recipe(f.Request)},
	}
	if f.GPUs > 0 {
		rows = append(rows, page.Row{Label: "GPUs per replica", Text: page.Count(int64(f.GPUs))})
	}
	answer := []page.Row{
		{Label: "Longest context", Text: page.Count(f.MaxContextAtOne) + " tokens at concurrency 1"},
		{Label: "Largest concurrency", Text: fmt.Sprintf("%d at %d tokens", f.MaxConcurrencyAtContext, f.Memory.ContextTokens)},
	}
	g.Rows(rows, answer)
	if err := memory(g, f.Memory, f.Model); err != nil {
		return err
	}
	if err := engineLog(g, f.EngineLog); err != nil {
		return err
	}
	suggestions(g, f.Suggestions)
	if err := launch(g, f.Launch); err != nil {
		return err
	}
	PutWarnings(g, f.Warnings)
	return g.Flush(w)
}

func binary(label string, b Number) page.Row {
	return page.Row{Label: label, Number: fixed(b/gib, 3), Unit: "GiB"}
}

// memory prints what the binding GPU holds.
func memory(p *page.Page, m Memory, size ModelSize) error {
	p.Title(fmt.Sprintf("Memory projection (rank %d)", m.Rank))
	p.Rows(held(m, size), capacity(m))
	if len(m.Terms) == 0 {
		return nil
	}
	var cells [][]string
	for _, t := range m.Terms {
		cells = append(cells, []string{t.Name, fixed(t.Bytes/gib, 3), page.OrDash(t.ShardedBy), page.OrDash(brief(t.Source))})
	}
	p.Subtitle("Terms")
	return p.Grid(2, []page.Column{
		{Name: "term"}, {Name: "GiB", Right: true}, {Name: "sharded by", Flex: true}, {Name: "source", Flex: true, Drop: 1},
	}, cells)
}

// brief is the first clause of a source, cut to two lines of a usual terminal;
// JSON has sources in full.
func brief(source string) string {
	const width = 48
	first, _, _ := strings.Cut(source, "; ")
	return page.Cut(first, width)
}

// held is what one GPU holds, term by term.
func held(m Memory, size ModelSize) []page.Row {
	dtype := func(label, d string) string {
		if d == "" {
			return label
		}
		return label + " (" + d + ")"
	}
	cache := binary(dtype("KV cache", m.KVDType), m.KVBytes)
	at := []string{fmt.Sprintf("concurrency=%d", m.Concurrency), fmt.Sprintf("ctx=%d", m.ContextTokens)}
	if m.Layers > 0 {
		at = append(at, fmt.Sprintf("%d layers/rank", m.Layers))
	}
	cache.Note = "(" + strings.Join(at, ", ") + ")"
	rows := []page.Row{
		{Label: "Parameters", Number: fixed(Number(size.ParamsTotal)/1e9, 3), Unit: "B"},
		binary(dtype("Weights", m.WeightDType), m.WeightsBytes),
		cache,
		binary("KV per sequence", m.KVBytesPerSequence),
		{Label: "KV per token", Number: fixed(m.KVBytesPerToken/1024, 3), Unit: "KiB"},
	}
	if m.StateBytesPerSequence > 0 {
		rows = append(rows, page.Row{Label: "State per sequence", Number: fixed(m.StateBytesPerSequence/(1<<20), 3), Unit: "MiB"})
	}
	if m.Sequences > 0 {
		rows = append(rows, page.Row{Label: "Sequences on this rank", Number: page.Count(m.Sequences), Note: "(attention DP)"})
	}
	return append(rows,
		binary("Activations", m.ActivationBytes),
		binary("Graphs", m.GraphBytes),
		binary("Engine overhead", m.OverheadBytes),
		binary("Total", m.TotalBytes),
	)
}

// capacity is what one GPU has, and the verdict.
func capacity(m Memory) []page.Row {
	hbm := binary("Capacity", m.HBMBytes)
	hbm.Note = "= " + fixed(m.HBMBytes/1e9, 1) + " GB"
	if m.HBMSource != "" {
		hbm.Note += " via " + m.HBMSource
	}
	label := "Usable"
	if m.UsableFraction > 0 {
		label += " (" + fixed(m.UsableFraction, 2) + ")"
	}
	fits := page.Row{Label: "Fits", Text: "yes", Style: page.Green}
	if !m.Fits {
		fits.Text, fits.Style = "NO", page.Red
		if m.ShortTerm != "" {
			fits.Text += fmt.Sprintf(": %s short by %s GiB", m.ShortTerm, fixed(m.ShortBytes/gib, 3))
		}
	}
	rows := []page.Row{
		hbm, binary(label, m.UsableBytes), fits,
		{Label: "KV capacity", Number: page.Count(m.KVCapacityTokens), Unit: "tokens"},
		{Label: "Max concurrent seqs", Number: page.Count(m.MaxConcurrency), Note: fmt.Sprintf("(ctx=%d)", m.ContextTokens)},
		{Label: "Longest context", Number: page.Count(m.MaxContextTokens), Unit: "tokens"},
	}
	if m.HostOffloadBytes > 0 {
		rows = append(rows, binary("Host KV offload", m.HostOffloadBytes))
	}
	return rows
}

// engineLog compares each term with what an engine logged.
func engineLog(p *page.Page, terms []LogTerm) error {
	if len(terms) == 0 {
		return nil
	}
	p.Subtitle("Against the engine's log (GiB)")
	var cells [][]string
	for _, t := range terms {
		diff := t.LoggedBytes - t.ProjectedBytes
		sign := ""
		if diff > 0 {
			sign = "+"
		}
		cells = append(cells, []string{
			t.Name, fixed(t.ProjectedBytes/gib, 3), fixed(t.LoggedBytes/gib, 3),
			sign + fixed(diff/gib, 3), t.Note,
		})
	}
	return p.Grid(2, []page.Column{
		{Name: "term", Flex: true}, {Name: "projected", Right: true}, {Name: "logged", Right: true},
		{Name: "diff", Right: true}, {Name: "note", Flex: true},
	}, cells)
}

func suggestions(p *page.Page, list []Suggestion) {
	items := make([]page.Item, 0, len(list))
	for _, s := range list {
		text := s.Change
		if s.Effect != "" {
			text += ": " + s.Effect
		}
		items = append(items, page.Item{Text: text})
	}
	p.List("What would make it fit", page.None, items)
}

// launch prints the fate of an engine command line.
func launch(p *page.Page, args []Argument) error {
	if len(args) == 0 {
		return nil
	}
	p.Subtitle("Engine command line")
	var cells [][]string
	for _, a := range args {
		cells = append(cells, []string{a.Argument, a.Status, a.Detail})
	}
	return p.Grid(2, []page.Column{{Name: "argument", Flex: true}, {Name: "status"}, {Name: "detail", Flex: true}}, cells)
}

// PutWarnings lists warnings on a page; nothing when there are none.
func PutWarnings(p *page.Page, list []Warning) {
	items := make([]page.Item, 0, len(list))
	for _, w := range list {
		items = append(items, page.Item{Head: w.Code, Text: w.Text})
	}
	p.List("Warnings", page.Yellow, items)
}

// gib is the divisor between bytes and GiB.
const gib = Number(units.GiB)
