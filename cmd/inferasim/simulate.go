package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infera/internal/cli"
	"infera/internal/units"
	"infera/sim/cluster"
	"infera/sim/engine"
	"infera/sim/metrics"
	"infera/sim/planner"
	"infera/sim/report"
	"infera/sim/report/simulation"
	"infera/sim/workload"
)

func (a *app) simulateCommand() *cobra.Command {
	var r requestFlags
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Simulate requests one by one: percentiles, queues, cache hits, fleets",
		Long: "Simulate requests one by one: percentiles, queues, cache hits, fleets.\n\n" +
			"Without --request-rate and without a recorded workload clients send in a closed loop, --max-concurrency of them. " +
			"The fleet is --replicas of the layout, or the two pools of --disaggregate, behind a router.\n\n" +
			"A saturated run is no operating point and says so. Exit code 4 says that the recipe does not fit.",
		Example: "  inferasim simulate --model llama3.1_8B --gpu-arch mi300x --input-len 512 --output-len 128 \\\n" +
			"      --request-rate 20 --profiling-mode simulate --slo-ttft-ms 500 --slo-tpot-ms 25 --des-sweep\n" +
			"  inferasim simulate --model llama3.1_70B --gpu-arch mi355x --tp 2 --replicas 8 --des-routing kv-aware \\\n" +
			"      --des-workload-file conversation_trace.jsonl --profiling-mode simulate --html fleet.html",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := a.resolve(cmd.Context(), &r, cmd.Flags())
			if err != nil {
				return err
			}
			if err := a.calibration(&r); err != nil {
				return err
			}
			return a.simulate(cmd.Context(), q, &r, &f)
		},
	}
	r.bind(cmd.Flags())
	f.bind(cmd.Flags())
	return cmd
}

// scenario is a simulation that can be run again with another seed or rate.
type scenario struct {
	app   *app
	q     *question
	r     *requestFlags
	f     *simulateFlags
	fleet *planner.Fleet
	trace *recorded
	// closed says that clients wait for answers.
	closed bool
	// classes are those of a generated workload, specs their objectives.
	classes []workload.Class
	specs   []cluster.ClassSpec
	pairs   workload.Pairs // recorded lengths, if any
	tiers   []cluster.TierSpec
	faults  []cluster.FaultSpec
	scaler  *cluster.Autoscaler // nil without one
}

func (a *app) simulate(ctx context.Context, q *question, r *requestFlags, f *simulateFlags) error {
	s := &scenario{app: a, q: q, r: r, f: f}
	if err := s.prepare(); err != nil {
		return err
	}
	if err := s.refuseIgnored(); err != nil {
		return err
	}
	if !s.fleet.Feasible {
		return cli.Errorf(cli.Infeasible, "%s", s.fleet.Reason)
	}
	result, err := s.run(ctx)
	if err != nil {
		return err
	}
	if s.f.explain >= 0 && result.Request == nil {
		return cli.Errorf(cli.BadInput, "--explain-request %d: no request of this number was answered", s.f.explain)
	}
	s.describe(result)
	if err := s.writeFiles(ctx, result); err != nil {
		return err
	}
	err = a.Emit(cli.Report{
		JSON: simulation.JSON(result), CSV: simulation.CSV(result),
		Text: func(w io.Writer, width int) error { return simulation.Table(w, result, a.page(width)) },
	})
	t := &result.Total
	return verdict(err, t.Rejected == 0 || t.Rejected < t.Offered, "every request was refused: its context is longer than the cache pool or the longest context")
}

// simulateAfter simulates the recipe of a projection when arrivals are asked for
// and adds the answer to it; nil when they are not.
func (a *app) simulateAfter(ctx context.Context, q *question, r *requestFlags, f *simulateFlags, p *report.Projection) (*cluster.Result, error) {
	s := &scenario{app: a, q: q, r: r, f: f}
	asked := f.closedLoop || f.workloadFile != "" || f.mooncakeTrace != "" ||
		a.Settings.Origin("arrival-model") != cli.FromDefault && r.arrivalModel != "none" && r.arrivalModel != "closed"
	if !asked {
		return nil, s.refuseAll()
	}
	if !p.Feasible {
		return nil, nil
	}
	if err := s.prepare(); err != nil || !s.fleet.Feasible {
		return nil, err
	}
	result, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	s.describe(result)
	if p.Simulation, err = json.Marshal(simulation.JSON(result)); err != nil {
		return nil, fmt.Errorf("encode simulation: %w", err)
	}
	return result, s.writeFiles(ctx, result)
}

// refuseAll refuses the flags of a simulation where there is none.
func (s *scenario) refuseAll() error {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(simulateFlags).bind(fs)
	var err error
	fs.VisitAll(func(f *pflag.Flag) {
		if err == nil && s.app.Settings.Origin(f.Name) != cli.FromDefault {
			err = cli.Errorf(cli.BadInput, "--%s has no effect: it needs a simulation, which --arrival-model, --des-closed-loop or a recorded workload asks for", f.Name)
		}
	})
	return err
}

// prepare resolves what the runs have in common.
func (s *scenario) prepare() error {
	if err := s.refuseUnused(); err != nil {
		return err
	}
	lib, err := s.app.library()
	if err != nil {
		return err
	}
	if s.trace, err = s.readTrace(); err != nil {
		return err
	}
	if s.pairs, err = s.app.readLengths(s.f.lengthsFrom); err != nil {
		return err
	}
	if s.f.instances > 1 {
		s.q.Replica = s.f.instances
	}
	if d := s.q.Disagg; d != nil {
		if d.PrefillOn, err = machineOf(lib, s.f.prefillGPU, s.f.prefillEngine); err != nil {
			return err
		}
		if d.DecodeOn, err = machineOf(lib, s.f.decodeGPU, s.f.decodeEngine); err != nil {
			return err
		}
	}
	s.closed = s.f.closedLoop || s.q.RequestRate == 0 && s.trace == nil
	if s.fleet, err = lib.Fleet(s.q.Request); err != nil || !s.fleet.Feasible {
		return err
	}
	if err := s.refuseUnmet(); err != nil {
		return err
	}
	if s.tiers, err = parseTiers(s.f.tiers); err != nil {
		return err
	}
	if s.faults, err = parseFaults(s.f.faults); err != nil {
		return err
	}
	if s.scaler, err = s.autoscaler(); err != nil {
		return err
	}
	return s.override()
}

// machineOf returns the GPU and the engine of a pool, nil when neither is named.
func machineOf(lib *planner.Library, gpu, engine string) (*planner.Machine, error) {
	if gpu == "" && engine == "" {
		return nil, nil
	}
	m := &planner.Machine{}
	var err error
	if gpu != "" {
		if m.GPU, m.Fabric, err = lib.GPU(gpu); err != nil {
			return nil, err
		}
	}
	if engine != "" {
		if m.Engine, err = lib.Engines.Lookup(engine); err != nil {
			return nil, err
		}
		if m.Release, err = m.Engine.Release(""); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// override applies the simulation's own settings of scheduler and pool.
func (s *scenario) override() error {
	f := s.f
	prioritised := false
	var err error
	if s.classes, s.specs, prioritised, err = s.parseClasses(); err != nil {
		return err
	}
	done := map[*cluster.Spec]bool{}
	for _, spec := range s.fleet.Instances {
		if done[spec] {
			continue
		}
		done[spec] = true
		o := &spec.Scheduler
		o.NewPerStep, o.MaxWaiting, o.ReserveAnswer = f.newPerStep, f.maxWaiting, f.reserveAnswer
		o.MixedPrefill, o.LongestPrefix, o.Priority = f.mixedChunk, f.longestPrefix, prioritised
		if f.exclusivePrefill && o.Policy == engine.VLLM {
			o.Policy = engine.ATOM
		}
		if (f.mixedChunk || f.longestPrefix) && o.Policy != engine.SGLang {
			return cli.Errorf(cli.BadInput, "--des-mixed-chunk and --des-longest-prefix are options of SGLang's scheduler, the engine is %s", s.q.Engine.Name)
		}
		if n := s.q.Concurrency; n > 0 && !s.closed {
			// Open arrivals do not wait for answers: what is bounded is how many
			// requests run.
			o.MaxSequences = min(o.MaxSequences, max(1, int(math.Ceil(n/float64(s.serving(spec.Role))))))
		}
		p := &spec.Pool
		if f.blockSize > 0 {
			p.Blocks = max(1, p.Blocks*p.BlockTokens/f.blockSize)
			p.BlockTokens = f.blockSize
		}
		if f.kvBlocks > 0 {
			p.Blocks = f.kvBlocks
		}
		if f.kvTokens > 0 {
			p.Blocks = max(1, f.kvTokens/p.BlockTokens)
		}
		// A trace knows what prompts share in blocks of its own; nothing is
		// gained by looking closer.
		if s.trace != nil && s.trace.BlockSize > p.BlockTokens && s.trace.BlockSize%p.BlockTokens == 0 {
			p.ContentTokens = s.trace.BlockSize
		}
	}
	if h := s.fleet.Handoff; h != nil {
		h.LocalPrompt, h.Layers = f.localPrompt, f.layers
	}
	return nil
}

// serving counts the instances of a role.
func (s *scenario) serving(role cluster.Role) int {
	n := 0
	for _, spec := range s.fleet.Instances {
		if spec.Role == role {
			n++
		}
	}
	return n
}

// objective is what requests are asked to meet.
func (s *scenario) objective() metrics.Objective {
	return metrics.Objective{TTFT: s.f.ttftMs / 1e3, TPOT: s.f.tpotMs / 1e3, E2E: s.f.e2eMs / 1e3}
}

// debugSteps prints the steps with prompts to standard error, when the variable
// for that is set, besides what onStep does.
func (s *scenario) debugSteps(onStep func(cluster.StepRecord)) func(cluster.StepRecord) {
	if !s.app.Settings.Bool("INFERASIM_DEBUG_DES_STEPS") {
		return onStep
	}
	return func(r cluster.StepRecord) {
		if r.Prefills > 0 {
			fmt.Fprintf(s.app.State.Stderr, "step %d of instance %d at %.3f ms: %.3f ms, %d decodes, %d prefill tokens of %d prompts, %d tokens in the cache\n",
				r.Index, r.Instance, r.Start.Milliseconds(), (r.End - r.Start).Milliseconds(), r.Decodes, r.PromptTokens, r.Prefills, r.KVTokens)
		}
		if onStep != nil {
			onStep(r)
		}
	}
}

// once runs the scenario with a seed, at a rate in requests per second (0 = the
// one asked for). onStep may be nil.
func (s *scenario) once(ctx context.Context, seed uint64, rate float64, onStep func(cluster.StepRecord)) (*cluster.Result, error) {
	source, err := s.source(seed, rate)
	if err != nil {
		return nil, err
	}
	f, single := s.f, onStep != nil
	warmUpShare := f.warmUpShare
	if f.warmUpRequests > 0 && s.app.Settings.Origin("des-warmup-frac") == cli.FromDefault {
		warmUpShare = 0
	}
	bar := s.app.Progress(fmt.Sprintf("simulating at %.4g requests/s", cmp.Or(rate, s.q.RequestRate)), f.requests)
	defer bar.Done()
	answered := 0
	onStep = s.debugSteps(onStep)
	c := cluster.Config{
		Source: source, Fleet: s.fleet.Instances, Handoff: s.fleet.Handoff, Host: s.fleet.Host, Seed: seed,
		Routing: cluster.Routing{
			Policy: f.routing, OverlapWeight: f.overlapWeight, PrefillWeight: f.prefillWeight, DecodeWeight: f.decodeWeight, PrefixTokens: f.hashTokens,
			Staleness: units.Seconds(f.stalenessMs / 1e3),
		},
		Scoring: cluster.Scoring{
			WarmUpShare: warmUpShare, WarmUpRequests: f.warmUpRequests, DetectWarmUp: f.detectWarmUp,
			Tokenize: s.fleet.Host.Tokenize, Detokenize: s.fleet.Host.Detokenize,
		},
		Objective: s.objective(), Classes: s.specs, ClosedLoop: s.closed, Explain: f.explain,
		Until: units.Nanoseconds(units.Seconds(f.durationS)), OnStep: onStep, SingleSteps: single,
		Tiers: s.tiers, Faults: s.faults, Autoscaler: s.scaler,
		OnAnswer: func(metrics.Record) {
			if answered++; answered%progressEvery == 0 {
				bar.Add(progressEvery)
			}
		},
	}
	return cluster.Run(ctx, &c)
}

// progressEvery is how many answers pass between two looks at the bar.
const progressEvery = 256

// source returns the workload of a run.
func (s *scenario) source(seed uint64, rate float64) (workload.Source, error) {
	loop := workload.ClosedLoop{Clients: s.clients(), Think: units.Seconds(s.f.thinkMs / 1e3), Ramp: units.Seconds(s.f.rampS)}
	var source workload.Source
	var err error
	if s.trace != nil {
		source, err = s.trace.source(s, rate)
	} else {
		source, err = workload.New(s.spec(seed, rate))
	}
	if err != nil || !s.closed {
		return source, err
	}
	return workload.Loop(source, loop), loop.Validate()
}

// clients is the size of a closed loop: what was asked for, else what memory
// holds, never more than there are requests.
func (s *scenario) clients() int {
	n := int(s.q.Concurrency)
	if n == 0 {
		n = int(math.Floor(s.fleet.Sustainable))
	}
	return max(1, min(n, s.f.requests))
}

// spec describes the generated workload.
func (s *scenario) spec(seed uint64, rate float64) workload.Spec {
	f, q := s.f, s.q
	if rate == 0 {
		rate = q.RequestRate
	}
	process, shape := s.r.arrivalModel, f.burstiness
	if process == "" || process == "closed" || process == "none" {
		process = workload.Poisson
	}
	if process == workload.Poisson && f.burstiness != 1 {
		process = workload.Gamma
	}
	w := workload.Spec{
		Requests: f.requests, Seed: seed,
		Arrivals: workload.Arrivals{
			Process: process, Rate: rate, Shape: shape, On: units.Seconds(f.onS), Off: units.Seconds(f.offS),
			Swing: f.swing, Period: units.Seconds(f.periodS),
		},
		Input: s.length(q.InputLen), Output: s.length(q.OutputLen), Pairs: s.pairs,
		Prefixes: workload.Prefixes{Count: f.prefixes, Tokens: f.prefixLen, Zipf: f.prefixZipf},
		HitShare: q.PrefixHitRate, Classes: s.classes,
		Sessions: workload.Sessions{Turns: f.turns, Think: units.Seconds(f.turnThinkS)},
	}
	if s.closed {
		w.Requests = max(w.Requests, s.clients())
		w.Arrivals = workload.Arrivals{Process: workload.Burst}
	}
	if f.turnTokens > 0 {
		w.Sessions.NewTokens = s.length(float64(f.turnTokens))
	}
	return w
}

// run runs the scenario: once or with several seeds, and its sweep.
func (s *scenario) run(ctx context.Context) (*cluster.Result, error) {
	seed := uint64(s.f.seed)
	result, err := s.once(ctx, seed, 0, nil)
	if err != nil {
		return nil, err
	}
	if s.f.seeds > 1 {
		runs := []*cluster.Result{result}
		for k := 1; k < s.f.seeds; k++ {
			more, err := s.once(ctx, seed+uint64(k), 0, nil)
			if err != nil {
				return nil, err
			}
			runs = append(runs, more)
		}
		cluster.PoolRuns(result, runs)
	}
	if s.f.sweep {
		err = s.sweep(ctx, result)
	}
	return result, err
}

// sweep finds the knee by bisection and keeps every rate that was tried.
func (s *scenario) sweep(ctx context.Context, result *cluster.Result) error {
	base := result.Total.OfferedRate
	if base <= 0 {
		return cli.Errorf(cli.BadInput, "--des-sweep: all requests arrive at once, there is no rate to vary")
	}
	var curve []cluster.CurvePoint
	verdicts := map[float64]bool{}
	sustained := func(rate float64) (bool, error) {
		if ok, tried := verdicts[rate]; tried {
			return ok, nil
		}
		r, err := s.settled(ctx, rate)
		if err != nil {
			return false, err
		}
		curve = append(curve, cluster.CurvePoint{Rate: rate, Stats: r.Total})
		verdicts[rate] = s.meets(r)
		return verdicts[rate], nil
	}
	low, high := base/8, base*8
	for ok, err := sustained(low); !ok; ok, err = sustained(low) {
		if err != nil {
			return err
		}
		if high, low = low, low/8; low < base/1e4 {
			break
		}
	}
	// The fleet may do far more than what was asked for.
	for high < base*1e4 {
		ok, err := sustained(high)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		low, high = high, high*8
	}
	knee, err := metrics.Knee(low, high, kneeTolerance, sustained)
	if err != nil {
		return err
	}
	result.SetCurve(curve, knee)
	for _, p := range curve {
		if p.Rate == knee && short(&p.Stats) {
			result.Warnings = append(result.Warnings, cluster.Warning{Code: "short_sweep", Text: fmt.Sprintf(
				"at the knee requests arrived within %.3g s and took %.3g s each: the fleet may not sustain it for long", arrivedWithin(&p.Stats), p.E2E.Mean)})
		}
	}
	return nil
}

// meets reports whether a run is an operating point within the objectives.
func (s *scenario) meets(r *cluster.Result) bool {
	return !r.Total.Saturated && (math.IsNaN(r.Total.Attainment) || r.Total.Attainment >= attained)
}

// settled runs a rate with as many requests as asked for, and more as long as
// they arrive within a time that is short against that of one request: a fleet
// that is filling up takes any rate. A recorded workload has no more.
func (s *scenario) settled(ctx context.Context, rate float64) (*cluster.Result, error) {
	f := *s.f
	longer := *s
	longer.f = &f
	for {
		r, err := longer.once(ctx, uint64(f.seed), rate, nil)
		if err != nil {
			return nil, err
		}
		if s.trace != nil || !s.meets(r) || f.requests >= mostSwept || arrivedWithin(&r.Total) >= settledTimes*r.Total.E2E.Mean {
			return r, nil
		}
		f.requests = min(mostSwept, 4*f.requests)
	}
}

// arrivedWithin is the time in which the requests of an open run arrived, seconds.
func arrivedWithin(t *cluster.Stats) float64 {
	return float64(t.Offered) / t.OfferedRate
}

// short reports whether requests arrived within so little time that a fleet that
// is filling up passes for one that sustains the rate.
func short(t *cluster.Stats) bool {
	return t.Scored > 0 && t.OfferedRate > 0 && arrivedWithin(t) < shortTimes*t.E2E.Mean
}

// A rate of a sweep lasts ten times as long as one request, but has at most
// 100,000 of them unless more were asked for. A run that lasts less than four
// times as long is said to be short.
const (
	settledTimes = 10
	shortTimes   = 4
	mostSwept    = 100_000
)

// A rate is sustained when so many of the requests meet their objectives; the
// knee is found to this relative tolerance.
const (
	attained      = 0.9
	kneeTolerance = 0.03
)

// describe says in words what was simulated.
func (s *scenario) describe(r *cluster.Result) {
	r.Model, r.Recipe = s.q.Arch.Name, report.Recipe(s.q.fields)
	switch {
	case s.trace != nil:
		r.Workload = s.trace.text()
	case s.closed:
		r.Workload = fmt.Sprintf("%d requests, %s", s.f.requests, s.lengths())
	default:
		r.Workload = fmt.Sprintf("%d requests at %g/s, %s", s.f.requests, s.q.RequestRate, s.lengths())
	}
	if t := &r.Total; !s.closed && !t.Saturated && short(t) {
		r.Warnings = append(r.Warnings, cluster.Warning{Code: "short_run", Text: fmt.Sprintf(
			"requests arrived within %.3g s and took %.3g s each: too short a run to tell whether the rate is sustained", arrivedWithin(t), t.E2E.Mean)})
	}
	if n := r.Total.Offered; s.f.warmUpRequests > n/2 {
		r.Warnings = append(r.Warnings, cluster.Warning{Code: "warm_up_cut", Text: fmt.Sprintf(
			"--des-warmup-requests %d of %d requests: half of them are scored nevertheless", s.f.warmUpRequests, n)})
	}
	r.Arrival = "trace"
	if s.trace == nil {
		r.Arrival = s.spec(0, 0).Arrivals.Process
	}
	if s.closed {
		r.Arrival, r.Clients = "closed", s.clients()
	}
	if price := s.q.GPUCostPerHour; price != nil {
		r.GPUHour = float64(*price)
	}
	for _, w := range s.q.warnings {
		r.Warnings = append(r.Warnings, cluster.Warning{Code: w.Code, Text: w.Text})
	}
	for _, w := range s.fleet.Warnings {
		r.Warnings = append(r.Warnings, cluster.Warning{Code: w.Code, Text: w.Text})
	}
}
