package main

import (
	"github.com/spf13/pflag"

	"infera/internal/cli"
	"infera/internal/units"
	"infera/sim/workload"
)

// profilingMode says what the numbers of a projection may stand on.
type profilingMode string

const (
	modeBenchmark profilingMode = "benchmark"
	modeSimulate  profilingMode = "simulate"
	modeBoth      profilingMode = "both"
)

// requestFlags are the flags that make up one question; project, fit and the
// commands that ask many questions share them. A zero or empty value means
// "not given", except where the default says otherwise.
type requestFlags struct {
	model, launch, hardware    string
	gpuArch                    string
	clockMHz                   float64
	device                     int
	hbm                        units.Bytes
	tp, pp, ep, attentionDP    int
	decodeCP, replicas         int
	redundantExperts           int
	weight, kv, linear, expert string
	actQuant                   string
	inputLen, outputLen        int
	concurrency, batch         int
	maxContext                 int
	prefixHit                  float64
	engine, engineVersion      string

	maxBatchedTokens, maxSeqs, chunkedPrefill, blockSize int
	memoryFraction                                       float64
	graphMode, attentionBackend                          string
	fusedKernels                                         bool
	stepOverheadUs, kernelLaunchUs, kernelOccupancyUs    float64
	kernelsPerLayer                                      int
	mixedPenalty                                         float64
	prefillRateUs, prefillRateLow, prefillRateHigh       float64
	admissionSteps                                       int

	specTokens, specLength float64
	acceptance, draftCost  float64

	servingModel, arrivalModel string
	requestRate                float64

	arAlgorithm, a2aAlgorithm           string
	prefillOverlap, decodeOverlap       float64
	arEfficiency, a2aEfficiency         float64
	quickReduce, fusedNorm, deepEP      bool
	syncFree                            int
	balance, skew                       float64
	coverage                            string
	disaggregate                        bool
	prefillTP, prefillPP, prefillEP     int
	decodeTP, decodePP, decodeEP        int
	prefillDP, decodeDP                 int
	prefillReplicas, decodeReplicas     int
	kvTransfer                          units.BytesPerSecond
	kvTransferUs                        float64
	transferBackend                     string
	tokenizeUs, detokenizeUs, requestMs float64
	streamInterval                      int
	noSampling                          bool
	samplingTopK                        int
	samplingTopP, temperature           float64
	sparseTopK, window                  int
	indexerScale, windowFraction        float64
	offload                             units.Bytes
	offloadRate                         units.BytesPerSecond
	residentTokens, poolTokens          float64
	engineReserved                      units.Bytes
	cost                                *units.Dollars
	mode                                profilingMode
	anchorStore                         string
	loadBenchmark                       []string
	gemmBackend                         string
}

// maxTokens bounds lengths and counts of tokens; no machine holds more.
const maxTokens = 100_000_000

func (f *requestFlags) bind(fs *pflag.FlagSet) {
	f.bindModel(fs)
	f.bindWorkload(fs)
	f.bindEngine(fs)
	f.bindCommunication(fs)
	f.bindDisaggregation(fs)
	f.bindFidelity(fs)
}

func (f *requestFlags) bindModel(fs *pflag.FlagSet) {
	fs.StringVar(&f.model, "model", "", "model: preset name, Hugging Face id of a preset, config.json or its directory")
	fs.StringVar(&f.launch, "launch", "", "engine command line to read instead of flags, e.g. \"vllm serve ...\"")
	fs.StringVar(&f.gpuArch, "gpu-arch", "", "GPU: mi300x, mi325x, mi350x, mi355x, gfx942, gfx950, h100, h200, b200, ..., cpu")
	fs.StringVar(&f.hardware, "hardware", "", "YAML file that changes a GPU profile or defines one")
	fs.Var(cli.Float(&f.clockMHz, 0, 10000), "gpu-clock-mhz", "engine clock instead of the profile's; scales compute only (0 = profile)")
	fs.Var(cli.Int(&f.device, 0, 1023), "gpu-device", "local device to read a profile from when no --gpu-arch is given")
	fs.Var(cli.Bytes(&f.hbm, units.GB, 1), "hbm-capacity-gb", "memory of one GPU instead of the profile's; GB, or with a suffix such as 192GiB (default: the profile)")
	f.tp, f.pp, f.ep, f.attentionDP, f.decodeCP, f.replicas = 1, 1, 1, 1, 1, 1
	fs.Var(cli.Int(&f.tp, 1, 4096), "tp", "tensor parallelism: GPUs that share every layer")
	fs.Var(cli.Int(&f.pp, 1, 4096), "pp", "pipeline parallelism: stages of consecutive layers")
	fs.Var(cli.Int(&f.ep, 1, 4096), "ep", "expert parallelism: GPUs that share the routed experts")
	fs.Var(cli.Int(&f.attentionDP, 1, 4096), "attention-dp-size", "attention data parallelism: groups with their own sequences; divides --tp")
	fs.Var(cli.Int(&f.decodeCP, 1, 4096), "decode-context-parallel-size", "GPUs that split the cache of one sequence in decode")
	fs.Var(cli.Int(&f.replicas, 1, 100000), "replicas", "copies of the layout that share the traffic")
	fs.Var(cli.Int(&f.redundantExperts, 0, 4096), "redundant-experts", "extra expert copies placed by a load balancer")
	fs.StringVar(&f.weight, "weight-dtype", "", "weight format instead of the checkpoint's: bf16, fp8, mxfp4, nvfp4, int4, ...")
	fs.StringVar(&f.linear, "linear-weight-dtype", "", "format of attention and dense feed-forward weights")
	fs.StringVar(&f.expert, "moe-expert-dtype", "", "format of the routed experts")
	fs.StringVar(&f.kv, "kv-cache-dtype", "", "cache format: auto, bf16, fp8, ...")
	fs.StringVar(&f.actQuant, "act-quant-dtype", "", "activation format of quantised products: auto, none, bf16, fp8, mxfp4")
}

func (f *requestFlags) bindWorkload(fs *pflag.FlagSet) {
	f.inputLen, f.outputLen = 1024, 128
	f.servingModel = "continuous"
	f.samplingTopP, f.temperature = 1, 1
	fs.Var(cli.Int(&f.inputLen, 1, maxTokens), "input-len", "prompt tokens per request")
	fs.Var(cli.Int(&f.outputLen, 1, maxTokens), "output-len", "generated tokens per request")
	fs.Var(cli.Int(&f.concurrency, 1, 10_000_000), "max-concurrency", "requests in flight over all replicas (default: as many as memory holds)")
	fs.Var(cli.Int(&f.batch, 0, 10_000_000), "inference-batch-size", "batch of one replica under --serving-model static (0 = the concurrency)")
	fs.Var(cli.Int(&f.maxContext, 0, maxTokens), "max-context-len", "longest sequence that memory is planned for (0 = input + output)")
	fs.Var(cli.Float(&f.prefixHit, 0, 1), "prefix-cache-hit-rate", "share of prompt tokens found in the cache")
	fs.Var(cli.Choice(&f.servingModel, "continuous", "static"), "serving-model", "continuous batching, or static batches")
	fs.Var(cli.Float(&f.requestRate, 0, 10_000_000), "request-rate", "offered requests per second over all replicas (0 = closed loop)")
	fs.Var(cli.Choice(&f.arrivalModel, append([]string{"", "closed", "none"}, workload.Processes()...)...), "arrival-model", "how requests arrive (default: poisson with --request-rate, else closed)")
	fs.Var(cli.Float(&f.specTokens, 0, 64), "speculative-num-tokens", "draft tokens per step (0 = no speculation)")
	fs.Var(cli.Float(&f.acceptance, 0, 1), "speculative-acceptance-rate", "chance that one draft token is accepted")
	fs.Var(cli.Float(&f.specLength, 0, 65), "speculative-accepted-length", "measured tokens per step instead of an acceptance rate (0 = not measured)")
	fs.Var(cli.Float(&f.draftCost, 0, 10), "speculative-draft-cost-factor", "price of one draft token as a share of a plain step (0 = the checkpoint's own drafter)")
	fs.BoolVar(&f.noSampling, "no-sampling", false, "leave the sampler out")
	fs.Var(cli.Int(&f.samplingTopK, 0, 1_000_000), "sampling-top-k", "top-k of the sampler (0 = off)")
	fs.Var(cli.Float(&f.samplingTopP, 0, 1), "sampling-top-p", "top-p of the sampler (1 = off)")
	fs.Var(cli.Float(&f.temperature, 0, 100), "sampling-temperature", "temperature of the sampler")
	fs.Var(cli.Optional(&f.cost, func(p *units.Dollars) pflag.Value { return cli.Float(p, 0, 1e6) }), "gpu-cost-per-hour", "price of one GPU hour in US dollars; costs are printed when set")
}

func (f *requestFlags) bindEngine(fs *pflag.FlagSet) {
	f.engine = "vllm"
	f.kernelsPerLayer = 12
	f.streamInterval = 1
	fs.StringVar(&f.engine, "engine", "vllm", "serving engine: vllm, sglang, atom, ...")
	fs.StringVar(&f.engineVersion, "engine-version", "", "release, image tag or date of the engine (default: the latest known)")
	fs.Var(cli.Int(&f.maxBatchedTokens, 0, maxTokens), "max-num-batched-tokens", "most tokens of one step (0 = engine default)")
	fs.Var(cli.Int(&f.maxSeqs, 0, 1_000_000), "max-num-seqs", "most sequences that run at once (0 = engine default)")
	fs.Var(cli.Int(&f.chunkedPrefill, 0, maxTokens), "chunked-prefill-size", "most prompt tokens of one step (0 = engine default)")
	fs.Var(cli.Int(&f.blockSize, 0, 1_000_000), "kv-block-size", "tokens of one cache block (0 = engine default)")
	fs.Var(cli.Float(&f.memoryFraction, 0, 1), "kv-cache-memory-fraction", "share of memory the engine may use (0 = engine default)")
	fs.Var(cli.Choice(&f.graphMode, "", "none", "piecewise", "full"), "cudagraph-mode", "captured graphs: none, piecewise or full (default: the engine's)")
	fs.Var(cli.Choice(&f.attentionBackend, "", "aiter", "triton", "ck", "hip"), "attention-backend", "attention kernels (default: the engine's)")
	fs.BoolVar(&f.fusedKernels, "fused-kernels", false, "an engine build whose small kernels are fused")
	fs.Var(cli.Float(&f.stepOverheadUs, 0, 1e6), "decode-step-overhead-us", "further host time of every step")
	fs.Var(cli.Float(&f.kernelLaunchUs, 0, 1e4), "kernel-launch-latency-us", "launch latency of a kernel without captured graphs; bounds a step from below")
	fs.Var(cli.Int(&f.kernelsPerLayer, 1, 1000), "kernels-per-layer", "kernels of one layer, for --kernel-launch-latency-us")
	fs.Var(cli.Float(&f.kernelOccupancyUs, 0, 1e4), "decode-kernel-occupancy-us", "fixed time of one kernel instead of the fitted layer times (0 = fitted)")
	fs.Var(cli.Float(&f.mixedPenalty, 0, 10), "mixed-batch-penalty", "extra share of a step that mixes prompts and decodes")
	fs.Var(cli.Float(&f.prefillRateUs, 0, 1e6), "prefill-rate-us-per-token", "measured time of one more prompt token (0 = as modelled); followed to half and to three times the modelled time")
	fs.Var(cli.Float(&f.prefillRateLow, 0, maxTokens), "prefill-rate-lo-tokens", "shortest prompt of that measurement")
	fs.Var(cli.Float(&f.prefillRateHigh, 0, maxTokens), "prefill-rate-hi-tokens", "longest prompt of that measurement")
	fs.Var(cli.Int(&f.admissionSteps, 0, 10000), "decode-admission-steps", "decode steps between looks at the waiting queue (0 = every step)")
	fs.Var(cli.Float(&f.tokenizeUs, 0, 1e6), "tokenize-overhead-us", "host time per prompt token")
	fs.Var(cli.Float(&f.detokenizeUs, 0, 1e6), "detokenize-overhead-us", "host time per output token")
	fs.Var(cli.Float(&f.requestMs, 0, 1e6), "request-overhead-ms", "further host time per request")
	fs.Var(cli.Int(&f.streamInterval, 1, 1_000_000), "stream-interval", "tokens sent at once")
	fs.Var(cli.Int(&f.sparseTopK, 0, maxTokens), "sparse-attention-topk", "tokens a query reads instead of the checkpoint's (0 = checkpoint)")
	fs.Var(cli.Float(&f.indexerScale, 0, 100), "sparse-indexer-cost-scale", "factor on the token selector of sparse attention (0 = 1)")
	fs.Var(cli.Int(&f.window, 0, maxTokens), "sliding-window", "sliding window instead of the checkpoint's (0 = checkpoint)")
	fs.Var(cli.Float(&f.windowFraction, 0, 1), "sliding-window-layer-fraction", "share of layers that --sliding-window applies to (0 = all)")
	fs.Var(cli.Bytes(&f.offload, units.GB, 0), "kv-offload-gb-per-gpu", "host memory of the cache tier below the GPU's")
	f.offloadRate = 64e9
	fs.Var(cli.Rate(&f.offloadRate, 1e9, 0), "kv-offload-bw-gbps", "bandwidth to that tier, GB/s")
	fs.Var(cli.Float(&f.residentTokens, 0, maxTokens), "workload-resident-tokens", "mean cached tokens of a running request (0 = input + output/2)")
	fs.Var(cli.Float(&f.poolTokens, 0, 1e12), "kv-pool-tokens", "measured cache pool of one replica in tokens (0 = computed)")
	fs.Var(cli.Bytes(&f.engineReserved, units.GB, 0), "engine-reserved-gb", "further memory of the engine per GPU")
}

func (f *requestFlags) bindCommunication(fs *pflag.FlagSet) {
	f.arAlgorithm, f.a2aAlgorithm = "auto", "auto"
	f.arEfficiency, f.a2aEfficiency, f.balance = 1, 1, 1
	fs.Var(cli.Choice(&f.arAlgorithm, "auto", "ring", "one_shot", "two_shot", "hierarchical"), "tp-allreduce-algo", "all-reduce algorithm")
	fs.Var(cli.Choice(&f.a2aAlgorithm, "auto", "direct", "single_shot", "hierarchical"), "ep-a2a-algo", "all-to-all algorithm")
	fs.Var(cli.Float(&f.prefillOverlap, 0, 1), "prefill-comm-overlap", "share of collectives hidden behind compute in steps with prompts")
	fs.Var(cli.Float(&f.decodeOverlap, 0, 1), "decode-comm-overlap", "the same in decode steps")
	fs.Var(cli.Positive(&f.arEfficiency, 1000), "tp-allreduce-efficiency", "factor on all-reduce time: 1.2 = 20 % longer")
	fs.Var(cli.Positive(&f.a2aEfficiency, 1000), "ep-a2a-efficiency", "factor on all-to-all time: 1.2 = 20 % longer")
	fs.BoolVar(&f.quickReduce, "quick-reduce", false, "quantised all-reduce for large messages")
	fs.BoolVar(&f.fusedNorm, "fuse-rmsnorm-allreduce", false, "norm fused into the all-reduce")
	fs.BoolVar(&f.deepEP, "enable-deepep", false, "expert dispatch overlapped with expert compute")
	fs.Var(cli.Int(&f.syncFree, 0, 3), "sync-free-stage", "synchronisation-free expert stages; implies --enable-deepep")
	fs.Var(cli.Float(&f.balance, 1, 1000), "ep-load-balance", "rows of the busiest expert rank over the mean")
	fs.Var(cli.Float(&f.skew, 0, 10), "moe-routing-skew", "Zipf exponent of expert popularity (0 = uniform)")
	fs.StringVar(&f.coverage, "moe-router-coverage", "", "JSON file of measured distinct experts relative to uniform routing, by tokens")
}

func (f *requestFlags) bindDisaggregation(fs *pflag.FlagSet) {
	f.prefillReplicas, f.decodeReplicas = 1, 1
	fs.BoolVar(&f.disaggregate, "disaggregate", false, "prefill and decode on pools of their own")
	for _, n := range []struct {
		p    *int
		name string
		help string
	}{
		{&f.prefillTP, "prefill-tp", "tensor parallelism of a prefill replica"},
		{&f.prefillPP, "prefill-pp", "pipeline parallelism of a prefill replica"},
		{&f.prefillEP, "prefill-ep", "expert parallelism of a prefill replica"},
		{&f.prefillDP, "prefill-attention-dp", "attention data parallelism of a prefill replica"},
		{&f.decodeTP, "decode-tp", "tensor parallelism of a decode replica"},
		{&f.decodePP, "decode-pp", "pipeline parallelism of a decode replica"},
		{&f.decodeEP, "decode-ep", "expert parallelism of a decode replica"},
		{&f.decodeDP, "decode-attention-dp", "attention data parallelism of a decode replica"},
	} {
		fs.Var(cli.Int(n.p, 0, 4096), n.name, n.help+" (0 = as the layout)")
	}
	fs.Var(cli.Int(&f.prefillReplicas, 1, 100000), "prefill-replicas", "replicas of the prefill pool")
	fs.Var(cli.Int(&f.decodeReplicas, 1, 100000), "decode-replicas", "replicas of the decode pool")
	fs.Var(cli.Rate(&f.kvTransfer, 1e9, 0), "kv-transfer-bw-gbps", "bandwidth of the cache transfer per GPU, GB/s (0 = backend or network)")
	fs.Var(cli.Float(&f.kvTransferUs, 0, 1e9), "kv-transfer-latency-us", "latency of the cache transfer")
	fs.Var(cli.Choice(&f.transferBackend, "", "nixl", "mooncake", "mori"), "transfer-backend", "library that moves the cache")
}

func (f *requestFlags) bindFidelity(fs *pflag.FlagSet) {
	f.bindMode(fs)
	f.gemmBackend = "auto"
	fs.Var(cli.Choice(&f.gemmBackend, "auto", "origami", "curves", "roofline"), "gemm-backend", "kernel prices: tile model with calibrated curves (auto, origami, curves), or bounds only (roofline)")
}

// bindMode binds what a projection stands on.
func (f *requestFlags) bindMode(fs *pflag.FlagSet) {
	f.mode = modeBenchmark
	fs.Var(cli.Choice(&f.mode, modeBenchmark, modeSimulate, modeBoth), "profiling-mode", "what numbers stand on: a measured anchor, the analytic model, or both")
	fs.StringVar(&f.anchorStore, "anchor-store", "", "directory of measured anchors")
	fs.StringSliceVar(&f.loadBenchmark, "load-benchmark", nil, "anchor file to calibrate with")
}
