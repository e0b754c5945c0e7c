package report

import (
	"fmt"
	"io"
	"sort"
	"strings"

	"infera/sim/report/page"
)

// WriteTable prints the projection for people: performance with its bands,
// where the time goes with bound and source, memory, warnings.
func (p Projection) WriteTable(w io.Writer, o page.Options) error {
	g := page.New(o)
	g.Title("Performance projection")
	switch {
	case !p.Feasible || p.Performance == nil:
		verdict(g, p.Reason)
		g.Rows(p.subject(g))
	case p.HidePerformance:
		g.Rows(p.subject(g))
	default:
		if err := p.performance(g); err != nil {
			return err
		}
	}
	if !p.HideMemory || !p.Feasible {
		if err := memory(g, p.Memory, p.Model); err != nil {
			return err
		}
	}
	suggestions(g, p.Suggestions)
	if err := launch(g, p.Launch); err != nil {
		return err
	}
	PutWarnings(g, p.Warnings)
	return g.Flush(w)
}

// verdict says that and why a recipe is not feasible.
func verdict(p *page.Page, reason string) {
	if reason == "" {
		reason = "no reason given"
	}
	p.Paragraph(page.Red, "Not feasible: ", reason)
	p.Blank()
}

func (p Projection) performance(g *page.Page) error {
	perf := p.Performance
	g.Rows(p.subject(g), latency(perf), throughput(perf, p.Cost))
	if err := communication(g, perf.CommunicationMs); err != nil {
		return err
	}
	for _, b := range []struct {
		name string
		ops  []Op
	}{{"Decode step", perf.Breakdown.Decode}, {"Prefill", perf.Breakdown.Prefill}} {
		if err := topOps(g, b.name, b.ops); err != nil {
			return err
		}
	}
	return nil
}

// subject says what was asked: the first group of lines.
func (p Projection) subject(g *page.Page) []page.Row {
	r := p.Request
	rows := []page.Row{
		{Label: "Model", Text: sized(p.Model)},
		{Label: "Recipe", Text: Recipe(r)},
		{Label: "Workload", Text: workload(r)},
	}
	if len(p.Features) > 0 {
		rows = append(rows, page.Row{Label: "Features", Text: strings.Join(p.Features, ", ")})
	}
	if p.Performance == nil || !p.Feasible {
		return append(rows, page.Row{Label: "Profiling source", Text: p.Fidelity.text()})
	}
	perf := p.Performance
	if perf.Disaggregation != nil {
		rows = append(rows, page.Row{Label: "Mode", Text: "prefill/decode DISAGGREGATED"})
	}
	rows = append(rows,
		page.Row{Label: "Serving model", Text: servingModel(perf)},
		page.Row{Label: "Profiling source", Text: p.Fidelity.text()},
	)
	if p.Fidelity.BandCoveragePct > 0 {
		rows = append(rows, page.Row{Label: "Band", Text: "[low .. high] holds " + fixed(p.Fidelity.BandCoveragePct, 0) + " % of the calibration points"})
	}
	if perf.ConcurrencyLimit > 0 {
		rows = append(rows, page.Row{Label: "Sustainable concurrency", Text: fmt.Sprintf("max %d (HBM %s GB via %s)",
			perf.ConcurrencyLimit, fixed(p.Memory.HBMBytes/1e9, 0), page.OrDash(p.Memory.HBMSource))})
	}
	used := page.Row{Label: "Concurrency used", Text: page.Count(perf.Concurrency)}
	if perf.ConcurrencyCapped {
		used.Note, used.Style = "[capped to the sustainable maximum]", page.Yellow
	}
	return append(rows, used)
}

func sized(m ModelSize) string {
	if m.ParamsTotal == 0 {
		return page.OrDash(m.Name)
	}
	s := fmt.Sprintf("%s (%s parameters", page.OrDash(m.Name), Params(m.ParamsTotal))
	if m.ParamsActive > 0 && m.ParamsActive != m.ParamsTotal {
		s += ", " + Params(m.ParamsActive) + " active"
	}
	return s + ")"
}

// Params prints a parameter count in billions or millions.
func Params(n int64) string {
	switch {
	case n <= 0:
		return "-"
	case n < 1e9:
		return fixed(Number(n)/1e6, 1) + " M"
	}
	return fixed(Number(n)/1e9, 2) + " B"
}

// Recipe says where it runs and how it is spread.
func Recipe(r Request) string {
	var parts []string
	if a := r.Text("gpu_arch"); a != "" {
		parts = append(parts, a)
	}
	var lay []string
	for _, k := range [][2]string{{"TP", "tp"}, {"PP", "pp"}, {"EP", "ep"}, {"DPA", "attention_dp_size"}} {
		if v := r.Text(k[1]); v != "" && (v != "1" || k[0] == "TP") {
			lay = append(lay, k[0]+v)
		}
	}
	if len(lay) > 0 {
		parts = append(parts, strings.Join(lay, " "))
	}
	if n, ok := r.Float("replicas"); ok && n > 1 {
		parts = append(parts, r.Text("replicas")+" replicas")
	}
	if e := r.Text("engine"); e != "" {
		parts = append(parts, strings.TrimSpace(e+" "+r.Text("engine_version")))
	}
	if d := r.Text("weight_dtype"); d != "" && d != "auto" {
		parts = append(parts, "weights "+d)
	}
	return page.OrDash(strings.Join(parts, ", "))
}

func workload(r Request) string {
	var parts []string
	for _, k := range [][2]string{{"input", "input_len"}, {"output", "output_len"}} {
		if v := r.Text(k[1]); v != "" {
			parts = append(parts, k[0]+"="+v+" tok")
		}
	}
	if v, ok := r.Float("max_concurrency"); ok && v > 0 {
		parts = append(parts, "concurrency="+r.Text("max_concurrency"))
	}
	return page.OrDash(strings.Join(parts, ", "))
}

func servingModel(p *Performance) string {
	switch p.ServingModel {
	case "continuous":
		return fmt.Sprintf("CONTINUOUS BATCHING (concurrency=%d)", p.Concurrency)
	case "static":
		return fmt.Sprintf("STATIC (pure-decode batch=%d)", p.Concurrency)
	}
	return page.OrDash(p.ServingModel)
}

// text says where the numbers come from.
func (f Fidelity) text() string {
	s := strings.ToUpper(f.Mode)
	switch f.Mode {
	case "benchmark":
		s = "BENCHMARK (GPU-calibrated)"
	case "simulate":
		s = "SIMULATION"
	}
	if f.Source != "" {
		s += ", " + f.Source
	}
	if f.Anchor.ID != "" {
		s += ", anchor " + f.Anchor.ID
		if f.Anchor.Distance > 0 {
			s += " at distance " + fixed(f.Anchor.Distance, 2)
		}
		if f.Anchor.Extrapolated {
			s += " [EXTRAPOLATED]"
		}
		if len(f.Anchor.Unverified) > 0 {
			s += ", not verified: " + strings.Join(f.Anchor.Unverified, ", ")
		}
	}
	return page.OrDash(s)
}

// milliseconds is a row with 2 decimals, rate one with 1 decimal.
func milliseconds(label string, b Band) page.Row {
	return page.Row{Label: label, Number: fixed(b.Value, 2), Unit: "ms", Band: spread(b, 2)}
}

func rate(label string, b Band, unit string) page.Row {
	return page.Row{Label: label, Number: fixed(b.Value, 1), Unit: unit, Band: spread(b, 1)}
}

func point(v Number) Band { return Band{v, v, v} }

func latency(p *Performance) []page.Row {
	rows := []page.Row{milliseconds("TTFT", p.TTFTMs)}
	if d := p.Disaggregation; d != nil {
		transfer := milliseconds("  KV-cache transfer", point(d.KVTransferMs))
		if d.KVTransferBytes > 0 {
			transfer.Note = fixed(d.KVTransferBytes/gib, 3) + " GiB per request"
		}
		rows = append(rows, milliseconds("  prefill compute", point(d.PrefillComputeMs)), transfer)
	}
	rows = append(rows,
		milliseconds("TPOT", p.TPOTMs),
		milliseconds("ITL", p.ITLMs),
		rate("Interactivity", point(p.InteractivityTokS), "tok/s/user"),
	)
	if p.ServingModel == "static" {
		rows = append(rows, milliseconds("Decode step (batch)", p.DecodeStepMs))
	} else {
		fraction := page.Row{Label: "Mixed-step fraction", Number: fixed(100*p.MixedStepFraction, 2), Unit: "%",
			Note: "-> TPOT pollution " + fixed(p.TPOTPollutionPct, 1) + " %"}
		rows = append(rows, milliseconds("Decode step, pure", p.DecodeStepMs),
			milliseconds("Decode step, mixed", p.MixedStepMs), fraction)
	}
	rows = append(rows, milliseconds("End-to-end latency", p.E2EMs))
	return append(rows, queueing(p)...)
}

// queueing is the offered load and what waiting adds; empty for a closed loop
// without waiting.
func queueing(p *Performance) []page.Row {
	var rows []page.Row
	if p.AdmissionWaitMs > 0 {
		wait := milliseconds("Admission wait", point(p.AdmissionWaitMs))
		if p.AdmissionCeiling > 0 {
			wait.Note = fmt.Sprintf("at most %d requests run at once", p.AdmissionCeiling)
		}
		rows = append(rows, wait)
	}
	l := p.Load
	if l.RequestRate == 0 {
		return rows
	}
	load := page.Row{Label: "Offered load", Number: fixed(l.RequestRate, 2), Unit: "req/s",
		Note: fmt.Sprintf("(%s), max %s req/s, utilization %s %%",
			page.OrDash(l.ArrivalModel), fixed(l.MaxRequestRate, 2), fixed(100*l.Utilization, 1))}
	if l.Saturated {
		load.Note += " [SATURATED]"
		load.Style = page.Red
	}
	return append(rows, load,
		milliseconds("Queue wait", point(p.QueueWaitMs)),
		milliseconds("TTFT with queue", point(p.TTFTWithQueueMs)),
		milliseconds("End-to-end with queue", point(p.E2EWithQueueMs)))
}

func throughput(p *Performance, c Cost) []page.Row {
	total := rate("In+out tokens per GPU", p.TotalTokSPerGPU, "tok/s")
	total.Note = fmt.Sprintf("over %d GPU", p.GPUs)
	rows := []page.Row{
		rate("Decode per request", p.OutputTokSPerUser, "tok/s"),
		rate("Decode aggregate", p.OutputTokS, "tok/s"),
		rate("Decode per GPU", p.OutputTokSPerGPU, "tok/s"),
		total,
		rate("Prefill", p.PrefillTokS, "tok/s"),
	}
	if d := p.Disaggregation; d != nil {
		rows = append(rows, pool("Prefill pool", d.Prefill), pool("Decode pool", d.Decode))
		if d.Limit != "" {
			rows = append(rows, page.Row{Label: "Limited by", Text: d.Limit})
		}
	} else {
		replica := page.Row{Label: "Replica GPUs (TP x PP)", Number: page.Count(int64(p.ReplicaGPUs))}
		if p.Replicas > 1 {
			replica.Note = fmt.Sprintf("x %d replicas", p.Replicas)
		}
		rows = append(rows, replica)
	}
	if p.SpecTokensPerStep > 1 {
		rows = append(rows, page.Row{Label: "Speculative tokens/step", Number: fixed(p.SpecTokensPerStep, 2)})
	}
	return append(append(rows, hostCosts(p.Host)...), costs(c)...)
}

func pool(label string, p Pool) page.Row {
	text := fmt.Sprintf("%d replica(s) x %d GPU", p.Replicas, p.ReplicaGPUs)
	if p.Layout != "" {
		text += " (" + p.Layout + ")"
	}
	if p.Occupancy > 0 {
		text += ", busy " + fixed(100*p.Occupancy, 1) + " %"
	}
	return page.Row{Label: label, Text: text}
}

func hostCosts(h Host) []page.Row {
	var parts []string
	for _, x := range []struct {
		name string
		ms   Number
	}{{"step", h.Step}, {"detokenize", h.Detokenize}, {"tokenize", h.Tokenize}, {"request", h.Request}} {
		if x.ms > 0 {
			parts = append(parts, x.name+" "+fixed(x.ms, 3))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []page.Row{{Label: "Host time (ms)", Text: strings.Join(parts, ", ")}}
}

// costs is empty without a price.
func costs(c Cost) []page.Row {
	var rows []page.Row
	if c.USDPerGPUHour != nil {
		rows = append(rows, page.Row{Label: "Cost basis", Text: fmt.Sprintf("$%s per GPU-hour x %d GPU", fixed(*c.USDPerGPUHour, 2), c.GPUs)})
	}
	for _, x := range []struct {
		label string
		usd   *Number
	}{{"Cost per 1M output tok", c.USDPerMOutput}, {"Cost per 1M in+out tok", c.USDPerMTotal}} {
		if x.usd != nil {
			rows = append(rows, page.Row{Label: x.label, Number: fixed(*x.usd, 3), Unit: "USD"})
		}
	}
	return rows
}

func communication(p *page.Page, c Communication) error {
	p.Subtitle("Communication, ms per forward pass")
	cells := [][]string{}
	for _, x := range []struct {
		name string
		c    CommunicationMs
	}{{"prefill", c.Prefill}, {"decode", c.Decode}} {
		cells = append(cells, []string{x.name, fixed(x.c.TPAR, 2), fixed(x.c.EPA2A, 2), fixed(x.c.PPP2P, 2), fixed(x.c.Total(), 2)})
	}
	return p.Grid(2, []page.Column{
		{Name: ""}, {Name: "TP-AR", Right: true}, {Name: "EP-A2A", Right: true},
		{Name: "PP-P2P", Right: true}, {Name: "total", Right: true},
	}, cells)
}

// topCount is how many operations the table names before "other".
const topCount = 6

// topOps prints the costliest operations of a forward pass.
func topOps(p *page.Page, name string, ops []Op) error {
	if len(ops) == 0 {
		return nil
	}
	total := sumMs(ops)
	p.Subtitle(fmt.Sprintf("%s: where %s ms go", name, fixed(total, 2)))
	p.Paragraph(page.None, "  by bound: ", byBound(ops))
	sorted := append([]Op(nil), ops...)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].TimeMs > sorted[j].TimeMs })
	var cells [][]string
	for _, o := range sorted[:min(topCount, len(sorted))] {
		cells = append(cells, []string{o.Name, fixed(o.TimeMs, 3), share(o.TimeMs, total), page.OrDash(o.Bound), page.OrDash(o.Source)})
	}
	if rest := sorted[min(topCount, len(sorted)):]; len(rest) > 0 {
		t := sumMs(rest)
		cells = append(cells, []string{fmt.Sprintf("other (%d)", len(rest)), fixed(t, 3), share(t, total), "", ""})
	}
	return p.Grid(2, []page.Column{
		{Name: "op", Flex: true}, {Name: "ms", Right: true}, {Name: "share", Right: true},
		{Name: "bound"}, {Name: "source", Flex: true},
	}, cells)
}

// sumMs adds the times that are numbers.
func sumMs(ops []Op) Number {
	var t Number
	for _, o := range ops {
		if o.TimeMs.Finite() {
			t += o.TimeMs
		}
	}
	return t
}

// fixed prints v with n decimals; "-" when there is no such number.
func fixed(v Number, n int) string { return page.Fixed(float64(v), n) }

// share prints part of whole in per cent.
func share(part, whole Number) string { return page.Share(float64(part), float64(whole)) }

// spread prints a band with n decimals; "" when it says nothing.
func spread(b Band, n int) string {
	if !b.Value.Finite() || !b.Low.Finite() || !b.High.Finite() ||
		b.Low == b.High || (b.High == 0 && b.Value != 0) {
		return ""
	}
	return "[" + fixed(b.Low, n) + " .. " + fixed(b.High, n) + "]"
}
