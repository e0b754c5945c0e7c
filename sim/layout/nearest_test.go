package layout

import (
	"testing"

	"pgregory.net/rapid"

	"infera/models"
)

func TestNearest(t *testing.T) {
	for _, tt := range []struct {
		name    string
		a       *models.Architecture
		l, want Layout
	}{
		{"legal stays", llama70B(), lay(8, 1, 1, 1), lay(8, 1, 1, 1)},
		// 8 costs ln 1.5, 16 costs 2 ln 1.33.
		{"down rather than up", llama70B(), lay(12, 1, 1, 1), lay(8, 1, 1, 1)},
		{"just above", llama70B(), lay(15, 1, 1, 1), lay(16, 1, 1, 1)},
		{"same GPUs, whole experts", qwen235B(), lay(8, 1, 1, 1), lay(8, 1, 8, 1)},
		{"no experts", llama70B(), lay(8, 1, 8, 1), lay(8, 1, 1, 1)},
		{"layers", llama70B(), lay(8, 100, 1, 1), lay(8, 80, 1, 1)},
		{"zero", llama70B(), lay(0, 0, 0, 0), lay(1, 1, 1, 1)},
		{"ep fills", deepSeek(), lay(8, 1, 12, 8), lay(8, 1, 8, 8)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Nearest(tt.a, tt.l); got != tt.want {
				t.Errorf("Nearest(%v) = %v, want %v", tt.l, got, tt.want)
			}
		})
	}
}

func archs() []*models.Architecture {
	return []*models.Architecture{llama70B(), deepSeek(), qwen235B(), gptOSS(), hybrid()}
}

func drawLayout(t *rapid.T) Layout {
	n := rapid.IntRange(-1, 40)
	return Layout{
		TP: n.Draw(t, "tp"), PP: n.Draw(t, "pp"), EP: n.Draw(t, "ep"), AttentionDP: n.Draw(t, "dp"),
		DecodeCP: rapid.IntRange(0, 8).Draw(t, "cp"), RedundantExperts: rapid.IntRange(0, 40).Draw(t, "extra"),
	}
}

func TestNearestIsLegalAndIdempotent(t *testing.T) {
	all := archs()
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom(all).Draw(t, "arch")
		l := drawLayout(t)
		was := Check(a, l, nil)
		got := Nearest(a, l)
		if vs := Check(a, got, nil); !Legal(vs) {
			t.Fatalf("Nearest(%s, %v) = %v: %v", a.Name, l, got, vs)
		}
		if again := Nearest(a, got); again != got {
			t.Fatalf("Nearest(%v) = %v, and of that %v", l, got, again)
		}
		if Legal(was) != legal(a, l) {
			t.Fatalf("Check and the search disagree on %v: %v", l, was)
		}
		if Legal(was) && got != l {
			t.Fatalf("Nearest moved the legal %v to %v", l, got)
		}
	})
}

func TestNearestOfAbsurd(t *testing.T) {
	for _, a := range []*models.Architecture{deepSeek(), hybrid()} {
		for _, l := range []Layout{
			{TP: 1 << 50, PP: 1 << 50, EP: 1 << 50, AttentionDP: 1 << 50, DecodeCP: 1 << 50, RedundantExperts: 1 << 50},
			{TP: 997, PP: 1, EP: 991, AttentionDP: 3, DecodeCP: 7},
			{TP: -5, PP: -5, EP: -5, AttentionDP: -5, DecodeCP: -5, RedundantExperts: -5},
		} {
			if got := Nearest(a, l); !legal(a, got) {
				t.Errorf("Nearest(%s, %v) = %v", a.Name, l, got)
			}
		}
	}
}

// The shards of all ranks cover the whole, and exactly once where the layout
// is legal and nothing is replicated or padded.
func TestShardsCover(t *testing.T) {
	all := archs()
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom(all).Draw(t, "arch")
		l := Nearest(a, drawLayout(t))
		layers := 0
		perGroup := make([]int, len(a.Groups))
		stages := Stages(a, l)
		for i, s := range stages {
			if s.First != layers || s.Embedding != (i == 0) || s.Head != (i == len(stages)-1) {
				t.Fatalf("stage %d of %v: %+v", i, l, s)
			}
			if i > 0 && (s.Layers > stages[i-1].Layers || stages[0].Layers-s.Layers > 1) {
				t.Fatalf("unbalanced stages %+v", stages)
			}
			layers += s.Layers
			for g, n := range s.Groups {
				perGroup[g] += n
			}
		}
		if layers != a.Layers() {
			t.Fatalf("%v: stages hold %d layers, want %d", l, layers, a.Layers())
		}
		for i, g := range a.Groups {
			if perGroup[i] != g.Count {
				t.Fatalf("%v: stages hold %d layers of group %d, want %d", l, perGroup[i], i, g.Count)
			}
			covers(t, a, g, l)
		}
		if VocabPerRank(a, l)*l.DenseTP() < a.Vocab {
			t.Fatalf("%v: vocabulary not covered", l)
		}
	})
}

func covers(t *rapid.T, a *models.Architecture, g models.LayerGroup, l Layout) {
	tp := l.AttentionTP()
	heads := g.Attention.Heads
	if g.Attention.Kind == models.AttentionRecurrent {
		heads = g.Attention.Recurrent.VHeads
	}
	if HeadsPerRank(g.Attention, l)*tp != heads {
		t.Fatalf("%v: %d heads per rank of %d", l, HeadsPerRank(g.Attention, l), heads)
	}
	if kv := KVHeads(g.Attention); KVHeadsPerRank(g.Attention, l)*tp != kv*KVReplication(g.Attention, l) {
		t.Fatalf("%v: %d KV heads per rank, %d copies, of %d", l, KVHeadsPerRank(g.Attention, l), KVReplication(g.Attention, l), kv)
	}
	f := g.FFN
	if f.Experts > 0 {
		if ExpertsPerRank(f, l)*l.EP != f.Experts+l.RedundantExperts {
			t.Fatalf("%v: %d experts per rank of %d + %d", l, ExpertsPerRank(f, l), f.Experts, l.RedundantExperts)
		}
		if ExpertWidthPerRank(f, a.Formats[models.ClassRoutedExpert], l)*l.ExpertTP() < f.ExpertIntermediate {
			t.Fatalf("%v: expert width not covered", l)
		}
	}
	if DenseWidthPerRank(f, bf16, l)*l.DenseTP() < f.Intermediate || SharedWidthPerRank(f, bf16, l)*l.DenseTP() < f.SharedIntermediate {
		t.Fatalf("%v: dense width not covered", l)
	}
}

func TestShards(t *testing.T) {
	llama, ds := llama70B().Groups[0], deepSeek().Groups[1]
	// 61 layers over 8 stages: 61 = 5 x 8 + 5 x 1 + ... = five of 8, three of 7.
	var counts []int
	for _, s := range Stages(deepSeek(), lay(1, 8, 1, 1)) {
		counts = append(counts, s.Layers)
	}
	for i, want := range []int{8, 8, 8, 8, 8, 7, 7, 7} {
		if counts[i] != want {
			t.Errorf("stage %d has %d layers, want %d", i, counts[i], want)
		}
	}
	for _, tt := range []struct {
		what      string
		got, want int
	}{
		{"heads of llama tp8", HeadsPerRank(llama.Attention, lay(8, 1, 1, 1)), 8},
		{"KV heads of llama tp8", KVHeadsPerRank(llama.Attention, lay(8, 1, 1, 1)), 1},
		{"KV heads of llama tp16", KVHeadsPerRank(llama.Attention, lay(16, 1, 1, 1)), 1},
		{"KV heads of llama tp2", KVHeadsPerRank(llama.Attention, lay(2, 1, 1, 1)), 4},
		{"KV heads of llama tp8 dp4", KVHeadsPerRank(llama.Attention, lay(8, 1, 1, 4)), 4},
		{"latent of MLA tp8", KVHeadsPerRank(ds.Attention, lay(8, 1, 1, 1)), 1},
		{"copies of the latent", KVReplication(ds.Attention, lay(8, 1, 1, 1)), 8},
		{"experts of ep8", ExpertsPerRank(ds.FFN, lay(8, 1, 8, 1)), 32},
		{"experts of ep320", ExpertsPerRank(ds.FFN, Layout{TP: 1, PP: 1, EP: 320, AttentionDP: 1, RedundantExperts: 64}), 1},
		{"gpt-oss width tp8", ExpertWidthPerRank(gptOSS().Groups[0].FFN, mxfp4, lay(8, 1, 1, 1)), 384},
		// 128256 is a multiple of 64; 128256/16 = 8016.
		{"vocabulary tp16", VocabPerRank(llama70B(), lay(16, 1, 1, 1)), 8016},
		{"GPUs of wide EP", lay(8, 2, 32, 8).GPUs(), 64},
		{"groups of wide EP", lay(8, 2, 32, 8).AttentionGroups(), 32},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %d, want %d", tt.what, tt.got, tt.want)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	a := deepSeek()
	b.ReportAllocs()
	for b.Loop() {
		if !legal(a, lay(8, 1, 8, 8)) {
			b.Fatal("not legal")
		}
	}
}

func BenchmarkNearest(b *testing.B) {
	a := qwen235B()
	for b.Loop() {
		Nearest(a, lay(8, 1, 1, 1))
	}
}
