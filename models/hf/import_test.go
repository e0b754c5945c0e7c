package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"infera/models"
)

// obj is a config under construction.
type obj map[string]any

func (o obj) with(more obj) obj {
	out := maps.Clone(o)
	maps.Copy(out, more)
	return out
}

func (o obj) without(keys ...string) obj {
	out := maps.Clone(o)
	for _, k := range keys {
		delete(out, k)
	}
	return out
}

func (o obj) json(t testing.TB) []byte {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// small is a dense model of 4 layers.
var small = obj{
	"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
	"intermediate_size": 128, "vocab_size": 1000, "max_position_embeddings": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
}

// smallMoE adds 8 experts of width 32.
var smallMoE = small.with(obj{"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32})

// smallMLA has latent attention.
var smallMLA = small.with(obj{
	"model_type": "deepseek_v3", "q_lora_rank": 48, "kv_lora_rank": 32, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8, "num_key_value_heads": 8,
})

func mustImport(t *testing.T, o obj) (*models.Architecture, []Warning) {
	t.Helper()
	a, w, err := Import(Source{Path: "config.json", Config: o.json(t)})
	if err != nil {
		t.Fatal(err)
	}
	checkRoundTrip(t, a)
	return a, w
}

// checkRoundTrip writes a model as a preset and reads it back.
func checkRoundTrip(t *testing.T, a *models.Architecture) {
	t.Helper()
	data, err := models.MarshalPreset(a)
	if err != nil {
		t.Fatal(err)
	}
	b, err := models.ParsePreset("preset.yaml", data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("preset differs (-imported +read back):\n%s", diff)
	}
}

func hasWarning(ws []Warning, part string) bool {
	for _, w := range ws {
		if strings.Contains(w.String(), part) {
			return true
		}
	}
	return false
}

func TestImportDense(t *testing.T) {
	a, w := mustImport(t, small)
	if len(w) != 0 {
		t.Errorf("warnings %v, want none", w)
	}
	// Per layer: q 64x64, k and v 64x16 each, o 64x64; gate, up, down 64x128
	// each; two norms of 64. Outside: embedding and head 1000x64, norm 64.
	want := int64(4*(64*64+2*64*16+64*64+3*64*128+2*64) + 2*1000*64 + 64)
	c := a.Params()
	if c.Total != want {
		t.Errorf("Total = %d, want %d", c.Total, want)
	}
	if got := want - 1000*64; c.Active != got {
		t.Errorf("Active = %d, want %d (total without the input embedding)", c.Active, got)
	}
	// 4 layers x 2 (K and V) x 2 heads x 8 wide x 2 bytes.
	if got := a.KVBytesPerToken(models.Format{}); got != 4*2*2*8*2 {
		t.Errorf("KVBytesPerToken() = %v, want 256", got)
	}
}

// Trap 1: the dimensions stand in text_config and nothing at the top.
func TestImportNested(t *testing.T) {
	for _, key := range []string{"text_config", "llm_config", "language_config"} {
		a, _ := mustImport(t, obj{"model_type": "outer_vl", key: small})
		if a.Layers() != 4 || a.Hidden != 64 || a.Family != "llama" {
			t.Errorf("%s: %d layers of %d, family %s", key, a.Layers(), a.Hidden, a.Family)
		}
	}
	a, _ := mustImport(t, obj{"model_type": "omni", "thinker_config": obj{"text_config": small}})
	if a.Layers() != 4 {
		t.Errorf("thinker_config: %d layers, want 4", a.Layers())
	}
}

// Trap 2: head_dim absent, explicit, or misleading.
func TestImportHeadDim(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   obj
		k, v int
	}{
		{"absent", small, 8, 8},
		{"null", small.with(obj{"head_dim": nil}), 8, 8},
		{"explicit", small.with(obj{"head_dim": 20}), 20, 20},
		{"mla rules", smallMLA.with(obj{"head_dim": 72}), 12, 8},
	} {
		a, _ := mustImport(t, tt.in)
		if g := a.Groups[0].Attention; g.KDim != tt.k || g.VDim != tt.v {
			t.Errorf("%s: k %d v %d, want %d %d", tt.name, g.KDim, g.VDim, tt.k, tt.v)
		}
	}
}

// Trap 3: latent attention although num_key_value_heads equals the heads.
func TestImportMLA(t *testing.T) {
	a, _ := mustImport(t, smallMLA)
	g := a.Groups[0]
	if g.Attention.Kind != models.AttentionMLA {
		t.Fatalf("kind %v, want mla", g.Attention.Kind)
	}
	if got := g.KVElementsPerToken(); got != 32+4 {
		t.Errorf("KVElementsPerToken() = %v, want 36 (latent 32 + rotary 4)", got)
	}
	// q 64x48 + 48x8x12, kv 64x36 + 32x8x(8+8), o 64x64.
	want := int64(64*48 + 48*8*12 + 64*36 + 32*8*16 + 64*64)
	if got := a.GroupParams(g)[models.ClassAttention]; got != want {
		t.Errorf("attention = %d, want %d", got, want)
	}
}

// Trap 4: a sparse config takes class defaults, with a warning each; other
// classes do not.
func TestImportClassDefaults(t *testing.T) {
	sparse := obj{"model_type": "gemma3", "text_config": obj{"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}}
	a, w := mustImport(t, sparse)
	if g := a.Groups[0].Attention; g.Heads != 8 || g.KVHeads != 4 || g.KDim != 256 {
		t.Errorf("attention %d/%d x %d, want 8/4 x 256", g.Heads, g.KVHeads, g.KDim)
	}
	if !a.Tied || a.Vocab != 262208 {
		t.Errorf("tied %v vocabulary %d, want true 262208", a.Tied, a.Vocab)
	}
	// 34 layers, every sixth one full: 5 full.
	if full := countWindow(a, 0); full != 5 {
		t.Errorf("%d full layers, want 5", full)
	}
	for _, key := range []string{"num_attention_heads", "head_dim", "vocab_size", "sliding_window"} {
		if !hasWarning(w, key) {
			t.Errorf("no warning about %s in %v", key, w)
		}
	}
	if _, _, err := Import(Source{Path: "c.json", Config: small.without("vocab_size", "intermediate_size").json(t)}); err == nil {
		t.Error("a llama config without vocab_size was accepted")
	}
}

func countWindow(a *models.Architecture, window int) int {
	n := 0
	for _, g := range a.Groups {
		if g.Attention.Kind == models.AttentionGQA && g.Attention.Window == window {
			n += g.Count
		}
	}
	return n
}

// Trap 4, second half: a window that is switched off or as long as the context.
func TestImportWindowOff(t *testing.T) {
	for _, more := range []obj{
		{"sliding_window": 1024, "use_sliding_window": false},
		{"sliding_window": 4096},
		{"sliding_window": nil},
	} {
		a, _ := mustImport(t, small.with(more))
		if got := countWindow(a, 0); got != 4 {
			t.Errorf("%v: %d full layers, want 4", more, got)
		}
	}
	a, _ := mustImport(t, small.with(obj{"sliding_window": 1024}))
	if got := countWindow(a, 1024); got != 4 {
		t.Errorf("%d windowed layers, want 4", got)
	}
	a, _ = mustImport(t, small.with(obj{"sliding_window": 1024, "use_sliding_window": true, "max_window_layers": 3}))
	if got := countWindow(a, 1024); got != 1 {
		t.Errorf("%d windowed layers above max_window_layers, want 1", got)
	}
}

// Trap 5: the carriers of the layer pattern.
func TestImportPatterns(t *testing.T) {
	gdn := obj{"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_conv_kernel_dim": 4}
	mamba := obj{"model_type": "nemotron_h", "mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 16, "n_groups": 2, "conv_kernel": 4}
	experts := obj{"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
	kimi := obj{"model_type": "kimi_linear", "linear_attn_config": obj{"kda_layers": []int{1, 2, 3}, "full_attn_layers": []int{4}, "head_dim": 8, "num_heads": 8, "short_conv_kernel_size": 4}}
	block := func(group any, mult float64, noop bool) obj {
		return obj{"attention": obj{"n_heads_in_group": group, "no_op": noop, "replace_with_linear": false}, "ffn": obj{"ffn_mult": mult, "no_op": false, "replace_with_linear": false}}
	}
	v4 := obj{"model_type": "deepseek_v4", "num_key_value_heads": 1, "head_dim": 32, "q_lora_rank": 48, "o_lora_rank": 16, "o_groups": 2, "qk_rope_head_dim": 4,
		"sliding_window": 128, "index_topk": 64, "index_n_heads": 4, "index_head_dim": 16, "compress_ratios": []int{0, 4, 128, 4, 0}, "num_nextn_predict_layers": 1}
	for _, tt := range []struct {
		name string
		in   obj
		want string // one letter a layer: F full, S sliding, C chunked, R recurrent, - none, K compressed
	}{
		{"layer_types", small.with(obj{"sliding_window": 128, "layer_types": []string{"sliding_attention", "full_attention", "sliding_attention", "full_attention"}}), "SFSF"},
		{"full_attention_interval", small.with(gdn).with(obj{"full_attention_interval": 4}), "RRRF"},
		{"layer_types longer than the model", small.with(obj{"sliding_window": 128, "layer_types": []string{"full_attention", "full_attention", "full_attention", "full_attention", "sliding_attention"}}), "FFFF"},
		{"hybrid_override_pattern", small.with(mamba).with(experts).with(obj{"hybrid_override_pattern": "ME*-"}), "R-F-"},
		{"layers_block_type without a count", small.with(mamba).with(experts).with(obj{"layers_block_type": []string{"mamba", "moe", "attention", "moe", "mamba"}}).without("num_hidden_layers"), "R-F-R"},
		{"hybrid_layer_pattern", small.with(obj{"sliding_window": 128, "hybrid_layer_pattern": []int{0, 1, 1, 0}}), "FSSF"},
		{"kimi", smallMLA.with(kimi), "RRRF"},
		{"compress_ratios", small.with(v4), "SKKK"},
		{"block_configs", small.with(obj{"num_key_value_heads": nil, "block_configs": []obj{block(4, 1, false), block(nil, 1, true), block(8, 2, false)}}).without("num_hidden_layers"), "F-F"},
		{"attn_type_list", small.with(obj{"model_type": "minimax_m1", "attn_type_list": []int{0, 0, 0, 1}}), "RRRF"},
		{"sliding_window_pattern", small.with(obj{"sliding_window": 128, "sliding_window_pattern": 2}), "SFSF"},
		{"LLLG", small.with(obj{"sliding_window": 128, "sliding_window_pattern": "LLLG"}), "SSSF"},
		{"attention_chunk_size", small.with(obj{"attention_chunk_size": 512, "no_rope_layers": []int{1, 1, 1, 0}}), "CCCF"},
		{"jamba", small.with(obj{"attn_layer_period": 4, "attn_layer_offset": 2, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2}), "RRFR"},
		{"cross_attention_layers", small.with(obj{"cross_attention_layers": []int{1, 3}}), "FXFX"},
		{"global_attn_every_n_layers", small.with(obj{"sliding_window": 128, "global_attn_every_n_layers": 2}), "SFSF"},
		{"gpt-oss without a list", small.with(obj{"model_type": "gpt_oss", "sliding_window": 128}), "SFSF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, _ := mustImport(t, tt.in)
			var got strings.Builder
			for _, g := range a.Pattern {
				got.WriteByte(letter(a.Groups[g].Attention))
			}
			if got.String() != tt.want {
				t.Errorf("layers %s, want %s", got.String(), tt.want)
			}
		})
	}
}

func letter(t models.Attention) byte {
	switch {
	case t.Kind == models.AttentionNone:
		return '-'
	case t.Kind == models.AttentionRecurrent:
		return 'R'
	case t.Kind == models.AttentionCross:
		return 'X'
	case t.Sparse.Compress > 1:
		return 'K'
	case t.Window == 128:
		return 'S'
	case t.Window > 0:
		return 'C'
	}
	return 'F'
}

// Trap 5, DeepSeek-V4: the extra entry belongs to the drafter, ratio 4 has the
// indexer and ratio 128 none.
func TestImportCompressed(t *testing.T) {
	a, _ := mustImport(t, small.with(obj{"model_type": "deepseek_v4", "num_key_value_heads": 1, "head_dim": 32, "q_lora_rank": 48, "o_lora_rank": 16, "o_groups": 2,
		"qk_rope_head_dim": 4, "sliding_window": 128, "index_topk": 64, "index_n_heads": 4, "index_head_dim": 16,
		"compress_ratios": []int{0, 4, 128, 4, 0}, "num_nextn_predict_layers": 1, "hc_mult": 4}))
	four, big := a.Groups[a.Pattern[1]], a.Groups[a.Pattern[2]]
	if !four.Attention.Sparse.Indexer || big.Attention.Sparse.Indexer || a.Draft.Layer.Attention.Sparse.Compress != 0 {
		t.Errorf("indexer %v %v, drafter ratio %d", four.Attention.Sparse.Indexer, big.Attention.Sparse.Indexer, a.Draft.Layer.Attention.Sparse.Compress)
	}
	if got := four.KVElementsPerToken(); got != 8 {
		t.Errorf("ratio 4 keeps %v elements per token, want 32/4", got)
	}
	if got := four.WindowElementsPerSequence(); got != 128*32 {
		t.Errorf("window %v, want %d", got, 128*32)
	}
	if a.ResidualStreams != 4 {
		t.Errorf("%d residual streams, want 4", a.ResidualStreams)
	}
}

// Trap 6: two key/value geometries in one model.
func TestImportTwoGeometries(t *testing.T) {
	a, _ := mustImport(t, small.with(obj{"model_type": "gemma4_text", "head_dim": 16, "global_head_dim": 32, "num_global_key_value_heads": 1, "attention_k_eq_v": true,
		"sliding_window": 128, "layer_types": []string{"sliding_attention", "full_attention", "sliding_attention", "full_attention"}}))
	slide, full := a.Groups[0], a.Groups[1]
	if got := slide.KVElementsPerToken(); got != 2*2*16 {
		t.Errorf("sliding layer keeps %v, want 64", got)
	}
	if got := full.KVElementsPerToken(); got != 32 { // one head of 32, keys are values
		t.Errorf("global layer keeps %v, want 32", got)
	}
	a, _ = mustImport(t, small.with(obj{"head_dim": 12, "v_head_dim": 8, "num_key_value_heads": 1, "swa_num_key_value_heads": 2, "swa_head_dim": 12, "swa_v_head_dim": 8,
		"sliding_window": 128, "hybrid_layer_pattern": []int{0, 1, 1, 1}}))
	if f, s := a.Groups[0].KVElementsPerToken(), a.Groups[1].KVElementsPerToken(); f != 20 || s != 40 {
		t.Errorf("full %v sliding %v, want 20 and 40", f, s)
	}
}

// Trap 7: spellings of experts, of shared experts and of the dense layers.
func TestImportMoESpellings(t *testing.T) {
	base := small.with(obj{"moe_intermediate_size": 32})
	type list = []int
	for _, tt := range []struct {
		in     obj
		moe    string // M or d per layer
		shared int
	}{
		{obj{"num_experts": 8, "num_experts_per_tok": 2}, "MMMM", 0},
		{obj{"n_routed_experts": 8, "num_experts_per_token": 2, "n_shared_experts": 2, "first_k_dense_replace": 1}, "dMMM", 64},
		{obj{"num_local_experts": 8, "top_k_experts": 2, "shared_expert_intermediate_size": 48}, "MMMM", 48},
		{obj{"num_experts": 8, "experts_per_token": 2, "share_expert_dim": 40, "n_shared_experts": 1}, "MMMM", 40},
		{obj{"num_experts": 8, "num_experts_per_tok": 2, "moe_shared_expert_intermediate_size": 96, "n_shared_experts": 1}, "MMMM", 96},
		{obj{"num_local_experts": 8, "num_experts_per_tok": 2, "shared_intermediate_size": 0}, "MMMM", 0},
		{obj{"num_experts": 8, "num_experts_per_tok": 2, "moe_layer_freq": list{0, 1, 0, 1}}, "dMdM", 0},
		{obj{"num_experts": 8, "num_experts_per_tok": 2, "moe_layer_freq": 2}, "MdMd", 0},
		{obj{"num_experts": 8, "num_experts_per_tok": 2, "decoder_sparse_step": 2}, "dMdM", 0},
		{obj{"num_experts": 8, "num_experts_per_tok": 2, "decoder_sparse_step": 1, "mlp_only_layers": list{1, 2}}, "MddM", 0},
		{obj{"num_experts": 8, "num_experts_per_tok": 2, "mlp_layer_types": []string{"dense", "sparse", "sparse", "dense"}}, "dMMd", 0},
		{obj{"num_experts": 8, "num_experts_per_tok": 2, "interleave_moe_layer_step": 1}, "MMMM", 0},
		{obj{"num_experts": 8, "num_experts_per_tok": 2, "interleave_moe_layer_step": 2}, "dMdM", 0},
		{obj{"moe_num_experts": 8, "moe_k": 2, "moe_layer_start_index": 1, "moe_layer_end_index": 2, "moe_num_shared_experts": 1}, "dMMd", 32},
		{obj{"num_experts": 8, "num_experts_per_tok": 2, "num_dense_layers": 2}, "ddMM", 0},
		{obj{"num_experts": 8, "moe_top_k": 2, "moe_layers_enum": "1,3"}, "dMdM", 0},
		{obj{"num_experts": 8, "num_experts_per_tok": 2, "expert_layer_period": 2, "expert_layer_offset": 1}, "dMdM", 0},
		{obj{"num_experts": 8, "moe_topk": list{2, 2, 2, 2}, "num_shared_expert": list{1, 1, 1, 1}}, "MMMM", 32},
		{obj{"num_experts": 1}, "dddd", 0},
	} {
		a, _ := mustImport(t, base.with(tt.in))
		var got strings.Builder
		shared := 0
		for _, g := range a.Pattern {
			f := a.Groups[g].FFN
			got.WriteByte("?dM"[f.Kind])
			shared = max(shared, f.SharedIntermediate)
			if f.Kind == models.FFNMoE && (f.Experts != 8 || f.TopK != 2 || f.ExpertIntermediate != 32) {
				t.Errorf("%v: experts %+v", tt.in, f)
			}
		}
		if got.String() != tt.moe || shared != tt.shared {
			t.Errorf("%v: layers %s shared %d, want %s %d", tt.in, got.String(), shared, tt.moe, tt.shared)
		}
	}
}

// Trap 10: where tying is said.
func TestImportTied(t *testing.T) {
	for _, tt := range []struct {
		in   obj
		want bool
	}{
		{small.with(obj{"tie_word_embeddings": true}), true},
		{obj{"model_type": "x", "tie_word_embeddings": true, "text_config": small.without("tie_word_embeddings")}, true},
		{obj{"model_type": "x", "tie_word_embeddings": false, "text_config": small.with(obj{"tie_word_embeddings": true})}, true},
		{small.without("tie_word_embeddings"), false},
		{small.without("tie_word_embeddings").with(obj{"model_type": "cohere"}), true},
	} {
		a, _ := mustImport(t, tt.in)
		if a.Tied != tt.want {
			t.Errorf("%v: tied %v, want %v", tt.in, a.Tied, tt.want)
		}
		if head := a.Params().ByClass[models.ClassHead]; (head == 0) != tt.want {
			t.Errorf("tied %v with a head of %d", a.Tied, head)
		}
	}
}

func TestImportErrors(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
	}{
		{"empty", "", "the file is empty"},
		{"truncated", `{"hidden_size": 64, "num_hid`, "truncated"},
		{"not JSON", "hidden_size: 64", "line 1: invalid character"},
		{"a list", "[1,2]", "not a JSON object"},
		{"two objects", "{}{}", "something follows"},
		{"deep", strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), "nested deeper than 64"},
		{"no keys", "{}", "missing hidden_size, vocab_size, num_attention_heads, num_hidden_layers"},
		{"diffusion", `{"_class_name": "UNet", "sample_size": 64}`, "missing hidden_size"},
		{"encoder-decoder", `{"is_encoder_decoder": true, "d_model": 512}`, "encoder-decoder"},
		{"zero", string(small.with(obj{"hidden_size": 0}).json(t)), "hidden_size is 0"},
		{"negative", string(small.with(obj{"num_hidden_layers": -3}).json(t)), "num_hidden_layers is -3"},
		{"huge", string(small.with(obj{"intermediate_size": 1e12}).json(t)), "intermediate is 1000000000000"},
		{"huge layers", string(small.with(obj{"num_hidden_layers": 1e12}).json(t)), "num_hidden_layers is 1000000000000"},
		{"beyond int", strings.Replace(string(small.json(t)), `"hidden_size":64`, `"hidden_size":1e300`, 1), "hidden_size: 1e300 is not a whole number"},
		{"NaN", strings.Replace(string(small.json(t)), `"hidden_size":64`, `"hidden_size":NaN`, 1), `hidden_size: "NaN" is not a number`},
		{"text", string(small.with(obj{"vocab_size": "big"}).json(t)), `vocab_size: "big" is not a number`},
		{"fraction", string(small.with(obj{"hidden_size": 64.5}).json(t)), "64.5 is not a whole number"},
		{"odd heads", string(small.with(obj{"num_attention_heads": 7}).json(t)), "does not divide into 7 heads"},
		{"kv heads", string(small.with(obj{"num_key_value_heads": 3}).json(t)), "8 heads do not divide into 3"},
		{"top-k", string(smallMoE.with(obj{"num_experts_per_tok": 9}).json(t)), "top_k 9 of 8 experts"},
		{"no top-k", string(smallMoE.without("num_experts_per_tok").json(t)), "missing num_experts_per_tok"},
		{"layer type", string(small.with(obj{"layer_types": []string{"quantum", "a", "b", "c"}}).json(t)), `unknown layer type "quantum"`},
		{"short list", string(small.with(obj{"layer_types": []string{"full_attention"}}).json(t)), "layer_types has 1 entries for 4 layers"},
		{"dtype", string(small.with(obj{"torch_dtype": "int3"}).json(t)), `torch_dtype is "int3"`},
		{"quant", string(small.with(obj{"quantization_config": obj{"quant_method": "magic"}}).json(t)), `unknown quant_method "magic"; known: fp8`},
		{"quant algo", string(small.with(obj{"quantization_config": obj{"quant_method": "modelopt", "quant_algo": "FP3"}}).json(t)), `unknown quant_algo "FP3"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Import(Source{Path: "m/config.json", Config: []byte(tt.in)})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("Import() = %v, want %q", err, tt.want)
			}
			if !errors.Is(err, models.ErrBadConfig) {
				t.Error("not an ErrBadConfig")
			}
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
				t.Errorf("not one line: %q", err)
			}
		})
	}
}

func TestImportFS(t *testing.T) {
	quant := []byte(`{"producer":{"name":"modelopt"},"quantization":{"quant_algo":"FP8","kv_cache_quant_algo":"FP8","exclude_modules":["lm_head"]}}`)
	index := []byte(`{"metadata":{"total_size": 1000},"weight_map":{}}`)
	fsys := fstest.MapFS{
		"m/tiny/config.json":                      {Data: small.json(t)},
		"m/tiny/hf_quant_config.json":             {Data: quant},
		"m/tiny/model.safetensors.index.json":     {Data: index},
		"flat/Org--Tiny-FP8.json":                 {Data: small.json(t)},
		"flat/Org--Tiny-FP8.hf_quant_config.json": {Data: quant},
		"flat/Org--Other.json":                    {Data: small.json(t)},
		"empty/readme.txt":                        {Data: []byte("x")},
	}
	for _, path := range []string{"m/tiny", "m/tiny/config.json"} {
		a, w, err := ImportFS(fsys, path)
		if err != nil {
			t.Fatal(err)
		}
		if a.Name != "tiny" || a.Formats[models.ClassAttention].Name != "fp8" || a.KV().Element != models.FP8 || a.Formats[models.ClassHead].Element != models.BF16 {
			t.Errorf("%s: %s attention %v kv %v", path, a.Name, a.Formats[models.ClassAttention].Name, a.KV())
		}
		if !hasWarning(w, "safetensors index") {
			t.Errorf("%s: no warning about the size: %v", path, w)
		}
	}
	a, _, err := ImportFS(fsys, "flat/Org--Tiny-FP8.json")
	if err != nil || a.Name != "Tiny-FP8" || a.Formats[models.ClassAttention].Element != models.FP8 {
		t.Errorf("flat: %v %v", a, err)
	}
	if a, _, err = ImportFS(fsys, "flat/Org--Other.json"); err != nil || a.Formats[models.ClassAttention].Element != models.BF16 {
		t.Errorf("other: %v", err)
	}
	if _, _, err := ImportFS(fsys, "empty"); !errors.Is(err, models.ErrBadConfig) {
		t.Errorf("empty directory: %v", err)
	}
	if _, _, err := ImportFS(fsys, "nowhere"); err == nil {
		t.Error("a missing path was accepted")
	}
}

// A correct index raises no warning: fp8 weights of the layers, bf16 outside.
func TestImportIndexAgrees(t *testing.T) {
	a, _ := mustImport(t, small)
	index := fmt.Appendf(nil, `{"metadata":{"total_size": %d}}`, int64(a.WeightBytes()))
	_, w, err := Import(Source{Path: "config.json", Config: small.json(t), Index: index})
	if err != nil || len(w) != 0 {
		t.Errorf("err %v, warnings %v", err, w)
	}
}

// FuzzImport checks that no config crashes the importer and that whatever it
// accepts has sane counts.
func FuzzImport(f *testing.F) {
	for _, o := range []obj{
		small, smallMoE, smallMLA,
		smallMoE.with(obj{"quantization_config": obj{"quant_method": "fp8", "modules_to_not_convert": []string{"lm_head", "re:.*mlp.*", "model.layers.1*"}}}),
		small.with(obj{"layer_types": []string{"sliding_attention", "full_attention", "linear_attention", "mamba"}, "sliding_window": 8}),
		small.with(obj{"hybrid_override_pattern": "ME*-", "mamba_num_heads": 2, "mamba_head_dim": 4, "ssm_state_size": 4, "n_groups": 1, "conv_kernel": 4}),
		{"block_configs": []obj{{"attention": obj{"no_op": true}, "ffn": obj{"ffn_mult": 1.5}}}},
		small.with(obj{"num_local_experts": []any{[]int{1}, obj{}}, "vision_config": obj{"depth": 2, "hidden_size": 8}}),
	} {
		f.Add(o.json(f), []byte(nil))
	}
	f.Add(small.json(f), []byte(`{"quantization":{"quant_algo":"NVFP4","exclude_modules":["lm_head"]}}`))
	f.Add([]byte(`{"hidden_size": NaN}`), []byte("{"))
	f.Fuzz(func(t *testing.T, config, quant []byte) {
		if len(quant) == 0 {
			quant = nil
		}
		a, _, err := Import(Source{Path: "config.json", Config: config, Quant: quant})
		if err != nil {
			if !errors.Is(err, models.ErrBadConfig) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		checkCounts(t, a)
	})
}

func checkCounts(t *testing.T, a *models.Architecture) {
	t.Helper()
	c := a.Params()
	if c.Total <= 0 || c.Active <= 0 || a.WeightBytes() <= 0 || a.KVBytesPerToken(models.Format{}) < 0 || a.StateBytesPerSequence() < 0 {
		t.Fatalf("counts %+v", c)
	}
}
