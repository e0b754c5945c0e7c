package report

import (
	"encoding/json"
	"strconv"
	"strings"

	"infera/sim/report/page"
)

// requestColumns are the request fields a projection row carries.
func requestColumns() []string {
	return []string{
		"gpu_arch", "tp", "pp", "ep", "attention_dp_size", "replicas", "engine", "engine_version",
		"weight_dtype", "kv_cache_dtype", "input_len", "output_len", "max_concurrency", "request_rate",
		"prefix_cache_hit_rate", "speculative_num_tokens", "profiling_mode",
	}
}

// bandColumns are the quantities with a value, a low and a high column.
func bandColumns() []struct {
	name string
	of   func(*Performance) Band
} {
	return []struct {
		name string
		of   func(*Performance) Band
	}{
		{"ttft_ms", func(p *Performance) Band { return p.TTFTMs }},
		{"tpot_ms", func(p *Performance) Band { return p.TPOTMs }},
		{"itl_ms", func(p *Performance) Band { return p.ITLMs }},
		{"e2e_ms", func(p *Performance) Band { return p.E2EMs }},
		{"decode_step_ms", func(p *Performance) Band { return p.DecodeStepMs }},
		{"mixed_step_ms", func(p *Performance) Band { return p.MixedStepMs }},
		{"output_tok_s", func(p *Performance) Band { return p.OutputTokS }},
		{"output_tok_s_per_gpu", func(p *Performance) Band { return p.OutputTokSPerGPU }},
		{"total_tok_s_per_gpu", func(p *Performance) Band { return p.TotalTokSPerGPU }},
		{"prefill_tok_s", func(p *Performance) Band { return p.PrefillTokS }},
		{"output_tok_s_per_request", func(p *Performance) Band { return p.OutputTokSPerUser }},
	}
}

// plainColumns are the quantities of one column each.
func plainColumns() []struct {
	name string
	of   func(*Performance) Number
} {
	return []struct {
		name string
		of   func(*Performance) Number
	}{
		{"mixed_step_fraction", func(p *Performance) Number { return p.MixedStepFraction }},
		{"tpot_pollution_pct", func(p *Performance) Number { return p.TPOTPollutionPct }},
		{"interactivity_tok_s_user", func(p *Performance) Number { return p.InteractivityTokS }},
		{"concurrency", func(p *Performance) Number { return Number(p.Concurrency) }},
		{"gpus", func(p *Performance) Number { return Number(p.GPUs) }},
		{"speculative_tokens_per_step", func(p *Performance) Number { return p.SpecTokensPerStep }},
		{"admission_wait_ms", func(p *Performance) Number { return p.AdmissionWaitMs }},
		{"queue_wait_ms", func(p *Performance) Number { return p.QueueWaitMs }},
		{"ttft_with_queue_ms", func(p *Performance) Number { return p.TTFTWithQueueMs }},
		{"e2e_with_queue_ms", func(p *Performance) Number { return p.E2EWithQueueMs }},
		{"max_request_rate", func(p *Performance) Number { return p.MaxRequestRate }},
		{"utilization", func(p *Performance) Number { return p.Utilization }},
		{"kv_transfer_ms", func(p *Performance) Number {
			if p.Disaggregation == nil {
				return None()
			}
			return p.Disaggregation.KVTransferMs
		}},
		{"comm_prefill_tp_ar_ms", func(p *Performance) Number { return p.CommunicationMs.Prefill.TPAR }},
		{"comm_prefill_ep_a2a_ms", func(p *Performance) Number { return p.CommunicationMs.Prefill.EPA2A }},
		{"comm_prefill_pp_p2p_ms", func(p *Performance) Number { return p.CommunicationMs.Prefill.PPP2P }},
		{"comm_decode_tp_ar_ms", func(p *Performance) Number { return p.CommunicationMs.Decode.TPAR }},
		{"comm_decode_ep_a2a_ms", func(p *Performance) Number { return p.CommunicationMs.Decode.EPA2A }},
		{"comm_decode_pp_p2p_ms", func(p *Performance) Number { return p.CommunicationMs.Decode.PPP2P }},
	}
}

// memoryColumns are the memory figures of a projection row.
func memoryColumns(m *Memory) ([]string, []Number) {
	return []string{
			"weights_bytes", "kv_bytes_per_token", "state_bytes_per_sequence", "activation_bytes", "graph_bytes",
			"overhead_bytes", "total_bytes", "hbm_bytes", "kv_capacity_tokens", "memory_max_concurrency", "max_context_tokens",
		}, []Number{
			m.WeightsBytes, m.KVBytesPerToken, m.StateBytesPerSequence, m.ActivationBytes, m.GraphBytes,
			m.OverheadBytes, m.TotalBytes, m.HBMBytes, Number(m.KVCapacityTokens), Number(m.MaxConcurrency), Number(m.MaxContextTokens),
		}
}

// ProjectionColumns returns the header of a projection CSV. The names are the
// keys of the JSON contract; a band has two more columns, _low and _high.
func ProjectionColumns() []string {
	head := append([]string{"id", "model"}, requestColumns()...)
	head = append(head, "feasible", "reason")
	for _, c := range bandColumns() {
		head = append(head, c.name, c.name+"_low", c.name+"_high")
	}
	for _, c := range plainColumns() {
		head = append(head, c.name)
	}
	names, _ := memoryColumns(&Memory{})
	head = append(head, names...)
	return append(head, "params_total", "params_active", "usd_per_m_output_tokens", "usd_per_m_total_tokens",
		"fidelity_mode", "fidelity_source", "anchor_id", "anchor_distance", "anchor_extrapolated", "warning_codes")
}

// Record returns the projection as one CSV row under [ProjectionColumns]. A
// cell without a value is empty, and so are the performance and the cost of an
// infeasible recipe.
func (p Projection) Record() []string {
	perf := p.Performance
	if !p.Feasible {
		perf = nil
	}
	out := []string{p.id(), p.Model.Name}
	for _, k := range requestColumns() {
		out = append(out, p.Request.Text(k))
	}
	out = append(out, strconv.FormatBool(p.Feasible), p.Reason)
	for _, c := range bandColumns() {
		b := Band{None(), None(), None()}
		if perf != nil {
			b = c.of(perf)
		}
		out = append(out, b.Value.Text(), b.Low.Text(), b.High.Text())
	}
	for _, c := range plainColumns() {
		s := ""
		if perf != nil {
			s = c.of(perf).Text()
		}
		out = append(out, s)
	}
	_, numbers := memoryColumns(&p.Memory)
	for _, n := range numbers {
		out = append(out, n.Text())
	}
	var codes []string
	for _, w := range p.Warnings {
		codes = append(codes, w.Code)
	}
	return append(out, page.Count(p.Model.ParamsTotal), page.Count(p.Model.ParamsActive),
		plain(p.Cost.USDPerMOutput), plain(p.Cost.USDPerMTotal), p.Fidelity.Mode, p.Fidelity.Source, p.Fidelity.Anchor.ID,
		p.Fidelity.Anchor.Distance.Text(), strconv.FormatBool(p.Fidelity.Anchor.Extrapolated), strings.Join(codes, ";"))
}

// id returns the caller's name without the quotes of a JSON string.
func (p Projection) id() string {
	var s string
	if err := json.Unmarshal(p.ID, &s); err != nil {
		return string(p.ID)
	}
	return s
}

// Records returns a header and one row.
func (p Projection) Records() [][]string {
	return [][]string{ProjectionColumns(), p.Record()}
}

// Records returns a header and one row.
func (f Fit) Records() [][]string {
	head := append([]string{"model"}, requestColumns()...)
	row := []string{f.Model.Name}
	for _, k := range requestColumns() {
		row = append(row, f.Request.Text(k))
	}
	names, numbers := memoryColumns(&f.Memory)
	head = append(append(head, "feasible", "reason"), names...)
	row = append(row, strconv.FormatBool(f.Feasible), f.Reason)
	for _, n := range numbers {
		row = append(row, n.Text())
	}
	head = append(head, "usable_bytes", "short_term", "short_bytes",
		"max_context_tokens_at_concurrency_1", "max_concurrency_at_context", "context_tokens", "gpus")
	row = append(row, f.Memory.UsableBytes.Text(), f.Memory.ShortTerm, f.Memory.ShortBytes.Text(),
		page.Count(f.MaxContextAtOne), page.Count(f.MaxConcurrencyAtContext), page.Count(f.Memory.ContextTokens), page.Count(int64(f.GPUs)))
	return [][]string{head, row}
}
