package hf

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"infera/models"
)

// block is DeepSeek's fp8.
var block = obj{"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": []int{128, 128}}

func formatsOf(a *models.Architecture) string {
	var s []string
	for c, f := range a.Formats {
		if f.Element != a.Compute || f.MixedBits > 0 {
			s = append(s, models.TensorClass(c).String()+"="+f.String())
		}
	}
	return strings.Join(s, " ")
}

// Traps 8 and 9: where quantisation is said, and what it covers.
func TestImportQuantisation(t *testing.T) {
	group := func(w, act any, targets ...string) obj {
		return obj{"group_0": obj{"weights": w, "input_activations": act, "targets": append([]string(nil), targets...)}}
	}
	int4 := obj{"num_bits": 4, "type": "int", "group_size": 32, "strategy": "group", "symmetric": true}
	fp4 := obj{"num_bits": 4, "type": "float", "group_size": 16}
	mla := smallMLA.with(obj{"n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 32, "first_k_dense_replace": 1})
	all := func(f string) string {
		return fmt.Sprintf("attention=%[1]s dense_ffn=%[1]s routed_expert=%[1]s shared_expert=%[1]s", f)
	}
	experts := func(f string) string { return "routed_expert=" + f }
	for _, tt := range []struct {
		name string
		in   obj
		want string
		kv   string
	}{
		{"none", mla, "", "bf16"},
		{"fp8 block", mla.with(obj{"quantization_config": block}), all("fp8_block"), "bf16"},
		{"fp8 block in text_config", obj{"model_type": "kimi_k25", "text_config": mla.with(obj{"quantization_config": block})}, all("fp8_block"), "bf16"},
		{"fp8 tensor", mla.with(obj{"quantization_config": obj{"quant_method": "fp8", "activation_scheme": "static"}}), all("fp8"), "bf16"},
		{"fp8, attention output left alone", smallMoE.with(obj{"quantization_config": obj{"quant_method": "fp8", "weight_block_size": []int{128, 128},
			"modules_to_not_convert": []string{"lm_head", "model.layers.0.self_attn", "model.layers.1.self_attn", "model.layers.2.self_attn", "model.layers.3.self_attn", "gate"}}}), experts("fp8_block"), "bf16"},
		{"expert_dtype", mla.with(obj{"quantization_config": block, "expert_dtype": "fp4"}),
			"attention=fp8_block dense_ffn=fp8_block routed_expert=mxfp4_a8 shared_expert=fp8_block", "bf16"},
		{"mxfp4", smallMoE.with(obj{"quantization_config": obj{"quant_method": "mxfp4", "modules_to_not_convert": []string{"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"}}}), experts("mxfp4_a16"), "bf16"},
		{"compressed int4 by regexp", mla.with(obj{"quantization_config": obj{"quant_method": "compressed-tensors", "config_groups": group(int4, nil, "Linear"),
			"ignore": []string{"lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", `re:.*mlp\.(gate|up|gate_up|down)_proj.*`}}}), experts("int4_g32"), "bf16"},
		{"compressed fp8 channel", mla.with(obj{"quantization_config": obj{"quant_method": "compressed-tensors", "ignore": []string{"lm_head"},
			"config_groups": group(obj{"num_bits": 8, "type": "float", "strategy": "channel"}, obj{"num_bits": 8, "type": "float", "strategy": "token"}, "Linear")}}), all("fp8_channel"), "bf16"},
		{"compressed w8a8 with fp8 cache", mla.with(obj{"quantization_config": obj{"quant_method": "compressed-tensors", "kv_cache_scheme": obj{"num_bits": 8, "type": "float"},
			"config_groups": group(obj{"num_bits": 8, "type": "int", "strategy": "channel"}, obj{"num_bits": 8, "type": "int"}, "Linear")}}), all("int8"), "fp8"},
		{"modelopt nvfp4 by layer", mla.with(obj{"quantization_config": obj{"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": obj{"num_bits": 8, "type": "float"},
			"config_groups": group(fp4, fp4, "Linear"),
			"ignore":        []string{"lm_head", "model.layers.0*", "model.layers.1.self_attn*", "model.layers.2.self_attn*", "model.layers.3.self_attn*", "model.layers.1.mlp.shared_experts*", "model.layers.2.mlp.shared_experts*", "model.layers.3.mlp.shared_experts*"}}}), experts("nvfp4"), "fp8"},
		{"modelopt mixed", mla.with(obj{"quantization_config": obj{"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": obj{
			"lm_head":                                obj{"quant_algo": "W4A16_NVFP4", "group_size": 16},
			"model.layers.1.mlp.experts":             obj{"quant_algo": "NVFP4", "group_size": 16},
			"model.layers.2.mlp.experts.0.up_proj":   obj{"quant_algo": "NVFP4", "group_size": 16},
			"model.layers.2.mlp.experts.0.gate_proj": obj{"quant_algo": "NVFP4", "group_size": 16},
			"model.layers.2.mlp.experts.7.down_proj": obj{"quant_algo": "NVFP4", "group_size": 16},
			"model.layers.3.mlp.experts":             obj{"quant_algo": "NVFP4", "group_size": 16},
			"model.layers.0.mlp.gate_proj":           obj{"quant_algo": "MXFP8"}, "model.layers.0.mlp.up_proj": obj{"quant_algo": "MXFP8"}, "model.layers.0.mlp.down_proj": obj{"quant_algo": "MXFP8"},
		}}}), "dense_ffn=mxfp8 routed_expert=nvfp4 head=nvfp4_a16", "bf16"},
		{"nvfp4 experts over fp8", mla.with(obj{"expert_dtype": "fp4", "quantization_config": block.with(obj{"quant_algo": "MIXED_PRECISION", "moe_quant_algo": "NVFP4",
			"ignore": []string{"*.attn.*", "*.ffn.shared_experts.*", "head", "mtp.*"}, "quantized_layers": obj{"layers.1.ffn.experts": obj{"quant_algo": "NVFP4", "group_size": 16}}})}),
			"attention=fp8_block dense_ffn=fp8_block routed_expert=nvfp4 shared_expert=fp8_block", "bf16"},
		{"quark dict", mla.with(obj{"quantization_config": obj{"quant_method": "quark", "exclude": []string{"lm_head"}, "kv_cache_quant_config": obj{"*k_proj": obj{"output_tensors": obj{"dtype": "fp8_e4m3"}}},
			"global_quant_config": obj{"weight": obj{"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"}, "input_tensors": obj{"dtype": "fp4", "qscheme": "per_group", "group_size": 32}}}}), all("mxfp4"), "fp8"},
		{"quark list", mla.with(obj{"quantization_config": obj{"quant_method": "quark", "global_quant_config": obj{
			"weight":        []obj{{"dtype": "fp8_e4m3", "qscheme": "per_tensor"}, {"dtype": "int4", "qscheme": "per_channel"}},
			"input_tensors": obj{"dtype": "fp8_e4m3", "qscheme": "per_tensor"}}}}), all("int4_a8"), "bf16"},
		{"gptq", small.with(obj{"quantization_config": obj{"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": true}}), "attention=int4 dense_ffn=int4", "bf16"},
		{"awq", small.with(obj{"quantization_config": obj{"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": true}}), "attention=int4_g64_zp dense_ffn=int4_g64_zp", "bf16"},
		{"gptq per channel", small.with(obj{"quantization_config": obj{"quant_method": "gptq", "bits": 8, "group_size": -1, "sym": true}}), "attention=int8_a16 dense_ffn=int8_a16", "bf16"},
		{"bitsandbytes", small.with(obj{"quantization_config": obj{"quant_method": "bitsandbytes", "load_in_4bit": true}}), "attention=int4_g64 dense_ffn=int4_g64", "bf16"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, w, err := Import(Source{Path: "config.json", Config: tt.in.json(t)})
			if err != nil {
				t.Fatal(err)
			}
			if got := formatsOf(a); got != tt.want {
				t.Errorf("formats %q, want %q (warnings %v)", got, tt.want, w)
			}
			if got := a.KV().Name; got != tt.kv {
				t.Errorf("cache %s, want %s", got, tt.kv)
			}
		})
	}
}

// A class whose members are stored in two formats keeps the mean width.
func TestImportMixedClass(t *testing.T) {
	a, w, err := Import(Source{Path: "config.json", Config: small.with(obj{"quantization_config": obj{
		"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": []string{"*q_proj", "*k_proj", "*v_proj"}}}).json(t)})
	if err != nil {
		t.Fatal(err)
	}
	// q 64x64 + k, v 64x16 at 16 bits = 6144; o 64x64 = 4096 at 4.5 bits.
	want := (6144*16 + 4096*4.5) / 10240
	if got := a.Formats[models.ClassAttention].BitsPerElement(); got != want {
		t.Errorf("%v bits per weight, want %v", got, want)
	}
	if !hasWarning(w, "attention weights are stored in several formats") {
		t.Errorf("no warning: %v", w)
	}
}

func TestImportUnknownModules(t *testing.T) {
	_, w, err := Import(Source{Path: "config.json", Config: small.with(obj{"quantization_config": block.with(obj{"modules_to_not_convert": []string{"flux_capacitor", "re:(?!x)"}})}).json(t)})
	if err != nil {
		t.Fatal(err)
	}
	if !hasWarning(w, "flux_capacitor") || !hasWarning(w, "skipped pattern") {
		t.Errorf("warnings %v", w)
	}
}

// Trap 8: a list with tens of thousands of module names reads fast.
func TestImportLongList(t *testing.T) {
	data := longList(t)
	if len(data) < 3e6 {
		t.Fatalf("only %d bytes", len(data))
	}
	start := time.Now()
	a, _, err := Import(Source{Path: "config.json", Config: data})
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("took %v, want less than 1 s", d)
	}
	if got := formatsOf(a); got != "attention=mxfp8 routed_expert=nvfp4" {
		t.Errorf("formats %q", got)
	}
}

// longList builds a config whose quantisation names every expert matrix.
func longList(t testing.TB) []byte {
	layers := obj{}
	for l := range 63 {
		for e := range 128 {
			for _, w := range []string{"w1", "w2", "w3"} {
				layers[fmt.Sprintf("language_model.model.layers.%d.block_sparse_moe.experts.%d.%s.weight_quantizer_state_0", l, e, w)] = obj{"quant_algo": "NVFP4", "group_size": 16}
			}
		}
		for _, p := range []string{"q", "k", "v", "o"} {
			layers[fmt.Sprintf("language_model.model.layers.%d.self_attn.%s_proj", l, p)] = obj{"quant_algo": "MXFP8"}
		}
	}
	return smallMoE.with(obj{"num_hidden_layers": 63, "num_local_experts": 128, "quantization_config": obj{
		"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers}}).json(t)
}

func BenchmarkImportLongList(b *testing.B) {
	data := longList(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Import(Source{Path: "config.json", Config: data}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkImportSmall(b *testing.B) {
	data := smallMoE.json(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Import(Source{Path: "config.json", Config: data}); err != nil {
			b.Fatal(err)
		}
	}
}
