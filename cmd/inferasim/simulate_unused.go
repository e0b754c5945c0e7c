package main

import (
	"fmt"
	"slices"
	"strings"

	"infera/internal/cli"
	"infera/internal/routing"
	"infera/sim/cluster"
	"infera/sim/engine"
	"infera/sim/workload"
)

// refuseUnused refuses settings that would have no effect.
func (s *scenario) refuseUnused() error {
	f, open := s.f, s.q.RequestRate > 0
	recorded := f.workloadFile != "" || f.mooncakeTrace != ""
	process := s.r.arrivalModel
	shaped := process == workload.Gamma || process == workload.Weibull
	byPrefix := slices.Contains([]string{"prefix-hash", "prefix-aware"}, strings.ReplaceAll(f.routing, "_", "-"))
	return s.refuse([]needs{
		{[]string{"des-workload-file"}, f.mooncakeTrace == "", "--des-mooncake-trace names the workload already"},
		{[]string{"time-scale", "rate-scale", "des-trace-format"}, recorded, "it needs --des-workload-file"},
		{[]string{"request-rate"}, !recorded, "a recorded workload has its own arrivals; change them with --rate-scale"},
		{[]string{"des-range-ratio", "des-length-sigma", "des-lengths-from", "des-num-prefixes", "des-session-turns", "prefix-cache-hit-rate", "des-class"}, !recorded, "a recorded workload has its own lengths and content"},
		{[]string{"des-client-think-ms"}, f.closedLoop || !open, "it needs a closed loop or a recorded workload"},
		{[]string{"des-client-ramp-s"}, f.closedLoop || !open && !recorded, "it needs a closed loop"},
		{[]string{"des-closed-loop"}, !f.closedLoop || !open, "a closed loop has no --request-rate"},
		{[]string{"des-sweep"}, open || recorded && !f.closedLoop, "it needs open arrivals: --request-rate or a recorded workload"},
		{[]string{"des-burstiness"}, open && (shaped || process == "" || process == workload.Poisson), "it needs --request-rate and arrivals that are poisson, gamma or weibull"},
		{[]string{"des-on-s", "des-off-s"}, process == workload.OnOff, "it needs --arrival-model on-off"},
		{[]string{"des-swing", "des-period-s"}, process == workload.Diurnal, "it needs --arrival-model diurnal"},
		{[]string{"des-prefix-len", "des-prefix-zipf"}, f.prefixes > 0, "it needs --des-num-prefixes"},
		{[]string{"des-session-think-s", "des-turn-tokens"}, f.turns > 1, "it needs --des-session-turns above 1"},
		{[]string{"des-session-turns"}, f.turns == 0 || f.turns >= 1, "a conversation has at least one turn"},
		{[]string{"des-overlap-weight", "des-prefill-overlap-weight", "des-decode-overlap-weight", "des-signal-staleness-ms"}, routing.UsesIndex(f.routing), "it needs --des-routing kv-aware"},
		{[]string{"des-prefix-hash-tokens"}, byPrefix, "it needs --des-routing prefix-hash"},
		{[]string{"des-range-ratio", "des-length-sigma"}, f.lengthsFrom == "" || f.turnTokens > 0, "--des-lengths-from gives the lengths"},
		{[]string{"des-length-sigma"}, f.rangeRatio == 1, "--des-range-ratio says how lengths are drawn already"},
		{[]string{"prefix-cache-hit-rate"}, f.prefixes == 0, "--des-num-prefixes says what prompts share already"},
		{[]string{"des-autoscale-max", "des-autoscale-interval-s", "des-cold-start-s"}, f.autoscale != "", "it needs --des-autoscale"},
		{[]string{"des-local-prefill-tokens", "des-transfer-layers", "des-prefill-overlap-weight", "des-decode-overlap-weight", "des-prefill-gpu-arch", "des-decode-gpu-arch", "des-prefill-engine", "des-decode-engine"}, s.q.Disagg != nil, "it needs --disaggregate"},
		{[]string{"des-instances"}, s.q.Disagg == nil, "with --disaggregate the pools have --prefill-replicas and --decode-replicas"},
		{[]string{"des-kv-blocks", "des-cache-slots"}, f.kvTokens == 0, "--des-kv-cache-tokens gives the pool already"},
		{[]string{"replicas"}, f.instances == 1 || s.r.replicas == 1, "--des-instances gives the number of instances already"},
		{[]string{"des-cache-shares-pool"}, f.sharesPool, "cache and running requests always share one pool"},
		{[]string{"des-admit-backlog-only"}, f.backlogOnly, "cache hits are always resolved when requests are admitted"},
		{[]string{"des-whole-context-residency"}, f.wholeContext, "a running request always holds its whole context"},
		{[]string{"decode-admission-steps"}, s.r.admissionSteps == 0, "the simulated schedulers look at the queue in every step"},
		{[]string{"des-exclusive-prefill"}, !f.mixedChunk, "--des-mixed-chunk asks for the opposite"},
		{[]string{"serving-model"}, s.r.servingModel != "static", "static batches are not simulated"},
	})
}

// refuseIgnored refuses settings of a request that a projection looks at and a
// simulation alone does not.
func (s *scenario) refuseIgnored() error {
	return s.refuse([]needs{
		{[]string{"workload-resident-tokens"}, s.closed, "it bounds the clients of a closed loop"},
	})
}

// refuseUnmet refuses what only the workload, once it is read, shows to have no
// effect.
func (s *scenario) refuseUnmet() error {
	f := s.f
	conversations := f.turns > 1 || s.trace != nil && s.trace.conversations
	affine := strings.ReplaceAll(f.routing, "_", "-") == "session-affinity"
	if rate := s.q.RequestRate; rate > 0 && float64(f.requests)/rate > maxSeconds {
		return cli.Errorf(cli.BadInput, "--request-rate %g: %d requests would take more than %g s", rate, f.requests, float64(maxSeconds))
	}
	return s.refuse([]needs{
		{[]string{"des-routing"}, conversations || !affine, "session-affinity needs conversations, the workload has none"},
		{[]string{"des-autoscale-max"}, f.autoscaleMost >= len(s.fleet.Instances), fmt.Sprintf("the fleet begins with %d instances", len(s.fleet.Instances))},
		{[]string{"des-fault"}, routing.UsesIndex(f.routing) || !slices.ContainsFunc(f.faults, func(t string) bool { return strings.HasPrefix(t, "events@") }), "only --des-routing kv-aware listens to cache events"},
		{[]string{"des-exclusive-prefill"}, slices.ContainsFunc(s.fleet.Instances, func(i *cluster.Spec) bool { return i.Scheduler.Policy == engine.VLLM }), "the engine does so by itself"},
	})
}

// refuse names the first flag given that needs what is not met.
func (s *scenario) refuse(all []needs) error {
	for _, n := range all {
		if n.met {
			continue
		}
		for _, flag := range n.flags {
			if s.app.Settings.Origin(flag) != cli.FromDefault {
				return cli.Errorf(cli.BadInput, "--%s has no effect: %s", flag, n.what)
			}
		}
	}
	return nil
}
