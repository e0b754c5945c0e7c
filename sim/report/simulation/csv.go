package simulation

import (
	"strconv"

	"infera/sim/cluster"
	"infera/sim/report"
	"infera/sim/report/page"
)

// CSV returns a header and one row per part of the fleet, which the column
// scope tells apart: total, then every pool, class and instance, and every rate
// of a load sweep. All rows have the same columns and repeat what was
// simulated, so that the rows of many runs can be put under each other,
// filtered and pivoted. The names of the figures are the keys of the JSON
// contract with the statistic behind the latencies (ttft_ms_p99). A figure that
// a part does not have is an empty cell. What has a time of its own (timeline,
// faults, scaling, links, tiers, the waterfall) is in the JSON only.
func CSV(r *cluster.Result) [][]string {
	x := JSON(r)
	head := []string{"scope", "name", "index", "role", "gpus", "rate_req_s", "model", "recipe", "workload", "arrival_model", "clients", "seed", "seeds"}
	run := []string{x.Model, x.Recipe, x.Workload, x.Arrival, strconv.Itoa(x.Clients), strconv.FormatUint(x.Seed, 10), strconv.Itoa(x.Seeds)}
	total := x.stats()
	for _, c := range cells(&total) {
		head = append(head, c.name)
	}
	records := [][]string{head}
	add := func(s *Stats, identity ...string) {
		line := append(identity, run...)
		for _, c := range cells(s) {
			line = append(line, c.text)
		}
		records = append(records, line)
	}
	gpus := 0
	for i := range x.Instances {
		gpus += x.Instances[i].GPUs
	}
	add(&total, "total", "", "", "", strconv.Itoa(gpus), "")
	for i := range x.Pools {
		p := &x.Pools[i]
		add(&p.Stats, "pool", p.Role, "", p.Role, strconv.Itoa(p.GPUs), "")
	}
	for i := range x.Classes {
		c := &x.Classes[i]
		add(&c.Stats, "class", c.Name, "", "", "", "")
	}
	for i := range x.Instances {
		n := &x.Instances[i]
		add(&n.Stats, "instance", n.Name, strconv.Itoa(n.Index), n.Role, strconv.Itoa(n.GPUs), "")
	}
	for i := range x.Curve {
		c := &x.Curve[i]
		add(&c.Stats, "rate", "", "", "", "", c.RateReqS.Text())
	}
	return records
}

// cell is one figure of a CSV row.
type cell struct{ name, text string }

// cells returns the figures of a part under their column names.
func cells(s *Stats) []cell {
	count := func(n int64) string { return page.Count(n) }
	n, c, b := &s.Requests, &s.Cache, &s.Batch
	out := []cell{
		{"offered", count(int64(n.Offered))}, {"completed", count(int64(n.Completed))}, {"rejected", count(int64(n.Rejected))},
		{"unfinished", count(int64(n.Unfinished))}, {"scored", count(int64(n.Scored))},
		{"duration_s", s.DurationS.Text()}, {"offered_req_s", s.OfferedReqS.Text()}, {"achieved_req_s", s.AchievedReqS.Text()},
		{"saturated", strconv.FormatBool(s.Saturated)}, {"utilization", s.Utilization.Text()},
		{"output_tok_s", s.OutputTokS.Text()}, {"total_tok_s", s.TotalTokS.Text()}, {"total_tok_s_per_gpu", s.TotalTokSPerGPU.Text()},
		{"goodput_req_s", s.GoodputReqS.Text()}, {"attainment", s.Attainment.Text()},
	}
	for _, l := range latencies(&s.Figures) {
		for _, q := range statistics(l.summary) {
			out = append(out, cell{l.key + "_" + q.key, q.value.Text()})
		}
	}
	return append(out,
		cell{"request_hit_rate", c.RequestHitRate.Text()}, cell{"block_hit_rate", c.BlockHitRate.Text()}, cell{"hit_tokens", count(c.HitTokens)},
		cell{"prompt_tokens", count(c.PromptTokens)}, cell{"evictions", count(c.Evictions)}, cell{"tokens_cached", count(c.TokensCached)},
		cell{"num_steps", count(b.Steps)}, cell{"avg_batch_size", b.Sequences.Text()}, cell{"max_batch_size", count(int64(b.MaxSequences))},
		cell{"avg_prefill_reqs", b.Prefills.Text()}, cell{"avg_decode_reqs", b.Decodes.Text()}, cell{"avg_query_tokens", b.Tokens.Text()},
		cell{"prefill_step_fraction", b.PrefillShare.Text()}, cell{"kv_peak_tokens", b.KVPeak.Text()}, cell{"kv_mean_tokens", b.KVMean.Text()},
		cell{"kv_capacity_tokens", b.KVCapacity.Text()}, cell{"kv_utilization", b.KVUtilization.Text()}, cell{"preemptions", count(b.Preemptions)},
	)
}

// latency is one distribution with its key in the contract and its name for
// people.
type latency struct {
	key, name string
	summary   *Summary
}

// latencies are the distributions of a part in the order of the contract.
func latencies(f *Figures) []latency {
	return []latency{
		{"ttft_ms", "TTFT", &f.TTFTMs}, {"ttft_from_admit_ms", "TTFT from admission", &f.TTFTAdmitMs}, {"queue_ms", "Queue", &f.QueueMs},
		{"tpot_ms", "TPOT", &f.TPOTMs}, {"itl_ms", "ITL", &f.ITLMs}, {"e2e_ms", "E2E", &f.E2EMs},
	}
}

// statistic is one figure of a distribution with its key in the contract.
type statistic struct {
	key   string
	value report.Number
}

// statistics are the figures of a distribution in the order of the contract.
func statistics(s *Summary) []statistic {
	return []statistic{
		{"mean", s.Mean}, {"p50", s.P50}, {"p90", s.P90}, {"p95", s.P95}, {"p99", s.P99}, {"p999", s.P999},
		{"half_width_95", s.HalfWidth}, {"min", s.Min}, {"max", s.Max}, {"count", report.Number(s.Count)},
	}
}
