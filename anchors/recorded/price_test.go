package recorded

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"infera/configs"
	"infera/internal/units"
	"infera/models"
	"infera/sim/hardware"
	"infera/sim/step"
)

// Two pieces, 100 tokens after 50 and 300 after none, beside 4 decodes over
// 1,000 tokens: pairs 100 x (50 + 50) + 300 x 150 = 55,000; of two groups the
// busier computes 300 tokens, of one all 400; 404 tokens that visit 8 of 128
// experts each reach all but 128 x (120/128)^404 of them, that is none.
func TestWork(t *testing.T) {
	b := step.Batch{Decodes: 4, DecodeKV: 1000, Chunks: []step.Chunk{{Tokens: 100, Context: 50}, {Tokens: 300}}}
	want := work{1, 4, 1000, 400, 55_000, 1, 2, 0, 0}
	if got := (&Price{}).work(&b); got != want {
		t.Errorf("work %v, want %v", got, want)
	}
	p := Price{Groups: 2, Experts: 128, TopK: 8}
	got := p.work(&b)
	if got[TermPromptToken] != 300 || math.Abs(got[TermExperts]-1) > 1e-9 {
		t.Errorf("%v tokens of the busiest group and a share of %v experts", got[TermPromptToken], got[TermExperts])
	}
	// One decode reaches 8 of the 128.
	if got := p.work(&step.Batch{Decodes: 1})[TermExperts]; math.Abs(got-8./128) > 1e-12 {
		t.Errorf("one token reaches a share of %v", got)
	}
	// 16 ms + 4 x 40 us + 1000 x 130 ns + 400 x 90 us + 55,000 ns + 2 ms + 2 x 0.5 ms.
	if got := small.Price(b, nil); math.Abs(float64(got.Latency)-0.055345) > 1e-12 || got.Interval != got.Latency {
		t.Errorf("price %v, want 55.345 ms", got)
	}
}

// More work never costs less, and a price allocates nothing.
func TestPriceGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Price{Groups: rapid.IntRange(0, 4).Draw(t, "groups"), Experts: rapid.IntRange(0, 64).Draw(t, "experts"), TopK: 4}
		for i := range p.Cost {
			p.Cost[i] = units.Seconds(rapid.Float64Range(0, 1).Draw(t, "cost"))
		}
		n := rapid.IntRange(0, 200).Draw(t, "decodes")
		less := step.Batch{Decodes: float64(n), DecodeKV: float64(n * rapid.IntRange(1, 1000).Draw(t, "context"))}
		for range rapid.IntRange(0, 3).Draw(t, "pieces") {
			less.Chunks = append(less.Chunks, step.Chunk{Tokens: float64(rapid.IntRange(1, 500).Draw(t, "tokens")), Context: float64(rapid.IntRange(0, 500).Draw(t, "before"))})
		}
		more := less
		more.Decodes++
		more.DecodeKV += 10
		more.Chunks = append(append([]step.Chunk(nil), less.Chunks...), step.Chunk{Tokens: 1})
		a, b := p.Price(less, nil).Latency, p.Price(more, nil).Latency
		if !(a >= 0 && b >= a) {
			t.Fatalf("%v s for %+v, %v s for %+v", a, less, b, more)
		}
	})
	b := step.Batch{Decodes: 4, DecodeKV: 1000, Chunks: []step.Chunk{{Tokens: 100}}}
	if n := testing.AllocsPerRun(100, func() { small.Price(b, nil) }); n != 0 {
		t.Errorf("a price allocates %v times", n)
	}
}

// Llama-3.1-8B in bf16 on an RTX 4090, 1.008 TB/s and 165.2 TFLOP/s: 8.03 B
// parameters without the embedding's 0.53 B are 15.0 GB, 14.9 ms; a token takes
// 2 x 7.50 GFLOP, 91 us; its cache is 2 x 32 layers x 8 heads x 128 x 2 B =
// 131,072 B, 130 ns; a pair of tokens 2 x 32 x 32 x 256 FLOP = 0.52 MFLOP, 3.2 ns.
func TestEstimate(t *testing.T) {
	catalog, err := models.LoadCatalog(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := hardware.Load(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	estimate := func(model, gpu string, e Engine) *Start {
		a, err := catalog.Lookup(model)
		if err != nil {
			t.Fatal(err)
		}
		g, err := parts.Lookup(gpu)
		if err != nil {
			t.Fatal(err)
		}
		return Estimate(a, g, &e)
	}
	near := func(p *Start, term Term, want float64) {
		t.Helper()
		if got := float64(p.Cost[term]); math.Abs(got-want) > 0.02*want {
			t.Errorf("%s: %.4g s, want %.4g", term, got, want)
		}
	}
	p := estimate("llama-3.1-8b", "rtx4090", Engine{})
	near(p, TermStep, 14.9e-3)
	near(p, TermPromptToken, 91e-6)
	near(p, TermSequence, 91e-6)
	near(p, TermCachedToken, 130e-9)
	near(p, TermPromptPair, 3.2e-9)
	if p.Cost[TermExperts] != 0 || p.Experts != 0 {
		t.Errorf("experts of a dense model: %+v", p)
	}
	// 48 layers of 128 experts of 3 x 2048 x 768 parameters are 58.0 GB, over two
	// ranks 29.0 at 1.792 TB/s. Prompts have a rank to themselves, decodes both.
	p = estimate("qwen3-30b-a3b", "rtx-pro-6000", Engine{TensorParallel: 1, DataParallel: 2, ExpertParallel: true})
	near(p, TermExperts, 29.0/1792)
	if p.Groups != 2 || p.Experts != 128 || p.TopK != 8 || p.Cost[TermSequence] != p.Cost[TermPromptToken]/2 {
		t.Errorf("estimate %+v", p)
	}
}

func TestTermString(t *testing.T) {
	if got := TermPromptPiece.String() + " " + Term(200).String(); got != "prompt_piece Term(200)" {
		t.Error(got)
	}
}
