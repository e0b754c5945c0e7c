package catalog

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"infera/internal/units"
	"infera/models"
	"infera/sim/report"
	"infera/sim/report/page"
)

// WriteTable prints one model.
func (m ModelReport) WriteTable(w io.Writer, o page.Options) error {
	g := page.New(o)
	x := m.Model
	g.Title("Model " + x.Name)
	head := []page.Row{
		{Label: "Family", Text: page.OrDash(x.Family)},
		{Label: "Aliases", Text: page.OrDash(strings.Join(x.Aliases, ", "))},
		{Label: "Source", Text: page.OrDash(x.Source)},
	}
	if x.Partial {
		head = append(head, page.Row{Label: "Partial", Text: "the source is incomplete or reassembled", Style: page.Yellow})
	}
	size := page.Row{Label: "Parameters", Text: params(x.ParamsTotal) + " total, " + params(x.ParamsActive) + " active"}
	sizes := []page.Row{size}
	if x.PublishedParams > 0 {
		diff := 100 * (report.Number(x.ParamsTotal)/report.Number(x.PublishedParams) - 1)
		sizes = append(sizes, page.Row{Label: "Published", Text: params(x.PublishedParams) + ", difference " + fixed(diff, 2) + " %"})
	}
	context := "not stated"
	if x.MaxContextTokens > 0 {
		context = page.Count(int64(x.MaxContextTokens)) + " tokens"
	}
	shapes := []page.Row{
		{Label: "Layers", Text: page.Count(int64(x.Layers))},
		{Label: "Hidden, vocabulary", Text: fmt.Sprintf("%d, %d", x.Hidden, x.Vocab)},
		{Label: "Longest context", Text: context},
		{Label: "Weights", Number: fixed(x.WeightsBytes/report.Number(gib), 3), Unit: "GiB"},
		{Label: describe("KV per token", bracket(x.KVDType)), Number: fixed(x.KVBytesPerToken/1024, 3), Unit: "KiB"},
	}
	if x.StateBytesPerSequence > 0 {
		shapes = append(shapes, page.Row{Label: "State per sequence", Number: fixed(x.StateBytesPerSequence/(1<<20), 3), Unit: "MiB"})
	}
	g.Rows(head, append(sizes, shapes...))
	if err := layers(g, x.Groups); err != nil {
		return err
	}
	g.Subtitle("Parameters by tensor class")
	var cells [][]string
	for _, c := range x.TensorClasses {
		cells = append(cells, []string{c.Class, params(c.Params), page.Share(float64(c.Params), float64(x.ParamsTotal)), page.OrDash(c.DType), fixed(c.Bytes/report.Number(gib), 3)})
	}
	if err := g.Grid(2, []page.Column{
		{Name: "class"}, {Name: "parameters", Right: true}, {Name: "share", Right: true}, {Name: "dtype", Flex: true}, {Name: "GiB", Right: true},
	}, cells); err != nil {
		return err
	}
	report.PutWarnings(g, m.Warnings)
	return g.Flush(w)
}

func bracket(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

func layers(p *page.Page, groups []LayerGroup) error {
	if len(groups) == 0 {
		return nil
	}
	p.Subtitle("Layers")
	var cells [][]string
	for _, l := range groups {
		cells = append(cells, []string{page.Count(int64(l.Count)), page.OrDash(l.Attention), page.OrDash(l.FFN)})
	}
	return p.Grid(2, []page.Column{{Name: "count", Right: true}, {Name: "attention", Flex: true}, {Name: "feed-forward", Flex: true}}, cells)
}

// Records returns one row per tensor class.
func (m ModelReport) Records() [][]string {
	records := [][]string{{"model", "class", "params", "dtype", "bytes"}}
	for _, c := range m.Model.TensorClasses {
		records = append(records, []string{m.Model.Name, c.Class, page.Count(c.Params), c.DType, c.Bytes.Text()})
	}
	return records
}

// WriteTable prints the catalog of models.
func (l ModelList) WriteTable(w io.Writer, o page.Options) error {
	g := page.New(o)
	var cells [][]string
	for _, m := range l.Models {
		context := "-"
		if m.MaxContextTokens > 0 {
			context = page.Count(int64(m.MaxContextTokens))
		}
		cells = append(cells, []string{
			m.Name, params(m.ParamsTotal), params(m.ParamsActive), page.Count(int64(m.Layers)),
			page.OrDash(m.Attention), page.OrDash(m.FFN), page.OrDash(m.DType), context, strings.Join(m.Aliases, " "),
		})
	}
	err := g.Grid(0, []page.Column{
		{Name: "name"}, {Name: "params", Right: true}, {Name: "active", Right: true, Drop: 1}, {Name: "layers", Right: true, Drop: 6},
		{Name: "attention", Drop: 4}, {Name: "ffn", Drop: 5}, {Name: "dtype", Drop: 3}, {Name: "context", Right: true, Drop: 2},
		{Name: "aliases", Flex: true, Drop: 9},
	}, cells)
	if err != nil {
		return err
	}
	g.Line(fmt.Sprintf("%d models", len(l.Models)))
	return g.Flush(w)
}

// Records returns one row per model.
func (l ModelList) Records() [][]string {
	records := [][]string{{"name", "params_total", "params_active", "layers", "attention", "ffn", "dtype", "max_context_tokens", "family", "aliases", "source"}}
	for _, m := range l.Models {
		records = append(records, []string{
			m.Name, page.Count(m.ParamsTotal), page.Count(m.ParamsActive), strconv.Itoa(m.Layers), m.Attention, m.FFN, m.DType,
			strconv.Itoa(m.MaxContextTokens), m.Family, strings.Join(m.Aliases, ";"), m.Source,
		})
	}
	return records
}

// LayerGroups puts the layer groups of a model into words.
func LayerGroups(a *models.Architecture) []LayerGroup {
	out := make([]LayerGroup, 0, len(a.Groups))
	for i := range a.Groups {
		g := &a.Groups[i]
		out = append(out, LayerGroup{g.Count, attentionText(&g.Attention), ffnText(&g.FFN)})
	}
	return out
}

func attentionText(a *models.Attention) string {
	var s string
	switch a.Kind {
	case models.AttentionNone:
		if a.Linear {
			return "one linear projection"
		}
		return "none"
	case models.AttentionMLA:
		s = fmt.Sprintf("mla, %d heads, latent %d + %d rotary", a.Heads, a.MLA.KVLoRA, a.MLA.Rope)
	case models.AttentionRecurrent:
		r := &a.Recurrent
		s = fmt.Sprintf("%s, %d/%d heads, state %dx%d", r.Kind, r.KHeads, r.VHeads, r.KDim, r.VDim)
	default:
		s = fmt.Sprintf("%s, %d/%d heads of %d", a.Kind, a.Heads, a.KVHeads, a.KDim)
		if a.VDim != a.KDim {
			s += fmt.Sprintf(" (values %d)", a.VDim)
		}
	}
	if a.Window > 0 {
		s += fmt.Sprintf(", window %d", a.Window)
	}
	if a.Sparse.TopK > 0 {
		s += fmt.Sprintf(", sparse top %d", a.Sparse.TopK)
	}
	if a.Sparse.Compress > 1 {
		s += fmt.Sprintf(", %d tokens per entry", a.Sparse.Compress)
	}
	if a.KVShared {
		s += ", shared KV"
	}
	return s
}

func ffnText(f *models.FFN) string {
	switch f.Kind {
	case models.FFNDense:
		return fmt.Sprintf("dense %d", f.Intermediate)
	case models.FFNMoE:
		s := fmt.Sprintf("moe %d experts, top %d, width %d", f.Experts, f.TopK, f.ExpertIntermediate)
		if f.SharedIntermediate > 0 {
			s += fmt.Sprintf(", shared %d", f.SharedIntermediate)
		}
		if f.LatentDim > 0 {
			s += fmt.Sprintf(", latent %d", f.LatentDim)
		}
		if f.Intermediate > 0 {
			s += fmt.Sprintf(", dense branch %d", f.Intermediate)
		}
		return s
	}
	if f.Linear {
		return "one linear projection"
	}
	return f.Kind.String()
}

// params prints a parameter count in billions or millions.
func params(n int64) string { return report.Params(n) }

// gib is the divisor between bytes and GiB.
const gib = float64(units.GiB)

func fixed(v report.Number, n int) string { return page.Fixed(float64(v), n) }

// describe joins non-empty parts with blanks.
func describe(parts ...string) string {
	var out []string
	for _, s := range parts {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, " ")
}
