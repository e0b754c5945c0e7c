package quant

import (
	"errors"
	"strings"
	"testing"

	"infera/models"
	"infera/models/hf/hfjson"
)

// Every algorithm and name used in the package means a format.
func TestFormatTables(t *testing.T) {
	for algo, name := range algorithms {
		if _, err := models.ParseFormat(name); err != nil {
			t.Errorf("algorithm %s: %v", algo, err)
		}
	}
	for _, name := range []string{"fp8", "fp8_block", "fp8_channel", "mxfp8", "mxfp6", "mxfp4", "nvfp4", "int8", "int4"} {
		if mustFormat(name).IsZero() {
			t.Errorf("mustFormat(%q) is zero", name)
		}
	}
}

// tiny is a dense model of 2 layers without formats.
func tiny() *models.Architecture {
	return &models.Architecture{
		Name: "tiny", Hidden: 64, Vocab: 1000, Compute: models.BF16, Pattern: []uint8{0, 0},
		Groups: []models.LayerGroup{{
			Count:     2,
			Attention: models.Attention{Kind: models.AttentionGQA, Heads: 8, KVHeads: 2, KDim: 8, VDim: 8},
			FFN:       models.FFN{Kind: models.FFNDense, Intermediate: 128, Gated: true},
			Norms:     2,
		}},
	}
}

func parse(t testing.TB, s string) hfjson.Object {
	t.Helper()
	if s == "" {
		return nil
	}
	o, err := hfjson.Parse([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// The places where quantisation may be said, and which of them wins.
func TestReadPlaces(t *testing.T) {
	const fp8, int4 = `{"quantization_config": {"quant_method": "fp8"}}`, `{"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": true}}`
	for _, tt := range []struct {
		name, text, root, file string
		method, weights, cache string
	}{
		{"nowhere", "{}", "{}", "", "", "bf16", "bf16"},
		{"language model", fp8, "{}", "", "fp8", "fp8", "bf16"},
		{"root", "{}", fp8, "", "fp8", "fp8", "bf16"},
		{"language model before root", int4, fp8, "", "gptq", "int4", "bf16"},
		{"file", "{}", "{}", `{"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}`, "", "nvfp4", "fp8"},
		{"file without a frame", "{}", "{}", `{"quant_algo": "NVFP4"}`, "", "nvfp4", "bf16"},
		{"config before file, whose cache holds", int4, "{}", `{"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}`, "gptq", "int4", "fp8"},
	} {
		a := tiny()
		c := Config{Text: parse(t, tt.text), Root: parse(t, tt.root), File: parse(t, tt.file)}
		if err := Read(a, c, func(key, text string) { t.Errorf("%s: warning %s: %s", tt.name, key, text) }); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := c.Method(); got != tt.method {
			t.Errorf("%s: method %q, want %q", tt.name, got, tt.method)
		}
		for class, want := range map[models.TensorClass]string{models.ClassAttention: tt.weights, models.ClassDenseFFN: tt.weights, models.ClassHead: "bf16"} {
			if got := a.Formats[class].String(); got != want {
				t.Errorf("%s: %v in %s, want %s", tt.name, class, got, want)
			}
		}
		if got := a.KV().Name; got != tt.cache {
			t.Errorf("%s: cache in %s, want %s", tt.name, got, tt.cache)
		}
	}
}

func TestReadErrors(t *testing.T) {
	for in, want := range map[string]string{
		`{"quant_method": "magic"}`:                                            `unknown quant_method "magic"`,
		`{"bits": 4}`:                                                          "states no quant_method",
		`{"quant_method": "gptq", "bits": 3}`:                                  "3 bits, want 4 or 8",
		`{"quant_method": "gptq", "bits": -4}`:                                 "bits is -4",
		`{"quant_method": "fp8", "kv_cache_scheme": [1]}`:                      "kv_cache_scheme is a list of 1",
		`{"quant_method": "fp8", "weight_block_size": [0, 1]}`:                 "weight_block_size: 0",
		`{"quant_method": "fp8", "kv_cache_dtype": "fp9"}`:                     `kv_cache_dtype: unknown format "fp9"`,
		`{"quant_method": "modelopt", "quant_algo": "FP8", "ignore": [1]}`:     "ignored module 1 is not a string",
		`{"quant_method": "compressed-tensors", "config_groups": {"g": null}}`: "config_groups.g is not an object",
	} {
		o := hfjson.Object{"quantization_config": map[string]any(parse(t, in))}
		err := Read(tiny(), Config{Text: o, Root: o}, func(string, string) {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
		if strings.Contains(in, "fp9") && !errors.Is(err, models.ErrUnknownFormat) {
			t.Errorf("%s: %v is no ErrUnknownFormat", in, err)
		}
	}
}

// FuzzRead checks that no block crashes the reader, and that what it accepts
// leaves no class without a format.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"quant_method": "fp8", "modules_to_not_convert": ["lm_head", "re:.*mlp.*", "model.layers.1*"]}`))
	f.Add([]byte(`{"quant_method": "quark", "global_quant_config": {"weight": [{"dtype": "int4", "qscheme": "per_group", "group_size": 32}]}}`))
	f.Add([]byte(`{"quant_algo": "MIXED_PRECISION", "quantized_layers": {"model.layers.0.mlp": {"quant_algo": "NVFP4", "group_size": 16}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		block, err := hfjson.Parse(data)
		if err != nil {
			return
		}
		a := tiny()
		if err := Read(a, Config{File: block, Layers: 1}, func(string, string) {}); err != nil {
			return
		}
		for class, format := range a.Formats {
			if format.IsZero() || !(format.BitsPerElement() > 0) {
				t.Fatalf("%v in %+v", models.TensorClass(class), format)
			}
		}
	})
}
