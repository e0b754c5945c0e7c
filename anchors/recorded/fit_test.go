package recorded

import (
	"context"
	"fmt"
	"math"
	"testing"

	"infera/internal/rng"
	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/kvcache"
	"infera/sim/workload"
)

// small is about a model of 8 billion parameters on a GPU of 1 TB/s.
var small = Price{Cost: [NumTerms]units.Seconds{
	TermStep: 16e-3, TermSequence: 40e-6, TermCachedToken: 130e-9, TermPromptToken: 90e-6, TermPromptPair: 1e-9,
	TermPromptStep: 2e-3, TermPromptPiece: 0.5e-3, TermRequest: 2e-3,
}}

// simulated is a run whose measured times are those of a replay at a price.
func simulated(t testing.TB, p *Price, n int) *Run {
	t.Helper()
	r := &Run{Engine: Engine{
		Model: "simulated", TensorParallel: 1, DataParallel: 1,
		Scheduler: engine.Options{MaxSequences: 32, MaxBatchedTokens: 2048, PrefillChunk: 2048, AsyncScheduling: true},
		Pool:      kvcache.Options{BlockTokens: 16, Blocks: 2587, Prefix: true},
	}}
	rand := rng.Stream(1, "requests")
	at := 0.0
	for i := range n {
		at += rand.ExpFloat64() / 4
		r.Requests = append(r.Requests, Request{Name: fmt.Sprint(i), Request: workload.Request{
			ID: i, Arrival: units.Nanoseconds(units.Seconds(at)), Input: 100 + rand.IntN(2000), Output: 2 + rand.IntN(400),
		}})
	}
	records, err := r.Replay(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		q := &r.Requests[i]
		q.Queued, q.Scheduled, q.First, q.Last = q.Arrival, records[i].Admitted, records[i].First, records[i].Last
	}
	return r
}

// From a start that is off by a factor of 1.5 to 2, either way, the fit of a
// simulated run finds the costs that made it, those that carry its times within
// 5 %, and foretells the requests it was not given.
func TestFitRecovers(t *testing.T) {
	r := simulated(t, &small, 200)
	start := &Start{Price: small}
	for i, by := range [NumTerms]units.Seconds{0.6, 2, 1.6, 0.6, 1.5, 0.5, 2, 1, 0.5} {
		start.Cost[i] *= by
	}
	got, err := Fit(context.Background(), r, 100, start)
	if err != nil {
		t.Fatal(err)
	}
	for _, term := range []Term{TermStep, TermCachedToken, TermPromptToken} {
		if want := small.Cost[term]; math.Abs(float64(got.Cost[term]/want-1)) > 0.05 {
			t.Errorf("%v s per %s, want %v", got.Cost[term], term, want)
		}
	}
	if got.Cost[TermExperts] != 0 {
		t.Errorf("a cost of experts, %v s, that the start has not", got.Cost[TermExperts])
	}
	records, err := r.Replay(context.Background(), &got)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Score(records, 100, 200)
	t.Logf("%+v, costs %.4g", s, got.Cost)
	if math.Abs(s.TTFT) > 0.01 || math.Abs(s.TPOT) > 0.005 || s.TTFTMedian > 0.01 {
		t.Errorf("the other requests: %+v", s)
	}
	again, err := Fit(context.Background(), r, 100, start)
	if err != nil || again != got {
		t.Errorf("a second fit differs: %v and %v, error %v", got, again, err)
	}
}

// Without costs that the replay could know better, a run fits itself.
func TestScoreOfItself(t *testing.T) {
	r := simulated(t, &small, 50)
	records, err := r.Replay(context.Background(), &small)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Score(records, 0, 50); s != (Score{}) {
		t.Errorf("score %+v, want no errors", s)
	}
}

func TestFitErrors(t *testing.T) {
	r := simulated(t, &small, 3)
	for _, n := range []int{0, -1, 4} {
		if _, err := Fit(context.Background(), r, n, &Start{Price: small}); err == nil {
			t.Errorf("fitted %d requests of 3", n)
		}
	}
	for _, change := range []func(*Start){
		func(s *Start) { s.Cost[TermSequence] = units.Seconds(math.NaN()) },
		func(s *Start) { s.Cost[TermStep] = -1 },
		func(s *Start) { s.Least[TermStep] = 1 },
		func(s *Start) { s.Least[TermStep] = -1 },
		func(s *Start) { s.Cost[TermStep], s.Least[TermStep] = units.Seconds(math.Inf(1)), 0 },
	} {
		bad := &Start{Price: small}
		change(bad)
		if _, err := Fit(context.Background(), r, 3, bad); err == nil {
			t.Errorf("fitted from %v, at least %v", bad.Cost, bad.Least)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Fit(ctx, r, 3, &Start{Price: small}); err == nil {
		t.Error("fitted after it was called off")
	}
	r.Requests[0].Input = 1 << 20
	if _, err := r.Replay(context.Background(), &small); err == nil {
		t.Error("replayed a prompt longer than the pool")
	}
}

// Two stretches of work: a step of 10 s and two of 5 s each, with a pause
// between. Half of a stretch is half of its work, a pause none.
func TestTimeline(t *testing.T) {
	w := func(steps float64) work { return work{TermStep: steps} }
	l := timeline{{0, 10, w(0), w(1)}, {20, 30, w(1), w(2)}}
	for _, tt := range []struct {
		from, to units.Time
		want     float64
	}{{0, 10, 1}, {0, 5, 0.5}, {5, 25, 1.5}, {10, 20, 0}, {12, 40, 2}, {-5, 100, 3}, {30, 40, 0}} {
		if got := l.between(tt.from, tt.to)[TermStep]; got != tt.want {
			t.Errorf("%d to %d: %v steps, want %v", tt.from, tt.to, got, tt.want)
		}
	}
	if got := (timeline)(nil).between(1, 2); got != (work{}) {
		t.Errorf("work of no steps: %v", got)
	}
}

// 2x = 4; y = -3, which is no time, so that y = 0; z = 1 is less than the least.
func TestSolve(t *testing.T) {
	e := &equations{}
	for i := range e.a {
		e.a[i][i] = 1
	}
	e.a[0][0], e.b[0], e.b[1], e.b[2] = 2, 4, -3, 1
	start := &Start{Price: Price{Cost: [NumTerms]units.Seconds{1, 1, 1}}, Least: [NumTerms]units.Seconds{0, 0, 1.5}}
	if got := e.solve(&start.Price, start); got[0] != 2 || got[1] != 0 || got[2] != 1.5 {
		t.Errorf("solution %v, want 2, 0 and 1.5", got)
	}
}
