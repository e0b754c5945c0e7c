package launch

import (
	"slices"

	"infera/internal/units"
)

// sglang is how SGLang is launched. Flags: docs.sglang.io/advanced_features/
// server_arguments.html and python/sglang/srt/server_args.py.
func sglang() dialect {
	return dialect{
		engine: SGLang, envPrefix: "SGLANG_", positional: true,
		flags:  append(sglangFlags(), sglangPlainFlags()...),
		env:    append(sglangEnv(), commonEnv()...),
		finish: finishSGLang,
	}
}

func sglangFlags() []flag {
	return []flag{
		special(FieldModel, one, setModel, "--model-path", "--model"),
		special(FieldDType, one, setDType, "--dtype"),
		special(FieldWeightDType, one, setQuantization, "--quantization"),
		special(FieldKVCacheDType, one, setKVDType, "--kv-cache-dtype"),
		special(FieldMaxContext, one, setMaxLen, "--context-length"),

		number(FieldTP, 1, func(s *Settings) **int { return &s.TP }, "--tensor-parallel-size", "--tp-size", "--tp", "-tp"),
		number(FieldPP, 1, func(s *Settings) **int { return &s.PP }, "--pipeline-parallel-size", "--pp-size", "--pp"),
		number(FieldDP, 1, func(s *Settings) **int { return &s.DP }, "--data-parallel-size", "--dp-size", "--dp"),
		number(FieldEP, 1, func(s *Settings) **int { return &s.EP }, "--expert-parallel-size", "--ep-size", "--ep"),
		number(FieldDecodeCP, 1, func(s *Settings) **int { return &s.DecodeCP }, "--dcp-size", "--decode-context-parallel-size"),
		number(FieldNodes, 1, func(s *Settings) **int { return &s.Nodes }, "--nnodes"),
		on(FieldAttentionDP, func(s *Settings) **bool { return &s.AttentionDP }, "--enable-dp-attention"),
		special(FieldEP, toggle, setExpertParallel, "--enable-ep-moe"),
		special(FieldEP, toggle, setDeepEP, "--enable-deepep-moe"),
		number(FieldRedundant, 0, func(s *Settings) **int { return &s.RedundantExperts }, "--ep-num-redundant-experts"),
		text(FieldAllToAll, func(s *Settings) *string { return &s.AllToAll }, "--moe-a2a-backend"),
		text(FieldMoEBackend, func(s *Settings) *string { return &s.MoEBackend }, "--moe-runner-backend"),
		off(FieldCustomAllReduce, func(s *Settings) **bool { return &s.CustomAllReduce }, "--disable-custom-all-reduce"),

		share(FieldMemoryFraction, func(s *Settings) **float64 { return &s.MemoryFraction }, "--mem-fraction-static"),
		number(FieldMaxSeqs, 1, func(s *Settings) **int { return &s.MaxNumSeqs }, "--max-running-requests"),
		number(FieldKVTokens, 1, func(s *Settings) **int { return &s.KVCacheTokens }, "--max-total-tokens"),
		special(FieldChunkedPrefill, one, setChunk, "--chunked-prefill-size"),
		special(FieldBatchedTokens, one, setPrefillTokens, "--max-prefill-tokens"),
		text(FieldSchedulePolicy, func(s *Settings) *string { return &s.SchedulePolicy }, "--schedule-policy"),
		number(FieldBlockSize, 1, func(s *Settings) **int { return &s.BlockSize }, "--page-size"),
		number(FieldStreamInterval, 1, func(s *Settings) **int { return &s.StreamInterval }, "--stream-interval"),
		off(FieldPrefixCaching, func(s *Settings) **bool { return &s.PrefixCaching }, "--disable-radix-cache"),
		on(FieldMixedChunk, func(s *Settings) **bool { return &s.MixedChunk }, "--enable-mixed-chunk"),
		off(FieldAsync, func(s *Settings) **bool { return &s.AsyncScheduling }, "--disable-overlap-schedule"),

		special(FieldGraphMode, toggle, setEager, "--disable-cuda-graph"),
		number(FieldGraphMaxBatch, 1, func(s *Settings) **int { return &s.GraphMaxBatch }, "--cuda-graph-max-bs", "--cuda-graph-max-bs-decode"),
		special(FieldGraphMaxBatch, many, setCaptureSizes, "--cuda-graph-bs", "--cuda-graph-bs-decode"),
		text(FieldAttention, func(s *Settings) *string { return &s.AttentionBackend }, "--attention-backend"),
		text(FieldAttention, func(s *Settings) *string { return &s.PrefillAttention }, "--prefill-attention-backend", "--nsa-prefill", "--nsa-prefill-backend"),
		text(FieldAttention, func(s *Settings) *string { return &s.DecodeAttention }, "--decode-attention-backend", "--nsa-decode", "--nsa-decode-backend"),

		special(FieldSpecMethod, one, setSpecMethod, "--speculative-algorithm", "--speculative-algo"),
		special(FieldSpecTokens, one, setSpecTokens, "--speculative-num-steps"),
		special(FieldSpecVerify, one, setVerifyTokens, "--speculative-num-draft-tokens"),
		special(FieldSpecVerify, one, setTopK, "--speculative-eagle-topk"),
		special(FieldSpecDraft, one, setSpecDraft, "--speculative-draft-model-path", "--speculative-draft-model"),

		special(FieldDisaggregation, one, setDisaggregation, "--disaggregation-mode"),
		special(FieldDisaggregation, one, setTransferBackend, "--disaggregation-transfer-backend"),
		special(FieldOffload, toggle, setHostTier, "--enable-hierarchical-cache", "--enable-lmcache"),
		special(FieldOffload, one, setHostRatio, "--hicache-ratio"),
		special(FieldOffload, one, setHostGB, "--hicache-size"),
		special(FieldOffload, one, setOffloadBackend, "--hicache-storage-backend"),
	}
}

func sglangPlainFlags() []flag {
	var f []flag
	f = append(f, unmodelled(one, "can change memory; not modelled", "--swa-full-tokens-ratio", "--hybrid-kvcache-ratio", "--max-mamba-cache-size", "--mamba-ssm-dtype",
		"--mamba-full-memory-ratio", "--cpu-offload-gb", "--offload-group-size", "--offload-num-in-group", "--offload-prefetch-step", "--offload-mode",
		"--max-loras-per-batch", "--max-lora-rank", "--max-loaded-loras", "--num-reserved-decode-tokens", "--mamba-scheduler-strategy", "--mamba-track-interval")...)
	f = append(f, unmodelled(one, "can change speed; not modelled", "--schedule-conservativeness", "--load-balance-method", "--pp-max-micro-batch-size", "--num-continuous-decode-steps",
		"--deepep-mode", "--deepep-config", "--ep-dispatch-algorithm", "--init-expert-location", "--eplb-algorithm", "--eplb-rebalance-num-iterations",
		"--eplb-rebalance-layers-per-chunk", "--eplb-min-rebalancing-utilization-threshold", "--moe-dense-tp-size", "--tbo-token-distribution-threshold",
		"--fp8-gemm-backend", "--fp4-gemm-backend", "--bf16-gemm-backend", "--sampling-backend", "--torch-compile-max-bs", "--piecewise-cuda-graph-max-tokens",
		"--piecewise-cuda-graph-tokens", "--triton-attention-num-kv-splits", "--triton-attention-split-tile-size", "--flashinfer-mxfp4-moe-precision",
		"--speculative-attention-mode", "--speculative-token-map", "--speculative-moe-runner-backend", "--speculative-moe-a2a-backend", "--speculative-draft-attention-backend",
		"--speculative-draft-model-quantization", "--speculative-accept-threshold-single", "--speculative-accept-threshold-acc", "--speculative-ngram-min-match-window-size", "--speculative-ngram-max-match-window-size",
		"--speculative-ngram-min-bfs-breadth", "--speculative-ngram-max-bfs-breadth", "--speculative-ngram-match-type", "--speculative-ngram-branch-length", "--speculative-ngram-capacity",
		"--disaggregation-decode-tp", "--disaggregation-decode-dp", "--disaggregation-prefill-pp", "--disaggregation-decode-polling-interval", "--scheduler-recv-interval",
		"--hicache-write-policy", "--hicache-io-backend", "--hicache-mem-layout", "--hicache-storage-prefetch-policy", "--hicache-storage-backend-extra-config",
		"--radix-eviction-policy", "--model-impl", "--mm-attention-backend", "--torchao-config", "--elastic-ep-backend", "--prefill-delayer-max-delay-passes",
		"--attn-cp-size", "--attention-context-parallel-size", "--moe-data-parallel-size", "--moe-dp-size", "--tokenizer-worker-num", "--cuda-graph-backend-decode", "--max-queued-requests",
		"--ds-heavy-channel-num", "--ds-heavy-token-num", "--ds-heavy-channel-type", "--ds-sparse-decode-threshold", "--ds-channel-config-path")...)
	f = append(f, unmodelled(toggle, "can change speed or memory; not modelled", "--enable-two-batch-overlap", "--enable-single-batch-overlap", "--enable-eplb", "--enable-torch-compile",
		"--enable-piecewise-cuda-graph", "--disable-piecewise-cuda-graph", "--disable-cuda-graph-padding", "--enable-nccl-nvls", "--enable-symm-mem", "--enable-mscclpp", "--enable-torch-symm-mem",
		"--enable-flashinfer-allreduce-fusion", "--enable-aiter-allreduce-fusion", "--enable-dp-lm-head", "--disable-shared-experts-fusion", "--disable-chunked-prefix-cache",
		"--flashinfer-mla-disable-ragged", "--enable-fp32-lm-head", "--enable-lora", "--disable-hybrid-swa-memory", "--enable-double-sparsity",
		"--enable-deterministic-inference", "--enable-attn-tp-input-scattered", "--enable-nsa-prefill-context-parallel", "--enable-pdmux", "--enable-priority-scheduling",
		"--enable-prefill-delayer", "--disaggregation-decode-enable-offload-kvcache", "--disaggregation-decode-enable-radix-cache", "--enable-multimodal", "--enable-memory-saver",
		"--triton-attention-reduce-in-fp32", "--enable-flashinfer-cutlass-moe", "--enable-flashinfer-trtllm-moe", "--enable-triton-kernel-moe", "--enable-flashinfer-mxfp4-moe",
		"--prefill-round-robin-balance", "--keep-mm-feature-on-device", "--enable-spec-v2", "--enable-multi-layer-eagle", "--enable-fused-qk-norm-rope")...)
	f = append(f, unmodelled(one, "changes the model itself; give the planner the changed config.json", "--json-model-override-args")...)
	f = append(f, unmodelled(one, "the options in the file are not read; write them on the line", "--config")...)
	f = append(f, unmodelled(many, "can change speed or memory; not modelled", "--lora-paths", "--lora-target-modules")...)

	f = append(f, ignored(one, "--host", "--port", "--nccl-port", "--tokenizer-path", "--tokenizer-mode", "--load-format", "--model-loader-extra-config", "--revision", "--device",
		"--random-seed", "--watchdog-timeout", "--soft-watchdog-timeout", "--dist-timeout", "--download-dir", "--base-gpu-id", "--gpu-id-step", "--log-level", "--log-level-http",
		"--log-requests-level", "--crash-dump-folder", "--decode-log-interval", "--kv-events-config", "--api-key", "--admin-api-key", "--served-model-name", "--weight-version",
		"--chat-template", "--completion-template", "--file-storage-path", "--reasoning-parser", "--tool-call-parser", "--sampling-defaults", "--tool-server",
		"--dist-init-addr", "--nccl-init-addr", "--node-rank", "--preferred-sampling-params", "--grammar-backend", "--constrained-json-whitespace-pattern",
		"--disaggregation-bootstrap-port", "--disaggregation-ib-device", "--mooncake-ib-device", "--quantization-param-path", "--load-watch-interval", "--warmups",
		"--mm-process-config", "--fastapi-root-path", "--speculative-draft-model-revision", "--gc-warning-threshold-secs", "--oltp-traces-endpoint", "--otlp-traces-endpoint",
		"--expert-distribution-recorder-mode", "--expert-distribution-recorder-buffer-size", "--debug-tensor-dump-output-folder", "--forward-hooks",
		"--ssl-keyfile", "--ssl-certfile", "--ssl-ca-certs", "--uvicorn-access-log-exclude-prefixes", "--grpc-port", "--pdmux-config-path", "--sm-group-num")...)
	f = append(f, ignored(many, "--tokenizer-metrics-allowed-custom-labels", "--bucket-time-to-first-token", "--bucket-inter-token-latency", "--bucket-e2e-request-latency",
		"--prompt-tokens-buckets", "--generation-tokens-buckets", "--custom-weight-loader", "--numa-node")...)
	f = append(f, ignored(toggle, "--trust-remote-code", "--skip-server-warmup", "--skip-tokenizer-init", "--is-embedding", "--log-requests", "--show-time-cost", "--enable-metrics",
		"--enable-metrics-for-all-schedulers", "--enable-cache-report", "--enable-request-time-stats-logging", "--enable-trace", "--collect-tokens-histogram", "--stream-output",
		"--sleep-on-idle", "--crash-on-nan", "--enable-p2p-check", "--delete-ckpt-after-loading", "--allow-auto-truncate", "--enable-custom-logit-processor", "--enable-profile-cuda-graph",
		"--enable-cudagraph-gc", "--enable-nan-detection", "--weight-loader-disable-mmap", "--enable-weights-cpu-backup", "--disable-fast-image-processor", "--enable-return-hidden-states",
		"--enable-layerwise-nvtx-marker", "--enable-expert-distribution-metrics", "--grpc-mode", "--disable-outlines-disk-cache", "--enable-tokenizer-batch-encode",
		"--constrained-json-disable-any-whitespace", "--enable-dynamic-batch-tokenizer", "--incremental-streaming-output")...)
	return append(f, workerFlags()...)
}

func sglangEnv() []flag {
	env := []flag{
		on(FieldAITER, func(s *Settings) **bool { return &s.AITER }, "SGLANG_USE_AITER"),
		special(FieldQuickReduce, one, quickReduce, "ROCM_QUICK_REDUCE_QUANTIZATION"),
	}
	env = append(env, ignored(one, "SGLANG_LOG_*", "SGLANG_LOGGING_*", "SGLANG_TORCH_PROFILER_*", "SGLANG_DISAGGREGATION_*", "SGLANG_HOST_IP", "SGLANG_PORT", "SGLANG_HEALTH_*",
		"SGLANG_USE_MODELSCOPE", "SGLANG_CACHE_*", "SGLANG_ENABLE_FAILED_SESSION_PROBE", "SGLANG_FAILED_SESSION_*", "SGLANG_WARMUP_*", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
		"SGLANG_BLOCK_NONZERO_RANK_CHILDREN", "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION")...)
	return append(env, unmodelled(one, "selects kernels or their limits; the projection uses the engine's defaults", "SGLANG_USE_*", "SGLANG_AITER_*", "SGLANG_MOE_*", "SGLANG_MORI_*",
		"SGLANG_DEEPEP_*", "SGLANG_ENABLE_*", "SGLANG_OPT_*", "SGLANG_ROCM_*", "SGLANG_INT4_*", "SGLANG_FP8_*", "SGLANG_NSA_*", "SGLANG_JIT_*", "SGLANG_HICACHE_*", "SGLANG_MOONCAKE_*",
		"SGLANG_DISABLE_*", "SGLANG_FORCE_*", "SGLANG_SET_*", "SGLANG_TBO_*", "SGLANG_SPEC_*", "SGLANG_SIMULATE_*", "SGLANG_SUPPORT_*", "ROCM_QUICK_REDUCE_*")...)
}

func setDeepEP(p *parser, _ *Argument, v string) error {
	b, err := boolean(v)
	if b && err == nil {
		p.s.AllToAll = "deepep"
	}
	return err
}

// setChunk reads a chunk length; -1 and 0 turn chunking off.
func setChunk(p *parser, a *Argument, v string) error {
	chunked := v != "-1" && v != "0"
	p.s.ChunkedPrefill, p.s.ChunkedPrefillSize = &chunked, nil
	if !chunked {
		a.Note = join(a.Note, "chunked prefill is off")
		return nil
	}
	n, err := count(v, 1)
	if err != nil {
		return err
	}
	a.Status = Used
	p.s.ChunkedPrefillSize = &n
	return nil
}

// setPrefillTokens reads the token limit of one prefill batch; decodes do not
// count against it.
func setPrefillTokens(p *parser, a *Argument, v string) error {
	n, err := count(v, 1)
	if err != nil {
		return err
	}
	p.s.MaxNumBatchedTokens = &n
	a.Note = join(a.Note, "the limit of a prefill batch")
	return nil
}

func setVerifyTokens(p *parser, a *Argument, v string) error {
	n, err := count(v, 1)
	if err != nil {
		return err
	}
	a.Status = Used
	p.speculative().VerifyTokens = n
	return nil
}

func setTopK(p *parser, _ *Argument, v string) error {
	n, err := count(v, 1)
	if err != nil {
		return err
	}
	p.s.specTopK = &n
	return nil
}

func setDisaggregation(p *parser, a *Argument, v string) error {
	if err := oneOf(lower(v), "null", "prefill", "decode"); err != nil {
		return err
	}
	p.s.Disaggregation = nil
	if lower(v) == "null" {
		return nil
	}
	a.Status = Used
	p.s.Disaggregation = &Disaggregation{Role: lower(v)}
	return nil
}

// setTransferBackend keeps the backend until the role is known.
func setTransferBackend(p *parser, _ *Argument, v string) error {
	p.transferBackend = v
	return nil
}

func setHostTier(p *parser, a *Argument, v string) error {
	b, err := boolean(v)
	if err != nil {
		return err
	}
	p.hostTier = b
	if p.s.Offload = offloadOf(p.s.Offload); a.Name == "--enable-lmcache" {
		p.s.Offload.Backend = "lmcache"
	}
	return nil
}

func setHostRatio(p *parser, _ *Argument, v string) error {
	f, err := amount(v)
	if err != nil {
		return err
	}
	p.s.Offload = offloadOf(p.s.Offload)
	p.s.Offload.HostRatio = f
	return nil
}

// setHostGB reads gigabytes of 1e9 bytes (sglang/srt/mem_cache/memory_pool_host.py).
func setHostGB(p *parser, _ *Argument, v string) error {
	f, err := amount(v)
	if err != nil {
		return err
	}
	p.s.Offload = offloadOf(p.s.Offload)
	p.s.Offload.HostBytes = units.Bytes(f * float64(units.GB))
	return nil
}

func setOffloadBackend(p *parser, _ *Argument, v string) error {
	p.s.Offload = offloadOf(p.s.Offload)
	p.s.Offload.Backend = v
	return nil
}

// setOffloadGiB reads gibibytes, as vLLM's --kv-offloading-size does.
func setOffloadGiB(p *parser, _ *Argument, v string) error {
	f, err := amount(v)
	if err != nil {
		return err
	}
	p.s.Offload = offloadOf(p.s.Offload)
	p.s.Offload.HostBytes = units.Bytes(f * float64(units.GiB))
	return nil
}

// setKVBytes reads a size in bytes, or with a binary or decimal letter.
func setKVBytes(p *parser, _ *Argument, v string) error {
	scale, number := 1.0, v
	if n := len(v); n > 1 {
		if s, ok := suffixes[v[n-1]]; ok {
			scale, number = s, v[:n-1]
		}
	}
	f, err := amount(number)
	if err != nil || f == 0 {
		return wrong("%s is not a size above 0", clip(v))
	}
	b := units.Bytes(f * scale)
	p.s.KVCacheBytes = &b
	return nil
}

func finishSGLang(p *parser) error {
	s := &p.s
	if p.transferBackend != "" && s.Disaggregation != nil {
		s.Disaggregation.Connector = p.transferBackend
	}
	if s.Offload != nil && !p.hostTier {
		s.Offload = nil
		for _, n := range []string{"--hicache-ratio", "--hicache-size", "--hicache-storage-backend"} {
			p.drop(n, "without --enable-hierarchical-cache it has no effect")
		}
	}
	// These backends own whole experts on every rank
	// (sglang/srt/server_args.py, _handle_a2a_moe).
	owns := slices.Contains([]string{"deepep", "mooncake", "mori", "flashinfer", "ascend_fuseep"}, s.AllToAll)
	if s.expertParallel || owns {
		ep := value(s.TP, 1)
		s.EP = &ep
		p.note("--enable-ep-moe", "experts over all %d ranks of TP", ep)
		p.note("--enable-deepep-moe", "experts over all %d ranks of TP", ep)
		p.note("--moe-a2a-backend", "experts over all %d ranks of TP", ep)
		p.also("--moe-a2a-backend", FieldEP)
	}
	if dp := value(s.DP, 1); value(s.AttentionDP, false) && dp > 1 && s.ChunkedPrefillSize != nil {
		p.note("--chunked-prefill-size", "over all %d attention groups together", dp)
	}
	p.sglangSpeculation()
	return nil
}

// sglangSpeculation completes the shape of the draft: without a tree the target
// verifies one position more than is drafted.
func (p *parser) sglangSpeculation() {
	s := p.s.Speculative
	if s == nil {
		return
	}
	if s.Method == "" {
		p.s.Speculative = nil
		for _, n := range []string{"--speculative-num-steps", "--speculative-num-draft-tokens", "--speculative-draft-model-path"} {
			p.drop(n, "without --speculative-algorithm it has no effect")
		}
		return
	}
	if s.Method == "nextn" {
		s.Method = "mtp"
	}
	chain := value(p.s.specTopK, 1) == 1
	switch {
	case chain && s.NumTokens > 0:
		s.VerifyTokens = s.NumTokens + 1
	case chain && s.VerifyTokens > 1:
		s.NumTokens = s.VerifyTokens - 1
	}
}
