package main

import (
	"github.com/spf13/pflag"

	"infera/internal/cli"
)

// simulateFlags are the settings of a simulation besides the request: the
// workload beyond its means, the fleet, and what to score and to write.
type simulateFlags struct {
	closedLoop, exclusivePrefill bool
	requests, newPerStep         int
	warmUpShare                  float64
	warmUpRequests               int
	detectWarmUp                 bool
	thinkMs, rampS               float64
	durationS                    float64
	seed, seeds                  int
	sweep                        bool
	burstiness, rangeRatio       float64
	sigma                        float64
	onS, offS, swing, periodS    float64
	kvTokens, kvBlocks           int
	blockSize                    int
	instances                    int
	routing                      string
	overlapWeight                float64
	prefillWeight, decodeWeight  float64
	stalenessMs                  float64
	hashTokens                   int
	prefixes, prefixLen          int
	prefixZipf                   float64
	turns                        float64
	turnThinkS                   float64
	turnTokens                   int
	workloadFile, mooncakeTrace  string
	traceFormat, lengthsFrom     string
	timeScale, rateScale         float64
	maxWaiting                   int
	mixedChunk, longestPrefix    bool
	reserveAnswer                bool
	sharesPool, wholeContext     bool
	backlogOnly                  bool
	localPrompt, layers          int
	prefillGPU, decodeGPU        string
	prefillEngine, decodeEngine  string
	tiers, faults, classes       []string
	autoscale                    string
	autoscaleMost                int
	autoscaleIntervalS           float64
	coldStartS                   float64
	ttftMs, tpotMs, e2eMs        float64
	dumpSteps, dumpTrace, html   string
	explain                      int
}

const maxSeconds = 1e9

func (f *simulateFlags) bind(fs *pflag.FlagSet) {
	f.bindTraffic(fs)
	f.bindFleet(fs)
	f.bindOutput(fs)
}

func (f *simulateFlags) bindTraffic(fs *pflag.FlagSet) {
	f.requests, f.burstiness, f.rangeRatio, f.timeScale, f.rateScale = 400, 1, 1, 1, 1
	f.onS, f.offS, f.swing, f.periodS = 10, 10, 0.5, 86400
	fs.BoolVar(&f.closedLoop, "des-closed-loop", false, "clients that send a request when the one before has ended: --max-concurrency of them")
	fs.Var(cli.Float(&f.thinkMs, 0, maxSeconds), "des-client-think-ms", "time between an answer and the next request of a client")
	fs.Var(cli.Float(&f.rampS, 0, maxSeconds), "des-client-ramp-s", "time over which the clients start (0 = all at once)")
	fs.Var(cli.Int(&f.requests, 1, 1_000_000_000), "des-num-requests", "requests to simulate; with a trace the first so many when given")
	fs.Var(cli.Float(&f.durationS, 0, maxSeconds), "des-duration-s", "cut the run off at this simulated time (0 = when all requests have ended)")
	fs.Var(cli.Int(&f.seed, 0, 1<<53), "des-seed", "seed of all random streams")
	fs.Var(cli.Float(&f.burstiness, 0.001, 1000), "des-burstiness", "shape of the gaps between arrivals: 1 = poisson, below in bursts, above more even")
	fs.Var(cli.Float(&f.rangeRatio, 0, 1), "des-range-ratio", "lengths are drawn between this share of the nominal length and all of it")
	fs.Var(cli.Float(&f.sigma, 0, 10), "des-length-sigma", "lengths are lognormal with this deviation of their logarithm, the nominal length being the mean (0 = off)")
	fs.StringVar(&f.lengthsFrom, "des-lengths-from", "", "recorded workload whose requests the lengths are drawn from, prompt and answer together: any format that `inferasim trace inspect` reads")
	fs.Var(cli.Float(&f.onS, 0, maxSeconds), "des-on-s", "mean length of the on state of --arrival-model on-off")
	fs.Var(cli.Float(&f.offS, 0, maxSeconds), "des-off-s", "mean length of the off state of --arrival-model on-off")
	fs.Var(cli.Float(&f.swing, 0, 1), "des-swing", "how far the rate of --arrival-model diurnal goes up and down, as a share of it")
	fs.Var(cli.Float(&f.periodS, 0, maxSeconds), "des-period-s", "period of --arrival-model diurnal")
	fs.Var(cli.Int(&f.prefixes, 0, 100_000_000), "des-num-prefixes", "prompt beginnings that requests share (0 = none)")
	fs.Var(cli.Int(&f.prefixLen, 0, maxTokens), "des-prefix-len", "tokens of a shared beginning (0 = half the prompt)")
	fs.Var(cli.Float(&f.prefixZipf, 0, 100), "des-prefix-zipf", "Zipf exponent of their popularity (0 = all alike)")
	fs.Var(cli.Float(&f.turns, 0, 65536), "des-session-turns", "mean turns of a conversation; a turn's prompt holds all before it (0 = no conversations)")
	fs.Var(cli.Float(&f.turnThinkS, 0, maxSeconds), "des-session-think-s", "mean time between an answer and the next turn")
	fs.Var(cli.Int(&f.turnTokens, 0, maxTokens), "des-turn-tokens", "new tokens of a later turn (0 = drawn like the first prompt)")
	fs.StringArrayVar(&f.classes, "des-class", nil, "class of requests: NAME:WEIGHT[:key=value...] with priority, input, output, ttft_ms, tpot_ms, e2e_ms, e.g. chat:3:priority=0:ttft_ms=500")
	fs.StringVar(&f.workloadFile, "des-workload-file", "", "recorded workload to replay: any format that `inferasim trace inspect` reads")
	fs.StringVar(&f.mooncakeTrace, "des-mooncake-trace", "", "recorded workload in Mooncake's format to replay")
	fs.StringVar(&f.traceFormat, "des-trace-format", "", "format of --des-workload-file (default: recognised)")
	fs.Var(cli.Positive(&f.timeScale, 1e6), "time-scale", "factor on the times of a recorded workload")
	fs.Var(cli.Positive(&f.rateScale, 1e6), "rate-scale", "factor on the rate of a recorded workload; who shares which prefix stays")
}

func (f *simulateFlags) bindFleet(fs *pflag.FlagSet) {
	f.instances, f.routing, f.overlapWeight, f.prefixLen = 1, "round_robin", 1, 0
	f.sharesPool, f.wholeContext, f.backlogOnly = true, true, true
	f.autoscaleMost, f.autoscaleIntervalS, f.coldStartS = 8, 30, 120
	fs.BoolVar(&f.exclusivePrefill, "des-exclusive-prefill", false, "prompts run in steps of their own (default: what the engine does)")
	fs.Var(cli.Int(&f.newPerStep, 0, 1_000_000), "des-new-seqs-per-step", "most requests admitted in one step (0 = no limit)")
	fs.Var(cli.Int(&f.newPerStep, 0, 1_000_000), "des-max-prefill-seqs", "the same as --des-new-seqs-per-step")
	fs.Var(cli.Int(&f.maxWaiting, 0, 1_000_000_000), "des-max-waiting", "longest queue of an instance; more are refused (0 = no limit)")
	fs.BoolVar(&f.mixedChunk, "des-mixed-chunk", false, "SGLang: decodes join steps of prompts (--enable-mixed-chunk)")
	fs.BoolVar(&f.longestPrefix, "des-longest-prefix", false, "SGLang: the queue is ordered by how much of a prompt is cached (--schedule-policy lpm)")
	fs.BoolVar(&f.reserveAnswer, "des-reserve-output", false, "admit a request only with room for its whole answer")
	fs.BoolVar(&f.sharesPool, "des-cache-shares-pool", true, "the prefix cache and running requests share one pool: always so here")
	fs.BoolVar(&f.backlogOnly, "des-admit-backlog-only", true, "cache hits are resolved for requests when they are admitted: always so here")
	fs.BoolVar(&f.wholeContext, "des-whole-context-residency", true, "a running request holds its whole context: always so here")
	fs.Var(cli.Int(&f.kvTokens, 0, 1<<40), "des-kv-cache-tokens", "cache pool of an instance in tokens (0 = what memory holds)")
	fs.Var(cli.Int(&f.kvBlocks, 0, 1<<40), "des-kv-blocks", "cache pool of an instance in blocks (0 = what memory holds)")
	fs.Var(cli.Int(&f.kvBlocks, 0, 1<<40), "des-cache-slots", "the same as --des-kv-blocks")
	fs.Var(cli.Int(&f.blockSize, 0, 1_000_000), "des-block-size", "tokens of a cache block (0 = the engine's, at least 16)")
	fs.Var(cli.Int(&f.instances, 1, 100_000), "des-instances", "instances of the layout behind the router; the same as --replicas")
	fs.StringVar(&f.routing, "des-routing", "round_robin", "routing policy: kv-aware (kv), round-robin, random, prefix-hash (prefix_aware), least-outstanding, power-of-two, session-affinity")
	fs.Var(cli.Float(&f.overlapWeight, 0, 1e6), "des-overlap-weight", "kv-aware: what a block to compute costs, in blocks of load")
	fs.Var(cli.Float(&f.prefillWeight, 0, 1e6), "des-prefill-overlap-weight", "the same for prefill instances (0 = --des-overlap-weight)")
	fs.Var(cli.Float(&f.decodeWeight, 0, 1e6), "des-decode-overlap-weight", "the same for decode instances (0 = --des-overlap-weight)")
	fs.Var(cli.Int(&f.hashTokens, 0, maxTokens), "des-prefix-hash-tokens", "prefix-hash: tokens that count as the beginning of a prompt (0 = 1024)")
	fs.Var(cli.Float(&f.stalenessMs, 0, maxSeconds), "des-signal-staleness-ms", "how late cache events reach the router")
	fs.Var(cli.Int(&f.localPrompt, 0, maxTokens), "des-local-prefill-tokens", "prompts with at most so many uncached tokens are computed by the decode instance (0 = none)")
	fs.Var(cli.Int(&f.layers, 0, 100_000), "des-transfer-layers", "send the cache layer by layer while the prompt is computed: number of layers (0 = afterwards)")
	fs.StringVar(&f.prefillGPU, "des-prefill-gpu-arch", "", "GPU of the prefill instances (default: --gpu-arch)")
	fs.StringVar(&f.decodeGPU, "des-decode-gpu-arch", "", "GPU of the decode instances (default: --gpu-arch)")
	fs.StringVar(&f.prefillEngine, "des-prefill-engine", "", "engine of the prefill instances (default: --engine)")
	fs.StringVar(&f.decodeEngine, "des-decode-engine", "", "engine of the decode instances (default: --engine)")
	fs.StringArrayVar(&f.tiers, "des-tier", nil, "cache tier below the GPU's, fastest first: NAME:CAPACITY:READ GB/s[:WRITE GB/s[:LATENCY us]][:shared], e.g. dram:512GiB:50")
	fs.StringArrayVar(&f.faults, "des-fault", nil, "what goes wrong: KIND@START+LENGTH[:INSTANCE[:FACTOR]] in seconds, KIND crash, slow, link or events, e.g. crash@60+30:1")
	fs.StringVar(&f.autoscale, "des-autoscale", "", "change the number of instances: queue (by queue and utilisation) or latency (by load and latency targets)")
	fs.Var(cli.Int(&f.autoscaleMost, 1, 100_000), "des-autoscale-max", "most instances of a role; the least is 1")
	fs.Var(cli.Float(&f.autoscaleIntervalS, 0.001, maxSeconds), "des-autoscale-interval-s", "time between decisions")
	fs.Var(cli.Float(&f.coldStartS, 0, maxSeconds), "des-cold-start-s", "time until a new instance takes requests")
}

func (f *simulateFlags) bindOutput(fs *pflag.FlagSet) {
	f.warmUpShare, f.explain, f.seeds = 0.1, -1, 1
	fs.Var(cli.Float(&f.warmUpShare, 0, 0.9), "des-warmup-frac", "share of the earliest completions that is not scored")
	fs.Var(cli.Int(&f.warmUpRequests, 0, 1_000_000_000), "des-warmup-requests", "requests, by order of issue, that are not scored, instead of --des-warmup-frac unless that is given, too")
	fs.BoolVar(&f.detectWarmUp, "des-detect-warmup", false, "find the end of the warm-up in the times to first token (MSER-5) instead of --des-warmup-frac")
	fs.BoolVar(&f.sweep, "des-sweep", false, "find the highest rate that is sustained (within the objectives, if any) and print the curve")
	fs.Var(cli.Int(&f.seeds, 1, 1000), "des-seeds", "runs with seeds from --des-seed upwards that are pooled")
	fs.Var(cli.Float(&f.ttftMs, 0, 1e12), "slo-ttft-ms", "objective: time to first token (0 = none)")
	fs.Var(cli.Float(&f.tpotMs, 0, 1e12), "slo-tpot-ms", "objective: time per output token (0 = none)")
	fs.Var(cli.Float(&f.e2eMs, 0, 1e12), "slo-e2e-ms", "objective: time to the last token (0 = none)")
	fs.StringVar(&f.dumpSteps, "des-dump-steps", "", "write every step to a JSON Lines file")
	fs.StringVar(&f.dumpTrace, "des-dump-trace", "", "write every step to a file for Perfetto or chrome://tracing")
	fs.StringVar(&f.html, "html", "", "write a page with charts to a file")
	fs.Var(cli.Int(&f.explain, -1, 1<<53), "explain-request", "print the waterfall of the request with this number (-1 = none)")
}
