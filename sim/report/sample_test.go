package report

import "math"

func band(v, low, high float64) Band { return Band{Number(v), Number(low), Number(high)} }

// sample is an invented projection with every usual line filled.
func sample() Projection {
	return Projection{
		Request: Request{
			{"model", "gpt_oss_120B"}, {"gpu_arch", "mi355x"}, {"hbm_capacity_gb", 288.0}, {"tp", 2}, {"pp", 1}, {"ep", 2},
			{"attention_dp_size", 1}, {"replicas", 1}, {"engine", "vllm"}, {"engine_version", "0.15"}, {"weight_dtype", "mxfp4"},
			{"kv_cache_dtype", "fp8"}, {"input_len", 1024}, {"output_len", 1024}, {"max_concurrency", 32}, {"request_rate", 0.0},
			{"prefix_cache_hit_rate", 0.25}, {"speculative_num_tokens", 0}, {"profiling_mode", "simulate"}, {"cudagraph_mode", "full"},
		},
		Feasible: true,
		Memory:   sampleMemory(),
		Model:    ModelSize{Name: "gpt_oss_120B", ParamsTotal: 116_829_156_672, ParamsActive: 5_132_850_432},
		Performance: &Performance{
			TTFTMs: band(42.316, 35.2, 51.04), TPOTMs: band(7.4912, 6.81, 8.339), ITLMs: band(7.4912, 6.81, 8.339),
			E2EMs: band(7705.81, 7003.2, 8582.9), DecodeStepMs: band(7.18, 6.5, 8), MixedStepMs: band(17.2, 14.3, 20.9),
			MixedStepFraction: 0.0312, TPOTPollutionPct: 4.33,
			OutputTokS: band(4252.44, 3818, 4679), OutputTokSPerGPU: band(2126.22, 1909, 2339.5), TotalTokSPerGPU: band(4252.44, 3818, 4679),
			PrefillTokS: band(24198.9, 20062, 29090), InteractivityTokS: 133.49, Concurrency: 32, GPUs: 2,
			Breakdown: sampleBreakdown(),
			CommunicationMs: Communication{
				Prefill: CommunicationMs{TPAR: 1.61, EPA2A: 2.4}, Decode: CommunicationMs{TPAR: 0.41, EPA2A: 0.52},
			},
			ServingModel: "continuous", Replicas: 1, ReplicaGPUs: 2, OutputTokSPerUser: band(132.89, 119.3, 146.2), ConcurrencyLimit: 6117,
			SpecTokensPerStep: 1, Host: Host{Step: 0.35, Tokenize: 0.12},
			AdmissionWaitMs: 0, QueueWaitMs: None(), TTFTWithQueueMs: None(), E2EWithQueueMs: None(),
		},
		Cost:     Cost{},
		Fidelity: Fidelity{Mode: "simulate", Source: "analytic", BandCoveragePct: 80},
		Warnings: List[Warning]{{"engine_epoch", "engine version 0.15 has no calibration of its own; the efficiencies of 0.14 are used & widened by 5 %"}},
		Features: Features(Request{{"kv_cache_dtype", "fp8"}, {"prefix_cache_hit_rate", 0.25}, {"cudagraph_mode", "full"}}),
	}
}

func sampleMemory() Memory {
	return Memory{
		WeightsBytes: 33_285_996_544, KVBytesPerToken: 36_864, ActivationBytes: 1_610_612_736, GraphBytes: 536_870_912,
		OverheadBytes: 3_221_225_472, TotalBytes: 41_070_624_768, HBMBytes: 288e9, KVCapacityTokens: 6_214_656, MaxConcurrency: 3034,
		MaxContextTokens: 131_072, Fits: true, KVBytes: 2_415_919_104, KVBytesPerSequence: 75_497_472, Concurrency: 32, ContextTokens: 2048,
		UsableBytes: 259.2e9, UsableFraction: 0.9, HBMSource: "profile", Layers: 36, WeightDType: "mxfp4", KVDType: "fp8",
		Terms: List[MemoryTerm]{
			{"routed experts", 29_000_000_000, "ep", "config.json"},
			{"attention and head", 4_285_996_544, "tp", "config.json"},
			{"engine overhead", 3_221_225_472, "none", "configs/engines/vllm.yaml"},
		},
	}
}

func sampleBreakdown() Breakdown {
	return Breakdown{
		Decode: List[Op]{
			{"embedding", 0.004, 1e6, 0, "launch", "analytic"},
			{"norm and residual", 0.31, 2e8, 1e8, "launch", "analytic"},
			{"qkv projection", 0.72, 2.1e9, 4e9, "hbm", "gemm table gfx950"},
			{"attention", 1.21, 2.4e9, 8e9, "hbm", "analytic"},
			{"output projection", 0.51, 1.4e9, 3e9, "hbm", "gemm table gfx950"},
			{"tp all-reduce", 0.41, 1.3e7, 0, "fabric", "one-shot fit"},
			{"router", 0.12, 1e8, 1e8, "launch", "analytic"},
			{"routed experts", 2.52, 1.4e10, 2e10, "hbm", "fused moe table gfx950"},
			{"ep all-to-all", 0.52, 2.4e7, 0, "fabric", "analytic"},
			{"head", 0.31, 1.1e9, 3.6e10, "hbm", "gemm table gfx950"},
			{"sampling", 0.2, 2.5e7, 0, "launch", "analytic"},
			{"host", 0.35, 0, 0, "host", "configs/engines/vllm.yaml"},
		},
		Prefill: List[Op]{
			{"attention", 9.8, 1e10, 4e12, "compute", "analytic"},
			{"routed experts", 20.5, 2.9e10, 1.1e13, "compute", "fused moe table gfx950"},
			{"ep all-to-all", 2.4, 1e9, 0, "fabric", "analytic"},
			{"tp all-reduce", 1.61, 5e8, 0, "fabric", "two-shot fit"},
		},
	}
}

// infeasible is a recipe whose weights do not fit.
func infeasible() Projection {
	p := sample()
	p.Request.Set("tp", 1)
	p.Request.Set("gpu_arch", "h100")
	p.Feasible = false
	p.Reason = "weights need 62.1 GiB and the cache of 32 sequences 18.0 GiB: 12.7 GiB more than the 67.4 GiB usable on one h100"
	p.Memory.Fits = false
	p.Memory.HBMBytes, p.Memory.UsableBytes = 80e9, 72e9
	p.Memory.ShortTerm, p.Memory.ShortBytes = "kv cache", 13_636_521_984
	p.Suggestions = List[Suggestion]{{"--tp 2", "weights 31.0 GiB per GPU, 41 sequences"}, {"--max-concurrency 9", "fits as it is"}}
	return p
}

// disaggregated uses the lines that the sample does not.
func disaggregated() Projection {
	p := sample()
	perf := *p.Performance
	perf.Disaggregation = &Disagg{
		Prefill: Pool{2, 4, "TP4 EP4", 0.71}, Decode: Pool{1, 8, "TP8 EP8", 0.93},
		PrefillComputeMs: 35.1, KVTransferMs: 4.25, KVTransferBytes: 3.8e7, Limit: "decode",
	}
	perf.Load = Load{RequestRate: 9.5, MaxRequestRate: 8.25, ArrivalModel: "poisson", Utilization: 1.1515, Saturated: true}
	perf.QueueWaitMs, perf.TTFTWithQueueMs, perf.E2EWithQueueMs = Number(math.Inf(1)), Number(math.Inf(1)), None()
	perf.AdmissionWaitMs, perf.AdmissionCeiling = 12.5, 28
	perf.SpecTokensPerStep, perf.GPUs, perf.ConcurrencyCapped = 2.4, 16, true
	p.Performance = &perf
	p.Cost = Cost{Maybe(1.234567), Maybe(0.6172835), Maybe(2.5), 16}
	p.Fidelity = Fidelity{Mode: "benchmark", Source: "transported", Anchor: Anchor{
		ID: "mi355x-gptoss-tp4", Path: "anchors/mi355x-gptoss-tp4.json", Distance: 1.5,
		Unverified: List[string]{"attention_backend"}, Extrapolated: true,
	}}
	return p
}
