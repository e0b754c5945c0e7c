package memory

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"infera/internal/units"
	"infera/models"
	"infera/sim/hardware"
	"infera/sim/layout"
)

func TestRequestErrors(t *testing.T) {
	e := defaults(t, "vllm", "", mi300x)
	good := Request{GPU: mi300x, Layout: plain(1), Engine: e}
	s := sizer(t, llama8B())
	for _, tt := range []struct {
		name string
		edit func(*Request)
		want string
	}{
		{"no gpu", func(r *Request) { r.GPU = nil }, "no GPU"},
		{"no engine", func(r *Request) { r.Engine = nil }, "no engine"},
		{"no memory", func(r *Request) { r.GPU = &hardware.GPU{Name: "x"} }, "no memory size"},
		{"tp 0", func(r *Request) { r.Layout.TP = 0 }, "tp is 0"},
		{"pp 0", func(r *Request) { r.Layout.PP = 0 }, "pp is 0"},
		{"adp", func(r *Request) { r.Layout.AttentionDP = 2 }, "attention_dp 2 exceeds tp 1"},
		{"negative", func(r *Request) { r.MaxContext = -1 }, "max_context is -1"},
		{"huge", func(r *Request) { r.InputLen = math.MaxInt }, "input_len"},
		{"fraction", func(r *Request) { r.MemoryFraction = 1.5 }, "memory fraction"},
		{"nan", func(r *Request) { r.MemoryFraction = math.NaN() }, "memory fraction"},
		{"nan bytes", func(r *Request) { r.ReservedBytes = units.Bytes(math.NaN()) }, "bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := good
			tt.edit(&r)
			if _, err := s.Fit(&r); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Fit() = %v, want ErrRequest with %q", err, tt.want)
			}
		})
	}
	for _, a := range []*models.Architecture{nil, {}, {Hidden: 1, Vocab: 1, Groups: []models.LayerGroup{{Count: 1}}, Pattern: []uint8{3}}} {
		if _, err := New(a); !errors.Is(err, ErrRequest) {
			t.Errorf("New(%v) = %v, want ErrRequest", a, err)
		}
	}
}

// The documented example of the report: Llama-3.1-8B in bf16 on one MI300X.
func TestReport(t *testing.T) {
	r := Request{GPU: mi300x, Layout: plain(1), Engine: defaults(t, "vllm", "0.22.0", mi300x), InputLen: 1024, OutputLen: 1024, Concurrency: 64}
	rep, err := Size(llama8B(), &r)
	if err != nil {
		t.Fatal(err)
	}
	if !rep.OK || rep.Admitted != 64 || rep.KVBytesPerToken != 131072 {
		t.Errorf("OK %v, admitted %d, %v bytes per token", rep.OK, rep.Admitted, rep.KVBytesPerToken)
	}
	var weights units.Bytes
	for _, l := range rep.Terms {
		if strings.HasPrefix(l.Name, "weights.") {
			weights += l.Bytes
		}
		if l.Source == "" {
			t.Errorf("term %s has no source", l.Name)
		}
	}
	if d := math.Abs(float64(weights - rep.Weights)); d > 1 {
		t.Errorf("weight terms sum to %v, weights are %v", weights, rep.Weights)
	}
	if rep.Budget+rep.Reserve != rep.HBM {
		t.Errorf("budget %v + reserve %v is not the card %v", rep.Budget, rep.Reserve, rep.HBM)
	}
	if p := rep.Budget - rep.Weights - rep.Activation - rep.Overhead; p != rep.Pool {
		t.Errorf("pool = %v, want %v", rep.Pool, p)
	}
	// 64 requests of 2,048 tokens: 64 x 2,048 x 131,072 B = 16 GiB.
	if c := rep.Total - rep.Weights - rep.Activation - rep.Graphs - rep.Overhead; math.Abs(c.GiB()-16) > 1e-6 {
		t.Errorf("cache of 64 requests = %.3f GiB, want 16", c.GiB())
	}
}

// EP and TP only move routed experts: what all ranks hold together stays the
// same (experts divide evenly, no padding).
func TestExpertParallelKeepsTotal(t *testing.T) {
	s := sizer(t, deepseekV3())
	e := defaults(t, "vllm", "0.19.0", mi300x)
	var want units.Bytes
	for _, ep := range []int{1, 2, 4, 8} {
		l := plain(8)
		l.EP = ep
		r := Request{GPU: mi300x, Layout: l, Engine: e}
		rep, err := s.Report(&r)
		if err != nil {
			t.Fatal(err)
		}
		if ep == 1 {
			want = rep.Weights
		}
		if math.Abs(float64(rep.Weights-want)) > 1 {
			t.Errorf("ep %d: weights %v, want %v", ep, rep.Weights, want)
		}
	}
}

// Fewer key/value heads than ranks are replicated: at TP16 each rank of
// Llama-8B (8 heads) holds one head, as at TP8.
func TestKVHeadReplication(t *testing.T) {
	s := sizer(t, llama8B())
	e := defaults(t, "vllm", "0.19.0", mi300x)
	per := func(tp int) Fit {
		f, err := s.Fit(&Request{GPU: mi300x, Layout: plain(tp), Engine: e})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for tp, want := range map[int]units.Bytes{1: 131072, 2: 65536, 8: 16384, 16: 16384, 32: 16384} {
		if got := per(tp).KVBytesPerToken; got != want {
			t.Errorf("tp %d: %v bytes per token, want %v", tp, got, want)
		}
	}
	// MLA has one latent, which every rank holds.
	s = sizer(t, deepseekV3())
	if a, b := per(1).KVBytesPerToken, per(8).KVBytesPerToken; a != b || a != 70272 {
		t.Errorf("latent cache is %v at tp 1 and %v at tp 8, want 70272", a, b)
	}
}

// Attention data parallelism repeats attention weights and multiplies the
// capacity of a latent cache.
func TestAttentionDP(t *testing.T) {
	s := sizer(t, deepseekV3())
	e := defaults(t, "sglang", "0.5.9", mi300x)
	tp, err := s.Fit(&Request{GPU: mi300x, Layout: layout.Layout{TP: 8, EP: 8, PP: 1, AttentionDP: 1}, Engine: e, MaxContext: 32768})
	if err != nil {
		t.Fatal(err)
	}
	dp, err := s.Fit(&Request{GPU: mi300x, Layout: layout.Layout{TP: 8, EP: 8, PP: 1, AttentionDP: 8}, Engine: e, MaxContext: 32768})
	if err != nil {
		t.Fatal(err)
	}
	if dp.Weights <= tp.Weights {
		t.Errorf("weights %v with attention dp, %v without", dp.Weights, tp.Weights)
	}
	if ratio := float64(dp.KVCapacityTokens) / float64(tp.KVCapacityTokens); ratio < 5 || ratio > 8 {
		t.Errorf("capacity grows %.2f times, want 5 to 8", ratio)
	}
}

// The last stage holds the head, the first the embedding; layers are neither
// lost nor repeated, whatever the stages.
func TestStages(t *testing.T) {
	for layers := range 70 {
		for n := 1; n <= layers; n++ {
			next := 0
			for i := range n {
				from, to := stageBounds(layers, i, n)
				if from != next || to < from || to-from > layers/n+1 {
					t.Fatalf("stage %d of %d over %d layers is [%d, %d)", i, n, layers, from, to)
				}
				next = to
			}
			if next != layers {
				t.Fatalf("%d stages hold %d of %d layers", n, next, layers)
			}
		}
	}
	s := sizer(t, llama8B())
	e := defaults(t, "vllm", "0.19.0", rtx4090)
	one, _ := s.Fit(&Request{GPU: rtx4090, Layout: layout.Layout{TP: 1, PP: 1, EP: 1, AttentionDP: 1}, Engine: e})
	two, _ := s.Fit(&Request{GPU: rtx4090, Layout: layout.Layout{TP: 1, PP: 2, EP: 1, AttentionDP: 1}, Engine: e})
	if two.Weights >= one.Weights*0.6 || two.Weights <= one.Weights*0.4 {
		t.Errorf("half the layers weigh %v of %v", two.Weights, one.Weights)
	}
	if two.Stage != 1 { // the stage with the sampler has less left
		t.Errorf("binding stage = %d, want 1", two.Stage)
	}
}

// A window is credited only where the engine does: vllm#43308.
func TestSlidingWindow(t *testing.T) {
	capacity := func(a *models.Architecture, engine, release string) int {
		f, err := sizer(t, a).Fit(&Request{GPU: h200, Layout: plain(1), Engine: defaults(t, engine, release, h200), MaxContext: 65536})
		if err != nil {
			t.Fatal(err)
		}
		return f.KVCapacityTokens
	}
	if old, now := capacity(gptOSS120B(), "vllm", "0.10.2"), capacity(gptOSS120B(), "vllm", "0.12.0"); now < old*3/2 {
		t.Errorf("gpt-oss holds %d tokens with windows credited, %d without", now, old)
	}
	mixed := llama8B()
	wide, narrow := gqa(32, 4, 512), gqa(32, 16, 256)
	narrow.Window = 1024
	mixed.Groups, mixed.Pattern = nil, nil
	group(mixed, 27, narrow, swiglu(14336))
	group(mixed, 5, wide, swiglu(14336))
	if old, now := capacity(mixed, "vllm", "0.20.0"), capacity(mixed, "vllm", "0.21.0"); now < old*4 {
		t.Errorf("windows of another width: %d tokens on 0.20, %d on 0.21", old, now)
	}
}

func TestStateSlots(t *testing.T) {
	r := Request{GPU: card("small", "amd", "gfx942", 44), Layout: plain(1), Engine: defaults(t, "atom", "", mi300x), MaxContext: 4096}
	f, err := sizer(t, qwen27B()).Fit(&r)
	if err != nil {
		t.Fatal(err)
	}
	// 512 slots x 48 layers x 3.03 MiB = 72.8 GiB of state.
	if f.OK || f.Short != TermState {
		t.Errorf("OK %v, short %q, want state", f.OK, f.Short)
	}
	r.MaxSequences = 8
	if f, _ = sizer(t, qwen27B()).Fit(&r); !f.OK || f.MaxConcurrency > 8 {
		t.Errorf("with 8 slots: OK %v, %d at once, short %s", f.OK, f.MaxConcurrency, f.Short)
	}
}

func TestKVPoolTokensOverride(t *testing.T) {
	r := Request{GPU: h200, Layout: plain(8), Engine: defaults(t, "vllm", "0.11.0", h200), KVPoolTokens: 715072, InputLen: 8192, OutputLen: 1024}
	f, err := sizer(t, kimiK2()).Fit(&r)
	if err != nil {
		t.Fatal(err)
	}
	if !f.OK || f.KVCapacityTokens != 715072 || f.MaxConcurrency != 715072/9216 {
		t.Errorf("capacity %d, concurrency %d", f.KVCapacityTokens, f.MaxConcurrency)
	}
}

// archs are the shapes properties are checked on.
func archs() []*models.Architecture {
	return []*models.Architecture{llama8B(), llama70BFP8(), kimiK2(), deepseekV3(), gptOSS120B(), minimaxM3(), kimiK3(), qwen27B(), deepseekV4Pro(), scout()}
}

func drawRequest(t *rapid.T, base []Request) Request {
	r := rapid.SampledFrom(base).Draw(t, "base")
	r.Layout.TP = rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "tp")
	r.Layout.PP = rapid.IntRange(1, 4).Draw(t, "pp")
	r.Layout.EP = rapid.SampledFrom([]int{1, r.Layout.TP}).Draw(t, "ep")
	r.Layout.AttentionDP = rapid.SampledFrom([]int{1, r.Layout.TP}).Draw(t, "adp")
	r.InputLen = rapid.IntRange(1, 200000).Draw(t, "isl")
	r.OutputLen = rapid.IntRange(1, 20000).Draw(t, "osl")
	r.MaxBatchedTokens = rapid.IntRange(64, 32768).Draw(t, "batched")
	if rapid.Bool().Draw(t, "fp8") {
		r.KVFormat = fp8
	}
	r.SpeculativeTokens = rapid.IntRange(0, 3).Draw(t, "spec")
	return r
}

func bases(t testing.TB) []Request {
	var out []Request
	for _, engine := range []string{"vllm", "sglang", "atom", "atom-vllm", "atom-sglang", "trtllm", "llamacpp"} {
		for _, gpu := range []*hardware.GPU{mi300x, mi355x, h100, h200, rtx4090} {
			out = append(out, Request{GPU: gpu, Engine: defaults(t, engine, "", gpu)})
		}
	}
	return out
}

func TestProperties(t *testing.T) {
	base := bases(t)
	var sizers []*Sizer
	for _, a := range archs() {
		sizers = append(sizers, sizer(t, a))
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(sizers).Draw(t, "arch")
		r := drawRequest(t, base)
		f, err := s.Fit(&r)
		if err != nil {
			t.Fatal(err)
		}
		if f.OK != (f.Short == "") || f.By < 0 || (f.OK && f.By != 0) {
			t.Fatalf("OK %v, short %q by %v", f.OK, f.Short, f.By)
		}
		if f.OK && (f.MaxContextTokens < r.InputLen+r.OutputLen || f.MaxConcurrency < 1) {
			t.Fatalf("fits, yet context %d, concurrency %d", f.MaxContextTokens, f.MaxConcurrency)
		}
		checkLongest(t, s, &r, &f)

		larger := *r.GPU
		larger.Capacity += 16 * units.GiB
		r2 := r
		r2.GPU = &larger
		if g, _ := s.Fit(&r2); f.OK && !g.OK || g.KVCapacityTokens < f.KVCapacityTokens && r.Engine.MemoryFraction > 0 {
			t.Fatalf("16 GiB more: %d -> %d tokens, OK %v -> %v", f.KVCapacityTokens, g.KVCapacityTokens, f.OK, g.OK)
		}
		r2 = r
		r2.OutputLen++
		if g, _ := s.Fit(&r2); g.MaxConcurrency > f.MaxConcurrency || g.OneRequest < f.OneRequest {
			t.Fatalf("one token more: %d -> %d at once", f.MaxConcurrency, g.MaxConcurrency)
		}
		r2 = r
		r2.ReservedBytes = units.GiB
		if g, _ := s.Fit(&r2); g.KVCapacityTokens > f.KVCapacityTokens {
			t.Fatalf("1 GiB reserved: %d -> %d tokens", f.KVCapacityTokens, g.KVCapacityTokens)
		}
	})
}

// checkLongest holds the longest context against the pool it was found for.
func checkLongest(t *rapid.T, s *Sizer, r *Request, f *Fit) {
	if r.Layout.PP != 1 || s.latentState() || f.MaxContextTokens == 0 {
		return
	}
	b, err := s.SequenceBytes(r, f.MaxContextTokens)
	if err != nil || b > f.Pool {
		t.Fatalf("%d tokens take %v of %v: %v", f.MaxContextTokens, b, f.Pool, err)
	}
}

// latentState reports whether state is kept outside the pool by some engines.
func (s *Sizer) latentState() bool { return s.arch.StateBytesPerSequence() > 0 }

func TestFitDoesNotAllocate(t *testing.T) {
	s := sizer(t, deepseekV3())
	r := Request{GPU: mi300x, Layout: plain(8), Engine: defaults(t, "vllm", "", mi300x), InputLen: 1024, OutputLen: 1024}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := s.Fit(&r); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("Fit allocates %v times", n)
	}
}

func BenchmarkFit(b *testing.B) {
	for _, a := range []*models.Architecture{llama8B(), deepseekV3(), kimiK3()} {
		s := sizer(b, a)
		r := Request{GPU: mi300x, Layout: plain(8), Engine: defaults(b, "vllm", "", mi300x), InputLen: 1024, OutputLen: 1024}
		b.Run(a.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Fit(&r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkReport(b *testing.B) {
	s := sizer(b, deepseekV3())
	r := Request{GPU: mi300x, Layout: plain(8), Engine: defaults(b, "vllm", "", mi300x), InputLen: 1024, OutputLen: 1024}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Report(&r); err != nil {
			b.Fatal(err)
		}
	}
}
