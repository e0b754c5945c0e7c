package steady

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"infera/internal/units"
)

// TestLoneRequest: one client, nobody to wait for. A prompt of 1,000 tokens at
// 10 us in a step of 10 ms takes 20 ms through the engine, and the engine looks
// at it after half a step of 10 ms. 100 tokens take 100 steps of 10 ms + 1 x
// 0.1 ms + 1,050 cached tokens x 1 us = 11.15 ms each.
func TestLoneRequest(t *testing.T) {
	r := Replica{
		Pricer:   fake{fixed: 10e-3, decode: 0.1e-3, cached: 1e-6, prompt: 10e-6},
		Workload: Workload{InputLen: 1000, OutputLen: 100, Concurrency: 1},
		Policy:   Policy{ExclusivePrefill: true},
	}
	got := solve(t, r)
	const step = 11.15e-3
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"decode step", float64(got.DecodeStep), step},
		{"prompt", float64(got.PrefillTime), 20e-3},
		{"TTFT", float64(got.TTFT), 20e-3 + step/2},
		{"rate", got.RequestRate, 1 / (float64(got.TTFT) + float64(got.DecodeTime))},
		{"output rate", got.OutputRate, 100 * got.RequestRate},
		{"prefill rate", got.PrefillRate, 1000 / 20e-3},
	} {
		if !near(c.got, c.want, 2e-3) {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
	// The client's own prompts take their share of the time: 20 ms of every
	// cycle, which the closed form spreads over the decode steps.
	if low, high := step, step*1.02; float64(got.TPOT) < low || float64(got.TPOT) > high {
		t.Errorf("TPOT = %v, want %v to %v", got.TPOT, low, high)
	}
	if got.AdmissionWait != 0 || got.Saturated {
		t.Errorf("a lone client waits for memory: %+v", got)
	}
}

// TestMachineRepairLimits holds the prompt path against the limits of exact
// mean value analysis of one server with a service time of 10 ms, a think time
// and n clients: our queue is another closed form (service over 1 minus the
// load of the others), which has the same limits. The think time is the decode
// time in steps so short that the half step before a prompt is negligible.
func TestMachineRepairLimits(t *testing.T) {
	for _, c := range []struct{ think, clients, want float64 }{
		{500e-3, 1, 10e-3}, // nobody to wait for
		{1e3, 256, 10e-3},  // 256 requests in 1,000 s: no queue
		{0, 64, 640e-3},    // all 64 in line
	} {
		const steps = 1e8
		r := Replica{
			Pricer:   fake{fixed: c.think / steps, prompt: 10e-6},
			Workload: Workload{InputLen: 1000, OutputLen: steps, Concurrency: c.clients},
			Policy:   Policy{ExclusivePrefill: true},
		}
		if got := solve(t, r); !near(float64(got.TTFT), c.want, 0.01) {
			t.Errorf("think %v s, %v clients: response %v, want %v", c.think, c.clients, got.TTFT, c.want)
		}
	}
}

// TestPrefillBound: 64 clients whose prompts take 100 ms each and whose one
// token is free: ten requests per second, and the 64 wait in line for 6.4 s.
func TestPrefillBound(t *testing.T) {
	r := Replica{
		Pricer:   fake{fixed: 1e-6, prompt: 100e-6},
		Workload: Workload{InputLen: 1000, OutputLen: 1, Concurrency: 64},
		Policy:   Policy{ExclusivePrefill: true},
	}
	got := solve(t, r)
	if !near(got.RequestRate, 10, 0.01) || !near(float64(got.TTFT), 6.4, 0.02) {
		t.Errorf("rate %v, TTFT %v; want 10 and 6.4 s", got.RequestRate, got.TTFT)
	}
}

// TestChunks: a prompt of 8,192 tokens under a chunk of 2,048 takes four
// steps. With decodes sharing them each is 10 ms + 2,048 x 10 us = 30.48 ms; the
// decodes' own 10 ms of each are not charged to the prompt, so one prompt adds
// 4 x 20.48 ms for the others.
func TestChunks(t *testing.T) {
	r := Replica{
		Pricer:   fake{fixed: 10e-3, prompt: 10e-6},
		Workload: Workload{InputLen: 8192, OutputLen: 1000, Concurrency: 2},
		Policy:   Policy{ChunkSize: 2048},
	}
	got := solve(t, r)
	if !near(float64(got.MixedStep), 30.48e-3, 1e-6) || !near(float64(got.PrefillTime), 4*30.48e-3, 1e-6) {
		t.Errorf("mixed step %v, prompt %v; want 30.48 ms and four of them", got.MixedStep, got.PrefillTime)
	}
	if got.Prefill.Tokens != 2048 || got.Prefill.Final != 0.25 || got.Prefill.Context != 3072 {
		t.Errorf("chunk %+v, want 2048 tokens after 3072 on average, a quarter of them final", got.Prefill)
	}
	most := 10e-3 / (1 - got.RequestRate*4*20.48e-3)
	if v := float64(got.TPOT); v < 10e-3 || v > most*1.001 {
		t.Errorf("TPOT = %v, want 10 ms to %v: the step stretched by at most the share of prompt work", v, most)
	}
}

// TestProperties holds what is true of every closed loop.
func TestProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 400 {
		r := random(rng)
		got := solve(t, r)
		w := r.Workload
		for name, v := range map[string]float64{
			"TTFT": float64(got.TTFT), "TPOT": float64(got.TPOT), "E2E": float64(got.E2E), "step": float64(got.DecodeStep),
			"mixed": float64(got.MixedStep), "rate": got.RequestRate, "prefill rate": got.PrefillRate, "running": got.Running,
		} {
			if !(v > 0) || math.IsInf(v, 0) {
				t.Fatalf("%+v: %s = %v", r, name, v)
			}
		}
		if n := got.RequestRate * float64(got.E2E); !near(n, w.Concurrency, 0.01) {
			t.Errorf("%+v: rate x end-to-end = %v requests, want %v (Little's law)", r, n, w.Concurrency)
		}
		if n := got.RequestRate * float64(got.DecodeTime); !near(max(1, n), max(1, got.Running), 0.01) {
			t.Errorf("%+v: rate x decode time = %v, running %v", r, n, got.Running)
		}
		if got.OutputRate != got.RequestRate*w.OutputLen {
			t.Errorf("%+v: %v tokens/s of %v requests/s", r, got.OutputRate, got.RequestRate)
		}
		if limit := r.Limits.Sequences; limit > 0 && got.Running > limit*1.001 {
			t.Errorf("%+v: %v run, the limit is %v", r, got.Running, limit)
		}
		if got.TTFT < got.PrefillTime || got.TPOT*1.0001 < got.DecodeStep || got.MixedStep*1.0001 < got.DecodeStep && !r.Policy.ExclusivePrefill {
			t.Errorf("%+v: TTFT %v under a prompt's %v, or TPOT %v under a step's %v", r, got.TTFT, got.PrefillTime, got.TPOT, got.DecodeStep)
		}
		if got.MixedFraction < 0 || got.MixedFraction > 1 || got.Pollution < 0 || got.Pollution > 1 || got.QueueWait > got.TTFT {
			t.Errorf("%+v: mixed %v, pollution %v, queue %v of %v", r, got.MixedFraction, got.Pollution, got.QueueWait, got.TTFT)
		}
		if again := solve(t, r); !same(got, again) {
			t.Errorf("%+v: two answers", r)
		}
	}
}

func same(a, b Result) bool {
	return a.TTFT == b.TTFT && a.TPOT == b.TPOT && a.RequestRate == b.RequestRate && a.Running == b.Running
}

// TestMoreClients: a replica never serves fewer requests for having more
// clients, and none of them is served sooner. Prompts that share the steps of
// more decodes are slower, which costs a prompt-bound replica up to 2 %.
func TestMoreClients(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 80 {
		r := random(rng)
		// A budget shared with more decodes leaves smaller chunks; that is not
		// the subject here.
		r.Policy.TokenBudget = 0
		r.Workload.OutputLen = max(64, r.Workload.OutputLen)
		var last Result
		for c := 1.0; c <= 1024; c *= 2 {
			r.Workload.Concurrency = c
			got := solve(t, r)
			if got.RequestRate < last.RequestRate*0.98 || got.E2E < last.E2E*0.999 {
				t.Errorf("%+v: rate %v after %v, end-to-end %v after %v", r, got.RequestRate, last.RequestRate, got.E2E, last.E2E)
			}
			last = got
		}
	}
}

// TestHostCosts: what a request pays outside the engine's steps shows in its
// first-token time and in the cycle of its client.
func TestHostCosts(t *testing.T) {
	r := Replica{
		Pricer:   fake{fixed: 10e-3, prompt: 10e-6},
		Workload: Workload{InputLen: 1000, OutputLen: 10, Concurrency: 1},
		Policy:   Policy{ExclusivePrefill: true},
	}
	plain := solve(t, r)
	r.Host = Host{RequestFixed: 50e-3, Tokenize: 1e-6, Detokenize: 100e-6}
	r.Limits.FetchPerRequest = 5e-3
	got := solve(t, r)
	// 50 ms + 1,000 x 1 us + 5 ms.
	if d := got.TTFT - plain.TTFT; !near(float64(d), 56e-3, 1e-3) {
		t.Errorf("host costs add %v to the first token, want 56 ms", d)
	}
	// A longer cycle carries a smaller share of prompts, so a little less.
	if d := got.TPOT - plain.TPOT; d < -2e-3 || d > 100e-6 {
		t.Errorf("host costs add %v to each token, want at most 100 us", d)
	}
	if n := got.RequestRate * float64(got.E2E); !near(n, 1, 0.01) {
		t.Errorf("rate x end-to-end = %v requests, want 1", n)
	}
	// Ten tokens sent three at a time: the first is seen with the third.
	r = Replica{Pricer: r.Pricer, Workload: r.Workload, Policy: r.Policy, Host: Host{StreamInterval: 3}}
	got = solve(t, r)
	if d, want := got.TTFT-plain.TTFT, 2*plain.TPOT; !near(d, want, 1e-6) || !near(got.E2E, plain.E2E, 1e-9) {
		t.Errorf("three tokens at once: the first is %v later, want %v; end-to-end %v, want %v", d, want, got.E2E, plain.E2E)
	}
}

// TestPrefixHits: the more of a prompt is cached, the sooner its first token.
func TestPrefixHits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 60 {
		r := random(rng)
		// Shorter prompts share a step, and the first waits for the second; that
		// is not the subject here.
		r.Policy = Policy{ExclusivePrefill: r.Policy.ExclusivePrefill}
		last := units.Seconds(math.Inf(1))
		for _, hit := range []float64{0, 0.25, 0.5, 0.9, 1} {
			r.Workload.PrefixHitRate = hit
			got := solve(t, r)
			if got.TTFT > last*1.0001 {
				t.Errorf("%+v: first token after %v, %v with fewer hits", r, got.TTFT, last)
			}
			last = got.TTFT
		}
	}
	r := Replica{
		Pricer:   fake{fixed: 10e-3, prompt: 10e-6},
		Workload: Workload{InputLen: 1000, OutputLen: 100, Concurrency: 1, PrefixHitRate: 0.6},
	}
	// 400 of 1,000 tokens are left: 10 ms + 4 ms.
	if got := solve(t, r); !near(float64(got.PrefillTime), 14e-3, 1e-9) || got.Prefill.Context != 600 {
		t.Errorf("60 %% cached: prompt in %v after %v tokens, want 14 ms after 600", got.PrefillTime, got.Prefill.Context)
	}
}

// TestSpeculation: drafts that are never accepted cost time, drafts that always
// are yield 1 + k tokens per step.
func TestSpeculation(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 60 {
		r := random(rng)
		plain := solve(t, r)
		r.Speculation = Speculation{Tokens: 3, Accepted: 1}
		if got := solve(t, r); got.TPOT*1.0001 < plain.TPOT || got.RequestRate*0.999 > plain.RequestRate {
			t.Errorf("%+v: rejected drafts give %v per token, %v requests/s; without drafts %v and %v",
				r, got.TPOT, got.RequestRate, plain.TPOT, plain.RequestRate)
		}
	}
	r := Replica{
		Pricer:   fake{fixed: 10e-3, decode: 1e-3, prompt: 1e-9},
		Workload: Workload{InputLen: 1000, OutputLen: 400, Concurrency: 1},
		Policy:   Policy{ExclusivePrefill: true},
	}
	r.Speculation = Speculation{Tokens: 3, Accepted: 4}
	got := solve(t, r)
	// Four tokens through the model in each step of 10 ms + 4 x 1 ms.
	if !near(float64(got.DecodeStep), 14e-3, 1e-9) || !near(float64(got.TPOT), 14e-3/4, 0.01) {
		t.Errorf("every draft accepted: step %v, %v per token; want 14 ms and a quarter of it", got.DecodeStep, got.TPOT)
	}
}

// TestOpenLoop: below the largest rate what is offered is served; above it the
// loop says so; and a busier replica is a slower one.
func TestOpenLoop(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 40 {
		r := random(rng)
		r.Workload.Concurrency = 0
		r.Workload.OutputLen = max(64, r.Workload.OutputLen)
		r.Workload.RequestRate = 1e6
		top := solve(t, r)
		if !top.Saturated || !(top.Utilization > 1) || top.MaxRate != top.RequestRate {
			t.Errorf("%+v: a million requests/s: saturated %v, utilization %v", r, top.Saturated, top.Utilization)
		}
		var last Result
		for _, share := range []float64{0.01, 0.1, 0.3, 0.6, 0.9, 0.97} {
			r.Workload.RequestRate = share * top.MaxRate
			got := solve(t, r)
			if got.Saturated || got.RequestRate != r.Workload.RequestRate || !near(got.Utilization, share, 1e-6) {
				t.Errorf("%+v at %v of the largest rate: %v served, saturated %v, utilization %v", r, share, got.RequestRate, got.Saturated, got.Utilization)
			}
			if got.TTFT < got.PrefillTime {
				t.Errorf("%+v at %v: first token in %v, a prompt alone takes %v", r, share, got.TTFT, got.PrefillTime)
			}
			if got.TPOT < last.TPOT*0.99 || got.E2E < last.E2E*0.99 || got.ArrivalWait < last.ArrivalWait {
				t.Errorf("%+v at %v: %v and %v per token, %v and %v in all", r, share, last.TPOT, got.TPOT, last.E2E, got.E2E)
			}
			if got.QueueWait < got.ArrivalWait {
				t.Errorf("%+v at %v: %v of waits are %v of arrivals", r, share, got.QueueWait, got.ArrivalWait)
			}
			even := r
			even.Workload.Deterministic = true
			if e := solve(t, even); !near(2*e.ArrivalWait, got.ArrivalWait, 1e-9) {
				t.Errorf("%+v at %v: evenly spaced arrivals wait %v, random ones %v", r, share, e.ArrivalWait, got.ArrivalWait)
			}
			last = got
		}
	}
}

// TestLockstep: rounds of equal requests keep Little's law, and their first
// tokens come later than those of independent requests, whose prompts do not
// all arrive at once.
func TestLockstep(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for range 100 {
		r := random(rng)
		r.Limits.Sequences = 0
		r.Workload.Lockstep = true
		got := solve(t, r)
		if n := got.RequestRate * float64(got.E2E); !near(n, r.Workload.Concurrency, 0.01) {
			t.Errorf("%+v: rate x end-to-end = %v requests, want %v", r, n, r.Workload.Concurrency)
		}
		if !(got.TPOT*1.0001 >= got.DecodeStep) {
			t.Errorf("%+v: %v per token in steps of %v", r, got.TPOT, got.DecodeStep)
		}
	}
	// Four clients, prompts of 20 ms, steps of 10 ms, prompts in steps of their
	// own. Were all to start together, the first tokens would come 20, 40, 60
	// and 80 ms later: 50 ms on average. The model takes the geometric mean of
	// that and of the wait of independent requests.
	r := Replica{
		Pricer:   fake{fixed: 10e-3, prompt: 10e-6},
		Workload: Workload{InputLen: 1000, OutputLen: 100, Concurrency: 4},
		Policy:   Policy{ExclusivePrefill: true},
	}
	free := solve(t, r)
	r.Workload.Lockstep = true
	got := solve(t, r)
	if want := math.Sqrt(float64(free.TTFT) * 50e-3); !near(float64(got.TTFT), want, 1e-3) {
		t.Errorf("lockstep: TTFT %v, want %v", got.TTFT, want)
	}
}

// TestBurst: the opening burst weighs into the mean first-token time only.
func TestBurst(t *testing.T) {
	r := Replica{
		Pricer:   fake{fixed: 10e-3, prompt: 10e-6},
		Workload: Workload{InputLen: 1000, OutputLen: 1000, Concurrency: 32},
		Policy:   Policy{ExclusivePrefill: true},
	}
	plain := solve(t, r)
	r.Workload.BurstShare = 0.1
	got := solve(t, r)
	// All 32 prompts of 20 ms in line: 20 ms x (1 + 31/2) = 330 ms for one in
	// ten requests.
	want := 0.9*float64(plain.TTFT) + 0.1*330e-3
	if !near(float64(got.TTFT), want, 1e-6) || got.TPOT != plain.TPOT || got.RequestRate != plain.RequestRate {
		t.Errorf("a burst of a tenth: TTFT %v, want %v; TPOT %v, want %v", got.TTFT, want, got.TPOT, plain.TPOT)
	}
}

// TestMemoryLimit: of 64 clients 16 run; the others wait three rounds.
func TestMemoryLimit(t *testing.T) {
	r := Replica{
		Pricer:   fake{fixed: 10e-3, prompt: 1e-7},
		Workload: Workload{InputLen: 1000, OutputLen: 1000, Concurrency: 64},
		Policy:   Policy{ExclusivePrefill: true},
		Limits:   Limits{Sequences: 16},
	}
	got := solve(t, r)
	if !near(got.Running, 16, 0.03) || !near(float64(got.AdmissionWait), 3*float64(got.E2E-got.AdmissionWait), 0.02) {
		t.Errorf("%v run and wait %v of %v; want 16 and three quarters", got.Running, got.AdmissionWait, got.E2E)
	}
}

func TestPipelineStages(t *testing.T) {
	r := Replica{
		Pricer:   fake{fixed: 40e-3, prompt: 1e-8, stages: 4},
		Workload: Workload{InputLen: 100, OutputLen: 100, Concurrency: 8},
		Policy:   Policy{Stages: 4, ExclusivePrefill: true},
	}
	// A token goes through all four stages of 10 ms.
	if got := solve(t, r); !near(float64(got.DecodeStep), 40e-3, 1e-9) {
		t.Errorf("a sequence advances every %v, want 40 ms", got.DecodeStep)
	}
}

func TestBadWorkloads(t *testing.T) {
	good := Workload{InputLen: 1000, OutputLen: 100, Concurrency: 8}
	for name, change := range map[string]func(*Workload){
		"no input":          func(w *Workload) { w.InputLen = 0 },
		"NaN input":         func(w *Workload) { w.InputLen = math.NaN() },
		"infinite output":   func(w *Workload) { w.OutputLen = math.Inf(1) },
		"negative output":   func(w *Workload) { w.OutputLen = -1 },
		"negative clients":  func(w *Workload) { w.Concurrency = -1 },
		"no load":           func(w *Workload) { w.Concurrency = 0 },
		"NaN rate":          func(w *Workload) { w.RequestRate = math.NaN() },
		"negative hit rate": func(w *Workload) { w.PrefixHitRate = -0.1 },
	} {
		w := good
		change(&w)
		r := Replica{Pricer: fake{fixed: 1e-3}, Workload: w}
		if _, err := Solve(r); !errors.Is(err, ErrBadWorkload) {
			t.Errorf("%s: Solve = %v, want ErrBadWorkload", name, err)
		}
		if _, err := SolvePair(Pair{Prefill: r, Decode: r, PrefillReplicas: 1, DecodeReplicas: 1}); !errors.Is(err, ErrBadWorkload) {
			t.Errorf("%s: SolvePair = %v, want ErrBadWorkload", name, err)
		}
	}
}
