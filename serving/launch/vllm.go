package launch

import "strings"

// vllm is how vLLM is launched. Flags: docs.vllm.ai/en/latest/configuration/
// engine_args.html and vllm/engine/arg_utils.py; variables: vllm/envs.py and
// rocm.docs.amd.com, vLLM V1 performance optimization.
func vllm() dialect {
	return dialect{
		engine: VLLM, envPrefix: "VLLM_", positional: true, negatable: true, dotted: true,
		flags:  append(vllmFlags(), vllmPlainFlags()...),
		env:    append(vllmEnv(), commonEnv()...),
		finish: finishVLLM,
	}
}

var compilationKeys = map[string]string{
	"cudagraph_mode": FieldGraphMode, "full_cuda_graph": FieldGraphMode, "use_cudagraph": FieldGraphMode, "level": FieldGraphMode, "mode": FieldGraphMode,
	"cudagraph_capture_sizes": FieldGraphMaxBatch, "max_cudagraph_capture_size": FieldGraphMaxBatch, "max_capture_size": FieldGraphMaxBatch,
}

var transferKeys = map[string]string{
	"kv_connector": FieldDisaggregation + "," + FieldOffload, "kv_role": FieldDisaggregation, "kv_connector_extra_config": FieldOffload,
}

func vllmFlags() []flag {
	return []flag{
		special(FieldModel, one, setModel, "--model", "--model-tag"),
		special(FieldDType, one, setDType, "--dtype"),
		special(FieldWeightDType, one, setQuantization, "--quantization", "-q"),
		special(FieldKVCacheDType, one, setKVDType, "--kv-cache-dtype"),
		special(FieldMaxContext, one, setMaxLen, "--max-model-len"),

		number(FieldTP, 1, func(s *Settings) **int { return &s.TP }, "--tensor-parallel-size", "-tp", "--tp"),
		number(FieldPP, 1, func(s *Settings) **int { return &s.PP }, "--pipeline-parallel-size", "-pp"),
		number(FieldDP, 1, func(s *Settings) **int { return &s.DP }, "--data-parallel-size", "-dp", "--dp"),
		number(FieldDecodeCP, 1, func(s *Settings) **int { return &s.DecodeCP }, "--decode-context-parallel-size", "-dcp"),
		number(FieldNodes, 1, func(s *Settings) **int { return &s.Nodes }, "--nnodes", "-n"),
		special(FieldEP, toggle, setExpertParallel, "--enable-expert-parallel", "-ep"),
		number(FieldRedundant, 0, func(s *Settings) **int { return &s.RedundantExperts }, "--num-redundant-experts"),
		jsonFlag(map[string]string{"num_redundant_experts": FieldRedundant}, "--eplb-config"),
		text(FieldAllToAll, func(s *Settings) *string { return &s.AllToAll }, "--all2all-backend"),
		off(FieldCustomAllReduce, func(s *Settings) **bool { return &s.CustomAllReduce }, "--disable-custom-all-reduce"),

		number(FieldMaxSeqs, 1, func(s *Settings) **int { return &s.MaxNumSeqs }, "--max-num-seqs"),
		number(FieldBatchedTokens, 1, func(s *Settings) **int { return &s.MaxNumBatchedTokens }, "--max-num-batched-tokens"),
		on(FieldChunkedPrefill, func(s *Settings) **bool { return &s.ChunkedPrefill }, "--enable-chunked-prefill"),
		text(FieldSchedulePolicy, func(s *Settings) *string { return &s.SchedulePolicy }, "--scheduling-policy"),
		on(FieldAsync, func(s *Settings) **bool { return &s.AsyncScheduling }, "--async-scheduling"),
		number(FieldStreamInterval, 1, func(s *Settings) **int { return &s.StreamInterval }, "--stream-interval"),

		number(FieldBlockSize, 1, func(s *Settings) **int { return &s.BlockSize }, "--block-size"),
		share(FieldMemoryFraction, func(s *Settings) **float64 { return &s.MemoryFraction }, "--gpu-memory-utilization"),
		special(FieldKVBytes, one, setKVBytes, "--kv-cache-memory-bytes", "--kv-cache-memory"),
		number(FieldKVTokens, 1, func(s *Settings) **int { return &s.KVCacheBlocks }, "--num-gpu-blocks-override"),
		on(FieldPrefixCaching, func(s *Settings) **bool { return &s.PrefixCaching }, "--enable-prefix-caching"),
		special(FieldOffload, one, setOffloadGiB, "--kv-offloading-size"),
		special(FieldOffload, one, setOffloadBackend, "--kv-offloading-backend"),

		special(FieldGraphMode, toggle, setEager, "--enforce-eager"),
		{names: []string{"--compilation-config", "-cc", "-O", "--optimization-level"}, kind: level, status: NotModelled, material: true, keys: compilationKeys},
		special(FieldGraphMaxBatch, many, setCaptureSizes, "--cudagraph-capture-sizes", "--cuda-graph-sizes"),
		number(FieldGraphMaxBatch, 1, func(s *Settings) **int { return &s.GraphMaxBatch }, "--max-cudagraph-capture-size", "--max-seq-len-to-capture"),
		text(FieldAttention, func(s *Settings) *string { return &s.AttentionBackend }, "--attention-backend"),
		jsonFlag(map[string]string{"backend": FieldAttention}, "--attention-config", "-ac"),
		text(FieldMoEBackend, func(s *Settings) *string { return &s.MoEBackend }, "--moe-backend"),

		jsonFlag(map[string]string{"method": FieldSpecMethod, "num_speculative_tokens": FieldSpecTokens, "model": FieldSpecDraft, "draft_tensor_parallel_size": FieldSpecDraft},
			"--speculative-config", "-sc"),
		special(FieldSpecDraft, one, setSpecDraft, "--speculative-model"),
		special(FieldSpecTokens, one, setSpecTokens, "--num-speculative-tokens"),
		jsonFlag(transferKeys, "--kv-transfer-config"),
	}
}

func vllmPlainFlags() []flag {
	var f []flag
	f = append(f, unmodelled(one, "placement of ranks on machines; not modelled", "--data-parallel-size-local", "-dpl", "--data-parallel-backend", "-dpb",
		"--distributed-executor-backend", "--numa-bind-nodes")...)
	f = append(f, unmodelled(one, "can change memory; not modelled", "--cpu-offload-gb", "--swap-space", "--mamba-cache-dtype", "--mamba-ssm-cache-dtype",
		"--mamba-block-size", "--mamba-cache-mode", "--max-loras", "--max-lora-rank", "--lora-dtype", "--max-cpu-loras", "--mm-processor-cache-gb",
		"--mm-encoder-tp-mode", "--video-pruning-rate", "--kv-cache-dtype-skip-layers")...)
	f = append(f, unmodelled(one, "can change speed; not modelled", "--max-num-partial-prefills", "--max-long-partial-prefills", "--long-prefill-token-threshold",
		"--num-lookahead-slots", "--num-scheduler-steps", "--scheduler-delay-factor", "--preemption-mode", "--dbo-decode-token-threshold",
		"--dbo-prefill-token-threshold", "--ubatch-size", "--expert-placement-strategy", "--prefill-context-parallel-size", "-pcp", "--cp-kv-cache-interleave-size",
		"--model-impl", "--mm-encoder-attn-backend", "--performance-mode", "--eplb-window-size", "--eplb-step-interval", "--linear-backend",
		"--speculative-draft-tensor-parallel-size", "-spec-draft-tp", "--speculative-disable-by-batch-size", "--ngram-prompt-lookup-max", "--ngram-prompt-lookup-min",
		"--api-server-count", "-asc", "--scheduler-cls", "--worker-cls", "--worker-extension-cls")...)
	f = append(f, unmodelled(toggle, "can change speed or memory; not modelled", "--enable-eplb", "--enable-dbo", "--enable-lora", "--fully-sharded-loras",
		"--disable-sliding-window", "--disable-cascade-attn", "--disable-hybrid-kv-cache-manager", "--kv-sharing-fast-prefill", "--calculate-kv-scales",
		"--enable-sleep-mode", "--skip-mm-profiling", "--language-model-only", "--disable-chunked-mm-input", "--disable-async-output-proc",
		"--use-v2-block-manager", "--enable-flashinfer-autotune", "--enable-sequence-parallel", "--enable-multimodal-encoder-data-parallel",
		"--scheduler-reserve-full-isl", "--enable-ep-weight-filter")...)
	f = append(f, unmodelled(one, "changes the model itself; give the planner the changed config.json", "--hf-overrides", "--rope-scaling", "--rope-theta", "--hf-config-path")...)
	f = append(f, unmodelled(one, "can change speed or memory; not modelled", "--limit-mm-per-prompt", "--additional-config", "--kernel-config", "--override-attention-dtype", "--offload-config")...)
	f = append(f, unmodelled(one, "the options in the file are not read; write them on the line", "--config")...)

	f = append(f, ignored(one, "--host", "--port", "--uvicorn-log-level", "--api-key", "--uds", "--root-path", "--ssl-keyfile", "--ssl-certfile", "--ssl-ca-certs",
		"--ssl-cert-reqs", "--middleware", "--chat-template", "--chat-template-content-format", "--default-chat-template-kwargs", "--response-role",
		"--tool-call-parser", "--tool-parser-plugin", "--reasoning-parser", "--reasoning-parser-plugin", "--tool-server", "--log-config-file", "--max-log-len",
		"--tokenizer", "--tokenizer-mode", "--tokenizer-revision", "--revision", "--code-revision", "--seed", "--download-dir", "--load-format",
		"--model-loader-extra-config", "--safetensors-load-strategy", "--pt-load-map-location", "--max-parallel-loading-workers", "--hf-token",
		"--allowed-local-media-path", "--media-io-kwargs", "--mm-processor-kwargs", "--generation-config", "--override-generation-config", "--max-logprobs",
		"--logprobs-mode", "--prefix-caching-hash-algo", "--otlp-traces-endpoint", "--collect-detailed-traces", "--show-hidden-metrics-for-version",
		"--data-parallel-address", "-dpa", "--data-parallel-rpc-port", "-dpp", "--data-parallel-rank", "-dpn", "--data-parallel-start-rank", "-dpr",
		"--node-rank", "-r", "--master-addr", "--master-port", "--kv-events-config", "--structured-outputs-config", "--guided-decoding-backend",
		"--profiler-config", "--task", "--runner", "--convert", "--config-format", "--allowed-origins", "--allowed-methods", "--allowed-headers",
		"--shutdown-timeout", "--h11-max-incomplete-event-size", "--h11-max-header-count", "--device", "--io-processor-plugin", "--kv-cache-metrics-sample")...)
	f = append(f, ignored(many, "--served-model-name", "--lora-modules", "--allowed-media-domains", "--ignore-patterns", "--logits-processors")...)
	f = append(f, ignored(optional, "--enable-log-requests", "--use-tqdm-on-load")...)
	f = append(f, ignored(toggle, "--trust-remote-code", "--disable-log-stats", "--disable-log-requests", "--disable-uvicorn-access-log", "--enable-auto-tool-choice",
		"--enable-prompt-tokens-details", "--enable-force-include-usage", "--enable-request-id-headers", "--return-tokens-as-token-ids", "--enable-server-load-tracking",
		"--disable-fastapi-docs", "--headless", "--data-parallel-hybrid-lb", "-dph", "--data-parallel-external-lb", "-dpe", "--skip-tokenizer-init",
		"--allow-credentials", "--enable-prompt-embeds", "--enable-mm-embeds", "--interleave-mm-strings", "--aggregate-engine-logging", "--exclude-tools-when-tool-choice-none",
		"--trust-request-chat-template", "--log-error-stack", "--enable-log-outputs", "--enable-log-deltas", "--ray-workers-use-nsight", "--kv-cache-metrics", "--eplb-log-balancedness",
		"--disable-access-log-for-endpoints", "--enable-ssl-refresh", "--enable-tokenizer-info-endpoint", "--enable-offline-docs", "--enable-layerwise-nvtx-tracing",
		"--disable-mm-preprocessor-cache", "--disable-nccl-for-dp-synchronization")...)
	return append(f, workerFlags()...)
}

func vllmEnv() []flag {
	env := []flag{
		on(FieldAITER, func(s *Settings) **bool { return &s.AITER }, "VLLM_ROCM_USE_AITER"),
		special(FieldQuickReduce, one, quickReduce, "VLLM_ROCM_QUICK_REDUCE_QUANTIZATION"),
		text(FieldAttention, func(s *Settings) *string { return &s.AttentionBackend }, "VLLM_ATTENTION_BACKEND"),
		text(FieldAllToAll, func(s *Settings) *string { return &s.AllToAll }, "VLLM_ALL2ALL_BACKEND"),
		number(FieldDP, 1, func(s *Settings) **int { return &s.DP }, "VLLM_DP_SIZE"),
		special("", one, useV1, "VLLM_USE_V1"),
	}
	env[5].status, env[5].material = NotModelled, true
	env = append(env, ignored(one, "VLLM_LOGGING_*", "VLLM_CONFIGURE_LOGGING", "VLLM_LOG_*", "VLLM_HOST_IP", "VLLM_PORT", "VLLM_API_KEY", "VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT",
		"VLLM_ASSETS_*", "VLLM_WORKER_MULTIPROC_METHOD", "VLLM_RPC_*", "VLLM_ENGINE_*", "VLLM_SERVER_DEV_MODE", "VLLM_NO_USAGE_STATS", "VLLM_DO_NOT_TRACK", "VLLM_USAGE_*",
		"VLLM_USE_MODELSCOPE", "VLLM_TORCH_PROFILER_*", "VLLM_NIXL_*", "VLLM_MOONCAKE_*", "VLLM_DP_RANK*", "VLLM_DP_MASTER_*", "VLLM_KV_EVENTS_*",
		"VLLM_ALLOW_LONG_MAX_MODEL_LEN", "VLLM_ALLOW_RUNTIME_LORA_UPDATING", "VLLM_HTTP_*", "VLLM_PLUGINS", "VLLM_DISABLE_COMPILE_CACHE", "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH",
		"VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", "VLLM_IMAGE_FETCH_TIMEOUT", "VLLM_TARGET_DEVICE")...)
	return append(env, unmodelled(one, "selects kernels or their limits; the projection uses the engine's defaults", "VLLM_ROCM_*", "VLLM_USE_*", "VLLM_FLASH_*",
		"VLLM_FLASHINFER_*", "VLLM_MLA_*", "VLLM_MOE_*", "VLLM_FUSED_MOE_*", "VLLM_DEEPEP_*", "VLLM_DEEP_GEMM_*", "VLLM_MXFP4_*", "VLLM_NVFP4_*", "VLLM_MARLIN_*",
		"VLLM_DISABLED_KERNELS", "VLLM_KV_CACHE_LAYOUT", "VLLM_ALLREDUCE_*", "VLLM_SKIP_P2P_CHECK", "VLLM_ENABLE_*", "VLLM_TRITON_*", "VLLM_CPU_*", "VLLM_RAY_*",
		"VLLM_PP_LAYER_PARTITION", "VLLM_FORCE_*", "VLLM_V1_*", "VLLM_MORIIO_*", "VLLM_MORI_*", "VLLM_MEMORY_PROFILER_*", "VLLM_RANDOMIZE_DP_DUMMY_INPUTS")...)
}

// useV1 accepts the engine version that the planner models.
func useV1(_ *parser, a *Argument, v string) error {
	b, err := boolean(v)
	if err != nil {
		return err
	}
	if b {
		a.Material = false
		a.Note = "the V1 engine is the one that is modelled"
		return nil
	}
	a.Note = "the V0 engine is not modelled; the projection is for V1"
	return nil
}

func finishVLLM(p *parser) error {
	s := &p.s
	if err := p.compilation("--compilation-config"); err != nil {
		return err
	}
	if c := p.objects["--attention-config"]; asText(c["backend"]) != "" {
		s.AttentionBackend = lower(asText(c["backend"]))
	}
	if v, ok := p.objects["--eplb-config"]["num_redundant_experts"]; ok {
		n, err := count(asText(v), 0)
		if err != nil {
			return bad("--eplb-config: num_redundant_experts: %s", err)
		}
		s.RedundantExperts = &n
	}
	if err := p.vllmSpeculation("--speculative-config"); err != nil {
		return err
	}
	if err := p.transfer("--kv-transfer-config"); err != nil {
		return err
	}
	if s.expertParallel {
		ep := value(s.TP, 1) * value(s.DP, 1)
		s.EP = &ep
		p.note("--enable-expert-parallel", "experts over all %d ranks (TP x DP)", ep)
	}
	if s.MaxNumBatchedTokens != nil && value(s.ChunkedPrefill, true) {
		n := *s.MaxNumBatchedTokens
		s.ChunkedPrefillSize = &n
	}
	return nil
}

// compilation reads what a --compilation-config says of graphs.
func (p *parser) compilation(name string) error {
	c := p.objects[name]
	for _, k := range []string{"level", "mode"} {
		if v := asText(c[k]); v == "0" || strings.EqualFold(v, "none") {
			p.s.GraphMode = "none"
		}
	}
	if v, ok := c["use_cudagraph"]; ok && asText(v) == "false" {
		p.s.GraphMode = "none"
	}
	if v, ok := c["full_cuda_graph"]; ok && asText(v) == "true" {
		p.s.GraphMode = "full"
	}
	if v := asText(c["cudagraph_mode"]); v != "" {
		if err := setGraphMode(p, nil, v); err != nil {
			return bad("%s: cudagraph_mode: %s", name, err)
		}
	}
	for _, k := range []string{"max_capture_size", "max_cudagraph_capture_size", "cudagraph_capture_sizes"} {
		v, ok := c[k]
		if !ok || v == nil {
			continue
		}
		if err := setCaptureSizes(p, &Argument{}, asText(v)); err != nil {
			return bad("%s: %s: %s", name, k, err)
		}
	}
	return nil
}

// vllmSpeculation reads a --speculative-config.
func (p *parser) vllmSpeculation(name string) error {
	if c := p.objects[name]; c != nil {
		s := p.speculative()
		s.Method = lower(asText(c["method"]))
		s.DraftModel = asText(c["model"])
		for k, at := range map[string]*int{"num_speculative_tokens": &s.NumTokens, "draft_tensor_parallel_size": &s.DraftTP} {
			v, ok := c[k]
			if !ok || v == nil {
				continue
			}
			n, err := count(asText(v), 1)
			if err != nil {
				return bad("%s: %s: %s", name, k, err)
			}
			*at = n
		}
	}
	s := p.s.Speculative
	if s == nil {
		return nil
	}
	if s.Method == "" {
		s.Method = "draft_model"
	}
	if strings.HasSuffix(s.Method, "_mtp") { // deepseek_mtp, qwen3_next_mtp, ...
		s.Method = "mtp"
	}
	if s.NumTokens > 0 {
		s.VerifyTokens = s.NumTokens + 1
	}
	return nil
}
