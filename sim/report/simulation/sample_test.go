package simulation

import (
	"fmt"
	"math"

	"infera/internal/units"
	"infera/sim/cluster"
	"infera/sim/metrics"
)

// summary invents a distribution around a median, in seconds.
func summary(p50 float64, n int64) metrics.Summary {
	return metrics.Summary{
		Count: n, Mean: 1.08 * p50, Min: 0.6 * p50, Max: 5 * p50, P50: p50, P90: 1.7 * p50, P95: 2.1 * p50, P99: 3.2 * p50, P999: 4.4 * p50,
		HalfWidth: 0.03 * p50,
	}
}

// stats invents the figures of a fleet at an offered rate.
func stats(rate float64) cluster.Stats {
	n := int(160 * rate)
	return cluster.Stats{
		Offered: n, Completed: n - 12, Rejected: 8, Unfinished: 4, Scored: n * 9 / 10, Duration: 161.25,
		OfferedRate: rate, AchievedRate: 0.98 * rate, Utilization: rate / 15,
		TTFT: summary(0.02*rate, int64(n)), TTFTFromAdmission: summary(0.0125*rate, int64(n)), Queue: summary(0.0075*rate, int64(n)),
		TPOT: summary(0.0008*rate, int64(n)), ITL: summary(0.00075*rate, int64(n)*255), E2E: summary(0.25*rate, int64(n)),
		OutputRate: 256 * rate, TotalRate: 2304 * rate, PerGPU: 48 * rate, Goodput: 0.93 * rate, Attainment: 0.949,
		Cache: cluster.Cache{
			Requests: 1900, RequestHits: 1701, Blocks: 60_800, BlockHits: 27_242, HitTokens: 435_872, PromptTokens: 4_096_000,
			Evictions: 812, TokensCached: 655_360,
		},
		Batch: cluster.Batch{
			Steps: 41_880, Sequences: 21.4, MaxSequences: 64, Prefills: 0.21, Decodes: 21.19, Tokens: 118.25, PrefillShare: 0.187,
			KVPeak: 91_000, KVMean: 48_200, KVCapacity: 131_072, Preemptions: 3,
		},
	}
}

// sample is an invented result in which everything is filled: a disaggregated
// fleet with two classes, faults, an autoscaler, a sweep and a waterfall.
func sample() *cluster.Result {
	r := &cluster.Result{
		Model: "gpt_oss_120B", Recipe: "mi355x, TP8 EP8, vllm 0.15, 2 prefill + 4 decode instances",
		Workload: "2000 requests, input 2048 tok, output 256 tok, 8 shared prefixes of 1024 tok",
		Arrival:  "poisson", Seed: 7, Seeds: 3, Total: stats(12.5), Knee: 12,
	}
	for i := range 6 {
		x := cluster.Instance{Index: i, Role: "decode", Name: "mi355x TP8 vllm 0.15", GPUs: 8, Stats: stats(3 + float64(i)/8)}
		if i < 2 {
			x.Role, x.Stats.TPOT, x.Stats.OutputRate = "prefill", metrics.Summarize(nil), 0
		}
		r.Instances = append(r.Instances, x)
	}
	r.Pools = []cluster.Pool{{Role: "prefill", GPUs: 16, Stats: stats(12.5)}, {Role: "decode", GPUs: 32, Stats: stats(12.4)}}
	r.Classes = []cluster.Class{
		{Name: "interactive", Objective: metrics.Objective{TTFT: 0.5, TPOT: 0.02}, Stats: stats(10)},
		{Name: "batch", Objective: metrics.Objective{E2E: 60}, Stats: stats(2.5)},
	}
	r.Links = []cluster.Link{{Name: "prefill 0 to decode 2", Bytes: 31 * units.GiB, Transfers: 480, Utilization: 0.31, Time: summary(0.004, 480)}}
	r.Tiers = []cluster.Tier{{Name: "host memory", Capacity: 512 * units.GiB, HitBlocks: 1200, Written: 9100, Evicts: 40, Read: 700 * units.MiB, Fetch: summary(0.0021, 300)}}
	r.Faults = []cluster.Fault{
		{At: 60, Kind: "crash", Target: "instance 3", Duration: 20, Requests: 17, Tokens: 40_211},
		{At: 110.5, Kind: "slow", Target: "instance 1", Duration: 5},
	}
	r.Scaling = []cluster.Scaling{
		{At: 66, Role: "decode", From: 3, To: 4, Reason: "TPOT 21.3 ms above 20 ms"},
		{At: 140, Role: "decode", From: 4, To: 3, Reason: "load 3.1 requests/s below 4"},
	}
	r.Timeline, r.Curve, r.Histograms = timeline(160), sweep(), histograms()
	r.Request = &cluster.Trace{ID: 42, Input: 2048, Output: 256, Cached: 1024, Instance: 3, Spans: []cluster.Span{
		{Name: "queue", Start: 0, End: 0.094}, {Name: "prefill", Start: 0.094, End: 0.25, Note: "2 chunks, 1024 tokens"},
		{Name: "transfer", Start: 0.25, End: 0.262, Note: "72.0 MiB from instance 0"}, {Name: "decode", Start: 0.262, End: 1.91},
		{Name: "interference", Start: 1.91, End: 2.4, Note: "steps made longer by the prompts of others"},
		{Name: "decode", Start: 2.4, End: 3.125}, {Name: "host", Start: 3.125, End: 3.13},
	}}
	r.Warnings = []cluster.Warning{
		{Code: "draft_acceptance", Text: "no acceptance rate is known for this model; 0.7 per token is assumed & not verified"},
	}
	return r
}

// timeline invents a load that swells, and a queue after a crash at 60 s.
func timeline(n int) []cluster.Sample {
	var out []cluster.Sample
	for i := range n {
		t := float64(i) + 0.5
		swell := 1 + 0.4*math.Sin(t/25)
		s := cluster.Sample{
			At: units.Seconds(t), Running: int(90 * swell), KVUsed: 0.45 * swell, Instances: 6, ArrivalRate: 12.5 * swell, CompletedRate: 12 * swell,
			OutputRate: 3200 * swell, TTFT: 0.21 * swell,
		}
		if t > 60 && t < 95 {
			s.Waiting, s.Running, s.Instances = int(40*math.Sin((t-60)/35*math.Pi)), int(70*swell), 5
			s.TTFT += 0.02 * float64(s.Waiting)
		}
		if i%40 == 39 {
			s.TTFT = math.NaN()
		}
		out = append(out, s)
	}
	return out
}

// sweep invents rates whose latency runs away beyond the knee at 12.
func sweep() []cluster.CurvePoint {
	var out []cluster.CurvePoint
	for _, rate := range []float64{2, 4, 6, 8, 10, 12, 13, 14} {
		s := stats(rate)
		busy := min(rate/14.5, 0.96)
		s.TTFT = summary(0.05/(1-busy), int64(s.Completed))
		s.Saturated = rate > 13
		out = append(out, cluster.CurvePoint{Rate: rate, Stats: s})
	}
	return out
}

// histograms invents bell-shaped distributions on logarithmic bins.
func histograms() []cluster.Histogram {
	var out []cluster.Histogram
	for _, m := range []struct {
		name   string
		median float64
	}{{"ttft", 0.25}, {"ttft_from_admit", 0.156}, {"queue", 0.094}, {"tpot", 0.01}, {"itl", 0.0094}, {"e2e", 3.1}} {
		h := cluster.Histogram{Metric: m.name}
		edge := func(k int) float64 { return m.median / 4 * math.Pow(16, float64(k)/32) }
		for k := range 32 {
			at := float64(k-12) / 6
			h.Bins = append(h.Bins, metrics.Bin{Low: edge(k), High: edge(k + 1), Count: int64(200 * math.Exp(-at*at))})
		}
		out = append(out, h)
	}
	return out
}

// closed is a small result: one instance, a closed loop, nothing special.
func closed() *cluster.Result {
	s := stats(4)
	s.Goodput, s.Attainment, s.Rejected, s.Unfinished, s.Cache = math.NaN(), math.NaN(), 0, 0, cluster.Cache{}
	s.Completed, s.Offered, s.Scored, s.Batch.Preemptions = 200, 200, 180, 0
	s.TTFT.HalfWidth = math.NaN()
	return &cluster.Result{
		Model: "llama3.1_8B", GPUHour: 2, Recipe: "mi300x, TP1, sglang 0.5", Workload: "200 requests, input 1024 tok, output 128 tok",
		Arrival: "closed", Clients: 16, Seed: 1, Seeds: 1, Total: s, Instances: []cluster.Instance{{Role: "mixed", Name: "mi300x TP1", GPUs: 1, Stats: s}},
	}
}

// saturated is a fleet of 24 instances beyond its capacity.
func saturated() *cluster.Result {
	r := closed()
	r.Arrival, r.Clients, r.Total = "poisson", 0, stats(96)
	r.Total.Saturated, r.Total.AchievedRate = true, 60.5
	r.Instances = nil
	for i := range 24 {
		r.Instances = append(r.Instances, cluster.Instance{Index: i, Role: "mixed", Name: fmt.Sprintf("mi300x %d", i), GPUs: 1, Stats: stats(2 + float64(i)/8)})
	}
	return r
}
