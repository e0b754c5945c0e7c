package report

import (
	"fmt"
	"io"

	"infera/sim/report/page"
)

// quantities are what a validation scores, in report order.
func quantities() []struct {
	title, column string
	of            func(Group) Accuracy
} {
	return []struct {
		title, column string
		of            func(Group) Accuracy
	}{
		{"TPOT", "tpot", func(g Group) Accuracy { return g.TPOT }},
		{"TTFT", "ttft", func(g Group) Accuracy { return g.TTFT }},
		{"Total tok/s per GPU", "total_tok_s_per_gpu", func(g Group) Accuracy { return g.TotalTokSPerGPU }},
	}
}

// WriteTable prints the accuracy per group and overall, one block for each
// quantity that any row has.
func (v Validation) WriteTable(w io.Writer, o page.Options) error {
	g := page.New(o)
	g.Title("Validation")
	var rows []page.Row
	if v.Data != "" {
		rows = append(rows, page.Row{Label: "Measured points", Text: v.Data})
	}
	if v.Mode != "" {
		rows = append(rows, page.Row{Label: "Profiling mode", Text: v.Mode})
	}
	rows = append(rows, page.Row{Label: "Rows", Text: fmt.Sprintf("%d read, %d scored, %d skipped", v.Rows.Read, v.Rows.Scored, v.Rows.skipped())})
	g.Rows(rows)
	for _, q := range quantities() {
		if err := accuracy(g, q.title, q.of, v.Groups, v.Overall); err != nil {
			return err
		}
	}
	if len(v.Rows.Skipped) > 0 {
		var cells [][]string
		for _, s := range v.Rows.Skipped {
			cells = append(cells, []string{page.Count(int64(s.Count)), s.Reason})
		}
		g.Subtitle("Skipped rows")
		if err := g.Grid(2, []page.Column{{Name: "rows", Right: true}, {Name: "reason", Flex: true}}, cells); err != nil {
			return err
		}
	}
	PutWarnings(g, v.Warnings)
	return g.Flush(w)
}

func (r Rows) skipped() int {
	n := 0
	for _, s := range r.Skipped {
		n += s.Count
	}
	return n
}

// accuracy prints one quantity: a line per group that has it, and the overall
// line. The key of a group has a column per name.
func accuracy(p *page.Page, title string, of func(Group) Accuracy, groups []Group, overall Group) error {
	p.Subtitle(title + " (errors in %)")
	if of(overall).N == 0 {
		p.Line("  no scored row has it")
		p.Blank()
		return nil
	}
	keys := groupKeys(groups)
	var cols []page.Column
	for _, k := range keys {
		cols = append(cols, page.Column{Name: k, Flex: true})
	}
	if len(cols) == 0 {
		cols = append(cols, page.Column{Name: ""})
	}
	named := len(cols)
	for _, n := range []string{"n", "MAPE", "median", "p90", "bias", "rho", "in band"} {
		cols = append(cols, page.Column{Name: n, Right: true})
	}
	var cells [][]string
	add := func(g Group, name string) {
		a := of(g).orNone()
		line := make([]string, named)
		for i, k := range keys {
			line[i] = g.Key.Text(k)
		}
		if name != "" {
			line[0] = name
		}
		cells = append(cells, append(line, page.Count(int64(a.N)), fixed(a.MAPEPct, 1), fixed(a.MedianAPEPct, 1),
			fixed(a.P90APEPct, 1), fixed(a.BiasPct, 1), fixed(a.Spearman, 3), fixed(a.WithinBandPct, 1)))
	}
	missing := 0
	for _, g := range groups {
		if of(g).N == 0 {
			missing++
			continue
		}
		add(g, "")
	}
	add(overall, "overall")
	if err := p.Grid(2, cols, cells); err != nil {
		return err
	}
	if missing > 0 {
		p.Paragraph(page.Dim, "  ", fmt.Sprintf("%d of %d groups have no row with this quantity.", missing, len(groups)))
		p.Blank()
	}
	return nil
}

// groupKeys lists the key names of all groups, in order of appearance.
func groupKeys(groups []Group) []string {
	var keys []string
	seen := map[string]bool{}
	for _, g := range groups {
		for _, f := range g.Key {
			if !seen[f.Key] {
				seen[f.Key] = true
				keys = append(keys, f.Key)
			}
		}
	}
	return keys
}

// Records returns one row per group and a last one over all rows, told apart
// by the scope column.
func (v Validation) Records() [][]string {
	keys := groupKeys(v.Groups)
	head := append(append([]string{"scope"}, keys...), "n")
	for _, q := range quantities() {
		for _, m := range []string{"n", "mape_pct", "median_ape_pct", "p90_ape_pct", "bias_pct", "spearman", "within_band_pct"} {
			head = append(head, q.column+"_"+m)
		}
	}
	records := [][]string{head}
	add := func(scope string, g Group) {
		line := []string{scope}
		for _, k := range keys {
			line = append(line, g.Key.Text(k))
		}
		line = append(line, page.Count(int64(g.N)))
		for _, q := range quantities() {
			a := q.of(g).orNone()
			line = append(line, page.Count(int64(a.N)), a.MAPEPct.Text(), a.MedianAPEPct.Text(), a.P90APEPct.Text(),
				a.BiasPct.Text(), a.Spearman.Text(), a.WithinBandPct.Text())
		}
		records = append(records, line)
	}
	for _, g := range v.Groups {
		add("group", g)
	}
	add("overall", v.Overall)
	return records
}
