package steady

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"infera/internal/units"
	"infera/sim/step"
)

func solvePair(t *testing.T, p Pair) PairResult {
	t.Helper()
	got, err := SolvePair(p)
	if err != nil {
		t.Fatalf("SolvePair(%+v): %v", p, err)
	}
	return got
}

// TestPairLimit names the pool that sets the throughput. All prompts have 1,000
// tokens; a decode step takes 10 ms whatever its batch; 64 clients.
func TestPairLimit(t *testing.T) {
	for _, c := range []struct {
		name            string
		prompt          float64 // seconds per prompt
		output          float64
		transfer, moves float64
		limit           string
		rate            float64
	}{
		// A prompt takes 1 s, its ten tokens 0.1 s: one request per second.
		{"prefill", 1, 10, 0, 0, "prefill", 1},
		// A prompt takes 11 ms, its tokens 10 s: 64 / 10.02 requests per second.
		{"decode", 1e-3, 1000, 0, 0, "decode", 64 / 10.012},
		// Half a transfer per second.
		{"transfer", 1e-3, 10, 2, 0.5, "transfer", 0.5},
	} {
		r := Replica{
			Pricer:   fake{fixed: 10e-3, prompt: (c.prompt - 10e-3*min(1, math.Floor(c.prompt))) / 1000},
			Workload: Workload{InputLen: 1000, OutputLen: c.output, Concurrency: 64},
		}
		got := solvePair(t, Pair{
			Prefill: r, Decode: r, PrefillReplicas: 1, DecodeReplicas: 1, Transfer: units.Seconds(c.transfer), TransferCapacity: c.moves,
		})
		if got.Limit != c.limit || !near(got.RequestRate, c.rate, 0.02) {
			t.Errorf("%s: limit %s at %v requests/s, want %s at %v", c.name, got.Limit, got.RequestRate, c.limit, c.rate)
		}
		if !near(float64(got.TPOT), 10e-3, 1e-6) {
			t.Errorf("%s: TPOT %v, want 10 ms: prompts do not share the decode pool", c.name, got.TPOT)
		}
		if want := 1.0; c.limit == "prefill" && !near(got.Occupancy, want, 0.03) {
			t.Errorf("%s: prefill pool busy for %v, want %v", c.name, got.Occupancy, want)
		}
		if c.transfer > 0 && !near(float64(got.TTFT-got.AdmissionWait-got.PrefillCompute), c.transfer, 1e-9) {
			t.Errorf("%s: first token %v of which %v compute, want %v s of transfer between", c.name, got.TTFT, got.PrefillCompute, c.transfer)
		}
	}
}

// TestPairProperties: Little's law, and more replicas of a pool never make what
// the pool does slower.
func TestPairProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 60 {
		p := Pair{Prefill: random(rng), Decode: random(rng), PrefillReplicas: float64(1 + rng.IntN(4)), DecodeReplicas: float64(1 + rng.IntN(4))}
		p.Decode.Pricer = p.Prefill.Pricer
		p.Decode.Limits.Sequences = 0
		p.Prefill.Workload.OutputLen = max(32, p.Prefill.Workload.OutputLen)
		if rng.IntN(2) == 0 {
			p.Transfer, p.TransferCapacity = 20e-3, 50*p.PrefillReplicas
		}
		got := solvePair(t, p)
		w := p.Prefill.Workload
		if n := got.RequestRate * float64(got.E2E); !near(n, w.Concurrency, 0.02) {
			t.Errorf("%+v: rate x end-to-end = %v requests, want %v (Little's law)", p, n, w.Concurrency)
		}
		if n := got.RequestRate * float64(got.DecodeTime) / p.DecodeReplicas; !near(max(1, n), max(1, got.Running), 0.02) {
			t.Errorf("%+v: rate x decode time = %v per replica, running %v", p, n, got.Running)
		}
		if got.TTFT < got.PrefillTime+p.Transfer || got.TPOT < got.DecodeStep*0.9999 || got.Occupancy < 0 || got.Occupancy > 1 {
			t.Errorf("%+v: TTFT %v of a prompt %v, TPOT %v in steps of %v, busy %v", p, got.TTFT, got.PrefillTime, got.TPOT, got.DecodeStep, got.Occupancy)
		}
		for _, rate := range []float64{0, 0.5 * got.MaxRate} {
			at := p
			at.Prefill.Workload.RequestRate = rate
			few := solvePair(t, at)
			more := at
			more.PrefillReplicas *= 2
			more.TransferCapacity *= 2
			if m := solvePair(t, more); m.TTFT > few.TTFT*1.001 || m.RequestRate < few.RequestRate*0.999 {
				t.Errorf("%+v: TTFT %v, %v with twice the prefill replicas; rate %v and %v", at, few.TTFT, m.TTFT, few.RequestRate, m.RequestRate)
			}
			more = at
			more.DecodeReplicas *= 2
			if m := solvePair(t, more); m.TPOT > few.TPOT*1.001 || m.RequestRate < few.RequestRate*0.999 {
				t.Errorf("%+v: TPOT %v, %v with twice the decode replicas; rate %v and %v", at, few.TPOT, m.TPOT, few.RequestRate, m.RequestRate)
			}
		}
	}
}

// TestPairOpen: what is offered is served until a pool is full.
func TestPairOpen(t *testing.T) {
	r := Replica{
		Pricer:   fake{fixed: 10e-3, prompt: 90e-6},
		Workload: Workload{InputLen: 1000, OutputLen: 100, RequestRate: 5},
	}
	p := Pair{Prefill: r, Decode: r, PrefillReplicas: 2, DecodeReplicas: 1}
	// A prompt takes 100 ms: two replicas serve 20 per second.
	got := solvePair(t, p)
	if got.Saturated || got.RequestRate != 5 || !near(got.Utilization, 0.25, 0.01) || !near(got.Occupancy, 0.25, 0.01) {
		t.Errorf("5 requests/s: %+v", got)
	}
	p.Prefill.Workload.RequestRate = 50
	if got := solvePair(t, p); !got.Saturated || !near(got.RequestRate, 20, 0.01) || got.Limit != "prefill" {
		t.Errorf("50 requests/s: saturated %v at %v by %s, want 20 by prefill", got.Saturated, got.RequestRate, got.Limit)
	}
}

func TestPairErrors(t *testing.T) {
	r := Replica{Pricer: fake{fixed: 1e-3}, Workload: Workload{InputLen: 10, OutputLen: 10, Concurrency: 1}}
	for _, n := range [][2]float64{{0, 1}, {1, 0}, {math.NaN(), 1}, {1, math.NaN()}} {
		if _, err := SolvePair(Pair{Prefill: r, Decode: r, PrefillReplicas: n[0], DecodeReplicas: n[1]}); !errors.Is(err, ErrBadWorkload) {
			t.Errorf("pools of %v replicas = %v, want ErrBadWorkload", n, err)
		}
	}
}

// TestStaticProperties: a static batch's tokens are conserved, and a larger
// batch serves no fewer requests while each takes no less time.
func TestStaticProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for range 60 {
		r := random(rng)
		r.Policy = Policy{}
		r.Limits = Limits{}
		var last Result
		for b := 1.0; b <= 256; b *= 2 {
			r.Workload.Concurrency = b
			got, err := SolveStatic(r, b)
			if err != nil {
				t.Fatal(err)
			}
			if got.RequestRate < last.RequestRate*0.999 || got.E2E < last.E2E || got.Running != b {
				t.Errorf("%+v: batch %v: %v requests/s after %v, %v after %v", r, b, got.RequestRate, last.RequestRate, got.E2E, last.E2E)
			}
			if n := got.RequestRate * float64(got.E2E); !near(n, b, 1e-9) {
				t.Errorf("%+v: batch %v: rate x end-to-end = %v", r, b, n)
			}
			last = got
		}
	}
}

// recorder remembers the batches it prices.
type recorder struct {
	fake
	seen *[]step.Batch
}

func (r recorder) Price(b step.Batch, into *step.Breakdown) step.Time {
	b.Chunks = append([]step.Chunk(nil), b.Chunks...)
	*r.seen = append(*r.seen, b)
	return r.fake.Price(b, into)
}

// TestConservation: whatever the chunking, the pieces of a prompt sum to its
// uncached tokens, fit the budget, and one piece in each prompt ends it.
func TestConservation(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 200 {
		r := random(rng)
		r.Workload.PrefixHitRate = rng.Float64()
		var seen []step.Batch
		r.Pricer = recorder{r.Pricer.(fake), &seen}
		got := solve(t, r)
		cached := math.Min(math.Floor(r.Workload.InputLen*r.Workload.PrefixHitRate), r.Workload.InputLen-1)
		cached = math.Min(cached, math.Floor(r.Workload.InputLen*0.999))
		pieces := 1 / got.Prefill.Final
		if !near(got.Prefill.Tokens*pieces, r.Workload.InputLen-cached, 1e-9) || !near(pieces, math.Round(pieces), 1e-9) {
			t.Errorf("%+v: %v pieces of %v tokens, want %v", r, pieces, got.Prefill.Tokens, r.Workload.InputLen-cached)
		}
		for _, b := range seen {
			for _, c := range b.Chunks {
				groups := max(1, r.Policy.Groups)
				if budget := r.Policy.TokenBudget; budget > 0 && c.Tokens*max(1, c.Sequences/groups) > budget*(1+1e-9) {
					t.Errorf("%+v: a step takes %v pieces of %v tokens", r, c.Sequences, c.Tokens)
				}
				if size := r.Policy.ChunkSize; size > 0 && c.Tokens > size*(1+1e-9) {
					t.Errorf("%+v: a chunk of %v tokens", r, c.Tokens)
				}
			}
			if b.Decodes > r.Workload.Concurrency*1.0001 {
				t.Errorf("%+v: a step decodes %v sequences", r, b.Decodes)
			}
		}
		if len(seen) > 200 {
			t.Errorf("%+v: %d steps priced for one answer", r, len(seen))
		}
	}
}
