package main

import (
	"slices"
	"strings"

	"infera/internal/cli"
	"infera/sim/workload"
)

// needs says that some flags mean nothing without another setting.
type needs struct {
	flags []string
	met   bool
	what  string // what they need
}

// refuseUnused refuses flags that would have no effect together with the
// others: a typing slip must not pass for an answer.
func (r *resolver) refuseUnused() error {
	for _, n := range r.needs() {
		if n.met {
			continue
		}
		for _, flag := range n.flags {
			if r.given(flag) && !r.launched[flag] {
				return cli.Errorf(cli.BadInput, "--%s has no effect: %s", flag, n.what)
			}
		}
	}
	r.warnUnused()
	return nil
}

func (r *resolver) needs() []needs {
	f := r.flags
	moe := hasExperts(r.out.Arch)
	open := f.requestRate > 0
	random := slices.Contains(workload.Processes(), f.arrivalModel)
	return []needs{
		{[]string{
			"prefill-tp", "prefill-pp", "prefill-ep", "prefill-attention-dp", "decode-tp", "decode-pp", "decode-ep", "decode-attention-dp",
			"prefill-replicas", "decode-replicas", "kv-transfer-bw-gbps", "kv-transfer-latency-us", "transfer-backend",
		}, f.disaggregate, "it needs --disaggregate"},
		{[]string{"replicas"}, !f.disaggregate, "with --disaggregate the pools have --prefill-replicas and --decode-replicas"},
		{[]string{"serving-model"}, f.servingModel != "static" || !(f.disaggregate || open), "static batches know neither --disaggregate nor --request-rate"},
		{[]string{"redundant-experts", "ep-load-balance", "moe-routing-skew", "moe-router-coverage", "moe-expert-dtype", "enable-deepep", "sync-free-stage", "ep-a2a-algo", "ep-a2a-efficiency"},
			moe, r.out.Arch.Name + " has no routed experts"},
		{[]string{"speculative-acceptance-rate", "speculative-accepted-length", "speculative-draft-cost-factor"}, f.specTokens > 0, "it needs --speculative-num-tokens"},
		{[]string{"speculative-acceptance-rate"}, f.specLength == 0, "--speculative-accepted-length replaces it"},
		{[]string{"arrival-model"}, open == random, "--request-rate goes with an open --arrival-model, a closed loop with neither"},
		{[]string{"inference-batch-size"}, f.servingModel == "static", "it needs --serving-model static"},
		{[]string{"kernels-per-layer"}, f.kernelLaunchUs > 0 || f.kernelOccupancyUs > 0, "it needs --kernel-launch-latency-us or --decode-kernel-occupancy-us"},
		{[]string{"prefill-rate-lo-tokens", "prefill-rate-hi-tokens"}, f.prefillRateUs > 0, "it needs --prefill-rate-us-per-token"},
		{[]string{"kv-offload-bw-gbps"}, f.offload > 0, "it needs --kv-offload-gb-per-gpu"},
		{[]string{"sliding-window-layer-fraction"}, f.window > 0, "it needs --sliding-window"},
		{[]string{"sampling-top-k", "sampling-top-p", "sampling-temperature"}, !f.noSampling, "--no-sampling leaves the sampler out"},
		{[]string{"gpu-device"}, f.gpuArch == "" && f.hardware == "", "it chooses among local GPUs when neither --gpu-arch nor --hardware is given"},
		{[]string{"anchor-store", "load-benchmark"}, f.mode != modeSimulate, "--profiling-mode simulate uses no measurement"},
	}
}

// warnUnused remarks on settings that are allowed to idle.
func (r *resolver) warnUnused() {
	f := r.flags
	spread := f.ep > 1 || max(f.prefillEP, f.decodeEP) > 1
	if !spread {
		for _, flag := range []string{"ep-load-balance", "enable-deepep", "sync-free-stage", "ep-a2a-algo", "ep-a2a-efficiency"} {
			if r.given(flag) {
				r.warn("no_effect", "--%s has no effect without expert parallelism (--ep)", flag)
			}
		}
	}
	if f.specTokens > 0 && f.acceptance == 0 && f.specLength == 0 {
		r.warn("no_acceptance", "drafted tokens are priced but never accepted: give --speculative-acceptance-rate or --speculative-accepted-length")
	}
	if f.specTokens > 0 && f.draftCost == 0 && r.out.Arch.Draft.Layers == 0 {
		r.warn("free_drafts", "%s has no built-in drafter, so drafting is priced at nothing: give --speculative-draft-cost-factor", r.out.Arch.Name)
	}
	if r.given("sparse-indexer-cost-scale") && !hasIndexer(r) {
		r.warn("no_effect", "--sparse-indexer-cost-scale has no effect: %s has no token selector", r.out.Arch.Name)
	}
	if f.offload > 0 && f.prefixHit == 0 {
		r.warn("no_effect", "--kv-offload-gb-per-gpu changes speed only with a --prefix-cache-hit-rate")
	}
	if c := r.command; c != nil && c.Settings.PrefixCaching != nil && !*c.Settings.PrefixCaching && f.prefixHit > 0 {
		r.warn("prefix_caching_off", "the launch command turns prefix caching off, yet --prefix-cache-hit-rate %g is applied", f.prefixHit)
	}
}

func hasIndexer(r *resolver) bool {
	for i := range r.out.Arch.Groups {
		if r.out.Arch.Groups[i].Attention.Sparse.IndexHeads > 0 {
			return true
		}
	}
	return false
}

// memoryFlags are the flags that decide memory; all others are idle in fit.
func memoryFlags() map[string]bool {
	all := map[string]bool{}
	for _, f := range strings.Fields(`model launch gpu-arch hardware gpu-device hbm-capacity-gb tp pp ep attention-dp-size
		decode-context-parallel-size replicas redundant-experts weight-dtype linear-weight-dtype moe-expert-dtype kv-cache-dtype
		input-len output-len max-concurrency max-context-len speculative-num-tokens engine engine-version max-num-batched-tokens
		max-num-seqs chunked-prefill-size kv-block-size kv-cache-memory-fraction cudagraph-mode kv-offload-gb-per-gpu
		kv-pool-tokens engine-reserved-gb disaggregate prefill-tp prefill-pp prefill-ep prefill-attention-dp prefill-replicas
		decode-tp decode-pp decode-ep decode-attention-dp decode-replicas`) {
		all[f] = true
	}
	return all
}
