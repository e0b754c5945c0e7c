package simulation

import (
	"fmt"

	"infera/internal/units"
	"infera/sim/report"
	"infera/sim/report/page"
)

// notOperating is what a reader must see before any latency of a saturated run.
const notOperating = "Arrivals outran the fleet and queues grew to the end of the run: latencies say how long it ran, " +
	"not how it serves. Lower the rate or add instances."

// subject says what was simulated.
func (r *Report) subject() []page.Row {
	arrivals := page.OrDash(r.Arrival)
	if r.Clients > 0 {
		arrivals += fmt.Sprintf(", %d clients", r.Clients)
	}
	seed := fmt.Sprintf("%d", r.Seed)
	if r.Seeds > 1 {
		seed += fmt.Sprintf(", %d runs pooled", r.Seeds)
	}
	return []page.Row{
		{Label: "Model", Text: page.OrDash(r.Model)},
		{Label: "Recipe", Text: page.OrDash(r.Recipe)},
		{Label: "Workload", Text: page.OrDash(r.Workload)},
		{Label: "Arrivals", Text: arrivals},
		{Label: "Seed", Text: seed},
	}
}

// outcome says what became of the requests.
func (r *Report) outcome() []page.Row {
	n := r.Requests
	rows := []page.Row{
		{Label: "Requests", Text: fmt.Sprintf("%d offered, %d completed, %d rejected, %d unfinished", n.Offered, n.Completed, n.Rejected, n.Unfinished)},
		{Label: "Scored", Text: fmt.Sprintf("%d, those after the warm-up", n.Scored)},
	}
	if n.Rejected > 0 || n.Unfinished > 0 {
		rows[0].Style = page.Yellow
	}
	achieved := ""
	if share := page.Share(float64(r.AchievedReqS), float64(r.OfferedReqS)); share != "-" {
		achieved = share + " of offered"
	}
	return append(rows,
		page.Row{Label: "Simulated", Number: page.Fixed(float64(r.DurationS), 2), Unit: "s"},
		page.Row{Label: "Offered", Number: page.Fixed(float64(r.OfferedReqS), 2), Unit: "requests/s"},
		page.Row{Label: "Achieved", Number: page.Fixed(float64(r.AchievedReqS), 2), Unit: "requests/s", Note: achieved},
		page.Row{Label: "Utilization", Number: page.Fixed(100*float64(r.Utilization), 1), Unit: "%"},
	)
}

// throughput are the rates of tokens and of requests within objectives.
func (r *Report) throughput() []page.Row {
	rows := []page.Row{
		{Label: "Output", Number: page.Fixed(float64(r.OutputTokS), 1), Unit: "tok/s"},
		{Label: "Total", Number: page.Fixed(float64(r.TotalTokS), 1), Unit: "tok/s", Note: "prompts and answers"},
		{Label: "Total per GPU", Number: page.Fixed(float64(r.TotalTokSPerGPU), 1), Unit: "tok/s"},
	}
	if r.GoodputReqS.Finite() || r.Attainment.Finite() {
		rows = append(rows,
			page.Row{Label: "Goodput", Number: page.Fixed(float64(r.GoodputReqS), 2), Unit: "requests/s", Note: "within all objectives"},
			page.Row{Label: "Attainment", Number: page.Fixed(100*float64(r.Attainment), 1), Unit: "%"},
		)
	}
	if c := &r.Cost; c.USDPerMOutput.Finite() {
		rows = append(rows,
			page.Row{Label: "Output cost", Number: page.Fixed(float64(c.USDPerMOutput), 3), Unit: "$/M tokens", Note: "over " + short(float64(c.GPUs)) + " GPUs"},
			page.Row{Label: "Total cost", Number: page.Fixed(float64(c.USDPerMTotal), 3), Unit: "$/M tokens", Note: "prompts and answers"},
		)
	}
	return rows
}

// latencyBlock has a row per latency; plusMinus heads the half-width of the 95 %
// confidence interval of the mean.
func (r *Report) latencyBlock(plusMinus string) block {
	title := "Latency, ms"
	if r.Saturated {
		title += " (saturated: not an operating point)"
	}
	b := block{title: title, columns: []page.Column{
		{Name: "quantity", Flex: true}, {Name: "mean", Right: true}, {Name: plusMinus, Right: true, Drop: 3}, {Name: "p50", Right: true},
		{Name: "p90", Right: true, Drop: 4}, {Name: "p95", Right: true, Drop: 2}, {Name: "p99", Right: true}, {Name: "p99.9", Right: true, Drop: 5},
	}}
	for _, q := range latencies(&r.Figures) {
		s := q.summary
		line := []string{q.name}
		for _, v := range []report.Number{s.Mean, s.HalfWidth, s.P50, s.P90, s.P95, s.P99, s.P999} {
			line = append(line, page.Fixed(float64(v), 2))
		}
		b.cells = append(b.cells, line)
	}
	return b
}

// cache is what the prefix cache did; nothing when no prompt could share.
func (r *Report) cache() []page.Row {
	c := &r.Cache
	if c.Requests == 0 && c.TokensCached == 0 && c.Evictions == 0 {
		return nil
	}
	return []page.Row{
		{Label: "Requests with a hit", Number: page.Fixed(100*float64(c.RequestHitRate), 1), Unit: "%", Note: of(c.RequestHits, c.Requests)},
		{Label: "Blocks found", Number: page.Fixed(100*float64(c.BlockHitRate), 1), Unit: "%", Note: of(c.BlockHits, c.Blocks)},
		{Label: "Prompt tokens found", Number: page.Fixed(100*float64(ratio(float64(c.HitTokens), float64(c.PromptTokens))), 1), Unit: "%", Note: of(c.HitTokens, c.PromptTokens)},
		{Label: "Evicted", Number: page.Count(c.Evictions), Unit: "blocks"},
		{Label: "Cached at the end", Number: page.Count(c.TokensCached), Unit: "tokens"},
	}
}

func of(part, whole int64) string { return fmt.Sprintf("%d of %d", part, whole) }

// batch is how steps were packed.
func (r *Report) batch() []page.Row {
	b := &r.Batch
	rows := []page.Row{
		{Label: "Steps", Number: page.Count(b.Steps), Note: page.Share(float64(b.PrefillShare), 1) + " with prompt tokens"},
		{Label: "Requests per step", Number: page.Fixed(float64(b.Sequences), 2), Note: fmt.Sprintf("%s prefilling, %s decoding, at most %d",
			page.Fixed(float64(b.Prefills), 2), page.Fixed(float64(b.Decodes), 2), b.MaxSequences)},
		{Label: "Tokens per step", Number: page.Fixed(float64(b.Tokens), 1)},
		{Label: "KV cache, mean", Number: page.Fixed(float64(b.KVMean), 0), Unit: "tokens"},
		{Label: "KV cache, peak", Number: page.Fixed(float64(b.KVPeak), 0), Unit: "tokens"},
	}
	if b.KVCapacity > 0 && b.KVCapacity.Finite() {
		rows[4].Note = percent(b.KVUtilization) + " of " + page.Fixed(float64(b.KVCapacity), 0)
	}
	preempted := page.Row{Label: "Preempted", Number: page.Count(b.Preemptions), Unit: "times"}
	if b.Preemptions > 0 {
		preempted.Style = page.Yellow
	}
	return append(rows, preempted)
}

// links are what caches were moved over.
func (r *Report) links() block {
	b := block{title: "Links", columns: []page.Column{
		{Name: "link", Flex: true}, {Name: "transfers", Right: true, Drop: 2}, {Name: "moved", Right: true}, {Name: "busy", Right: true},
		{Name: "mean, ms", Right: true, Drop: 1}, {Name: "p50", Right: true, Drop: 3}, {Name: "p99", Right: true},
	}}
	for _, x := range r.Links {
		b.cells = append(b.cells, []string{
			x.Name, page.Count(x.Transfers), size(x.Bytes), percent(x.Utilization),
			page.Fixed(float64(x.TimeMs.Mean), 2), page.Fixed(float64(x.TimeMs.P50), 2), page.Fixed(float64(x.TimeMs.P99), 2),
		})
	}
	return b
}

// tiers are the cache tiers below GPU memory.
func (r *Report) tiers() block {
	b := block{title: "Cache tiers", columns: []page.Column{
		{Name: "tier", Flex: true}, {Name: "capacity", Right: true, Drop: 2}, {Name: "hit blocks", Right: true}, {Name: "written", Right: true, Drop: 3},
		{Name: "evicted", Right: true, Drop: 4}, {Name: "read", Right: true}, {Name: "fetch p50, ms", Right: true, Drop: 1}, {Name: "p99", Right: true},
	}}
	for _, x := range r.Tiers {
		b.cells = append(b.cells, []string{
			x.Name, size(x.CapacityBytes), page.Count(x.HitBlocks), page.Count(x.Written), page.Count(x.Evicted), size(x.ReadBytes),
			page.Fixed(float64(x.FetchMs.P50), 2), page.Fixed(float64(x.FetchMs.P99), 2),
		})
	}
	return b
}

// size prints bytes in the largest binary unit that leaves a whole part.
func size(n report.Number) string {
	if !n.Finite() {
		return "-"
	}
	for _, u := range []struct {
		name string
		size units.Bytes
	}{{"TiB", units.TiB}, {"GiB", units.GiB}, {"MiB", units.MiB}, {"KiB", units.KiB}} {
		if v := float64(n) / float64(u.size); v >= 1 {
			return page.Fixed(v, 2) + " " + u.name
		}
	}
	return page.Fixed(float64(n), 0) + " B"
}

// faults lists what went wrong and what it cost.
func (r *Report) faults() block {
	b := block{title: "Faults", columns: []page.Column{
		{Name: "at, s", Right: true}, {Name: "kind"}, {Name: "target", Flex: true}, {Name: "for, s", Right: true},
		{Name: "requests restarted", Right: true, Drop: 1}, {Name: "tokens lost", Right: true, Drop: 2},
	}}
	for _, x := range r.Faults {
		b.cells = append(b.cells, []string{
			page.Fixed(float64(x.AtS), 2), x.Kind, page.OrDash(x.Target), page.Fixed(float64(x.DurationS), 2), page.Count(x.Requests), page.Count(x.Tokens),
		})
	}
	return b
}

// scaling lists what the autoscaler did.
func (r *Report) scaling() block {
	b := block{title: "Scaling", columns: []page.Column{
		{Name: "at, s", Right: true}, {Name: "role", Drop: 1}, {Name: "from", Right: true}, {Name: "to", Right: true}, {Name: "reason", Flex: true},
	}}
	for _, x := range r.Scaling {
		b.cells = append(b.cells, []string{page.Fixed(float64(x.AtS), 2), x.Role, page.Count(int64(x.From)), page.Count(int64(x.To)), page.OrDash(x.Reason)})
	}
	return b
}
