package main

import (
	"fmt"
	"strings"

	"infera/sim/planner"
	"infera/sim/report"
)

// memoryReport puts the memory of a replica into its report form.
func memoryReport(q *question, s *planner.Sizing) report.Memory {
	lay := s.Request.Layout
	used := s.Weights + s.Activation + s.Graphs + s.Overhead + s.Request.ReservedBytes
	m := report.Memory{
		WeightsBytes: report.Number(s.Weights), KVBytesPerToken: report.Number(s.KVBytesPerToken),
		StateBytesPerSequence: report.Number(s.StateBytesPerSequence), ActivationBytes: report.Number(s.Activation),
		GraphBytes: report.Number(s.Graphs), OverheadBytes: report.Number(s.Overhead + s.Request.ReservedBytes),
		TotalBytes: report.Number(s.Total), HBMBytes: report.Number(s.HBM),
		KVCapacityTokens: int64(s.KVCapacityTokens), MaxConcurrency: int64(s.MaxConcurrency), MaxContextTokens: int64(s.MaxContextTokens),
		Fits: s.OK, KVBytes: report.Number(max(0, s.Total-used)), KVBytesPerSequence: report.Number(s.PerSequence),
		Concurrency: int64(max(1, s.Concurrency)), ContextTokens: int64(s.Planned),
		UsableBytes: report.Number(s.Budget), HBMSource: q.memorySource,
		ShortTerm: string(s.Short), ShortBytes: report.Number(s.By),
		Rank: s.Rank.Stage * lay.StageGPUs(), Layers: s.Rank.Layers,
		WeightDType: q.fields.Text("weight_dtype"), KVDType: q.fields.Text("kv_cache_dtype"),
		HostOffloadBytes: report.Number(s.Request.OffloadBytes),
	}
	if s.HBM > 0 {
		m.UsableFraction = report.Number(s.Budget / s.HBM)
	}
	if g := s.Rank.AttentionGroups; g > 1 {
		m.Sequences = int64((max(1, s.Concurrency) + g - 1) / g)
	}
	for _, t := range s.Terms {
		m.Terms = append(m.Terms, report.MemoryTerm{
			Name: t.Name, Bytes: report.Number(t.Bytes), ShardedBy: t.ShardedBy, Source: t.Source,
		})
	}
	return m
}

// resolveDefaults fills in what the engine decided, where nothing was asked.
func resolveDefaults(fields *report.Request, s *planner.Sizing) {
	fill := func(key string, value float64) {
		if v, ok := fields.Float(key); (!ok || v == 0) && value > 0 {
			fields.Set(key, report.Number(value))
		}
	}
	fill("max_context_len", float64(s.Context))
	fill("max_num_batched_tokens", float64(s.MaxBatchedTokens))
	fill("max_num_seqs", float64(s.MaxSequences))
	fill("kv_block_size", float64(s.BlockTokens))
	d := s.Request.Engine
	fill("chunked_prefill_size", float64(d.PrefillChunk))
	if s.HBM > 0 {
		fill("kv_cache_memory_fraction", float64(s.Budget/s.HBM))
	}
	if fields.Text("cudagraph_mode") == "" {
		fields.Set("cudagraph_mode", d.Graphs.Mode)
	}
}

// suggestions says what would make a request fit.
func suggestions(s *planner.Sizing) []report.Suggestion {
	var out []report.Suggestion
	for _, text := range s.Suggestions {
		out = append(out, report.Suggestion{Change: text, Effect: "then it fits"})
	}
	return out
}

// poolPrefix returns "decode pool: " of a reason that names a pool.
func poolPrefix(reason string) string {
	if i := strings.Index(reason, "pool: "); i > 0 {
		return reason[:i+len("pool: ")]
	}
	return ""
}

// fitReport is the memory verdict on a question.
func fitReport(q *question, s *planner.Sizing, pool string) report.Fit {
	f := report.Fit{
		Request: append(report.Request(nil), q.fields...), Feasible: s.OK, Memory: memoryReport(q, s), Model: modelSize(q),
		MaxContextAtOne: int64(s.MaxContextTokens), MaxConcurrencyAtContext: int64(s.MaxConcurrency),
		GPUs: s.Request.Layout.GPUs(), Launch: q.launch, Warnings: q.warnings,
	}
	resolveDefaults(&f.Request, s)
	if !s.OK {
		f.Reason = pool + s.Reason
		f.Suggestions = suggestions(s)
		return f
	}
	if s.Concurrency > s.Admitted {
		f.Warnings = append(f.Warnings, report.Warning{Code: "concurrency_capped",
			Text: fmt.Sprintf("memory holds %d of the %d requests of %d tokens at once; the others wait", s.Admitted, s.Concurrency, s.Planned)})
	}
	return f
}
