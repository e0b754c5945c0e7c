package launch

// atom is how ATOM is launched. Flags: ROCm/ATOM docs/configuration_guide.md and
// atom/model_engine/arg_utils.py; variables: docs/environment_variables.md.
func atom() dialect {
	return dialect{
		engine: ATOM, envPrefix: "ATOM_", negatable: true,
		flags:  append(atomFlags(), atomPlainFlags()...),
		env:    append(atomEnv(), commonEnv()...),
		finish: finishATOM,
	}
}

func atomFlags() []flag {
	return []flag{
		special(FieldModel, one, setModel, "--model"),
		special(FieldKVCacheDType, one, setKVDType, "--kv-cache-dtype"),
		special(FieldMaxContext, one, setMaxLen, "--max-model-len"),
		number(FieldTP, 1, func(s *Settings) **int { return &s.TP }, "--tensor-parallel-size", "-tp"),
		number(FieldPP, 1, func(s *Settings) **int { return &s.PP }, "--pipeline-parallel-size", "-pp"),
		number(FieldDP, 1, func(s *Settings) **int { return &s.DP }, "--data-parallel-size", "-dp"),
		number(FieldDecodeCP, 1, func(s *Settings) **int { return &s.DecodeCP }, "--decode-context-parallel-size", "-dcp"),
		special(FieldEP, toggle, setExpertParallel, "--enable-expert-parallel"),
		on(FieldAttentionDP, func(s *Settings) **bool { return &s.AttentionDP }, "--enable-dp-attention"),
		number(FieldMaxSeqs, 1, func(s *Settings) **int { return &s.MaxNumSeqs }, "--max-num-seqs"),
		number(FieldBatchedTokens, 1, func(s *Settings) **int { return &s.MaxNumBatchedTokens }, "--max-num-batched-tokens"),
		on(FieldChunkedPrefill, func(s *Settings) **bool { return &s.ChunkedPrefill }, "--enable-chunked-prefill"),
		number(FieldBlockSize, 1, func(s *Settings) **int { return &s.BlockSize }, "--block-size"),
		number(FieldKVTokens, 1, func(s *Settings) **int { return &s.KVCacheBlocks }, "--num-kvcache-blocks"),
		share(FieldMemoryFraction, func(s *Settings) **float64 { return &s.MemoryFraction }, "--gpu-memory-utilization"),
		on(FieldPrefixCaching, func(s *Settings) **bool { return &s.PrefixCaching }, "--enable-prefix-caching"),
		special(FieldGraphMode, toggle, setEager, "--enforce-eager"),
		special(FieldGraphMode, one, setLevel, "--level"),
		special(FieldGraphMode, one, setGraphMode, "--cudagraph-mode"),
		special(FieldGraphMaxBatch, many, setCaptureSizes, "--cudagraph-capture-sizes"),
		special(FieldSpecMethod, one, setSpecMethod, "--method"),
		special(FieldSpecTokens, one, setSpecTokens, "--num-speculative-tokens"),
		special(FieldSpecDraft, one, setSpecDraft, "--draft-model"),
		jsonFlag(map[string]string{"global_quant_config": FieldWeightDType}, "--online-quant-config"),
		jsonFlag(transferKeys, "--kv-transfer-config"),
	}
}

func atomPlainFlags() []flag {
	var f []flag
	f = append(f, unmodelled(one, "can change memory; not modelled", "--index-cache-dtype", "--state-checkpoint-interval-tokens", "--hf-overrides")...)
	f = append(f, unmodelled(one, "can change speed; not modelled", "--scheduler-delay-factor", "--dp-load-balance", "--dynamic-chunking-smooth-factor", "--dynamic-chunking-min-chunk-size",
		"--data-parallel-size-local", "--prefill-context-parallel-size", "-pcp")...)
	f = append(f, unmodelled(toggle, "can change speed or memory; not modelled", "--state-checkpoint-demand", "--enable-dynamic-chunking", "--enable-tbo", "--enable-two-batch-overlap")...)
	f = append(f, ignored(one, "--host", "--port", "--server-port", "--torch-profiler-dir", "--throughput-log-interval", "--cache-hit-rate-window", "--tokenizer", "--api-key",
		"--chat-template", "--tool-call-parser", "--reasoning-parser", "--log-level", "--data-parallel-rank", "--data-parallel-master-ip", "--data-parallel-master-port", "--data-parallel-base-port",
		"--kv-events-config", "--seed", "--runner-qualname", "--default-chat-template-kwargs")...)
	f = append(f, ignored(many, "--served-model-name")...)
	f = append(f, ignored(optional, "--load-dummy")...)
	f = append(f, ignored(toggle, "--trust-remote-code", "--enable-log-stats", "--mark-trace", "--enable-auto-tool-choice", "--disable-uvicorn-access-log")...)
	return append(f, workerFlags()...)
}

func atomEnv() []flag {
	env := []flag{
		number(FieldDP, 1, func(s *Settings) **int { return &s.DP }, "ATOM_DP_SIZE"),
	}
	env = append(env, ignored(one, "ATOM_DP_RANK*", "ATOM_DP_MASTER_*", "ATOM_LOADER_*", "ATOM_DISABLE_MMAP", "ATOM_TORCH_PROFILER_DIR", "ATOM_PROFILER_*", "ATOM_HOST_IP",
		"ATOM_LOG_*", "ATOM_DISABLE_VLLM_PLUGIN", "ATOM_ONLINE_QUANT_STREAMING*", "ATOM_READY_TIMEOUT", "ATOM_KV_EVENTS_*")...)
	return append(env, unmodelled(one, "selects kernels or scheduling; the projection uses the engine's defaults", "ATOM_USE_*", "ATOM_ENABLE_*", "ATOM_PREFILL_*", "ATOM_LLAMA_*", "ATOM_FP8_*",
		"ATOM_PA_*", "ATOM_V4_*", "ATOM_MHC_*", "ATOM_GROUP32_*", "ATOM_GLM5_*", "ATOM_DUAL_*", "ATOM_H2D_*", "ATOM_STATE_*", "ATOM_DYNAMIC_*", "ATOM_DP_*", "ATOM_MOE_*", "ATOM_FORCE_*")...)
}

// setLevel reads a compilation level: 0 captures no graphs, 3 is piecewise.
func setLevel(p *parser, a *Argument, v string) error {
	if err := oneOf(v, "0", "1", "2", "3"); err != nil {
		return err
	}
	p.s.eager = p.s.eager || v == "0"
	if v == "0" {
		a.Note = join(a.Note, "no graphs are captured")
	}
	return nil
}

func finishATOM(p *parser) error {
	s := &p.s
	// With attention data parallelism the engine turns its TP x DP ranks into
	// as many data-parallel ranks of TP 1 (docs/distributed_guide.md).
	if value(s.AttentionDP, false) {
		dp, tp := value(s.TP, 1)*value(s.DP, 1), 1
		s.TP, s.DP = &tp, &dp
		for _, n := range []string{"--enable-dp-attention", "--tensor-parallel-size", "--data-parallel-size"} {
			p.note(n, "%d attention ranks of TP 1", dp)
		}
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
	if f := asText(p.objects["--online-quant-config"]["global_quant_config"]); f != "" {
		if err := setQuantization(p, &Argument{}, f); err != nil {
			return bad("--online-quant-config: global_quant_config: %s", err)
		}
	}
	if sp := s.Speculative; sp != nil {
		if sp.Method == "" {
			s.Speculative = nil
			p.drop("--num-speculative-tokens", "without --method it has no effect")
		} else {
			sp.NumTokens = max(sp.NumTokens, 1) // the engine's default
			sp.VerifyTokens = sp.NumTokens + 1
		}
	}
	return p.transfer("--kv-transfer-config")
}
