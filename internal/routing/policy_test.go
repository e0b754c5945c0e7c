package routing

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustNew(t testing.TB, name string, o Options, x *Index, l *Load) Policy {
	t.Helper()
	p, err := New(name, o, x, l, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func workers(n int) []int {
	var all []int
	for w := range n {
		all = append(all, w)
	}
	return all
}

func TestNewRefuses(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		name   string
		o      Options
		random *rand.Rand
		kind   error
		text   string
	}{
		{"kv-aware", Options{OverlapWeight: math.NaN()}, random, ErrOptions, "overlap weight: NaN"},
		{"kv-aware", Options{OverlapWeight: -1}, random, ErrOptions, "overlap weight: -1"},
		{"kv-aware", Options{Temperature: math.Inf(1)}, random, ErrOptions, "temperature"},
		{"kv-aware", Options{MaxLead: -3}, random, ErrOptions, "lead"},
		{"prefix-hash", Options{PrefixTokens: -1}, random, ErrOptions, "tokens"},
		{"kv-aware", Options{Temperature: 1}, nil, ErrOptions, "randomness"},
		{"random", Options{}, nil, ErrOptions, "randomness"},
		{"power_of_two", Options{}, nil, ErrOptions, "randomness"},
		{"prefix_awar", Options{}, random, ErrPolicy, `"prefix-aware"`},
		{"rund-robin", Options{}, random, ErrPolicy, `"round-robin"`},
		{"", Options{}, random, ErrPolicy, "known: kv-aware, least-outstanding"},
	} {
		_, err := New(c.name, c.o, NewIndex(), NewLoad(), c.random)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("New(%q, %+v) = %v, want %q", c.name, c.o, err, c.text)
		}
	}
	for _, name := range []string{"kv", "kv_aware", "round_robin", "random", "prefix_aware", "prefix-aware", "least_outstanding", "power_of_two", "session_affinity"} {
		mustNew(t, name, Options{}, NewIndex(), NewLoad())
	}
	if !UsesIndex("kv") || UsesIndex("round-robin") || UsesIndex("") {
		t.Error("only kv-aware asks what caches hold")
	}
}

// The cost of the kv-aware policy, computed the long way: sets of blocks, counts
// of what is in flight, and sums that all decay with every pick.
func TestCostLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 3
		x, l := NewIndex(), NewLoad()
		weight := rapid.SampledFrom([]float64{0, 1, 2, 20}).Draw(t, "weight")
		p, err := New("kv", Options{OverlapWeight: weight}, x, l, nil)
		if err != nil {
			t.Fatal(err)
		}
		var recent [n]float64
		var holds [n]map[Hash]bool
		var inFlight [n][]*Request
		for w := range n {
			holds[w] = map[Hash]bool{}
		}
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			r := &Request{Unshared: rapid.IntRange(0, 2).Draw(t, "unshared"), Hint: Hint(rapid.IntRange(0, 3).Draw(t, "hint"))}
			for i := range rapid.IntRange(0, 4).Draw(t, "blocks") {
				r.Chain = append(r.Chain, Hash(10*rapid.IntRange(1, 2).Draw(t, "variant")+i))
			}
			amplifier := [...]float64{1, 0.1, 1, 2}[r.Hint]
			cost := func(w int) float64 {
				hits := 0
				for hits < len(r.Chain) && holds[w][r.Chain[hits]] {
					hits++
				}
				different, own := map[Hash]bool{}, 0
				for _, q := range inFlight[w] {
					own += q.Unshared
					for _, h := range q.Chain {
						different[h] = true
					}
				}
				return weight*amplifier*float64(len(r.Chain)+r.Unshared-hits) + float64(len(different)+own) + recent[w]
			}
			for w := range recent {
				if recent[w] *= 0.97; recent[w] < 1e-3 {
					recent[w] = 0
				}
			}
			least := math.Inf(1)
			for w := range n {
				least = min(least, cost(w))
			}
			c := p.Pick(r, workers(n))
			if math.Abs(c.Cost-least) > 1e-6 || math.Abs(c.Cost-cost(c.Worker)) > 1e-6 {
				t.Fatalf("picked %+v, which costs %v; the least is %v", c, cost(c.Worker), least)
			}
			blocks := len(r.Chain) + r.Unshared
			recent[c.Worker] += float64(blocks - c.Hits)
			if blocks == 0 {
				recent[c.Worker]++
			}
			l.Sent(c.Worker, r)
			inFlight[c.Worker] = append(inFlight[c.Worker], r)
			for _, h := range r.Chain {
				x.Stored(c.Worker, h)
				holds[c.Worker][h] = true
			}
			if w := rapid.IntRange(0, n-1).Draw(t, "ends"); len(inFlight[w]) > 0 {
				l.Finished(w, inFlight[w][0])
				inFlight[w] = inFlight[w][1:]
			}
		}
	})
}

// Worker 0 holds all 10 blocks and has 15 more in flight; worker 1 has nothing.
// Plain: 0 + 15 against 10 + 0. Long: 15 against 20. None: 15 against 1.
func TestHints(t *testing.T) {
	chain := []Hash{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for hint, want := range map[Hint]Choice{
		HintUnset: {Worker: 1, Cost: 10},
		HintShort: {Worker: 1, Cost: 10},
		HintLong:  {Worker: 0, Hits: 10, Cost: 15},
		HintNone:  {Worker: 1, Cost: 1},
	} {
		x, l := NewIndex(), NewLoad()
		for _, h := range chain {
			x.Stored(0, h)
		}
		l.Sent(0, &Request{Unshared: 15})
		if got := mustNew(t, "kv", Options{OverlapWeight: 1}, x, l).Pick(&Request{Chain: chain, Hint: hint}, workers(2)); got != want {
			t.Errorf("hint %d: picked %+v, want %+v", hint, got, want)
		}
	}
}

// An image weighs as much as 48 blocks, the text nothing: worker 0 saw it and has
// 47 blocks in flight, then 49. A worker that started again saw nothing.
func TestImageCost(t *testing.T) {
	cat := []Hash{ImageKey(" http://x/cat.png\n")}
	if cat[0] != 0x4efaa360de15ae63 {
		t.Errorf("spaces around a reference count: %x", cat[0])
	}
	x, l := NewIndex(), NewLoad()
	p := mustNew(t, "kv", Options{OverlapWeight: 1}, x, l)
	x.sawImages(0, cat)
	l.Sent(0, &Request{Unshared: 47})
	r := &Request{Chain: []Hash{1, 2}, Images: cat}
	if c := p.Pick(r, workers(2)); c.Worker != 0 || c.Cost != 47 {
		t.Errorf("picked %+v, want worker 0 for 47", c)
	}
	x.Cleared(0)
	if c := p.Pick(r, workers(2)); c.Worker != 1 || c.Cost != 48 {
		t.Errorf("after a restart picked %+v, want worker 1 for 48", c)
	}
}

// All want the prefix that one worker holds. With a bound on its lead the others
// help as soon as it is 4 requests ahead.
func TestMaxLead(t *testing.T) {
	run := func(lead int) (split [4]int) {
		x, l := NewIndex(), NewLoad()
		p := mustNew(t, "kv", Options{OverlapWeight: 20, MaxLead: lead}, x, l)
		r := &Request{}
		for i := range 100 {
			r.Chain = append(r.Chain, Hash(i+1))
			x.Stored(2, r.Chain[i])
		}
		for range 40 {
			c := p.Pick(r, workers(4))
			l.Sent(c.Worker, r)
			split[c.Worker]++
		}
		return split
	}
	if got := run(0); got[2] != 40 {
		t.Errorf("without a bound the split is %v, want all on worker 2", got)
	}
	// 9 + 9 + (9 + 4) + 9 = 40.
	if got := run(4); got != [4]int{9, 9, 13, 9} {
		t.Errorf("with a bound the split is %v, want 9, 9, 13, 9", got)
	}
}

// Two workers 5 blocks apart at a temperature of 5 are drawn at odds of e to 1.
func TestTemperature(t *testing.T) {
	x := NewIndex()
	chain := []Hash{1, 2, 3, 4, 5}
	for _, h := range chain {
		x.Stored(1, h)
	}
	p := mustNew(t, "kv", Options{OverlapWeight: 1, Temperature: 5}, x, NewLoad())
	const draws = 20_000
	second := 0
	for range draws {
		p.(*kvAware).load = NewLoad()
		second += p.Pick(&Request{Chain: chain}, workers(2)).Worker
	}
	// 1 / (1 + 1/e) = 0.731, with a standard deviation of 0.003.
	if got := float64(second) / draws; math.Abs(got-0.731) > 0.015 {
		t.Errorf("the better worker is drawn %v of the time, want 0.731", got)
	}
}

// When a worker leaves, only what it served moves; when it comes back, the same.
func TestPrefixHashMovesLittle(t *testing.T) {
	p := mustNew(t, "prefix-hash", Options{}, nil, NewLoad())
	counts := make([]int, 8)
	without := slices.DeleteFunc(workers(8), func(w int) bool { return w == 3 })
	for i := range 8000 {
		r := &Request{Chain: []Hash{spread(i), spread(i + 100_000)}, BlockTokens: 512}
		before := p.Pick(r, workers(8)).Worker
		after := p.Pick(r, without).Worker
		if before != 3 && after != before {
			t.Fatalf("request %d moved from %d to %d when 3 left", i, before, after)
		}
		counts[before]++
	}
	// 1,000 each, with a standard deviation of 30.
	if slices.Min(counts) < 880 || slices.Max(counts) > 1120 {
		t.Errorf("8,000 beginnings split %v", counts)
	}
}

// Prompts that begin alike go to one worker, up to its bounded share.
func TestPrefixHashBounds(t *testing.T) {
	l := NewLoad()
	p := mustNew(t, "prefix-hash", Options{PrefixTokens: 32}, nil, l)
	split := make([]int, 4)
	for i := range 400 {
		// Two blocks of 16 tokens that all share, one that differs.
		r := &Request{Chain: []Hash{1, 2, Hash(100 + i)}, BlockTokens: 16}
		w := p.Pick(r, workers(4)).Worker
		l.Sent(w, r)
		split[w]++
	}
	// 1.1 times the mean of 401 / 4, rounded up.
	if slices.Max(split) != 111 || slices.Min(split) == 100 {
		t.Errorf("400 requests that begin alike split %v, want at most 111 on one", split)
	}
}

func TestSessionAffinity(t *testing.T) {
	l := NewLoad()
	p := mustNew(t, "session-affinity", Options{}, nil, l)
	r := &Request{Session: 7}
	home := p.Pick(r, workers(2)).Worker
	// Its home has 28 in flight. Of two workers that is no overload, which begins
	// at 2 x 29/2 + 8 = 37; of four it is: 2 x 29/4 rounded up and 8 are 23.
	for range 28 {
		l.Sent(home, r)
	}
	if got := p.Pick(r, workers(2)).Worker; got != home {
		t.Errorf("the session left %d for %d", home, got)
	}
	moved := p.Pick(r, workers(4)).Worker
	if moved == home {
		t.Error("the session stays with an overloaded worker")
	}
	for range 28 {
		l.Finished(home, r)
	}
	if got := p.Pick(r, workers(4)).Worker; got != moved {
		t.Errorf("the session went from %d to %d, want it to stay", moved, got)
	}
	s := p.(*sessionAffinity)
	for i := range sessionMemory + 1000 {
		p.Pick(&Request{Session: uint64(100 + i)}, workers(4))
		p.Pick(r, workers(4))
	}
	if len(s.homes) != sessionMemory || s.homes[7] != moved {
		t.Errorf("%d sessions remembered, want %d with the one in use", len(s.homes), sessionMemory)
	}
	if _, ok := s.homes[100]; ok {
		t.Error("the session unused for longest is remembered")
	}
}

// Two choices leave the longest queue far shorter than one: with 64 workers and
// 6,400 requests that stay, about 102 against 125.
func TestPowerOfTwo(t *testing.T) {
	longest := func(name string) int {
		l := NewLoad()
		p := mustNew(t, name, Options{}, nil, l)
		r := &Request{}
		for range 6400 {
			l.Sent(p.Pick(r, workers(64)).Worker, r)
		}
		most := 0
		for w := range 64 {
			most = max(most, l.Outstanding(w))
		}
		return most
	}
	if one, two := longest("random"), longest("power-of-two"); two > 105 || one < 115 {
		t.Errorf("longest queues: %d with one choice, %d with two", one, two)
	}
	if got := longest("least-outstanding"); got != 100 {
		t.Errorf("the longest queue is %d, want 100", got)
	}
}

// What a worker reports counts for the requests of others only, so that a report
// from before a burst does not send all of it to one worker.
func TestReported(t *testing.T) {
	l := NewLoad()
	p := mustNew(t, "least-outstanding", Options{}, nil, l)
	r := &Request{Chain: []Hash{1, 2}, Tokens: 10}
	l.Reported(0, 3)
	split := [2]int{}
	for range 9 {
		w := p.Pick(r, workers(2)).Worker
		l.Sent(w, r)
		split[w]++
		l.Reported(1, 0)
	}
	// Worker 0 has 3 from elsewhere: 3 + 3 against 6.
	if split != [2]int{3, 6} {
		t.Errorf("split %v, want 3 and 6", split)
	}
	l.Reported(0, 4)
	if got := l.Outstanding(0); got != 4 {
		t.Errorf("%d in flight at worker 0, want 4 of which 3 are ours", got)
	}
	l.charge(0, 5)
	l.Forget(0)
	if l.Outstanding(0)+l.Active(0)+l.Tokens(0) != 0 || l.Recent(0) != 0 {
		t.Error("a worker that is gone has load")
	}
	if got := l.Outstanding(1); got != 6 {
		t.Errorf("%d in flight at worker 1, want 6", got)
	}
	l.Forget(99)
}

func TestNoAllocations(t *testing.T) {
	ids := tokens(0, 2048)
	dst := make([]Hash, 0, 128)
	if n := testing.AllocsPerRun(10, func() { dst = Chain(dst[:0], ids, 16) }); n != 0 {
		t.Errorf("Chain allocates %v times", n)
	}
	if got := Chain(nil, ids, 1024); len(got) != 2 {
		t.Errorf("%d blocks of 1,024 tokens in 2,048", len(got))
	}
	for _, name := range Names() {
		p, r := benchmarkPolicy(t, name, 8)
		all := workers(8)
		if n := testing.AllocsPerRun(100, func() { p.Pick(r, all) }); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// benchmarkPolicy returns a policy and a request of 32 blocks, of which every
// worker holds another number.
func benchmarkPolicy(t testing.TB, name string, n int) (Policy, *Request) {
	x, l := NewIndex(), NewLoad()
	r := &Request{Tokens: 2048, BlockTokens: 64, Session: 3}
	for i := range 32 {
		r.Chain = append(r.Chain, spread(i))
	}
	for w := range n {
		for _, h := range r.Chain[:w%32] {
			x.Stored(w, h)
		}
		l.Sent(w, r)
	}
	return mustNew(t, name, Options{OverlapWeight: 1}, x, l), r
}

func BenchmarkPolicies(b *testing.B) {
	for _, name := range Names() {
		for _, n := range []int{8, 64} {
			b.Run(name+"/"+strconv.Itoa(n), func(b *testing.B) {
				p, r := benchmarkPolicy(b, name, n)
				all := workers(n)
				b.ReportAllocs()
				for b.Loop() {
					p.Pick(r, all)
				}
			})
		}
	}
}

// The whole of a request's routing: pick, sent, finished.
func BenchmarkRequest(b *testing.B) {
	p, r := benchmarkPolicy(b, "kv-aware", 8)
	l, all := p.(*kvAware).load, workers(8)
	b.ReportAllocs()
	for b.Loop() {
		c := p.Pick(r, all)
		l.Sent(c.Worker, r)
		l.Finished(c.Worker, r)
	}
}

// Hashing a prompt of 2,048 tokens in blocks of 64.
func BenchmarkChain(b *testing.B) {
	ids := tokens(0, 2048)
	var dst []Hash
	b.ReportAllocs()
	for b.Loop() {
		dst = Chain(dst[:0], ids, 64)
	}
}
