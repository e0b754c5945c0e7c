package main

import (
	"infera/internal/cli"
)

// variables lists the environment variables of the simulator that have a
// documented meaning of their own. Every other flag is read from INFERASIM_
// and its name without being listed here.
func variables() []cli.Variable {
	var all []cli.Variable
	for _, group := range [][]cli.Variable{
		anchorVariables(), harvestVariables(), restoreVariables(), analyticVariables(),
		collectiveVariables(), moeVariables(), diagnosticVariables(),
	} {
		all = append(all, group...)
	}
	return all
}

func anchorVariables() []cli.Variable {
	const group = "Anchors and models"
	return []cli.Variable{
		{Group: group, Name: "INFERASIM_ANCHOR_STORE", Flag: "anchor-store",
			Help: "directory of measurements; a run looks here for one of its own regime"},
		{Group: group, Name: "INFERASIM_ALLOW_FOREIGN_ANCHOR", Check: cli.Boolean,
			Help: "accept a measurement of another model; only when two names stand for the same weights"},
		{Group: group, Name: "INFERASIM_BENCH_MODEL", Flag: "bench-model",
			Help: "checkpoint to serve while measuring"},
		{Group: group, Name: "INFERASIM_MODEL", Flag: "model",
			Help: "model preset, also used to match measurements; a checkpoint only when it contains / or exists on disk"},
		{Group: group, Name: "INFERASIM_ROOT",
			Help: "directory that relative paths of model, hardware and coverage files start from; unset: the working directory"},
	}
}

func harvestVariables() []cli.Variable {
	const group = "Measuring"
	return []cli.Variable{
		{Group: group, Name: "INFERASIM_BENCH_CACHE", Flag: "cache-dir",
			Help: "directory of finished measurements by run configuration; a hit does not start the engine"},
		{Group: group, Name: "INFERASIM_BENCH_SERVING_BACKEND", Flag: "serving-backend", Default: "vllm",
			Help: "engine to launch: vllm, sglang or atom"},
		{Group: group, Name: "INFERASIM_BENCH_SERVER_ARGS", Flag: "bench-server-args",
			Help: "further arguments the engine needs to load the checkpoint"},
		{Group: group, Name: "INFERASIM_BENCH_DISABLE_CAR", Check: cli.Boolean,
			Help: "use RCCL instead of the engine's own all-reduce, whose shared buffer fails on some subsets of GPUs"},
		{Group: group, Name: "INFERASIM_BENCH_WARMUP_ITERS", Default: "20", Check: cli.WholeFrom(0),
			Help: "iterations before timing starts"},
		{Group: group, Name: "INFERASIM_BENCH_NUM_ITERATIONS", Default: "64", Check: cli.WholeFrom(1),
			Help: "timed iterations per measurement"},
		{Group: group, Name: "INFERASIM_BENCH_AGGREGATE", Default: "median", Check: cli.OneOf("median", "mean"),
			Help: "how repeated timings become one number: median or mean"},
		{Group: group, Name: "INFERASIM_BENCH_MOE_KERNEL_PAD", Default: "1", Check: cli.Boolean,
			Help: "pad expert kernels while measuring"},
		{Group: group, Name: "INFERASIM_BENCH_MOE_LAYER_WHOLE", Default: "0", Check: cli.Boolean,
			Help: "time an expert layer as a whole instead of module by module"},
		{Group: group, Name: "INFERASIM_INFER_BENCH_CACHE",
			Help: "directory of <model>_tp{tp}_pp{pp}_ep{ep}.json measurements that tuning reuses"},
		{Group: group, Name: "INFERASIM_INFER_BENCH_ARTIFACT",
			Help: "one measurement that tuning uses for every candidate"},
		{Group: group, Name: "INFERASIM_INFER_BENCH_CACHE_ONLY", Check: cli.Boolean,
			Help: "tuning rejects a candidate without a measurement instead of measuring it"},
	}
}

func restoreVariables() []cli.Variable {
	const group = "Carrying a measurement to another shape"
	return []cli.Variable{
		{Group: group, Name: "INFERASIM_RESTORE_SCALING", Default: "origami", Check: cli.OneOf("origami", "fit", "blind"),
			Help: "law that takes a measured step to another TP: origami (ratio of simulated steps), fit (shardable and fixed part from measurements), blind (1/TP)"},
	}
}

func analyticVariables() []cli.Variable {
	const group = "Analytic model"
	return []cli.Variable{
		{Group: group, Name: "INFERASIM_GEMM_BACKEND", Flag: "gemm-backend",
			Help: "matrix-multiplication model: origami (tile model with calibrated curves) or roofline (bounds only); unset is origami"},
		{Group: group, Name: "INFERASIM_GPU_ARCH", Flag: "gpu-arch",
			Help: "hardware profile to model, such as mi355x or gfx950; unset probes this machine"},
		{Group: group, Name: "INFERASIM_GPU_CLOCK_MHZ", Flag: "gpu-clock-mhz", Check: cli.AboveZero(),
			Help: "GPU clock in MHz instead of the profile's"},
		{Group: group, Name: "INFERASIM_GPU_DEVICE", Default: "0", Check: cli.WholeFrom(0),
			Help: "index of the local GPU to probe when no architecture is named"},
	}
}

func collectiveVariables() []cli.Variable {
	const group = "Collectives"
	return []cli.Variable{
		{Group: group, Name: "INFERASIM_INFER_AR_FLOOR_US", Check: cli.AtLeastZero(),
			Help: "fixed time of an all-reduce in microseconds; unset: as measured"},
		{Group: group, Name: "INFERASIM_INFER_A2A_FLOOR_US", Check: cli.AtLeastZero(),
			Help: "fixed time of an all-to-all in microseconds; unset: as measured"},
		{Group: group, Name: "INFERASIM_CUSTOM_AR_MAX_MB", Check: cli.AtLeastZero(),
			Help: "largest all-reduce message in MB priced by the small-message fit; the bandwidth model takes over above; unset: as measured"},
		{Group: group, Name: "INFERASIM_A2A_MEASURED_MAX_MB", Check: cli.AtLeastZero(),
			Help: "the same limit for the all-to-all of expert parallelism; unset: as measured"},
	}
}

func moeVariables() []cli.Variable {
	const group = "Mixture of experts"
	return []cli.Variable{
		{Group: group, Name: "INFERASIM_MOE_SIM_KERNEL", Check: cli.OneOf("vllm_fused", "turbo", "legacy"),
			Help: "kernel model of the expert matrices: vllm_fused prices the fused kernel of serving; turbo and legacy (training) are priced the same, with a warning"},
		{Group: group, Name: "INFERASIM_MOE_IMB_ROOFLINE", Default: "1", Check: cli.Boolean,
			Help: "apply the imbalance of expert load inside the roofline; 0 multiplies the result instead"},
		{Group: group, Name: "INFERASIM_ORIGAMI_IMB_PERVIEW", Default: "1", Check: cli.Boolean,
			Help: "imbalance of its own for the measured and for the target shape; 0 uses one, which cancels in the ratio"},
		{Group: group, Name: "INFERASIM_ZIPF_S", Flag: "zipf-s", Default: "1.0", Check: cli.AtLeastZero(),
			Help: "Zipf exponent of the skewed routing used while measuring"},
		{Group: group, Name: "INFERASIM_ROUTING_POOL", Default: "65536", Check: cli.WholeFrom(1),
			Help: "rows of routing drawn in advance while measuring; at least 8192 are drawn"},
	}
}

func diagnosticVariables() []cli.Variable {
	const group = "Diagnosis (prints and changes nothing)"
	return []cli.Variable{
		{Group: group, Name: "INFERASIM_DEBUG_BREAKDOWN", Check: cli.Boolean,
			Help: "print the parts of a projected step"},
		{Group: group, Name: "INFERASIM_DEBUG_DES_STEPS", Check: cli.Boolean,
			Help: "print every mixed step the simulation prices"},
		{Group: group, Name: "INFERASIM_DEBUG_RESTORE", Check: cli.Boolean,
			Help: "print how each measured decode point was carried to the requested shape"},
	}
}
