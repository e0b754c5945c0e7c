package cluster

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/workload"
)

var equalNaN = cmpopts.EquateNaNs()

// anyConfig draws a fleet and a workload. The source is made anew by each call
// of the function that is returned.
func anyConfig(t *rapid.T) func() Config {
	w := poisson(rapid.IntRange(1, 120).Draw(t, "requests"), rapid.Float64Range(1, 200).Draw(t, "rate"))
	w.Input.Mean, w.Output.Mean = rapid.IntRange(1, 400).Draw(t, "input"), rapid.IntRange(1, 80).Draw(t, "output")
	w.Input.Max, w.Output.Max = 1000, 200
	w.Seed = uint64(rapid.IntRange(0, 1000).Draw(t, "seed"))
	switch rapid.IntRange(0, 2).Draw(t, "content") {
	case 1:
		w.Prefixes = workload.Prefixes{Count: 4, Tokens: 100, Zipf: 1}
	case 2:
		w.Sessions = workload.Sessions{Turns: 3, Think: 0.1, NewTokens: workload.Length{Mean: 50}}
	}
	s := *spec(rapid.SampledFrom([]int{0, 90, 200, 1000}).Draw(t, "blocks"))
	s.Pool.ContentTokens = rapid.SampledFrom([]int{0, 64}).Draw(t, "granule")
	s.Scheduler = engine.Options{
		Policy:       engine.Policy(rapid.IntRange(0, 2).Draw(t, "policy")),
		MaxSequences: rapid.SampledFrom([]int{1, 4, 64}).Draw(t, "sequences"), MaxBatchedTokens: rapid.SampledFrom([]int{0, 128, 2048}).Draw(t, "budget"),
		MixedPrefill:   rapid.Bool().Draw(t, "mixed"),
		AnswerShare:    engine.AnswerShare{Initial: 0.7, Least: 0.1, Steps: 600},
		StreamInterval: rapid.SampledFrom([]int{0, 3}).Draw(t, "stream"),
		ReserveAnswer:  rapid.Bool().Draw(t, "reserve"),
		LongestPrefix:  rapid.Bool().Draw(t, "longest prefix"),
		// What is planned while a step runs does not know what it brings.
		AsyncScheduling: rapid.Bool().Draw(t, "async"),
	}
	n := rapid.IntRange(1, 3).Draw(t, "instances")
	c := Config{
		Fleet:   fleetOf(&s, n),
		Routing: Routing{Policy: rapid.SampledFrom([]string{"round-robin", "kv-aware", "power-of-two"}).Draw(t, "routing"), OverlapWeight: 1},
		Seed:    w.Seed, Explain: -1,
	}
	if rapid.Bool().Draw(t, "split") {
		p, d := s, s
		p.Role, d.Role = Prefill, Decode
		c.Fleet = append(fleetOf(&p, n), &d)
		c.Handoff = &Handoff{Latency: 1e-3, LocalPrompt: rapid.SampledFrom([]int{0, 60}).Draw(t, "local")}
	} else if rapid.Bool().Draw(t, "tiers") {
		c.Tiers = []TierSpec{{Name: "dram", Capacity: 100 * 131072 * 16, Read: 1e9, Write: 1e9, Latency: 1e-4}}
	}
	for range rapid.IntRange(0, 2).Draw(t, "crashes") {
		c.Faults = append(c.Faults, FaultSpec{
			Kind: FaultCrash, Instance: rapid.IntRange(0, len(c.Fleet)-1).Draw(t, "instance"),
			At: units.Seconds(rapid.Float64Range(0.05, 1).Draw(t, "at")), Duration: units.Seconds(rapid.Float64Range(0.1, 1).Draw(t, "for")),
		})
	}
	closed := rapid.Bool().Draw(t, "closed")
	return func() Config {
		c := c
		src, err := workload.New(w)
		if err != nil {
			t.Fatal(err)
		}
		if c.Source = src; closed {
			c.Source, c.ClosedLoop = workload.Loop(src, workload.ClosedLoop{Clients: 5}), true
		}
		// Prices remember; each run has its own.
		fleet := make([]*Spec, len(c.Fleet))
		for i, s := range c.Fleet {
			own := *s
			own.Prices = NewPrices(small, 1)
			fleet[i] = &own
		}
		c.Fleet = fleet
		return c
	}
}

// Running equal steps in one event gives the result of stepping one by one.
func TestCoalescing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		config := anyConfig(rt)
		together, single := config(), config()
		single.SingleSteps = true
		a, b := run(t, together), run(t, single)
		if diff := cmp.Diff(b, a, equalNaN); diff != "" {
			rt.Fatalf("step by step (-) and coalesced (+) differ:\n%s", diff)
		}
	})
}

// Every request ends once, the same way whenever the run is repeated, and
// engines never hold more than they have.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		config := anyConfig(rt)
		c := config()
		c.OnStep = func(s StepRecord) {
			if s.End <= s.Start || s.Tokens < s.PromptTokens || s.Prefills+s.Decodes == 0 {
				rt.Fatalf("step %+v", s)
			}
		}
		r := run(t, c)
		s := &r.Total
		if s.Offered != s.Completed+s.Rejected || s.Unfinished != 0 {
			rt.Fatalf("%d offered, %d completed, %d rejected, %d unfinished", s.Offered, s.Completed, s.Rejected, s.Unfinished)
		}
		offered := 0
		for _, in := range r.Instances {
			offered += in.Completed + in.Rejected
			if in.Batch.KVCapacity > 0 && in.Batch.KVPeak > in.Batch.KVCapacity {
				rt.Fatalf("instance %d held %v of %v tokens", in.Index, in.Batch.KVPeak, in.Batch.KVCapacity)
			}
			if in.Utilization < 0 || in.Utilization > 1+1e-9 {
				rt.Fatalf("instance %d was busy for %v of the time", in.Index, in.Utilization)
			}
		}
		if offered != s.Offered {
			rt.Fatalf("instances ended %d requests of %d", offered, s.Offered)
		}
		if s.Cache.BlockHits > s.Cache.Blocks || s.Cache.RequestHits > s.Cache.Requests || s.Cache.HitTokens > s.Cache.PromptTokens {
			rt.Fatalf("more hits than lookups: %+v", s.Cache)
		}
		if s.Completed > 0 && !(s.TTFT.Min >= 0 && s.Queue.Min >= 0 && s.E2E.Min >= s.TTFT.Min) {
			rt.Fatalf("latencies out of order: TTFT %+v, queue %+v, E2E %+v", s.TTFT, s.Queue, s.E2E)
		}
		if diff := cmp.Diff(r, run(t, config()), equalNaN); diff != "" {
			rt.Fatalf("a second run differs:\n%s", diff)
		}
	})
}

// The mean number of requests inside is their rate times their mean time.
func TestLittlesLaw(t *testing.T) {
	r := run(t, Config{Source: source(t, poisson(20_000, 25)), Fleet: fleetOf(spec(60_000), 1)})
	inside, n := 0.0, 0
	end := float64(r.Total.Duration)
	for _, s := range r.Timeline {
		if at := float64(s.At); at > end*0.1 && at < end*0.9 {
			inside += float64(s.Running + s.Waiting)
			n++
		}
	}
	inside /= float64(n)
	want := r.Total.OfferedRate * r.Total.E2E.Mean
	if math.Abs(inside-want) > 0.05*want {
		t.Errorf("%v inside on average over %d samples, rate x time = %v", inside, n, want)
	}
	if r.Total.Saturated || len(r.Total.warn()) > 0 {
		t.Errorf("saturated %v", r.Total.Saturated)
	}
}

func (s *Stats) warn() []string {
	if s.Rejected+s.Unfinished > 0 {
		return []string{fmt.Sprintf("%d rejected, %d unfinished", s.Rejected, s.Unfinished)}
	}
	return nil
}

// A fleet of one is one engine: routing, whatever the policy, changes nothing.
func TestFleetOfOne(t *testing.T) {
	w := poisson(2000, 25)
	w.Prefixes = workload.Prefixes{Count: 10, Tokens: 200}
	var first *Result
	for _, policy := range []string{"round-robin", "random", "kv-aware", "least-outstanding", "power-of-two", "prefix-hash", "session-affinity"} {
		r := run(t, Config{Source: source(t, w), Fleet: fleetOf(spec(2000), 1), Routing: Routing{Policy: policy, OverlapWeight: 1}})
		if first == nil {
			first = r
		} else if diff := cmp.Diff(first, r, equalNaN); diff != "" {
			t.Errorf("%s differs:\n%s", policy, diff)
		}
	}
}

// Open arrivals at the rate that a closed loop reaches see about the same time
// per token.
func TestOpenAndClosed(t *testing.T) {
	w := poisson(4000, 0)
	closed := run(t, Config{Source: workload.Loop(source(t, w), workload.ClosedLoop{Clients: 32}), ClosedLoop: true, Fleet: fleetOf(spec(60_000), 1)})
	w.Arrivals.Rate = closed.Total.AchievedRate
	open := run(t, Config{Source: source(t, w), Fleet: fleetOf(spec(60_000), 1)})
	if a, b := closed.Total.TPOT.Mean, open.Total.TPOT.Mean; math.Abs(a-b) > 0.12*a {
		t.Errorf("TPOT %v closed, %v open at the same rate of %v/s", a, b, closed.Total.AchievedRate)
	}
}

func TestSaturation(t *testing.T) {
	for rate, want := range map[float64]bool{10: false, 20: false, 60: true} {
		r := run(t, Config{Source: source(t, poisson(4000, rate)), Fleet: fleetOf(spec(60_000), 1)})
		if r.Total.Saturated != want {
			t.Errorf("at %v/s saturated = %v, want %v (queue %v s)", rate, r.Total.Saturated, want, r.Total.Queue.Mean)
		}
	}
}

// A prefill engine never answers more than one token, and its requests' caches
// reach the decode engines over the link.
func TestHandoff(t *testing.T) {
	p, d := *spec(20_000), *spec(60_000)
	p.Role, d.Role = Prefill, Decode
	r := run(t, Config{Source: source(t, poisson(2000, 20)), Fleet: []*Spec{&p, &p, &d}, Handoff: &Handoff{Latency: 2e-3}})
	if len(r.Links) != 1 || r.Links[0].Transfers != 2000 {
		t.Fatalf("links %+v, want 2000 transfers", r.Links)
	}
	// At least the latency and 131,072 B per token at 50 GB/s.
	if l := r.Links[0]; l.Time.Min < 2e-3 || l.Time.Mean < 2e-3+512*131072/50e9*0.9 {
		t.Errorf("transfers took %+v", l.Time)
	}
	if got := r.Pools[1].Completed; got != 2000 {
		t.Errorf("the decode pool completed %d", got)
	}
	for _, in := range r.Instances[:2] {
		if in.Batch.Decodes != 0 {
			t.Errorf("prefill instance %d decoded", in.Index)
		}
	}
}

// Hits come in the order of how much a policy knows.
func TestRoutingOrder(t *testing.T) {
	hits := map[string]float64{}
	for _, policy := range []string{"kv-aware", "prefix-hash", "round-robin"} {
		w := poisson(6000, 100)
		w.Prefixes = workload.Prefixes{Count: 200, Tokens: 1024, Zipf: 0.6}
		w.Input = workload.Length{Mean: 1200}
		r := run(t, Config{Source: source(t, w), Fleet: fleetOf(spec(3000), 4), Routing: Routing{Policy: policy, OverlapWeight: 4}})
		hits[policy] = float64(r.Total.Cache.BlockHits) / float64(r.Total.Cache.Blocks)
	}
	if !(hits["kv-aware"] >= hits["prefix-hash"] && hits["prefix-hash"] >= hits["round-robin"]) {
		t.Errorf("block hit rates %v", hits)
	}
}

// A prompt that waits for a decode instance is computed again when the instance
// that holds it crashes, too.
func TestCrashOfBothPools(t *testing.T) {
	p, d := *spec(20_000), *spec(60_000)
	p.Role, d.Role = Prefill, Decode
	r := run(t, Config{
		Source: source(t, poisson(200, 20)), Fleet: []*Spec{&p, &d}, Handoff: &Handoff{},
		Faults: []FaultSpec{{Kind: FaultCrash, At: 2, Duration: 3, Instance: 1}, {Kind: FaultCrash, At: 3, Duration: 1, Instance: 0}},
	})
	if r.Total.Completed != 200 || r.Faults[1].Requests == 0 {
		t.Errorf("completed %d of 200, faults %+v", r.Total.Completed, r.Faults)
	}
}

func TestCrash(t *testing.T) {
	r := run(t, Config{
		Source: source(t, poisson(1000, 20)), Fleet: fleetOf(spec(60_000), 2),
		Faults: []FaultSpec{{Kind: FaultCrash, At: 10, Duration: 5, Instance: 1}},
	})
	if r.Total.Completed != 1000 || len(r.Faults) != 1 || r.Faults[0].Requests == 0 || r.Faults[0].Tokens == 0 {
		t.Errorf("completed %d, faults %+v", r.Total.Completed, r.Faults)
	}
	slow := run(t, Config{
		Source: source(t, poisson(1000, 20)), Fleet: fleetOf(spec(60_000), 2),
		Faults: []FaultSpec{{Kind: FaultSlow, At: 10, Duration: units.Seconds(20), Instance: 1, Factor: 3}},
	})
	healthy := run(t, Config{Source: source(t, poisson(1000, 20)), Fleet: fleetOf(spec(60_000), 2)})
	if slow.Total.TPOT.Mean <= healthy.Total.TPOT.Mean {
		t.Errorf("TPOT %v with a slow GPU, %v without", slow.Total.TPOT.Mean, healthy.Total.TPOT.Mean)
	}
}

func TestAutoscaler(t *testing.T) {
	w := poisson(6000, 60)
	c := Config{Source: source(t, w), Fleet: fleetOf(spec(60_000), 1), Autoscaler: &Autoscaler{
		Rule: ScaleByQueue, Interval: 5, StartDelay: 10, Least: 1, Most: 8, Queue: 4, Busy: 0.9, Patience: 2,
	}}
	r := run(t, c)
	if len(r.Scaling) == 0 || r.Total.Completed != 6000 {
		t.Fatalf("scaling %+v, completed %d", r.Scaling, r.Total.Completed)
	}
	if first := r.Scaling[0]; first.From != 1 || first.To < 2 {
		t.Errorf("first decision %+v", first)
	}
}
