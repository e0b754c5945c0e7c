package report

import "strings"

// feature is one entry of the features line: the request fields it reads and
// how it is written; "" when it is off.
type feature func(Request) string

// above returns name=value when the number at key is greater than off.
func above(name, key string, off float64, suffix string) feature {
	return func(r Request) string {
		if v, ok := r.Float(key); ok && v > off {
			return name + "=" + r.Text(key) + suffix
		}
		return ""
	}
}

// named returns name=value when the text at key is none of off.
func named(name, key string, off ...string) feature {
	return func(r Request) string {
		v := r.Text(key)
		if v == "" {
			return ""
		}
		for _, o := range off {
			if strings.EqualFold(v, o) {
				return ""
			}
		}
		return name + "=" + v
	}
}

// switched returns name when the field at key is true.
func switched(name, key string) feature {
	return func(r Request) string {
		if r.Text(key) == "true" {
			return name
		}
		return ""
	}
}

// features lists the entries in report order.
func features() []feature {
	return []feature{
		above("chunked_prefill", "chunked_prefill_size", 0, ""),
		prefixCache,
		speculative,
		named("kv_dtype", "kv_cache_dtype", "auto", "bf16"),
		slidingWindow,
		sampling,
		named("act_quant", "act_quant_dtype", "auto", "none", "bf16"),
		above("launch_floor", "kernel_launch_latency_us", 0, "us/kernel"),
		deepEP,
		named("cudagraph", "cudagraph_mode", "auto"),
		above("kv_mem_frac", "kv_cache_memory_fraction", 0, ""),
		above("kv_block", "kv_block_size", 0, ""),
		above("kv_offload", "kv_offload_gb_per_gpu", 0, "GB/GPU"),
		above("max_batched_tokens", "max_num_batched_tokens", 0, ""),
		above("max_num_seqs", "max_num_seqs", 0, ""),
		above("ep_load_balance", "ep_load_balance", 1, ""),
		above("redundant_experts", "redundant_experts", 0, ""),
		above("attention_dp", "attention_dp_size", 1, ""),
		above("decode_cp", "decode_context_parallel_size", 1, ""),
		named("attn_backend", "attention_backend", "auto"),
		above("sparse_attn_topk", "sparse_attention_topk", 0, ""),
		named("moe_expert_dtype", "moe_expert_dtype", "auto"),
		named("linear_weight_dtype", "linear_weight_dtype", "auto"),
		switched("fused_kernels", "fused_kernels"),
		above("draft_cost", "speculative_draft_cost_factor", 0, ""),
		requestRate,
		switched("quick_reduce", "quick_reduce"),
		switched("fused_rmsnorm_ar", "fuse_rmsnorm_allreduce"),
	}
}

// Features names what the request switches on, in report order: fields that
// are off, absent or at a neutral value are left out. What only the model
// knows (linear attention, a window of its own) is the caller's to append.
func Features(r Request) []string {
	var out []string
	for _, f := range features() {
		if s := f(r); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func prefixCache(r Request) string {
	if v, ok := r.Float("prefix_cache_hit_rate"); ok && v > 0 {
		return "prefix_cache_hit=" + fixed(Number(v), 2)
	}
	return ""
}

func speculative(r Request) string {
	if k, ok := r.Float("speculative_num_tokens"); !ok || k <= 0 {
		return ""
	}
	s := "speculative(k=" + r.Text("speculative_num_tokens")
	if a, ok := r.Float("speculative_acceptance_rate"); ok {
		s += ", accept=" + fixed(Number(a), 2)
	}
	return s + ")"
}

func slidingWindow(r Request) string {
	if w, ok := r.Float("sliding_window"); !ok || w <= 0 {
		return ""
	}
	s := "sliding_window=" + r.Text("sliding_window")
	if f, ok := r.Float("sliding_window_layer_fraction"); ok && f > 0 && f < 1 {
		s += "(frac=" + r.Text("sliding_window_layer_fraction") + ")"
	}
	return s
}

func sampling(r Request) string {
	if r.Text("no_sampling") == "true" {
		return "sampling=off"
	}
	if k, ok := r.Float("sampling_top_k"); ok && k > 0 {
		return "sampling(top_k=" + r.Text("sampling_top_k") + ")"
	}
	if p, ok := r.Float("sampling_top_p"); ok && p > 0 && p < 1 {
		return "sampling(top_p=" + r.Text("sampling_top_p") + ")"
	}
	return ""
}

func deepEP(r Request) string {
	stage, _ := r.Float("sync_free_stage")
	if r.Text("enable_deepep") != "true" && stage <= 0 {
		return ""
	}
	if stage > 0 {
		return "deepep(sync_free=" + r.Text("sync_free_stage") + ")"
	}
	return "deepep"
}

func requestRate(r Request) string {
	if v, ok := r.Float("request_rate"); !ok || v <= 0 {
		return ""
	}
	s := "request_rate=" + r.Text("request_rate") + "/s"
	if m := r.Text("arrival_model"); m != "" {
		s += "(" + m + ")"
	}
	return s
}
