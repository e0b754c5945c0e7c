package simulation

import (
	"infera/internal/units"
	"infera/sim/cluster"
	"infera/sim/metrics"
	"infera/sim/report"
)

// JSON returns the result as its JSON contract, to be written by
// [report.WriteJSON] or any other encoder.
func JSON(r *cluster.Result) Report {
	total := newStats(&r.Total)
	out := Report{
		Figures: total.Figures, Batch: total.Batch, Objectives: total.Objectives,
		Model: r.Model, Recipe: r.Recipe, Workload: r.Workload, Arrival: r.Arrival, Clients: r.Clients, Seed: r.Seed, Seeds: r.Seeds,
		KneeReqS: report.None(),
	}
	for _, x := range r.Instances {
		out.Instances = append(out.Instances, Instance{newStats(&x.Stats), x.Index, x.Role, x.Name, x.GPUs})
	}
	for _, x := range r.Pools {
		out.Pools = append(out.Pools, Pool{newStats(&x.Stats), x.Role, x.GPUs})
	}
	for _, x := range r.Classes {
		out.Classes = append(out.Classes, Class{newStats(&x.Stats), x.Name, newObjective(x.Objective)})
	}
	for _, x := range r.Curve {
		out.Curve = append(out.Curve, Point{newStats(&x.Stats), report.Number(x.Rate)})
	}
	if len(r.Curve) > 0 {
		out.KneeReqS = report.Number(r.Knee)
	}
	for _, x := range r.Warnings {
		out.Warnings = append(out.Warnings, report.Warning{Code: x.Code, Text: x.Text})
	}
	out.movements(r)
	out.events(r)
	out.Cost = cost(r)
	return out
}

// cost prices tokens: dollars per hour over tokens per hour.
func cost(r *cluster.Result) Cost {
	gpus := r.GPUs()
	c := Cost{report.None(), report.None(), report.Number(gpus)}
	if hour := r.GPUHour * gpus; hour > 0 {
		if v := r.Total.OutputRate; v > 0 {
			c.USDPerMOutput = report.Number(hour / v / 3600 * 1e6)
		}
		if v := r.Total.TotalRate; v > 0 {
			c.USDPerMTotal = report.Number(hour / v / 3600 * 1e6)
		}
	}
	return c
}

// movements copies the links and the tiers.
func (out *Report) movements(r *cluster.Result) {
	for _, x := range r.Links {
		out.Links = append(out.Links, Link{x.Name, report.Number(x.Bytes), x.Transfers, report.Number(x.Utilization), newSummary(&x.Time)})
	}
	for _, x := range r.Tiers {
		out.Tiers = append(out.Tiers, Tier{
			x.Name, report.Number(x.Capacity), x.HitBlocks, x.Written, x.Evicts, report.Number(x.Read), newSummary(&x.Fetch),
		})
	}
}

// events copies what happened in time.
func (out *Report) events(r *cluster.Result) {
	for _, x := range r.Faults {
		out.Faults = append(out.Faults, Fault{report.Number(x.At), x.Kind, x.Target, report.Number(x.Duration), x.Requests, x.Tokens})
	}
	for _, x := range r.Scaling {
		out.Scaling = append(out.Scaling, Scaling{report.Number(x.At), x.Role, x.From, x.To, x.Reason})
	}
	for _, x := range r.Timeline {
		out.Timeline = append(out.Timeline, Sample{
			report.Number(x.At), x.Running, x.Waiting, report.Number(x.KVUsed), x.Instances,
			report.Number(x.ArrivalRate), report.Number(x.CompletedRate), report.Number(x.OutputRate), ms(x.TTFT),
		})
	}
	for _, h := range r.Histograms {
		x := Histogram{Metric: h.Metric}
		for _, b := range h.Bins {
			x.Bins = append(x.Bins, Bin{ms(b.Low), ms(b.High), b.Count})
		}
		out.Histograms = append(out.Histograms, x)
	}
	if t := r.Request; t != nil {
		out.Trace = &Trace{ID: t.ID, Input: t.Input, Output: t.Output, Cached: t.Cached, Instance: t.Instance}
		for _, s := range t.Spans {
			out.Trace.Spans = append(out.Trace.Spans, Span{s.Name, ms(float64(s.Start)), ms(float64(s.End)), s.Note})
		}
	}
}

func newStats(s *cluster.Stats) Stats {
	return Stats{
		Figures: Figures{
			Requests:    Requests{s.Offered, s.Completed, s.Rejected, s.Unfinished, s.Scored},
			DurationS:   report.Number(s.Duration),
			OfferedReqS: report.Number(s.OfferedRate), AchievedReqS: report.Number(s.AchievedRate),
			Saturated: s.Saturated, Utilization: report.Number(s.Utilization),
			TTFTMs: newSummary(&s.TTFT), TTFTAdmitMs: newSummary(&s.TTFTFromAdmission), QueueMs: newSummary(&s.Queue),
			TPOTMs: newSummary(&s.TPOT), ITLMs: newSummary(&s.ITL), E2EMs: newSummary(&s.E2E),
			OutputTokS: report.Number(s.OutputRate), TotalTokS: report.Number(s.TotalRate),
			GoodputReqS: report.Number(s.Goodput), Cache: newCache(&s.Cache),
		},
		Batch:      newBatch(&s.Batch),
		Objectives: Objectives{report.Number(s.Attainment), report.Number(s.PerGPU)},
	}
}

func newSummary(s *metrics.Summary) Summary {
	return Summary{
		Mean: ms(s.Mean), P50: ms(s.P50), P90: ms(s.P90), P95: ms(s.P95), P99: ms(s.P99), P999: ms(s.P999),
		HalfWidth: ms(s.HalfWidth), Min: ms(s.Min), Max: ms(s.Max), Count: s.Count,
	}
}

func newCache(c *cluster.Cache) Cache {
	return Cache{
		ratio(float64(c.RequestHits), float64(c.Requests)), ratio(float64(c.BlockHits), float64(c.Blocks)), c.Evictions, c.TokensCached,
		c.Requests, c.RequestHits, c.Blocks, c.BlockHits, c.HitTokens, c.PromptTokens,
	}
}

func newBatch(b *cluster.Batch) Batch {
	return Batch{
		b.Steps, report.Number(b.Sequences), b.MaxSequences, report.Number(b.Prefills), report.Number(b.Decodes), report.Number(b.Tokens),
		report.Number(b.PrefillShare), report.Number(b.KVPeak), report.Number(b.KVMean), report.Number(b.KVCapacity),
		ratio(b.KVPeak, b.KVCapacity), b.Preemptions,
	}
}

// newObjective maps "no target" from 0 to none.
func newObjective(o metrics.Objective) Objective {
	target := func(v float64) report.Number {
		if !(v > 0) {
			return report.None()
		}
		return ms(v)
	}
	return Objective{target(o.TTFT), target(o.TPOT), target(o.E2E)}
}

func ms(seconds float64) report.Number {
	return report.Number(units.Seconds(seconds).Milliseconds())
}

// ratio returns part of whole, none when there is no whole.
func ratio(part, whole float64) report.Number {
	if !(whole > 0) {
		return report.None()
	}
	return report.Number(part / whole)
}

// stats returns the figures of the whole fleet as those of a part.
func (r *Report) stats() Stats { return Stats{r.Figures, r.Batch, r.Objectives} }
