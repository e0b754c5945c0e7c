package workload

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"infera/internal/rng"
	"infera/internal/units"
)

func generated(t testing.TB, s Spec) Source {
	t.Helper()
	src, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// all takes every request; answers take a second each.
func all(src Source) []Request {
	return slices.Collect(Unroll(src, func(*Request) units.Time { return 1e9 }))
}

func simple(n int) Spec {
	return Spec{Requests: n, Arrivals: Arrivals{Process: Poisson, Rate: 10}, Input: Length{Mean: 100}, Output: Length{Mean: 10}, Seed: 5}
}

func TestLengths(t *testing.T) {
	const n = 200_000
	draw := func(l Length) []float64 {
		r := rng.Stream(1, "lengths")
		out := make([]float64, n)
		for i := range out {
			out[i] = float64(l.draw(r))
		}
		slices.Sort(out)
		return out
	}
	mean := func(v []float64) float64 {
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		return sum / n
	}
	if v := draw(Length{Mean: 7}); v[0] != 7 || v[n-1] != 7 {
		t.Errorf("a fixed length of 7 is between %v and %v", v[0], v[n-1])
	}
	// Ratio 0.8 of 1024: whole numbers from 819 to 1024, mean 921.5, standard
	// deviation 59.5.
	if v := draw(Length{Mean: 1024, RangeRatio: 0.8}); v[0] != 819 || v[n-1] != 1024 || math.Abs(mean(v)-921.5) > 1 {
		t.Errorf("ratio 0.8: %v to %v, mean %v", v[0], v[n-1], mean(v))
	}
	if v := draw(Length{Mean: 3, RangeRatio: 0.1}); v[0] != 1 || v[n-1] != 3 || math.Abs(mean(v)-2) > 0.02 {
		t.Errorf("ratio 0.1 of 3: %v to %v, mean %v", v[0], v[n-1], mean(v))
	}
	// Lognormal: mean 1000; median 1000 exp(-0.5²/2) = 882.5; 99th percentile
	// 882.5 exp(2.3263 x 0.5) = 2824.
	v := draw(Length{Mean: 1000, Sigma: 0.5})
	if math.Abs(mean(v)-1000) > 6 || math.Abs(v[n/2]-882.5) > 6 || math.Abs(v[n*99/100]-2824) > 50 {
		t.Errorf("lognormal: mean %v, median %v, p99 %v", mean(v), v[n/2], v[n*99/100])
	}
	if v := draw(Length{Mean: 1000, Sigma: 2, Max: 1500}); v[n-1] != 1500 {
		t.Errorf("at most 1500: %v", v[n-1])
	}
	if v := draw(Length{Values: []int{3, 9}}); v[0] != 3 || v[n-1] != 9 || math.Abs(mean(v)-6) > 0.05 {
		t.Errorf("values: %v to %v, mean %v", v[0], v[n-1], mean(v))
	}
}

// The k-th of 4 prefixes is asked for in proportion to 1/k: 12, 6, 4 and 3 of
// 25.
func TestZipf(t *testing.T) {
	s := simple(100_000)
	s.Prefixes = Prefixes{Count: 4, Tokens: 30, Zipf: 1}
	count := map[uint64]int{}
	for _, r := range all(generated(t, s)) {
		if len(r.Content) != 2 || r.Content[0].Tokens != 30 || r.Content[1].Tokens != 70 || r.Unshared != 70 {
			t.Fatalf("%+v", r)
		}
		count[r.Content[0].ID]++
	}
	for k, want := range []float64{12, 6, 4, 3} {
		p := want / 25
		n := float64(count[prefix(k)])
		if math.Abs(n-1e5*p) > 4*math.Sqrt(1e5*p*(1-p)) {
			t.Errorf("prefix %d was asked for %v times, want %v", k, n, 1e5*p)
		}
	}
}

func TestContent(t *testing.T) {
	s := simple(2)
	for _, tt := range []struct {
		name   string
		change func(*Spec)
		want   []int // tokens of the first prompt's segments
	}{
		{"none", func(*Spec) {}, nil},
		{"half", func(s *Spec) { s.Prefixes.Count = 1 }, []int{50, 50}},
		{"longer than the prompt", func(s *Spec) { s.Prefixes = Prefixes{Count: 1, Tokens: 500} }, []int{100}},
		{"a share", func(s *Spec) { s.HitShare = 0.929 }, []int{92, 8}},
	} {
		s := s
		tt.change(&s)
		requests := all(generated(t, s))
		var got []int
		for _, x := range requests[0].Content {
			got = append(got, x.Tokens)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: segments of %v tokens, want %v", tt.name, got, tt.want)
		}
		if tt.want != nil && requests[0].Content[0].ID != requests[1].Content[0].ID {
			t.Errorf("%s: prompts share nothing", tt.name)
		}
	}
}

// A turn's prompt is what was said before, then new tokens.
func TestSessions(t *testing.T) {
	s := simple(50)
	s.Sessions = Sessions{Turns: 3, Fixed: true, Think: 2, NewTokens: Length{Mean: 20}}
	s.Prefixes = Prefixes{Count: 2, Tokens: 40}
	last := map[uint64]Request{}
	requests := all(generated(t, s))
	if len(requests) != 150 {
		t.Fatalf("%d requests of 50 conversations of 3 turns", len(requests))
	}
	think := 0.0
	for _, r := range requests {
		before, again := last[r.Session]
		last[r.Session] = r
		if !again {
			if r.Turn != 0 || r.Input != 100 || r.Answer == 0 {
				t.Fatalf("first turn %+v", r)
			}
			continue
		}
		want := append(slices.Clone(before.Content), Segment{before.Answer, before.Output}, r.Content[len(r.Content)-1])
		if d := cmp.Diff(want, r.Content); d != "" || r.Input != before.Input+before.Output+20 || r.Turn != before.Turn+1 || r.Content[len(r.Content)-1].Tokens != 20 {
			t.Fatalf("turn %+v after %+v", r, before)
		}
		if (r.Answer == 0) != (r.Turn == 2) {
			t.Fatalf("turn %d has answer %d", r.Turn, r.Answer)
		}
		think += float64((r.Arrival - before.Arrival).Seconds()) - 1
	}
	// 100 exponential times of mean 2 s: within four standard errors.
	if think /= 100; math.Abs(think-2) > 4*2/10.0 {
		t.Errorf("mean time to think %v s, want 2", think)
	}
}

// Turns are geometric on 1, 2, ...: of mean m, the share of single turns is 1/m
// and the variance m(m-1).
func TestTurns(t *testing.T) {
	const n, m = 40_000, 4.0
	s := simple(n)
	s.Sessions = Sessions{Turns: m}
	src, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	requests := all(src)
	single := 0
	for _, r := range requests {
		if r.Session == 0 {
			single++
		}
	}
	if mean := float64(len(requests)) / n; math.Abs(mean-m) > 4*math.Sqrt(m*(m-1)/n) {
		t.Errorf("%v turns on average, want %v", mean, m)
	}
	if p := float64(single) / n; math.Abs(p-1/m) > 4*math.Sqrt(1/m*(1-1/m)/n) {
		t.Errorf("a share of %v has one turn, want %v", p, 1/m)
	}
}

func TestSessionEnds(t *testing.T) {
	s := simple(1)
	s.Sessions = Sessions{Turns: 10, Fixed: true, NewTokens: Length{Mean: 40}, MaxInput: 200}
	// 100, 150, 200; the next would be 250.
	if got := len(all(generated(t, s))); got != 3 {
		t.Errorf("%d turns within 200 tokens, want 3", got)
	}
	s.Sessions.MaxInput = 0
	src := generated(t, s)
	r, _ := src.Next()
	src.Ended(&r, r.Arrival, true)
	if at, more := src.Peek(); more {
		t.Errorf("a turn at %d follows one that was rejected", at)
	}
}

func TestClassesAndPairs(t *testing.T) {
	s := simple(30_000)
	s.Classes = []Class{{Name: "chat", Weight: 3}, {Name: "batch", Weight: 1, Priority: 7, Input: Length{Mean: 900}, Output: Length{Mean: 90}}}
	s.Pairs = Pairs{Of: []Pair{{11, 1}, {22, 2}}}
	count := [2]int{}
	for _, r := range all(generated(t, s)) {
		count[r.Class]++
		if batch := r.Class == 1; batch != (r.Input == 900) || batch != (r.Priority == 7) || !batch && r.Input != 11*r.Output {
			t.Fatalf("%+v", r)
		}
	}
	if p := float64(count[1]) / 30_000; math.Abs(p-0.25) > 0.01 {
		t.Errorf("a share of %v is of the class of weight 1 in 4", p)
	}
	s.Classes, s.Pairs.InOrder, s.Requests = nil, true, 3
	var got []int
	for _, r := range all(generated(t, s)) {
		got = append(got, r.Input, r.Output)
	}
	if !slices.Equal(got, []int{11, 1, 22, 2, 11, 1}) {
		t.Errorf("pairs in order: %v", got)
	}
}

// Changing one lever leaves what the others draw alone.
func TestStreamsAreIndependent(t *testing.T) {
	base := simple(200)
	base.Input.RangeRatio, base.Output.Sigma = 0.5, 0.5
	want := all(generated(t, base))
	for name, change := range map[string]func(*Spec){
		"arrivals": func(s *Spec) { s.Arrivals = Arrivals{Process: Gamma, Rate: 3, Shape: 2} },
		"prefixes": func(s *Spec) { s.Prefixes = Prefixes{Count: 5, Zipf: 1} },
		"output":   func(s *Spec) { s.Output = Length{Mean: 3} },
		"classes":  func(s *Spec) { s.Classes = []Class{{Weight: 1}, {Weight: 2}} },
	} {
		s := base
		change(&s)
		for i, r := range all(generated(t, s)) {
			same := r.Input == want[i].Input && (name == "output" || r.Output == want[i].Output) && (name == "arrivals" || r.Arrival == want[i].Arrival)
			if !same {
				t.Errorf("%s: request %d is %+v, was %+v", name, i, r, want[i])
				break
			}
		}
	}
}

// What a conversation is does not depend on when its answers come.
func TestOrderOfAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := simple(rapid.IntRange(1, 20).Draw(t, "requests"))
		s.Sessions, s.Output.RangeRatio = Sessions{Turns: 3, Think: 1}, 0.5
		s.Seed = rapid.Uint64().Draw(t, "seed")
		type key struct {
			session uint64
			turn    int
		}
		fast, slow := map[key]Request{}, map[key]Request{}
		for into, answer := range map[*map[key]Request]func(*Request) units.Time{
			&fast: func(*Request) units.Time { return 0 },
			&slow: func(r *Request) units.Time { return units.Time(rapid.Int64Range(0, 1e11).Draw(t, "answer")) },
		} {
			src, err := New(s)
			if err != nil {
				t.Fatal(err)
			}
			last := units.Time(0)
			for r := range Unroll(src, answer) {
				if r.Arrival < last {
					t.Fatalf("arrival %d after %d", r.Arrival, last)
				}
				last, r.Arrival, r.ID = r.Arrival, 0, 0
				if r.Session != 0 {
					(*into)[key{r.Session, r.Turn}] = r
				}
			}
		}
		if d := cmp.Diff(fast, slow); d != "" {
			t.Fatalf("(-fast +slow):\n%s", d)
		}
	})
}

func TestSpecErrors(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"0 requests":              func(s *Spec) { s.Requests = 0 },
		"unknown arrival process": func(s *Spec) { s.Arrivals.Process = "" },
		"prompts of 0 tokens":     func(s *Spec) { s.Input.Mean = 0 },
		"answers of 1000000001":   func(s *Spec) { s.Output.Mean = MaxTokens + 1 },
		"range ratio NaN":         func(s *Spec) { s.Input.RangeRatio = math.NaN() },
		"sigma -1":                func(s *Spec) { s.Output.Sigma = -1 },
		"both a range ratio":      func(s *Spec) { s.Output.Sigma, s.Output.RangeRatio = 1, 0.5 },
		"at most -1":              func(s *Spec) { s.Output.Max = -1 },
		"answers of 0 tokens":     func(s *Spec) { s.Output.Values = []int{0} },
		"a pair of 1 and 0":       func(s *Spec) { s.Pairs.Of = []Pair{{1, 0}} },
		"-1 prefixes":             func(s *Spec) { s.Prefixes.Count = -1 },
		"Zipf exponent NaN":       func(s *Spec) { s.Prefixes.Zipf = math.NaN() },
		"a share of 1":            func(s *Spec) { s.HitShare = 1 },
		"both prefixes":           func(s *Spec) { s.HitShare, s.Prefixes.Count = 0.5, 1 },
		"conversations of 2.5":    func(s *Spec) { s.Sessions = Sessions{Turns: 2.5, Fixed: true} },
		"conversations of NaN":    func(s *Spec) { s.Sessions.Turns = math.NaN() },
		"+Inf s between":          func(s *Spec) { s.Sessions.Think = units.Seconds(math.Inf(1)) },
		"at most -5 tokens":       func(s *Spec) { s.Sessions.MaxInput = -5 },
		"turns of -3":             func(s *Spec) { s.Sessions.NewTokens.Mean = -3 },
		`class "a" has weight 0`:  func(s *Spec) { s.Classes = []Class{{Name: "a"}} },
		"prompts of class a":      func(s *Spec) { s.Classes = []Class{{Name: "a", Weight: 1, Input: Length{Mean: -1}}} },
		"answers of class a":      func(s *Spec) { s.Classes = []Class{{Name: "a", Weight: 1, Output: Length{Mean: -1}}} },
	} {
		s := simple(1)
		change(&s)
		if _, err := New(s); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// A million requests with shared prefixes, of which only those in flight are
// held.
func BenchmarkGenerate(b *testing.B) {
	s := simple(1_000_000)
	s.Prefixes = Prefixes{Count: 64, Tokens: 50, Zipf: 1}
	s.Input.Sigma, s.Output.Sigma = 0.5, 0.5
	b.ReportAllocs()
	for b.Loop() {
		src, err := New(s)
		if err != nil {
			b.Fatal(err)
		}
		for {
			if _, ok := src.Next(); !ok {
				break
			}
		}
	}
}
