package simulation

import "infera/sim/report"

// Schema names the JSON contract of [Report].
const Schema = "inferasim.simulation/v1"

// Report is the JSON contract: the result of a simulation in the units of its
// keys. The order of the fields is the order of the keys.
type Report struct {
	Figures
	Instances report.List[Instance]       `json:"instances"`
	Batch     Batch                       `json:"batch"`
	Warnings  report.List[report.Warning] `json:"warnings"`
	Objectives
	Model    string `json:"model"`
	Recipe   string `json:"recipe"`
	Workload string `json:"workload"`
	Arrival  string `json:"arrival_model"`
	Clients  int    `json:"clients"` // of a closed loop, 0 for open arrivals
	Seed     uint64 `json:"seed"`
	Seeds    int    `json:"seeds"` // runs that were pooled

	Classes  report.List[Class]   `json:"classes"`
	Pools    report.List[Pool]    `json:"pools"`
	Links    report.List[Link]    `json:"links"`
	Tiers    report.List[Tier]    `json:"tiers"`
	Faults   report.List[Fault]   `json:"faults"`
	Scaling  report.List[Scaling] `json:"scaling"`
	Timeline report.List[Sample]  `json:"timeline"`
	Curve    report.List[Point]   `json:"curve"`
	// KneeReqS is null without a sweep, 0 when no rate was sustained.
	KneeReqS   report.Number          `json:"knee_req_s"`
	Trace      *Trace                 `json:"request_trace"` // null when none was asked for
	Histograms report.List[Histogram] `json:"histograms"`
	Cost       Cost                   `json:"cost"`
}

// Cost is what tokens cost; null without a price of GPUs.
type Cost struct {
	USDPerMOutput report.Number `json:"usd_per_m_output_tokens"`
	USDPerMTotal  report.Number `json:"usd_per_m_total_tokens"`
	GPUs          report.Number `json:"gpus"` // paid for, on average
}

// MarshalJSON writes the simulation contract, schema first.
func (r Report) MarshalJSON() ([]byte, error) {
	type body Report
	return report.Marshal(struct {
		Schema string `json:"schema"`
		body
	}{Schema, body(r)})
}

// Stats are all figures of a part of the fleet.
type Stats struct {
	Figures
	Batch Batch `json:"batch"`
	Objectives
}

// Figures count requests, time them and rate them. Latencies are in ms.
type Figures struct {
	Requests     Requests      `json:"requests"`
	DurationS    report.Number `json:"duration_s"`
	OfferedReqS  report.Number `json:"offered_req_s"`
	AchievedReqS report.Number `json:"achieved_req_s"`
	// Saturated: queues grew to the end, so that the latencies are no
	// operating point.
	Saturated   bool          `json:"saturated"`
	Utilization report.Number `json:"utilization"` // share of time in a step
	TTFTMs      Summary       `json:"ttft_ms"`
	TTFTAdmitMs Summary       `json:"ttft_from_admit_ms"`
	QueueMs     Summary       `json:"queue_ms"`
	TPOTMs      Summary       `json:"tpot_ms"`
	ITLMs       Summary       `json:"itl_ms"`
	E2EMs       Summary       `json:"e2e_ms"`
	OutputTokS  report.Number `json:"output_tok_s"`
	TotalTokS   report.Number `json:"total_tok_s"`
	GoodputReqS report.Number `json:"goodput_req_s"` // null without objectives
	Cache       Cache         `json:"cache"`
}

// Objectives are the figures beside the contract's that every part has.
type Objectives struct {
	Attainment      report.Number `json:"attainment"` // null without objectives
	TotalTokSPerGPU report.Number `json:"total_tok_s_per_gpu"`
}

// Requests counts requests; offered is the sum of the next three, scored are
// the completed ones that the distributions hold.
type Requests struct {
	Offered    int `json:"offered"`
	Completed  int `json:"completed"`
	Rejected   int `json:"rejected"`
	Unfinished int `json:"unfinished"`
	Scored     int `json:"scored"`
}

// Summary are the figures of a distribution.
type Summary struct {
	Mean report.Number `json:"mean"`
	P50  report.Number `json:"p50"`
	P90  report.Number `json:"p90"`
	P95  report.Number `json:"p95"`
	P99  report.Number `json:"p99"`
	P999 report.Number `json:"p999"`
	// HalfWidth is half the 95 % confidence interval of the mean.
	HalfWidth report.Number `json:"half_width_95"`
	Min       report.Number `json:"min"`
	Max       report.Number `json:"max"`
	Count     int64         `json:"count"`
}

// Cache are the counters of the prefix cache; the rates are null when nothing
// was looked up.
type Cache struct {
	RequestHitRate report.Number `json:"request_hit_rate"`
	BlockHitRate   report.Number `json:"block_hit_rate"`
	Evictions      int64         `json:"evictions"`
	TokensCached   int64         `json:"tokens_cached"`
	Requests       int64         `json:"requests"`
	RequestHits    int64         `json:"request_hits"`
	Blocks         int64         `json:"blocks"`
	BlockHits      int64         `json:"block_hits"`
	HitTokens      int64         `json:"hit_tokens"`
	PromptTokens   int64         `json:"prompt_tokens"`
}

// Batch says how steps were packed.
type Batch struct {
	Steps        int64         `json:"num_steps"`
	Sequences    report.Number `json:"avg_batch_size"`
	MaxSequences int           `json:"max_batch_size"`
	Prefills     report.Number `json:"avg_prefill_reqs"`
	Decodes      report.Number `json:"avg_decode_reqs"`
	Tokens       report.Number `json:"avg_query_tokens"`
	PrefillShare report.Number `json:"prefill_step_fraction"`
	KVPeak       report.Number `json:"kv_peak_tokens"`
	KVMean       report.Number `json:"kv_mean_tokens"`
	KVCapacity   report.Number `json:"kv_capacity_tokens"`
	// KVUtilization is the peak's share of the capacity.
	KVUtilization report.Number `json:"kv_utilization"`
	Preemptions   int64         `json:"preemptions"`
}

// Instance is one engine.
type Instance struct {
	Stats
	Index int    `json:"index"`
	Role  string `json:"role"`
	Name  string `json:"name"`
	GPUs  int    `json:"gpus"`
}

// Pool is the sum of the instances of one role.
type Pool struct {
	Stats
	Role string `json:"role"`
	GPUs int    `json:"gpus"`
}

// Class is one class of requests.
type Class struct {
	Stats
	Name      string    `json:"name"`
	Objective Objective `json:"objective"`
}

// Objective are latency targets; null = none.
type Objective struct {
	TTFTMs report.Number `json:"ttft_ms"`
	TPOTMs report.Number `json:"tpot_ms"`
	E2EMs  report.Number `json:"e2e_ms"`
}

// Link is one link that caches are moved over.
type Link struct {
	Name        string        `json:"name"`
	Bytes       report.Number `json:"bytes"`
	Transfers   int64         `json:"transfers"`
	Utilization report.Number `json:"utilization"`
	TimeMs      Summary       `json:"time_ms"`
}

// Tier is one cache tier below GPU memory.
type Tier struct {
	Name          string        `json:"name"`
	CapacityBytes report.Number `json:"capacity_bytes"`
	HitBlocks     int64         `json:"hit_blocks"`
	Written       int64         `json:"written_blocks"`
	Evicted       int64         `json:"evicted_blocks"`
	ReadBytes     report.Number `json:"read_bytes"`
	FetchMs       Summary       `json:"fetch_ms"`
}

// Fault is one thing that went wrong, and the requests that had to start over
// and tokens computed in vain because of it.
type Fault struct {
	AtS       report.Number `json:"at_s"`
	Kind      string        `json:"kind"`
	Target    string        `json:"target"`
	DurationS report.Number `json:"duration_s"`
	Requests  int64         `json:"requests"`
	Tokens    int64         `json:"tokens"`
}

// Scaling is one decision of the autoscaler.
type Scaling struct {
	AtS    report.Number `json:"at_s"`
	Role   string        `json:"role"`
	From   int           `json:"from"`
	To     int           `json:"to"`
	Reason string        `json:"reason"`
}

// Sample is the state of the fleet at a moment; rates and the TTFT are those
// since the sample before.
type Sample struct {
	AtS           report.Number `json:"at_s"`
	Running       int           `json:"running"`
	Waiting       int           `json:"waiting"`
	KVUsed        report.Number `json:"kv_used"` // share of all cache blocks
	Instances     int           `json:"instances"`
	ArrivalReqS   report.Number `json:"arrival_req_s"`
	CompletedReqS report.Number `json:"completed_req_s"`
	OutputTokS    report.Number `json:"output_tok_s"`
	TTFTMs        report.Number `json:"ttft_ms"`
}

// Point is one rate of a load sweep.
type Point struct {
	Stats
	RateReqS report.Number `json:"rate_req_s"`
}

// Trace is the waterfall of one request.
type Trace struct {
	ID       int               `json:"id"`
	Input    int               `json:"input_tokens"`
	Output   int               `json:"output_tokens"`
	Cached   int               `json:"cached_tokens"`
	Instance int               `json:"instance"`
	Spans    report.List[Span] `json:"spans"`
}

// Span is one stretch of a request's life, counted from its arrival.
type Span struct {
	Name    string        `json:"name"`
	StartMs report.Number `json:"start_ms"`
	EndMs   report.Number `json:"end_ms"`
	Note    string        `json:"note"`
}

// Histogram is the distribution of one latency.
type Histogram struct {
	Metric string           `json:"metric"`
	Bins   report.List[Bin] `json:"bins"`
}

// Bin counts the observations between two latencies.
type Bin struct {
	LowMs  report.Number `json:"low_ms"`
	HighMs report.Number `json:"high_ms"`
	Count  int64         `json:"count"`
}
