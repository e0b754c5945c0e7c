package routing

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func tokens(from, n uint32) []uint32 {
	var out []uint32
	for i := range n {
		out = append(out, from+i)
	}
	return out
}

// Hashes that other implementations of the same rule give.
func TestChain(t *testing.T) {
	for _, c := range []struct {
		tokens []uint32
		block  int
		want   []Hash
	}{
		{tokens(1, 4), 4, []Hash{0x341839abbe30be0b}},
		{tokens(1, 10), 4, []Hash{0x341839abbe30be0b, 0x37b6de0623bdb5ca}},
		{tokens(0, 64), 16, []Hash{0x24becc5361303c06, 0xa075f13ea868eebb, 0x31a2fe50c9411f2e, 0x2fc7c838b38eccd6}},
		{tokens(100000, 128), 64, []Hash{0x406d55567357d11e, 0x0b9bee4f138da3a0}},
		{[]uint32{1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1}, 2, []Hash{0x97854e4711dd158a, 0x68fccc91ec72d7cd}},
		{tokens(1, 3), 4, nil},
		{tokens(1, 3), 0, nil},
	} {
		if got := Chain(nil, c.tokens, c.block); !slices.Equal(got, c.want) {
			t.Errorf("Chain(%d tokens, %d) = %x, want %x", len(c.tokens), c.block, got, c.want)
		}
	}
	for reference, want := range map[string]Hash{"http://x/cat.png": 0x4efaa360de15ae63, "data:image/png;base64,AAAA": 0xc4a60ab824c912a1} {
		if got := ImageKey(reference); got != want {
			t.Errorf("ImageKey(%q) = %x, want %x", reference, got, want)
		}
	}
}

// The index agrees with a list of sets, whatever the order of events.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := NewIndex()
		const workers = 70
		naive := map[int]map[Hash]bool{}
		for range rapid.IntRange(0, 200).Draw(t, "events") {
			w := rapid.SampledFrom([]int{0, 1, 2, 63, 64, 69}).Draw(t, "worker")
			h := Hash(rapid.IntRange(1, 8).Draw(t, "hash"))
			if naive[w] == nil {
				naive[w] = map[Hash]bool{}
			}
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0, 1, 2:
				x.Stored(w, h)
				naive[w][h] = true
			case 3, 4:
				x.Removed(w, h)
				delete(naive[w], h)
			default:
				x.Cleared(w)
				clear(naive[w])
			}
		}
		chain := []Hash{1, 2, 3, 4, 5}
		hits := make([]int, workers)
		x.Matches(chain, hits, nil)
		all := map[Hash]bool{}
		for w := range workers {
			want := 0
			for want < len(chain) && naive[w][chain[want]] {
				want++
			}
			if hits[w] != want || x.Held(w) != len(naive[w]) {
				t.Fatalf("worker %d: %d hits of %d held, want %d of %d", w, hits[w], x.Held(w), want, len(naive[w]))
			}
			for h := range naive[w] {
				all[h] = true
			}
		}
		if x.Blocks() != len(all) {
			t.Fatalf("%d blocks, want %d", x.Blocks(), len(all))
		}
	})
}

func TestLoad(t *testing.T) {
	l := NewLoad()
	l.Sent(1, &Request{Chain: []Hash{1, 2}, Tokens: 10})
	l.Sent(1, &Request{Chain: []Hash{1, 3}, Tokens: 5})
	if l.Active(1) != 3 || l.Outstanding(1) != 2 || l.Tokens(1) != 15 || l.Active(0) != 0 || l.Outstanding(7) != 0 {
		t.Errorf("active %d, outstanding %d, tokens %d, want 3, 2, 15", l.Active(1), l.Outstanding(1), l.Tokens(1))
	}
	l.Finished(1, &Request{Chain: []Hash{1, 2}, Tokens: 10})
	if l.Active(1) != 2 || l.Outstanding(1) != 1 {
		t.Errorf("after one finished: active %d, outstanding %d, want 2 and 1", l.Active(1), l.Outstanding(1))
	}
	l.Finished(1, &Request{Chain: []Hash{1, 3}, Tokens: 5})
	l.Finished(1, &Request{Chain: []Hash{1, 3}, Tokens: 5})
	if l.Active(1) != 0 || l.Outstanding(1) != 0 || l.Tokens(1) != 0 {
		t.Error("finishing once too often left something behind")
	}
	// 10 blocks, 23 picks later: 10 x 0.97^23 = 4.96.
	l.charge(0, 10)
	for range 23 {
		l.fade()
	}
	if got := l.Recent(0); got < 4.95 || got > 4.97 {
		t.Errorf("recent = %v, want 4.96", got)
	}
	for range 20000 {
		l.fade()
		l.charge(1, 1)
	}
	// The sum of all charges is 1 / (1 - 0.97) = 33.3.
	if got := l.Recent(1); got < 33.3 || got > 33.4 || l.Recent(0) != 0 {
		t.Errorf("recent = %v and %v, want 33.3 and 0", got, l.Recent(0))
	}
}

// fleet sends requests one after the other and remembers what workers hold.
type fleet struct {
	index  *Index
	load   *Load
	policy Policy
	all    []int
	split  []int
	hits   int
}

func newFleet(t *testing.T, policy string, weight float64, n int) *fleet {
	t.Helper()
	f := &fleet{index: NewIndex(), load: NewLoad(), split: make([]int, n)}
	for i := range n {
		f.all = append(f.all, i)
	}
	var err error
	f.policy, err = New(policy, Options{OverlapWeight: weight}, f.index, f.load, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// send routes a request, which ends at once.
func (f *fleet) send(r Request) int {
	c := f.policy.Pick(&r, f.all)
	hits := make([]int, len(f.all))
	f.index.Matches(r.Chain, hits, nil)
	f.hits += hits[c.Worker]
	f.split[c.Worker]++
	for _, h := range r.Chain {
		f.index.Stored(c.Worker, h)
	}
	return c.Worker
}

// 40 requests that share 4 blocks and have one of their own, over two workers.
func TestOverlapWeight(t *testing.T) {
	run := func(weight float64) *fleet {
		f := newFleet(t, "kv", weight, 2)
		for i := range 40 {
			f.send(Request{Chain: []Hash{1, 2, 3, 4, Hash(100 + i)}})
		}
		return f
	}
	blind, greedy := run(0), run(20)
	if !slices.Equal(blind.split, []int{20, 20}) {
		t.Errorf("weight 0 splits %v, want 20 and 20", blind.split)
	}
	if greedy.hits <= blind.hits || max(greedy.split[0], greedy.split[1]) <= 20 {
		t.Errorf("weight 20: %d hits, split %v; weight 0: %d hits, split %v", greedy.hits, greedy.split, blind.hits, blind.split)
	}
	// 20 times the same 3 blocks: all to one worker, 57 of 60 blocks found.
	same := newFleet(t, "kv-aware", 1, 2)
	for range 20 {
		same.send(Request{Chain: []Hash{1, 2, 3}})
	}
	if same.hits != 57 || max(same.split[0], same.split[1]) != 20 {
		t.Errorf("equal prompts: %d hits, split %v, want 57 and all on one", same.hits, same.split)
	}
}

// Worker 0 holds 8 of 10 blocks and has 6 in flight: 2 + 6 = 8. Worker 1 is cold
// and has 1: 10 + 1 = 11.
func TestCost(t *testing.T) {
	f := newFleet(t, "kv-aware", 1, 2)
	chain := []Hash{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, h := range chain[:8] {
		f.index.Stored(0, h)
	}
	f.load.Sent(0, &Request{Chain: []Hash{21, 22, 23, 24, 25, 26}, Tokens: 96})
	f.load.Sent(1, &Request{Chain: []Hash{31}, Tokens: 16})
	c := f.policy.Pick(&Request{Chain: chain}, f.all)
	if c.Worker != 0 || c.Cost != 8 || c.Hits != 8 {
		t.Errorf("picked %+v, want worker 0 at a cost of 8 with 8 hits", c)
	}
	// The 2 blocks that worker 0 was asked for count now: 2 x 2 + 6 + 2, and an
	// explicit wish for no caching makes the cache matter little: 0.1 x 10 + 1.
	if c := f.policy.Pick(&Request{Chain: chain, Hint: HintNone}, f.all); c.Worker != 1 {
		t.Errorf("with no wish for caching picked %+v, want the idle worker", c)
	}
}

func TestImages(t *testing.T) {
	f := newFleet(t, "kv-aware", 1, 2)
	cat, dog := ImageKey("cat"), ImageKey("dog")
	first := f.send(Request{Images: []Hash{cat}})
	second := f.send(Request{Images: []Hash{dog}})
	if first == second {
		t.Fatalf("both images went to worker %d", first)
	}
	for range 5 {
		if w := f.send(Request{Images: []Hash{dog}, Chain: []Hash{1}}); w != second {
			t.Errorf("the dog went to worker %d, want %d", w, second)
		}
	}
	s := &imageSet{}
	for i := range 300 {
		s.remember([]Hash{Hash(i)})
	}
	if len(s.keys) != imageMemory || s.at(0) >= 0 || s.at(299) < 0 {
		t.Errorf("%d images remembered", len(s.keys))
	}
}

// Sessions one at a time keep nothing in flight; only recent work spreads them.
func TestNoPinning(t *testing.T) {
	f := newFleet(t, "kv-aware", 1, 2)
	for i := range 448 {
		f.send(Request{Chain: []Hash{Hash(1000 + i), Hash(5000 + i)}})
	}
	if min(f.split[0], f.split[1]) < 200 {
		t.Errorf("448 sessions split %v", f.split)
	}
}

func TestPolicies(t *testing.T) {
	for _, name := range Names() {
		f := newFleet(t, name, 1, 3)
		for i := range 300 {
			w := f.policy.Pick(&Request{Chain: []Hash{Hash(i)}, Session: uint64(i % 10)}, []int{0, 2})
			if w.Worker != 0 && w.Worker != 2 {
				t.Fatalf("%s picked %d of 0 and 2", name, w.Worker)
			}
			f.load.Sent(w.Worker, &Request{Chain: nil, Tokens: 1})
			f.split[w.Worker]++
		}
		if f.split[1] != 0 || f.split[0] < 60 || f.split[2] < 60 {
			t.Errorf("%s splits %v", name, f.split)
		}
	}
	rr := newFleet(t, "round_robin", 0, 4)
	var got []int
	for _, all := range [][]int{{0, 1, 2}, {0, 1, 2}, {0, 2}, {0, 1, 2, 3}, {0, 1, 2, 3}, {1, 2}} {
		got = append(got, rr.policy.Pick(&Request{}, all).Worker)
	}
	if want := []int{0, 1, 2, 3, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("round robin over a changing fleet: %v, want %v", got, want)
	}
	home := newFleet(t, "session-affinity", 0, 3)
	first := home.send(Request{Session: 7})
	home.load.Sent(first, &Request{Chain: nil, Tokens: 1})
	if w := home.send(Request{Session: 7}); w != first {
		t.Errorf("the session moved from %d to %d", first, w)
	}
	gone := slices.DeleteFunc([]int{0, 1, 2}, func(w int) bool { return w == first })
	if w := home.policy.Pick(&Request{Session: 7}, gone).Worker; w == first {
		t.Error("the session stayed with a worker that is gone")
	}
	if _, err := New("kv-awre", Options{}, nil, nil, nil); !errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), `"kv-aware"`) {
		t.Errorf("New = %v", err)
	}
}
