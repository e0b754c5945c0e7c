package main

import (
	"fmt"

	"infera/internal/cli"
	"infera/internal/units"
	"infera/models"
	"infera/sim/layout"
	"infera/sim/moe"
	"infera/sim/planner"
)

const microsecond = 1e-6

func us(v float64) units.Seconds { return units.Seconds(v * microsecond) }

func (r *resolver) workload() error {
	f, q := r.flags, r.out.Request
	q.InputLen, q.OutputLen = float64(f.inputLen), float64(f.outputLen)
	q.Concurrency, q.Batch = float64(f.concurrency), float64(f.batch)
	q.MaxContext, q.PrefixHitRate = f.maxContext, f.prefixHit
	q.RequestRate = f.requestRate
	q.Deterministic = f.arrivalModel == "deterministic"
	if f.requestRate > 0 && f.arrivalModel == "" {
		f.arrivalModel = "poisson"
	}
	if f.servingModel == "static" {
		q.Serving = planner.Static
	}
	q.Speculation = planner.Speculation{
		Tokens: f.specTokens, Acceptance: f.acceptance, AcceptedLength: f.specLength, DraftCost: f.draftCost,
	}
	q.Sampling = planner.Sampling{Off: f.noSampling, TopK: f.samplingTopK, TopP: f.samplingTopP, Temperature: f.temperature}
	q.GPUCostPerHour = f.cost
	// Lengths nobody asked for give way to a short context.
	if f.maxContext > 1 && !r.given("input-len") && !r.given("output-len") && f.maxContext < f.inputLen+f.outputLen {
		f.outputLen = min(f.outputLen, (f.maxContext+1)/2)
		f.inputLen = min(f.inputLen, f.maxContext-f.outputLen)
		q.InputLen, q.OutputLen = float64(f.inputLen), float64(f.outputLen)
		r.warn("shortened", "the default lengths do not fit --max-context-len %d: %d in and %d out are taken", f.maxContext, f.inputLen, f.outputLen)
	}
	if f.maxContext > 0 && f.maxContext < f.inputLen+f.outputLen {
		return cli.WithHint(cli.Errorf(cli.BadInput, "--max-context-len %d is shorter than input + output, %d tokens", f.maxContext, f.inputLen+f.outputLen),
			"raise it or shorten the request")
	}
	if longest := max(f.maxContext, f.inputLen+f.outputLen); q.Arch.MaxContext > 0 && longest > q.Arch.MaxContext {
		r.warn("beyond_model_context", "a request of %d tokens is longer than the %d that the model's config allows", longest, q.Arch.MaxContext)
	}
	return nil
}

func (r *resolver) settings() error {
	f, q := r.flags, r.out.Request
	q.Engineering = planner.EngineSettings{
		MaxBatchedTokens: f.maxBatchedTokens, MaxSeqs: f.maxSeqs, ChunkedPrefill: f.chunkedPrefill, BlockSize: f.blockSize,
		MemoryFraction: f.memoryFraction, GraphMode: f.graphMode, AttentionBackend: f.attentionBackend, FusedKernels: f.fusedKernels,
		StepOverhead: us(f.stepOverheadUs), KernelLaunch: us(f.kernelLaunchUs), KernelsPerLayer: f.kernelsPerLayer,
		KernelOccupancy: us(f.kernelOccupancyUs), MixedPenalty: f.mixedPenalty,
		Prefill: planner.PrefillRate{PerToken: us(f.prefillRateUs), Low: f.prefillRateLow, High: f.prefillRateHigh}, AdmissionSteps: float64(f.admissionSteps),
		BoundsOnly: f.gemmBackend == "roofline",
	}
	q.Host = planner.HostSettings{
		Tokenize: us(f.tokenizeUs), Detokenize: us(f.detokenizeUs), Request: us(1000 * f.requestMs), StreamInterval: f.streamInterval,
	}
	q.Sparse = planner.SparseSettings{
		TopK: f.sparseTopK, IndexerScale: f.indexerScale, Window: f.window, WindowFraction: f.windowFraction,
	}
	q.Memory = planner.MemorySettings{
		PoolTokens: f.poolTokens, ResidentTokens: f.residentTokens, EngineReserved: f.engineReserved,
		Offload: f.offload, OffloadRate: f.offloadRate,
	}
	return nil
}

func (r *resolver) communication() error {
	f, c := r.flags, &r.out.Communication
	c.Collective.Algorithm, c.Collective.A2AAlgorithm = f.arAlgorithm, f.a2aAlgorithm
	// The flags multiply the time, the model divides it.
	c.Collective.AllReduceEfficiency, c.Collective.AllToAllEfficiency = 1/f.arEfficiency, 1/f.a2aEfficiency
	c.Collective.QuickReduce, c.Collective.FusedNorm = f.quickReduce, f.fusedNorm
	c.PrefillOverlap, c.DecodeOverlap = f.prefillOverlap, f.decodeOverlap
	c.DeepEP, c.SyncFreeStage = f.deepEP || f.syncFree > 0, f.syncFree
	c.Collective.HiddenFraction = c.HiddenAllToAll()
	c.KVTransferBandwidth, c.KVTransferLatency, c.TransferBackend = f.kvTransfer, us(f.kvTransferUs), f.transferBackend
	c.Collective.QuickReduceFormat = r.quickReduceFormat
	if r.noCustomAllReduce {
		c.Collective.CustomAllReduceMax = new(units.Bytes)
	}
	// The tables hold measured fixed times and limits; a variable replaces them
	// only when it is set.
	for _, v := range []struct {
		name string
		to   **units.Seconds
	}{
		{"INFERASIM_INFER_AR_FLOOR_US", &c.Collective.AllReduceFloor},
		{"INFERASIM_INFER_A2A_FLOOR_US", &c.Collective.AllToAllFloor},
	} {
		if x, ok := r.Settings.Float(v.name); ok {
			t := us(x)
			*v.to = &t
		}
	}
	for _, v := range []struct {
		name string
		to   **units.Bytes
	}{
		{"INFERASIM_CUSTOM_AR_MAX_MB", &c.Collective.CustomAllReduceMax},
		{"INFERASIM_A2A_MEASURED_MAX_MB", &c.Collective.AllToAllMeasuredMax},
	} {
		if x, ok := r.Settings.Float(v.name); ok {
			b := units.Bytes(x * 1e6)
			*v.to = &b
		}
	}
	return nil
}

func (r *resolver) routing() error {
	f := r.flags
	r.out.Routing = moe.Options{
		Skew: f.skew, Balance: f.balance, Redundant: f.redundantExperts,
		OuterMultiplier: !r.Settings.Bool("INFERASIM_MOE_IMB_ROOFLINE"),
		SharedView:      !r.Settings.Bool("INFERASIM_ORIGAMI_IMB_PERVIEW"),
	}
	if k := r.Settings.Text("INFERASIM_MOE_SIM_KERNEL"); (k == "turbo" || k == "legacy") && hasExperts(r.out.Arch) {
		r.warn("moe_sim_kernel", "INFERASIM_MOE_SIM_KERNEL=%s is a kernel of training; experts are priced as the fused kernel of serving", k)
	}
	if f.coverage == "" {
		return nil
	}
	data, err := r.State.ReadInput(r.path(f.coverage))
	if err != nil {
		return err
	}
	if r.out.Routing.Coverage, err = moe.ParseCoverage(data); err != nil {
		return fmt.Errorf("--moe-router-coverage %s: %w", f.coverage, err)
	}
	return nil
}

func hasExperts(a *models.Architecture) bool {
	for i := range a.Groups {
		if a.Groups[i].FFN.Kind == models.FFNMoE {
			return true
		}
	}
	return false
}

// disaggregation makes the layouts of the two pools: the request's layout with
// the pool's own sizes where they are given.
func (r *resolver) disaggregation() error {
	f := r.flags
	if !f.disaggregate {
		return nil
	}
	pool := func(tp, pp, ep, dp int) layout.Layout {
		l := r.out.Layout
		for _, s := range []struct {
			to    *int
			value int
		}{{&l.TP, tp}, {&l.PP, pp}, {&l.EP, ep}, {&l.AttentionDP, dp}} {
			if s.value > 0 {
				*s.to = s.value
			}
		}
		return l
	}
	d := &planner.Disaggregation{
		Prefill: pool(f.prefillTP, f.prefillPP, f.prefillEP, f.prefillDP), PrefillReplicas: f.prefillReplicas,
		Decode: pool(f.decodeTP, f.decodePP, f.decodeEP, f.decodeDP), DecodeReplicas: f.decodeReplicas,
	}
	d.Prefill.DecodeCP = 1 // splits a cache in decode only
	r.out.Disagg = d
	return nil
}
