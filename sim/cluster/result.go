package cluster

import (
	"infera/internal/units"
	"infera/sim/metrics"
)

// Result is what a simulation found. Times in it are seconds.
type Result struct {
	// Model, Recipe and Workload say in words what was simulated.
	Model, Recipe, Workload string
	// Arrival names the arrival process: closed, poisson, trace, ...
	Arrival string
	// Clients is the number of clients of a closed loop, 0 for open arrivals.
	Clients int
	// Seed is what the random streams were seeded with; Seeds how many runs
	// with seeds from it were pooled.
	Seed  uint64
	Seeds int
	Total Stats
	// Instances are the engines, by index; Pools the prefill and decode pools
	// of a disaggregated fleet (empty otherwise).
	Instances []Instance
	Pools     []Pool
	// Classes are the classes of the workload, empty for one.
	Classes []Class
	// Links are the links that caches were moved over.
	Links []Link
	// Tiers are the cache tiers below GPU memory.
	Tiers []Tier
	// Faults lists what went wrong and what it cost, in order of time.
	Faults []Fault
	// Scaling lists what the autoscaler did, in order of time.
	Scaling []Scaling
	// Timeline samples the fleet in time, at most a few hundred points.
	Timeline []Sample
	// Curve is the load sweep, empty without one; Knee the highest rate, in
	// requests per second, that was sustained within the objectives.
	Curve []CurvePoint
	Knee  float64
	// Request is the waterfall of one request, when asked for.
	Request *Trace
	// GPUHour is the price of one GPU for an hour in US dollars, 0 = not stated.
	GPUHour float64
	// Warnings say what a reader must know before using the numbers.
	Warnings []Warning
	// Histograms are the distributions behind the summaries of Total, for
	// charts; empty when they were not kept.
	Histograms []Histogram
}

// GPUs returns how many GPUs were paid for on average: those of all instances,
// in a fleet that was scaled by the mean number of instances over time.
func (r *Result) GPUs() float64 {
	all, n := 0.0, float64(len(r.Instances))
	for _, in := range r.Instances {
		all += float64(in.GPUs)
	}
	if len(r.Scaling) == 0 || len(r.Timeline) == 0 || n == 0 {
		return all
	}
	ready := 0.0
	for _, s := range r.Timeline {
		ready += float64(s.Instances) / float64(len(r.Timeline))
	}
	return all / n * ready
}

// Stats are the figures of a fleet, a pool, an instance or a class.
type Stats struct {
	// Offered counts the requests that arrived, Completed those answered,
	// Rejected those refused (over the model's length, full queue), Unfinished
	// those still under way when the run was cut off. Offered is their sum.
	Offered, Completed, Rejected, Unfinished int
	// Scored is how many completed requests the distributions hold: those after
	// the warm-up.
	Scored int
	// Duration is the time from the first arrival to the last answer.
	Duration units.Seconds
	// OfferedRate and AchievedRate are requests per second.
	OfferedRate, AchievedRate float64
	// Saturated says that arrivals outran the fleet: queues grew to the end, so
	// that the latencies are no operating point.
	Saturated bool
	// Utilization is the share of time in which engines ran a step.
	Utilization float64
	// TTFT counts from the arrival, TTFTFromAdmission from the moment the
	// scheduler took the request, Queue is the time between the two.
	TTFT, TTFTFromAdmission, Queue metrics.Summary
	// TPOT is (last token - first token) / (tokens - 1), ITL the gaps between
	// tokens as the client sees them, E2E the time from arrival to last token.
	TPOT, ITL, E2E metrics.Summary
	// OutputRate and TotalRate are generated and all tokens per second;
	// PerGPU is TotalRate per GPU.
	OutputRate, TotalRate, PerGPU float64
	// Goodput is the rate of requests within all their objectives, per second;
	// Attainment their share of the scored ones. NaN without objectives.
	Goodput, Attainment float64
	Cache               Cache
	Batch               Batch
}

// Instance is one engine of the fleet.
type Instance struct {
	Index int
	Role  string // mixed, prefill, decode
	Name  string // what it is: GPU, layout, engine
	GPUs  int
	Stats
}

// Pool is the sum of the instances of one role.
type Pool struct {
	Role string
	GPUs int
	Stats
}

// Class is one class of requests.
type Class struct {
	Name      string
	Objective metrics.Objective
	Stats
}

// Cache are the counters of the prefix cache.
type Cache struct {
	// Requests counts requests with shareable content that were looked up,
	// RequestHits those that found at least one block; Blocks and BlockHits
	// count their blocks.
	Requests, RequestHits, Blocks, BlockHits int64
	// HitTokens are prompt tokens not computed again, PromptTokens all tokens
	// of prompts that were admitted.
	HitTokens, PromptTokens int64
	// Evictions counts blocks dropped for others; TokensCached is what the
	// cache held at the end, in tokens.
	Evictions, TokensCached int64
}

// Batch says how steps were packed.
type Batch struct {
	Steps int64
	// Sequences is the mean of the running requests per step, MaxSequences the
	// most; Prefills and Decodes their two kinds; Tokens the mean of the tokens
	// computed per step.
	Sequences, Prefills, Decodes, Tokens float64
	MaxSequences                         int
	// PrefillShare is the share of the steps with prompt tokens.
	PrefillShare float64
	// KVPeak is the most tokens of cache that were in use (summed over instances,
	// whose peaks need not coincide), KVCapacity what there is. KVMean is the
	// mean of the running requests' tokens per step: a prefix that two of them
	// share counts twice.
	KVPeak, KVMean, KVCapacity float64
	// Preemptions counts requests thrown back for want of cache blocks.
	Preemptions int64
}

// Link is one link that caches are moved over.
type Link struct {
	Name        string
	Bytes       units.Bytes
	Transfers   int64
	Utilization float64
	// Time is how long transfers took, waiting for others included.
	Time metrics.Summary
}

// Tier is one cache tier below GPU memory.
type Tier struct {
	Name                       string
	Capacity                   units.Bytes
	HitBlocks, Written, Evicts int64
	Read                       units.Bytes
	Fetch                      metrics.Summary // seconds per fetch
}

// Fault is one thing that went wrong.
type Fault struct {
	At       units.Seconds
	Kind     string // crash, slow, link, events
	Target   string
	Duration units.Seconds
	// Requests that had to start over, and tokens computed in vain.
	Requests, Tokens int64
}

// Scaling is one decision of the autoscaler.
type Scaling struct {
	At       units.Seconds
	Role     string
	From, To int
	Reason   string
}

// Sample is the state of the fleet at a moment.
type Sample struct {
	At                         units.Seconds
	Running, Waiting           int
	KVUsed                     float64 // share of all cache blocks
	Instances                  int     // ready
	ArrivalRate, CompletedRate float64 // requests per second since the last sample
	OutputRate                 float64 // tokens per second since the last sample
	TTFT                       float64 // mean of first tokens since the last sample, seconds; NaN without
}

// CurvePoint is one rate of a load sweep.
type CurvePoint struct {
	Rate float64 // offered, requests per second
	Stats
}

// Trace is the waterfall of one request.
type Trace struct {
	ID            int
	Input, Output int
	Cached        int // prompt tokens found in the cache
	Instance      int
	Spans         []Span
}

// Span is one stretch of a request's life: queue, prefill, interference,
// transfer, restore, decode, host.
type Span struct {
	Name       string
	Start, End units.Seconds // from the request's arrival
	Note       string
}

// Warning is a stable code with its text.
type Warning struct{ Code, Text string }

// Histogram is the distribution of one latency.
type Histogram struct {
	// Metric is the latency: ttft, ttft_from_admit, queue, tpot, itl or e2e.
	Metric string
	// Bins count the observations, in seconds.
	Bins []metrics.Bin
}
