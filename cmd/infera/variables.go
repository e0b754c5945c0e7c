package main

import (
	"infera/internal/cli"
)

// variables lists every environment variable of the serving stack, those of
// other programs included that decide whether a deployment works. The ones a
// worker's engine or its connector reads are passed on to it untouched.
func variables() []cli.Variable {
	var all []cli.Variable
	for _, group := range [][]cli.Variable{
		routingVariables(), connectorVariables(), disaggregationVariables(), engineVariables(),
	} {
		all = append(all, group...)
	}
	return all
}

// routingVariables are for the server and every worker.
func routingVariables() []cli.Variable {
	const group = "Routing and transport (server and workers)"
	return []cli.Variable{
		{Group: group, Name: "NATS_SERVER", Flag: "nats-server", Default: "nats://127.0.0.1:4222",
			Help: "address of the NATS broker when --request-transport is nats"},
		{Group: group, Name: "NATS_URL", Flag: "nats-server",
			Help: "another name of NATS_SERVER, read when that is unset"},
		{Group: group, Name: "INFERA_NATS_REQ_IDLE_TIMEOUT", Flag: "nats-req-idle-timeout", Default: "900", Check: cli.AtLeastZero(),
			Help: "seconds to wait for the next chunk of a reply before the request ends with 504 and is cancelled; 0 waits for ever"},
		{Group: group, Name: "INFERA_NATS_REQ_MAX_DURATION", Flag: "nats-req-max-duration", Default: "0", Check: cli.AtLeastZero(),
			Help: "longest time in seconds a whole request may take; 0 is no limit"},
		{Group: group, Name: "INFERA_NATS_REQ_MAX_PENDING", Flag: "nats-req-max-pending", Default: "0", Check: cli.WholeFrom(0),
			Help: "requests a worker may have waiting before it answers 429; 0 is no limit"},
		{Group: group, Name: "INFERA_REQUEST_MAX_RETRIES", Flag: "request-max-retries", Default: "1", Check: cli.WholeFrom(0),
			Help: "other workers to try before the first token is out, never mid-stream; 0 fails at once"},
		{Group: group, Name: "INFERA_K8S_LABEL_SELECTOR", Flag: "k8s-label-selector",
			Help: "selector of worker pods when --discovery-backend is kubernetes"},
		{Group: group, Name: "INFERA_DRAIN_TIMEOUT", Flag: "drain-timeout", Default: "30", Check: cli.AtLeastZero(),
			Help: "seconds running requests get to finish at shutdown"},
	}
}

// connectorVariables are read by the KV-cache connector inside the engine.
func connectorVariables() []cli.Variable {
	const group = "KV-cache connector (engine process)"
	autoOrWhole := func(text string) error {
		if text == "auto" {
			return nil
		}
		return cli.WholeFrom(1)(text)
	}
	return []cli.Variable{
		{Group: group, Name: "INFERA_KVD_SOCKET", Default: "/var/run/infera-kvd.sock",
			Help: "Unix socket on which the engine reaches the KV-cache daemon"},
		{Group: group, Name: "INFERA_KVD_HIPFILE_ROOTS",
			Help: "directories of the disk tier as retention=path,...; setting it enables that tier and its GPU-direct files"},
		{Group: group, Name: "INFERA_KVD_AIS", Default: "auto", Check: cli.OneOf("auto", "0", "1"),
			Help: "GPU-direct reads and writes: auto probes peer-to-peer DMA, 1 forces it on, 0 off"},
		{Group: group, Name: "INFERA_KVD_GPU_DIRECT", Check: cli.OneOf("auto", "0", "1"),
			Help: "old name of INFERA_KVD_AIS"},
		{Group: group, Name: "INFERA_KVD_CHUNK_TOKENS", Default: "auto", Check: autoOrWhole,
			Help: "tokens in a chunk of the disk tier; auto aims at INFERA_KVD_CHUNK_TARGET_MIB"},
		{Group: group, Name: "INFERA_KVD_CHUNK_TARGET_MIB", Default: "128", Check: cli.AboveZero(),
			Help: "size in MiB that automatic chunks aim at"},
		{Group: group, Name: "INFERA_KVD_LAYERWISE_LOAD", Default: "parallel", Check: cli.OneOf("off", "stepped", "prefetch", "parallel"),
			Help: "how layers are loaded from the disk tier: off, stepped, prefetch or parallel"},
		{Group: group, Name: "INFERA_KVD_L3_BUDGET_BYTES", Default: "0", Check: cli.WholeFrom(0),
			Help: "most bytes of GPU-direct files, which the daemon's --long-bytes does not bound; 0 is no limit"},
		{Group: group, Name: "INFERA_KVD_L3_FREE_FLOOR", Default: "0.05", Check: cli.Checked(cli.Float(new(float64), 0, 1)),
			Help: "share of the file system kept free; below it files are evicted by retention and age"},
		{Group: group, Name: "INFERA_KVD_L3_REAP_INTERVAL", Default: "30", Check: cli.AboveZero(),
			Help: "seconds between two looks at the free space"},
		{Group: group, Name: "INFERA_KVD_SAVE_WORKERS", Default: "auto", Check: autoOrWhole,
			Help: "workers that write to the disk tier; auto takes the connections of the mount"},
		{Group: group, Name: "INFERA_KVD_LOAD_WORKERS", Default: "auto", Check: autoOrWhole,
			Help: "workers that read from the disk tier; auto is one without peer-to-peer DMA"},
		{Group: group, Name: "INFERA_KVD_RETENTION_DEFAULT", Default: "long", Check: cli.OneOf("none", "short", "long"),
			Help: "retention of requests that name none: none, short or long; SGLang has no other way to reach long"},
		{Group: group, Name: "HIPFILE_UNSUPPORTED_FILE_SYSTEMS",
			Help: "of libhipfile: 1 allows GPU-direct reads from NFS"},
	}
}

// disaggregationVariables are set on each engine of a prefill/decode pair.
func disaggregationVariables() []cli.Variable {
	const group = "Prefill/decode disaggregation (engine process)"
	return []cli.Variable{
		{Group: group, Name: "MC_GID_INDEX", Check: cli.WholeFrom(0),
			Help: "RoCE GID index of Mooncake, often 1 or 3; 0 is link-local and times out between nodes"},
		{Group: group, Name: "NCCL_IB_GID_INDEX", Check: cli.WholeFrom(0),
			Help: "RoCE GID index of the collectives"},
		{Group: group, Name: "MC_DISABLE_HIP_TRANSPORT",
			Help: "1 makes Mooncake use RDMA instead of the shortcut inside a node, needed between nodes"},
		{Group: group, Name: "MORI_IB_GID_INDEX", Check: cli.WholeFrom(0),
			Help: "RoCE GID index of the MoRI transport"},
		{Group: group, Name: "VLLM_HOST_IP",
			Help: "routable address a vLLM worker announces for KV transfer; goes with --advertise-host"},
		{Group: group, Name: "RDMAV_FORK_SAFE",
			Help: "1 makes libibverbs safe to fork, for workers that use RDMA"},
	}
}

// engineVariables belong to the engines and their run-times.
func engineVariables() []cli.Variable {
	const group = "Engine (engine process)"
	return []cli.Variable{
		{Group: group, Name: "PYTHONHASHSEED",
			Help: "0 on every vLLM worker: without a fixed seed block hashes differ after a restart and nothing is found in the cache"},
		{Group: group, Name: "VLLM_SERVER_DEV_MODE",
			Help: "1 serves the development routes, POST /reset_prefix_cache among them"},
		{Group: group, Name: "HIP_VISIBLE_DEVICES",
			Help: "GPUs the worker may use"},
	}
}
