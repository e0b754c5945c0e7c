package modules

import "testing"

func TestRead(t *testing.T) {
	var r Reader
	for _, tt := range []struct {
		in    string
		parts Set
		layer int
	}{
		{"lm_head", Of(Head), AllLayers},
		{"model.embed_tokens", Of(Embedding), AllLayers},
		{"model.layers.3.self_attn.q_proj", Of(Query, RecurrentIn), 3},
		{"model.layers.12.self_attn.kv_a_proj_with_mqa", Of(LatentA), 12},
		{"language_model.model.layers.7.self_attn*", Attention | Recurrent, 7},
		{"model.layers.*.self_attn", Attention | Recurrent, AllLayers},
		{"model.layers.5.mlp.gate", Of(Router), 5},
		{"gate", Of(Router), AllLayers},
		{"model.layers.5.mlp.gate_proj", Of(DenseUp), 5},
		{"model.layers.5.mlp.experts.17.down_proj", Of(ExpertDown), 5},
		{"layers.0.ffn.experts", Experts, 0},
		{"model.layers.1.block_sparse_moe.experts.3.w1", Of(ExpertUp), 1},
		{"model.layers.1.mlp.shared_experts*", Shared, 1},
		{"model.language_model.layers.1.mlp.shared_expert_gate", Of(SharedGate), 1},
		{"*.mlp.shared_expert.*", Shared, AllLayers},
		{"*.attn.*", Attention | Recurrent, AllLayers},
		{"model.layers.0.self_attn.indexer*", Of(IndexQuery, IndexKey, IndexGate), 0},
		{"model.layers.0.self_attn.indexer.wq_b", Of(IndexQuery), 0},
		{"backbone.layers.4.mixer.in_proj", Of(RecurrentIn), 4},
		{"backbone.layers.1.mixer.gate", Of(Router), 1},
		{"model.layers.2.linear_attn.in_proj_ba", Of(RecurrentGate), 2},
		{"model.layers.2.input_layernorm", Of(Norm), 2},
		{"model.layers.78.eh_proj", Of(Norm), 78},
		{"model.layers.3*", Layer, 3},
		{"model.layers.3.*", Layer, 3},
		{"mtp.layers.0*", Of(Draft), AllLayers},
		{"mtp*", Of(Draft), AllLayers},
		{"model.visual.blocks.3.mlp.fc1", Of(Vision), AllLayers},
		{"vision_model.model.layers.3.self_attn.q_proj", Of(Vision), AllLayers},
		{"mm_projector*", Of(Vision), AllLayers},
		{"Linear", Linear, AllLayers},
	} {
		got := r.Read(tt.in)
		if !got.Known || got.Parts != tt.parts || got.Layer != tt.layer {
			t.Errorf("Read(%q) = %b layer %d known %v, want %b layer %d", tt.in, got.Parts, got.Layer, got.Known, tt.parts, tt.layer)
		}
	}
	for _, in := range []string{"", "flux_capacitor", "..", "layers."} {
		if p := r.Read(in); p.Known {
			t.Errorf("Read(%q) is known as %b", in, p.Parts)
		}
	}
}

func TestMatches(t *testing.T) {
	var r Reader
	p := r.Read("model.layers.1*") // as written it also means layers 10 to 19
	for i, want := range map[int]bool{1: true, 10: true, 19: true, 2: false, 21: false} {
		if got := p.Matches(i); got != want {
			t.Errorf("layers.1* matches %d: %v, want %v", i, got, want)
		}
	}
	p = r.Read("model.layers.1.*")
	if p.Matches(10) || !p.Matches(1) {
		t.Error("layers.1.* means layer 1 alone")
	}
}

func TestRegexp(t *testing.T) {
	for _, tt := range []struct {
		in        string
		has, lack Set
		perLayer  bool
	}{
		{`.*self_attn.*`, Of(Query, Output, LatentB), Dense | Experts, false},
		{`.*shared_experts.*`, Shared, Dense | Experts, false},
		{`.*mlp\.(gate|up|gate_up|down)_proj.*`, Dense, Experts | Shared | Of(Router), false},
		{`.*lm_head.*`, Of(Head), Layer, false},
		{`.*mlp.gate$`, Of(Router), Dense, false},
		{`.*block_sparse_moe.gate`, Of(Router), Dense | Experts, false},
		{`model\.layers\.3\..*`, Of(Query), 0, true},
	} {
		re, err := ReadRegexp(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		got := re.Parts(3)
		if got&tt.has != tt.has || got&tt.lack != 0 || re.PerLayer() != tt.perLayer {
			t.Errorf("%s: parts %b, want all of %b and none of %b; per layer %v", tt.in, got, tt.has, tt.lack, re.PerLayer())
		}
	}
	if _, err := ReadRegexp("("); err == nil {
		t.Error("a broken expression was accepted")
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"model.layers.3.mlp.experts.*.w1", "layers.99999999999", "h.1.attn", "*", "layers.*layers.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var r Reader
		first, again := r.Read(s), r.Read(s)
		if first != again {
			t.Fatalf("%q: %+v, then %+v", s, first, again)
		}
	})
}
