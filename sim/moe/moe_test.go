package moe

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var tokenCounts = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}

func TestDistinctKnownValues(t *testing.T) {
	t.Parallel()
	// E * (1 - (1-k/E)^T), rounded to two digits.
	tests := []struct {
		experts, topK int
		want          []float64
	}{
		{128, 4, []float64{4, 7.88, 15.27, 28.71, 50.98, 81.66, 111.22, 125.8, 127.96}},
		{256, 8, []float64{8, 15.75, 30.53, 57.42, 101.96, 163.31, 222.44, 251.6, 255.92}},
		{8, 2, []float64{2, 3.5, 5.47, 7.2, 7.92, 8, 8, 8, 8}},
		{384, 8, []float64{8, 15.83, 31.01, 59.52, 109.82, 188.23, 284.19, 358.06, 382.25}},
	}
	for _, tt := range tests {
		for i, want := range tt.want {
			if got := Distinct(tt.experts, tt.topK, tokenCounts[i]); math.Abs(got-want) > 0.0051 {
				t.Errorf("Distinct(%d, %d, %g) = %.4f, want %g", tt.experts, tt.topK, tokenCounts[i], got, want)
			}
		}
	}
}

func TestDistinctZipfKnownValues(t *testing.T) {
	t.Parallel()
	skews := []float64{0, 0.3, 0.5, 0.7, 1}
	for tokens, want := range map[float64][]float64{
		16: {50.98, 49.42, 46.81, 42.36, 33.24},
		64: {111.22, 107.83, 102.28, 93.58, 74.9},
	} {
		for i, s := range skews {
			if got := DistinctZipf(128, 4, tokens, s); math.Abs(got-want[i]) > 0.0051 {
				t.Errorf("DistinctZipf(128, 4, %g, %g) = %.4f, want %g", tokens, s, got, want[i])
			}
		}
	}
}

func TestDistinctProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		experts := rapid.IntRange(1, 512).Draw(t, "experts")
		topK := rapid.IntRange(1, experts).Draw(t, "topK")
		tokens := rapid.Float64Range(1, 1e6).Draw(t, "tokens")
		s := rapid.SampledFrom([]float64{0, 0.2, 1, 2.5}).Draw(t, "s")
		d, k := DistinctZipf(experts, topK, tokens, s), float64(topK)
		if d < k*(1-1e-12) || d > min(float64(experts), k*tokens)*(1+1e-12) {
			t.Fatalf("DistinctZipf(%d, %d, %g, %g) = %g out of [k, min(E, kT)]", experts, topK, tokens, s, d)
		}
		if more := DistinctZipf(experts, topK, tokens*1.1, s); more < d*(1-1e-12) {
			t.Fatalf("distinct falls from %g to %g with more tokens", d, more)
		}
		if more := DistinctZipf(experts, topK, tokens, s+0.1); s > 0 && more > d*(1+1e-9) {
			t.Fatalf("distinct rises from %g to %g with more skew", d, more)
		}
	})
	// Limits and degenerate input.
	for _, tt := range []struct {
		experts, topK int
		tokens, want  float64
	}{{128, 4, 0, 0}, {128, 4, -1, 0}, {128, 4, math.NaN(), 0}, {128, 4, 0.5, 2}, {128, 4, math.Inf(1), 128}, {0, 4, 1, 0}, {4, 8, 3, 4}} {
		if got := Distinct(tt.experts, tt.topK, tt.tokens); got != tt.want {
			t.Errorf("Distinct(%d, %d, %g) = %g, want %g", tt.experts, tt.topK, tt.tokens, got, tt.want)
		}
	}
}

func TestRoutingTableMatchesFormula(t *testing.T) {
	t.Parallel()
	r := routing(t, 256, 8, Options{Skew: 0.8})
	for tokens := 1.0; tokens < 1e5; tokens *= 1.037 {
		want := DistinctZipf(256, 8, tokens, 0.8)
		if got := r.Active(tokens); math.Abs(got/want-1) > 2e-3+0.01/tokens { // the bound k has a kink near one token
			t.Errorf("Active(%g) = %g, want %g", tokens, got, want)
		}
	}
}

func TestImbalance(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		balance            float64
		experts, redundant int
		want               float64
	}{
		{0, 128, 0, 1}, {1, 128, 16, 1}, {1.5, 128, 0, 1.5},
		{1.5, 128, 32, 1.4}, // 1 + 0.5*128/160
		{math.NaN(), 128, 0, 1},
	} {
		if got := Imbalance(tt.balance, tt.experts, tt.redundant); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("Imbalance(%g, %d, %d) = %g, want %g", tt.balance, tt.experts, tt.redundant, got, tt.want)
		}
	}
	// E / H_E(1), E = 8: H = 2.717857, 8/H = 2.9435.
	for _, tt := range []struct {
		experts int
		want    float64
	}{{8, 2.9435}, {32, 7.8847}, {128, 23.5591}, {384, 58.8131}} {
		if got := PopularityImbalance(tt.experts, 1); math.Abs(got-tt.want) > 6e-5 {
			t.Errorf("PopularityImbalance(%d, 1) = %.5f, want %g", tt.experts, got, tt.want)
		}
	}
}

func TestImbalanceModes(t *testing.T) {
	t.Parallel()
	inside := routing(t, 128, 4, Options{Balance: 2})
	outside := routing(t, 128, 4, Options{Balance: 2, OuterMultiplier: true})
	const tokens = 1e6 // random fluctuation is negligible
	if got, want := inside.RowsBusiestRank(tokens, 8), 2*inside.RowsPerRank(tokens, 8); got != want {
		t.Errorf("inside: busiest rank %g, want %g", got, want)
	}
	if got := outside.RowsBusiestRank(tokens, 8) / outside.RowsPerRank(tokens, 8); got > 1.01 {
		t.Errorf("outside: busiest over mean %g, want about 1", got)
	}
	if a, b := inside.Multiplier(8), outside.Multiplier(8); a != 1 || b != 2 {
		t.Errorf("multipliers %g and %g, want 1 and 2", a, b)
	}
	shared := routing(t, 128, 4, Options{Balance: 2, SharedView: true})
	if a, b := inside.ViewImbalance(1, 8), shared.ViewImbalance(1, 8); a != 1 || b != 2 {
		t.Errorf("view imbalances %g and %g, want 1 and 2", a, b)
	}
}

// TestBusiestAgainstSimulation draws routings and compares the expected maxima.
func TestBusiestAgainstSimulation(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct{ experts, topK, tokens, ranks int }{
		{128, 4, 1, 8}, {128, 4, 8, 8}, {128, 4, 64, 8}, {256, 8, 16, 8}, {256, 8, 256, 32}, {8, 2, 32, 2}, {64, 6, 100, 4},
	} {
		const draws = 400
		var ranks, experts float64
		perm := make([]int, tt.experts)
		for i := range perm {
			perm[i] = i
		}
		for range draws {
			load := make([]int, tt.experts)
			for range tt.tokens {
				for j := range tt.topK { // partial Fisher-Yates
					o := j + rng.IntN(tt.experts-j)
					perm[j], perm[o] = perm[o], perm[j]
					load[perm[j]]++
				}
			}
			per := make([]int, tt.ranks)
			most, mostExpert := 0, 0
			for e, n := range load {
				g := e * tt.ranks / tt.experts
				per[g] += n
				most, mostExpert = max(most, per[g]), max(mostExpert, n)
			}
			ranks += float64(most) / draws
			experts += float64(mostExpert) / draws
		}
		r := routing(t, tt.experts, tt.topK, Options{})
		if got := r.RowsBusiestRank(float64(tt.tokens), tt.ranks); math.Abs(got/ranks-1) > 0.08 {
			t.Errorf("%+v: RowsBusiestRank = %.2f, simulated %.2f", tt, got, ranks)
		}
		if got := r.RowsBusiestExpert(float64(tt.tokens)); math.Abs(got/experts-1) > 0.2 {
			t.Errorf("%+v: RowsBusiestExpert = %.2f, simulated %.2f", tt, got, experts)
		}
	}
}

func TestRoutingBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		experts := rapid.IntRange(2, 384).Draw(t, "experts")
		topK := rapid.IntRange(1, min(experts, 16)).Draw(t, "topK")
		ranks := rapid.IntRange(1, experts).Draw(t, "ranks")
		tokens := rapid.Float64Range(0.1, 1e5).Draw(t, "tokens")
		r, err := New(experts, topK, Options{
			Skew:      rapid.SampledFrom([]float64{0, 0.7}).Draw(t, "skew"),
			Redundant: rapid.IntRange(0, 2*experts).Draw(t, "redundant"),
		})
		if err != nil {
			t.Fatal(err)
		}
		mean, rows := r.RowsPerRank(tokens, ranks), r.RowsBusiestRank(tokens, ranks)
		if rows < mean || rows > tokens*float64(topK)*(1+1e-12) {
			t.Fatalf("busiest rank %g out of [%g, %g]", rows, mean, tokens*float64(topK))
		}
		a := r.ActiveOnRank(tokens, ranks)
		if slots := float64(experts+r.Redundant) / float64(ranks); a <= 0 || a > slots*(1+1e-12) {
			t.Fatalf("%g active of %g slots", a, slots)
		}
		if r.ActiveOnRank(tokens*1.2, ranks) < a*(1-1e-12) || r.RowsBusiestRank(tokens*1.2, ranks) < rows*(1-1e-12) {
			t.Fatal("more tokens give less")
		}
		if b := r.RowsBusiestExpert(tokens); b > tokens || b < tokens*float64(topK)/float64(experts)*(1-1e-12) {
			t.Fatalf("busiest expert has %g rows of %g tokens", b, tokens)
		}
	})
}

func TestGroupedEfficiency(t *testing.T) {
	t.Parallel()
	want := []float64{.1725, .3069, .4931, .6744, .7657, .7797, .78}
	for i, n := range []float64{1, 2, 4, 8, 16, 32, 64} {
		if got := GroupedEfficiency(n, 0.78, 4); math.Abs(got-want[i]) > 5.1e-5 {
			t.Errorf("GroupedEfficiency(%g) = %.5f, want %g", n, got, want[i])
		}
	}
}

func TestCoverage(t *testing.T) {
	t.Parallel()
	c, err := ParseCoverage([]byte(`{"8": 0.85, "32": 0.71, "64": 0.70, "256": 0.84}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ tokens, want float64 }{
		{32, 0.71}, {16, 0.78}, {1, 0.85}, {1e6, 0.84}, {128, 0.77}, {0, 0.85},
	} {
		if got := c.At(tt.tokens); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("At(%g) = %g, want %g", tt.tokens, got, tt.want)
		}
	}
	o, err := ParseCoverage([]byte(`{"model": "x", "coverage_vs_uniform": {"1": 1, "4": 0.9}}`))
	if err != nil || math.Abs(o.At(2)-0.95) > 1e-12 {
		t.Errorf("object form: At(2) = %g, %v; want 0.95", o.At(2), err)
	}
	if got := (Coverage{}).At(5); got != 1 {
		t.Errorf("no coverage: %g, want 1", got)
	}
	r := routing(t, 128, 4, Options{Coverage: c})
	if got, want := r.Active(32), 0.71*Distinct(128, 4, 32); math.Abs(got-want) > 1e-9 {
		t.Errorf("Active(32) = %g, want %g", got, want)
	}
	if got := r.Active(1); got != 4 { // a token always touches four
		t.Errorf("Active(1) = %g, want 4", got)
	}
}

func TestParseCoverageErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{``, "not JSON"}, {`[1]`, "want a JSON object"}, {`{}`, "no points"}, {`{"a": 1}`, "not a token count"},
		{`{"8": "x"}`, "not a number"}, {`{"8": null}`, "not a number"}, {`{"8": 0}`, "want a share"}, {`{"8": 3}`, "want a share"},
		{`{"-1": 1}`, "positive number"}, {`{"NaN": 1}`, "positive number"}, {`{"8": 1, "8.0": 1}`, "given twice"},
		{`{"8": 1, "8": 1}`, "given twice"}, {`{"8": 1} x`, "text after"}, {`{"8": 1`, "not JSON"},
		{`{"coverage_vs_uniform": 5}`, "want a JSON object"},
	} {
		_, err := ParseCoverage([]byte(tt.in))
		if !errors.Is(err, ErrCoverage) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParseCoverage(%s): %v, want %q", tt.in, err, tt.want)
		}
	}
}

func FuzzParseCoverage(f *testing.F) {
	for _, s := range []string{`{"1": 1, "8": 0.9}`, `{"coverage_vs_uniform": {"1": 1}}`, `{"1e300": 1}`, `{`, `{"8": 1, "8": 2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseCoverage(data)
		if err != nil {
			if !errors.Is(err, ErrCoverage) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %q", err)
			}
			return
		}
		for _, tokens := range []float64{0.5, 1, 7, 1e9} {
			if s := c.At(tokens); !(s > 0 && s <= maxCoverage) {
				t.Fatalf("At(%g) = %g", tokens, s)
			}
		}
	})
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		experts, topK int
		opt           Options
	}{
		{0, 1, Options{}}, {8, 0, Options{}}, {8, 9, Options{}}, {8, 2, Options{Skew: math.NaN()}}, {8, 2, Options{Skew: -1}},
		{8, 2, Options{Balance: math.Inf(1)}}, {8, 2, Options{Redundant: -1}}, {1 << 20, 2, Options{}},
	} {
		if _, err := New(tt.experts, tt.topK, tt.opt); err == nil {
			t.Errorf("New(%d, %d, %+v): no error", tt.experts, tt.topK, tt.opt)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	r := routing(t, 256, 8, Options{Skew: 0.5, Redundant: 32, Balance: 1.2})
	n := testing.AllocsPerRun(100, func() {
		_ = r.Active(37) + r.ActiveOnRank(37, 8) + r.RowsBusiestRank(37, 8) + r.RowsBusiestExpert(37)
	})
	if n != 0 {
		t.Errorf("%g allocations, want 0", n)
	}
}

func BenchmarkActive(b *testing.B) {
	r := routing(b, 256, 8, Options{})
	b.ReportAllocs()
	for b.Loop() {
		_ = r.Active(37.5)
	}
}

func BenchmarkRowsBusiestRank(b *testing.B) {
	r := routing(b, 256, 8, Options{})
	for b.Loop() {
		_ = r.RowsBusiestRank(37.5, 8)
	}
}

func routing(t testing.TB, experts, topK int, opt Options) *Routing {
	t.Helper()
	r, err := New(experts, topK, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
