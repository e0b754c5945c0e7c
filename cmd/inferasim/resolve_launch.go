package main

import (
	"fmt"
	"slices"
	"strings"

	"infera/internal/cli"
	"infera/internal/units"
	"infera/serving/launch"
	"infera/sim/report"
)

// readLaunch parses --launch and takes model and engine from it; the rest
// needs to know the model.
func (r *resolver) readLaunch() error {
	if r.flags.launch == "" {
		return nil
	}
	c, err := launch.Parse(r.flags.launch)
	if err != nil {
		return fmt.Errorf("--launch: %w", err)
	}
	r.command = c
	assign(r, "model", &r.flags.model, c.Settings.Model, c.Settings.Model != "")
	assign(r, "engine", &r.flags.engine, string(c.Engine), true)
	return nil
}

// assign sets a flag from the launch command unless the user set it in the
// layer of --launch itself or above.
func assign[T any](r *resolver, flag string, to *T, value T, said bool) {
	switch {
	case !said:
	case rank(r.Settings.Origin(flag)) >= rank(r.Settings.Origin("launch")):
		r.overridden[flag] = true
	default:
		*to = value
		r.launched[flag] = true
	}
}

// rank orders the layers of settings; a default never wins over a launch
// command.
func rank(o cli.Origin) int {
	return slices.Index([]cli.Origin{cli.FromDefault, cli.FromFile, cli.FromEnv, cli.FromFlag}, o)
}

// applyLaunch fills the flags that the launch command decides, and reports on
// its arguments.
func (r *resolver) applyLaunch() error {
	if r.command == nil {
		return nil
	}
	r.launchLayout()
	r.launchSchedule()
	fields := []string{
		launch.FieldModel, launch.FieldTP, launch.FieldPP, launch.FieldEP, launch.FieldDP, launch.FieldAttentionDP,
		launch.FieldDecodeCP, launch.FieldRedundant, launch.FieldWeightDType, launch.FieldKVCacheDType,
		launch.FieldMaxContext, launch.FieldMaxSeqs, launch.FieldBatchedTokens, launch.FieldChunkedPrefill,
		launch.FieldBlockSize, launch.FieldMemoryFraction, launch.FieldKVTokens, launch.FieldGraphMode,
		launch.FieldSpecTokens, launch.FieldStreamInterval, launch.FieldOffload, launch.FieldCustomAllReduce, launch.FieldQuickReduce,
		launch.FieldPrefixCaching, // how much of it is --prefix-cache-hit-rate
	}
	// bf16 and fp16 cost the same; the format of the weights is the model's.
	if d := r.command.Settings.DType; d == "bf16" || d == "fp16" {
		fields = append(fields, launch.FieldDType)
	}
	if r.launchAttention() {
		fields = append(fields, launch.FieldAttention)
	}
	fields = append(fields, r.launchDrafts()...)
	// The fitted efficiencies on AMD are those of AITER builds.
	if on := r.command.Settings.AITER; on != nil && *on && r.out.GPU.Vendor == "amd" {
		fields = append(fields, launch.FieldAITER)
	}
	r.command.Limit(fields...)
	r.reportLaunch()
	return nil
}

func (r *resolver) launchLayout() {
	f, s := r.flags, &r.command.Settings
	l, replicas := s.Layout(r.command.Engine, hasExperts(r.out.Arch))
	assign(r, "tp", &f.tp, l.TP, s.TP != nil || s.DP != nil)
	assign(r, "pp", &f.pp, l.PP, s.PP != nil)
	assign(r, "ep", &f.ep, l.EP, s.EP != nil || s.DP != nil)
	assign(r, "attention-dp-size", &f.attentionDP, l.AttentionDP, s.DP != nil)
	assign(r, "replicas", &f.replicas, replicas, replicas > 1)
	assign(r, "decode-context-parallel-size", &f.decodeCP, max(1, l.DecodeCP), s.DecodeCP != nil)
	assign(r, "redundant-experts", &f.redundantExperts, l.RedundantExperts, s.RedundantExperts != nil)
	groups := max(1, l.AttentionGroups())
	if s.KVCacheTokens != nil {
		assign(r, "kv-pool-tokens", &f.poolTokens, float64(*s.KVCacheTokens*groups), true)
	}
	// SGLang states sequences and chunks of all attention groups together.
	share := 1
	if r.command.Engine == launch.SGLang {
		share = groups
	}
	assignShare(r, "max-num-seqs", &f.maxSeqs, s.MaxNumSeqs, share)
	assignShare(r, "chunked-prefill-size", &f.chunkedPrefill, s.ChunkedPrefillSize, share)
}

func (r *resolver) launchSchedule() {
	f, s := r.flags, &r.command.Settings
	assign(r, "weight-dtype", &f.weight, s.WeightDType, s.WeightDType != "")
	assign(r, "kv-cache-dtype", &f.kv, s.KVCacheDType, s.KVCacheDType != "")
	assignShare(r, "max-context-len", &f.maxContext, s.MaxModelLen, 1)
	assignShare(r, "max-num-batched-tokens", &f.maxBatchedTokens, s.MaxNumBatchedTokens, 1)
	assignShare(r, "kv-block-size", &f.blockSize, s.BlockSize, 1)
	assignShare(r, "stream-interval", &f.streamInterval, s.StreamInterval, 1)
	if s.MemoryFraction != nil {
		assign(r, "kv-cache-memory-fraction", &f.memoryFraction, *s.MemoryFraction, true)
	}
	assign(r, "cudagraph-mode", &f.graphMode, s.DecodeGraph(), s.DecodeGraph() != "")
	if s.Speculative != nil {
		assign(r, "speculative-num-tokens", &f.specTokens, float64(s.Speculative.NumTokens), s.Speculative.NumTokens > 0)
	}
	if s.Offload != nil && s.Offload.HostBytes > 0 {
		gpus := max(1, f.tp*f.pp)
		assign(r, "kv-offload-gb-per-gpu", &f.offload, s.Offload.HostBytes/units.Bytes(gpus), true)
	}
	if q := s.QuickReduce; q != "" && q != "none" {
		assign(r, "quick-reduce", &f.quickReduce, true, true)
		r.quickReduceFormat = q
		if q == "fp" {
			r.quickReduceFormat = "fp16"
		}
	}
	r.noCustomAllReduce = s.CustomAllReduce != nil && !*s.CustomAllReduce
}

// launchDrafts returns the fields of speculation that the projection has as
// they are: the checkpoint's own drafter, and chains of drafted tokens.
func (r *resolver) launchDrafts() []string {
	s := r.command.Settings.Speculative
	if s == nil {
		return nil
	}
	var fields []string
	if s.DraftModel == "" && r.out.Arch.Draft.Layers > 0 {
		fields = append(fields, launch.FieldSpecMethod)
	}
	if s.VerifyTokens == 0 || s.VerifyTokens == s.NumTokens+1 {
		fields = append(fields, launch.FieldSpecVerify)
	}
	return fields
}

// launchAttention takes the attention kernels over where their speed is known.
func (r *resolver) launchAttention() bool {
	family := r.command.Settings.AttentionFamily()
	if r.out.GPU.Vendor != "amd" || (family != "aiter" && family != "triton") {
		return false
	}
	assign(r, "attention-backend", &r.flags.attentionBackend, family, true)
	return true
}

// assignShare assigns a count divided over groups, rounded up.
func assignShare(r *resolver, flag string, to *int, value *int, groups int) {
	if value != nil {
		assign(r, flag, to, (*value+groups-1)/groups, true)
	}
}

// reportLaunch lists the fate of every argument.
func (r *resolver) reportLaunch() {
	var ignored []string
	for _, a := range r.command.Arguments {
		text := a.Name
		if a.Value != "" {
			text += " " + a.Value
		}
		detail := a.Note
		if a.Field != "" {
			detail = join(a.Field, detail)
		}
		status := string(a.Status)
		for _, field := range strings.Split(a.Field, ",") {
			if flag := strings.ReplaceAll(field, "_", "-"); r.overridden[flag] {
				status, detail = "overridden", "by --"+flag
			}
		}
		r.out.launch = append(r.out.launch, report.Argument{Argument: text, Status: status, Detail: detail})
		if a.Material && a.Status == launch.NotModelled {
			ignored = append(ignored, a.Name)
		}
	}
	if len(ignored) > 0 {
		r.warn("launch_not_modelled", "arguments of --launch that can change speed or memory and are not modelled: %s", strings.Join(ignored, ", "))
	}
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ": " + b
}
