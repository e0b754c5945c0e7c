package report

import "encoding/json"

// SchemaProjection names the JSON contract of [Projection].
const SchemaProjection = "inferasim.projection/v1"

// Projection is the answer for one recipe.
type Projection struct {
	Request  Request `json:"request"`
	Feasible bool    `json:"feasible"`
	// Reason says why an infeasible recipe is infeasible, in one line.
	Reason string    `json:"reason"`
	Memory Memory    `json:"memory"`
	Model  ModelSize `json:"model"`
	// Performance is written as null when Feasible is false, whatever it holds.
	Performance *Performance  `json:"performance"`
	Cost        Cost          `json:"cost"`
	Fidelity    Fidelity      `json:"fidelity"`
	Warnings    List[Warning] `json:"warnings"`

	// Features lists what is switched on, as [Features] spells it.
	Features List[string] `json:"features"`
	// Suggestions says what would make an infeasible recipe fit.
	Suggestions List[Suggestion] `json:"suggestions"`
	// Launch holds the fate of each argument of an engine command line.
	Launch List[Argument] `json:"launch,omitempty"`
	// Simulation is the simulation of the same recipe, as JSON; absent when none
	// was asked for.
	Simulation json.RawMessage `json:"simulation,omitempty"`
	// ID is the caller's name for this candidate, as JSON; absent when empty.
	ID json.RawMessage `json:"id,omitempty"`

	// HideMemory and HidePerformance leave a part out of the table; JSON and
	// CSV stay complete.
	HideMemory      bool `json:"-"`
	HidePerformance bool `json:"-"`
}

// MarshalJSON writes the projection contract, schema first.
func (p Projection) MarshalJSON() ([]byte, error) { return Marshal(p.contract()) }

// contract is what is encoded: the fields behind the schema.
func (p Projection) contract() any {
	type body Projection
	if !p.Feasible {
		p.Performance = nil
	}
	return struct {
		Schema string `json:"schema"`
		body
	}{SchemaProjection, body(p)}
}

// ModelSize names a model and its parameter counts.
type ModelSize struct {
	Name         string `json:"name"`
	ParamsTotal  int64  `json:"params_total"`
	ParamsActive int64  `json:"params_active"`
}

// Memory is what the binding GPU of a replica holds, in bytes.
type Memory struct {
	WeightsBytes          Number `json:"weights_bytes"`
	KVBytesPerToken       Number `json:"kv_bytes_per_token"`
	StateBytesPerSequence Number `json:"state_bytes_per_sequence"`
	ActivationBytes       Number `json:"activation_bytes"`
	GraphBytes            Number `json:"graph_bytes"`
	OverheadBytes         Number `json:"overhead_bytes"`
	// TotalBytes is everything at the requested concurrency and context.
	TotalBytes Number `json:"total_bytes"`
	// HBMBytes is the capacity of one GPU.
	HBMBytes Number `json:"hbm_bytes"`
	// KVCapacityTokens, MaxConcurrency (at the requested context) and
	// MaxContextTokens (of one sequence) describe the cache pool.
	KVCapacityTokens int64            `json:"kv_capacity_tokens"`
	MaxConcurrency   int64            `json:"max_concurrency"`
	MaxContextTokens int64            `json:"max_context_tokens"`
	Terms            List[MemoryTerm] `json:"terms"`
	Fits             bool             `json:"fits"`
	// KVBytes is the cache of Concurrency sequences of ContextTokens each;
	// KVBytesPerSequence that of one.
	KVBytes            Number `json:"kv_bytes"`
	KVBytesPerSequence Number `json:"kv_bytes_per_sequence"`
	Concurrency        int64  `json:"concurrency"`
	ContextTokens      int64  `json:"context_tokens"`
	// UsableBytes is UsableFraction of HBMBytes; HBMSource says where the
	// capacity comes from (flag, profile, probe).
	UsableBytes    Number `json:"usable_bytes"`
	UsableFraction Number `json:"usable_fraction"`
	HBMSource      string `json:"hbm_source"`
	// ShortTerm names the term that does not fit and ShortBytes by how much;
	// "" and 0 when all fit.
	ShortTerm  string `json:"short_term"`
	ShortBytes Number `json:"short_bytes"`
	// Rank is the GPU of the replica that binds; Layers is how many layers it
	// holds and Sequences how many of the Concurrency sequences (attention
	// data parallelism); 0 = all.
	Rank      int   `json:"rank"`
	Layers    int   `json:"layers_per_rank"`
	Sequences int64 `json:"sequences_per_rank"`
	// WeightDType and KVDType are labels: mxfp4, fp8.
	WeightDType string `json:"weight_dtype"`
	KVDType     string `json:"kv_dtype"`
	// HostOffloadBytes is the host memory of the cache tier below HBM.
	HostOffloadBytes Number `json:"host_offload_bytes"`
}

// MemoryTerm is one part of what a GPU holds.
type MemoryTerm struct {
	Name  string `json:"name"`
	Bytes Number `json:"bytes"`
	// ShardedBy names the parallelism that divides the term: tp, ep, pp, none.
	ShardedBy string `json:"sharded_by"`
	Source    string `json:"source"`
}

// Performance is the steady state of one replica, or of a prefill and a decode
// pool together. The JSON key of a field names its unit; rates per GPU divide
// by GPUs, all GPUs of the deployment.
type Performance struct {
	TTFTMs            Band          `json:"ttft_ms"`
	TPOTMs            Band          `json:"tpot_ms"`
	ITLMs             Band          `json:"itl_ms"`
	E2EMs             Band          `json:"e2e_ms"`
	DecodeStepMs      Band          `json:"decode_step_ms"`
	MixedStepMs       Band          `json:"mixed_step_ms"`
	MixedStepFraction Number        `json:"mixed_step_fraction"`
	TPOTPollutionPct  Number        `json:"tpot_pollution_pct"`
	OutputTokS        Band          `json:"output_tok_s"`
	OutputTokSPerGPU  Band          `json:"output_tok_s_per_gpu"`
	TotalTokSPerGPU   Band          `json:"total_tok_s_per_gpu"`
	PrefillTokS       Band          `json:"prefill_tok_s"`
	InteractivityTokS Number        `json:"interactivity_tok_s_user"`
	Concurrency       int64         `json:"concurrency"`
	GPUs              int           `json:"gpus"`
	Breakdown         Breakdown     `json:"breakdown"`
	CommunicationMs   Communication `json:"communication_ms"`
	ServingModel      string        `json:"serving_model"` // continuous or static
	Replicas          int           `json:"replicas"`
	ReplicaGPUs       int           `json:"replica_gpus"`
	OutputTokSPerUser Band          `json:"output_tok_s_per_request"`
	ConcurrencyLimit  int64         `json:"max_sustainable_concurrency"`
	ConcurrencyCapped bool          `json:"concurrency_capped"`
	SpecTokensPerStep Number        `json:"speculative_tokens_per_step"` // 1 without speculation
	Host              Host          `json:"host_ms"`
	Load                            // its keys stand here
	Disaggregation    *Disagg       `json:"disaggregation"` // null when colocated
	AdmissionWaitMs   Number        `json:"admission_wait_ms"`
	AdmissionCeiling  int64         `json:"admission_ceiling"` // 0 = none
	QueueWaitMs       Number        `json:"queue_wait_ms"`
	TTFTWithQueueMs   Number        `json:"ttft_with_queue_ms"`
	E2EWithQueueMs    Number        `json:"e2e_with_queue_ms"`
}

// Breakdown lists the operations of one decode step and of one prefill, in
// execution order.
type Breakdown struct {
	Decode  List[Op] `json:"decode"`
	Prefill List[Op] `json:"prefill"`
}

// Op is the sum over one forward pass of one class of operations. Bytes and
// FLOPs are per GPU; Bound is hbm, compute, launch, fabric or host.
type Op struct {
	Name   string `json:"op"`
	TimeMs Number `json:"time_ms"`
	Bytes  Number `json:"bytes"`
	FLOPs  Number `json:"flops"`
	Bound  string `json:"bound"`
	Source string `json:"source"`
}

// Communication is the exposed time of collectives in one forward pass.
type Communication struct {
	Prefill CommunicationMs `json:"prefill"`
	Decode  CommunicationMs `json:"decode"`
}

// CommunicationMs splits the exposed communication of one forward pass, in
// milliseconds, into tensor-parallel all-reduce, expert all-to-all and
// pipeline point-to-point.
type CommunicationMs struct {
	TPAR  Number `json:"tp_ar"`
	EPA2A Number `json:"ep_a2a"`
	PPP2P Number `json:"pp_p2p"`
}

// Total returns the sum in milliseconds.
func (c CommunicationMs) Total() Number { return c.TPAR + c.EPA2A + c.PPP2P }

// Host is CPU time on the request path, in milliseconds: per engine step, per
// output token, per prompt and per request.
type Host struct {
	Step       Number `json:"step"`
	Detokenize Number `json:"detokenize"`
	Tokenize   Number `json:"tokenize"`
	Request    Number `json:"request"`
}

// Load is open-loop traffic; all zero for a closed loop.
type Load struct {
	RequestRate    Number `json:"request_rate"`     // offered, requests/s
	MaxRequestRate Number `json:"max_request_rate"` // sustainable, requests/s
	ArrivalModel   string `json:"arrival_model"`
	Utilization    Number `json:"utilization"` // 0..1
	Saturated      bool   `json:"saturated"`
}

// Disagg describes a prefill pool and a decode pool joined by a KV transfer.
type Disagg struct {
	Prefill          Pool   `json:"prefill"`
	Decode           Pool   `json:"decode"`
	PrefillComputeMs Number `json:"prefill_compute_ms"`
	KVTransferMs     Number `json:"kv_transfer_ms"`
	KVTransferBytes  Number `json:"kv_transfer_bytes"`
	// Limit names the pool that sets the throughput: prefill, decode, transfer.
	Limit string `json:"limit"`
}

// Pool is a set of equal replicas.
type Pool struct {
	Replicas    int    `json:"replicas"`
	ReplicaGPUs int    `json:"replica_gpus"`
	Layout      string `json:"layout"` // TP8 EP8, for reading
	Occupancy   Number `json:"occupancy"`
}

// Cost is null without a price.
type Cost struct {
	USDPerMOutput *Number `json:"usd_per_m_output_tokens"`
	USDPerMTotal  *Number `json:"usd_per_m_total_tokens"`
	USDPerGPUHour *Number `json:"usd_per_gpu_hour"`
	GPUs          int     `json:"gpus"` // GPUs paid for
}

// Fidelity says how far the numbers can be trusted.
type Fidelity struct {
	Mode   string `json:"mode"`   // benchmark or simulate
	Source string `json:"source"` // measured, transported or analytic
	Anchor Anchor `json:"anchor"`
	// BandCoveragePct is the share of calibration points the bands hold; 0 =
	// not stated.
	BandCoveragePct Number `json:"band_coverage_pct,omitzero"`
}

// Anchor is the measurement a projection stands on; all empty without one.
type Anchor struct {
	ID           string       `json:"id"`
	Path         string       `json:"path"`
	Distance     Number       `json:"distance"`
	Unverified   List[string] `json:"unverified"`
	Extrapolated bool         `json:"extrapolated"`
}

// Warning is a remark with a stable code.
type Warning struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Suggestion is a change of the request and what it brings.
type Suggestion struct {
	Change string `json:"change"` // --tp 4
	Effect string `json:"effect"`
}

// Argument is the fate of one argument or variable of an engine command line.
type Argument struct {
	Argument string `json:"argument"`
	Status   string `json:"status"` // used, translated, overridden, not_modelled
	Detail   string `json:"detail"`
}
