package models

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"infera/configs"
	"infera/internal/strict"
)

// TestIndex keeps models/index.yaml in step with the preset files.
func TestIndex(t *testing.T) {
	data, err := fs.ReadFile(configs.FS, "models/index.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var index indexFile
	if err := strict.YAML("index.yaml", data, &index); err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(configs.FS, "models/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if f == "models/index.yaml" || f == "models/defaults.yaml" {
			continue
		}
		n++
		data, err := fs.ReadFile(configs.FS, f)
		if err != nil {
			t.Fatal(err)
		}
		a, err := ParsePreset(f, data)
		if err != nil {
			t.Error(err)
			continue
		}
		if want := "models/" + a.Name + ".yaml"; f != want {
			t.Errorf("%s holds %s", f, a.Name)
		}
		if diff := cmp.Diff(a.Aliases, index.Models[a.Name]); diff != "" {
			t.Errorf("%s: aliases (-file +index):\n%s", f, diff)
		}
		checkRoundTrip(t, a)
	}
	if n != len(index.Models) || n < 60 {
		t.Errorf("%d preset files, %d index entries, want as many and at least 60", n, len(index.Models))
	}
}

func TestLookup(t *testing.T) {
	c := catalog(t)
	for name, want := range map[string]string{
		"gpt_oss_120B": "gpt-oss-120b", "GPT-OSS-120B": "gpt-oss-120b", "openai/gpt-oss-120b": "gpt-oss-120b", "gpt_oss_20B": "gpt-oss-20b",
		"deepseek_v3": "deepseek-v3", "deepseek_v2": "deepseek-v2", "deepseek_v2_lite": "deepseek-v2-lite", "DeepSeek-R1/V3": "deepseek-r1",
		"kimi_k2": "kimi-k2", "Kimi-K2/K2.5": "kimi-k2.5", "glm4_7": "glm-4.7", "glm5": "glm-5",
		"llama3.1_8B": "llama-3.1-8b", "llama3_8B": "llama-3-8b", "llama2_7B": "llama-2-7b", "llama2_13B": "llama-2-13b", "llama2_70B": "llama-2-70b",
		"llama3.1_70B": "llama-3.1-70b", "llama3.3_70B": "llama-3.3-70b", "llama3.1_405B": "llama-3.1-405b", "llama3.2_1B": "llama-3.2-1b", "llama3.2_3B": "llama-3.2-3b",
		"mixtral_8x7B": "mixtral-8x7b", "mixtral_8x22B": "mixtral-8x22b", "grok1": "grok-1", "grok2": "grok-2",
		"qwen2.5_3B": "qwen2.5-3b", "qwen2.5_72B": "qwen2.5-72b", "qwen3_4B": "qwen3-4b", "qwen3_32B": "qwen3-32b",
		"qwen3_30B_A3B": "qwen3-30b-a3b", "qwen3_235B_A22B": "qwen3-235b-a22b", "qwen3_5_35B_A3B": "qwen3.5-35b-a3b", "minimax_m2.5": "minimax-m2.5",
		"lfm2_8B_A1B": "lfm2-8b-a1b", "moe_1T": "moe-1t", "moe_515B": "moe-515b", "kimi_k3": "kimi-k3", "minimax_m3": "minimax-m3", "qwen3_5_397B": "qwen3.5-397b-a17b",
		// group names of published serving results
		"MiniMax-M2.5": "minimax-m2.5", "MiniMax-M3": "minimax-m3", "Qwen3.5-397B-A17B": "qwen3.5-397b-a17b", "Llama-3.x-70B": "llama-3.1-70b",
		"DeepSeek-V4-Pro": "deepseek-v4-pro", "DeepSeek-V4-Flash": "deepseek-v4-flash", "DeepSeek-V3.2": "deepseek-v3.2", "GLM-5.1": "glm-5.1", "GLM-5.2": "glm-5.2",
		"Qwen3-235B-A22B-FP8": "qwen3-235b-a22b-fp8", "Qwen3-VL-235B-A22B": "qwen3-vl-235b-a22b", "Qwen3-Next-80B-A3B": "qwen3-next-80b-a3b",
		"Llama-2-70B": "llama-2-70b", "Nemotron-Nano-30B": "nemotron-3-nano-30b-a3b", "Ministral-3-8B": "ministral-3-8b", "Kimi-K3": "kimi-k3",
	} {
		a, err := c.Lookup(name)
		if err != nil {
			t.Errorf("Lookup(%q): %v", name, err)
			continue
		}
		if a.Name != want {
			t.Errorf("Lookup(%q) = %s, want %s", name, a.Name, want)
		}
	}
	if !slices.IsSorted(c.Names()) {
		t.Error("Names() is not sorted")
	}
}

func TestLookupUnknown(t *testing.T) {
	c := catalog(t)
	_, err := c.Lookup("gpt-oss-12b")
	if !errors.Is(err, ErrUnknownModel) || !strings.Contains(err.Error(), "did you mean") {
		t.Errorf("Lookup() = %v, want ErrUnknownModel with a hint", err)
	}
	if _, err := c.Lookup(""); !errors.Is(err, ErrUnknownModel) {
		t.Errorf("Lookup(\"\") = %v", err)
	}
}

func TestLoadCatalogErrors(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"clash":   {"models:\n  a-1: [x]\n  b: [X]\n", `"X" names both a-1 and b`},
		"unknown": {"model: {}\n", "unknown key"},
	} {
		_, err := LoadCatalog(fstest.MapFS{"models/index.yaml": {Data: []byte(tt.in)}})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := LoadCatalog(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no index: %v", err)
	}
}

const goodPreset = `name: tiny
family: llama
source: https://example.org/tiny
hidden: 64
vocab: 1000
groups:
  - attention: {kind: gqa, heads: 8, kv_heads: 2, head_dim: 8}
    ffn: {kind: dense, width: 128, with: [gated]}
    norms: 2
pattern: 4*0
compute: bf16
formats: {dense_ffn: fp8_block}
`

func TestParsePreset(t *testing.T) {
	a, err := ParsePreset("tiny.yaml", []byte(goodPreset))
	if err != nil {
		t.Fatal(err)
	}
	if a.Layers() != 4 || a.Formats[ClassDenseFFN].Name != "fp8_block" || a.Formats[ClassHead].Element != BF16 {
		t.Errorf("read %+v", a)
	}
	for _, tt := range []struct{ from, to, want string }{
		{"heads: 8", "haeds: 8", `unknown key "haeds"; did you mean "heads"?`},
		{"hidden: 64", "hidden: 0", "hidden is 0"},
		{"hidden: 64", "hidden: 99999999999", "hidden is 99999999999"},
		{"kind: gqa", "kind: gpa", `attention kind "gpa"; known: none, gqa`},
		{"kind: dense", "kind: sparse", `ffn kind "sparse"`},
		{"width: 128, ", "", "intermediate is 0"},
		{"fp8_block", "fp9", `unknown format "fp9"`},
		{"dense_ffn: ", "dens: ", `unknown tensor class "dens"`},
		{"4*0", "4*1", "layer 0 is of group 1 of 1"},
		{"4*0", "4*(0", "a parenthesis is not closed"},
		{"4*0", "999999*0", "999999 times 1 layers"},
		{"[gated]", "[gate]", `ffn with "gate"; known: gated`},
		{"source: https://example.org/tiny\n", "", "needs a name and a source"},
		{"compute: bf16", "compute: fp8", "compute dtype fp8"},
	} {
		_, err := ParsePreset("tiny.yaml", []byte(strings.Replace(goodPreset, tt.from, tt.to, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, ErrBadConfig) {
			t.Errorf("%s -> %s: %v, want %q", tt.from, tt.to, err, tt.want)
		}
	}
}

func TestPattern(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "3*0 2*1": "00011", "2*(3*0 1)": "00010001", "0 2*(0 1) 2": "001012", "2*(2*(0 1))": "01010101",
	} {
		got, err := parsePattern(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		var s strings.Builder
		for _, g := range got {
			s.WriteByte('0' + g)
		}
		if s.String() != want {
			t.Errorf("%q = %s, want %s", in, s.String(), want)
		}
	}
	for _, in := range []string{"x", "1*", "*1", "(", ")", "((((((0))))))", "300", "0*1", "4096*4096*1", "4000*(2*0)"} {
		if _, err := parsePattern(in); err == nil {
			t.Errorf("%q was accepted", in)
		}
	}
}

// FuzzPattern checks that writing and reading a pattern gives it back.
func FuzzPattern(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 0, 1, 2})
	f.Add([]byte{1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, layers []byte) {
		if len(layers) == 0 || len(layers) > 300 {
			return
		}
		for i := range layers {
			layers[i] %= 5
		}
		s := formatPattern(layers)
		got, err := parsePattern(s)
		if err != nil || string(got) != string(layers) {
			t.Fatalf("%v -> %q -> %v, %v", layers, s, got, err)
		}
	})
}

func FuzzParsePreset(f *testing.F) {
	f.Add([]byte(goodPreset))
	f.Add([]byte("name: a\nsource: b\nhidden: 1\nvocab: 1\ngroups: [{attention: {kind: recurrent, type: kda, k_heads: 1}}]\npattern: 0\ncompute: bf16\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ParsePreset("p.yaml", data)
		if err != nil {
			if !errors.Is(err, ErrBadConfig) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		checkCounts(t, a)
	})
}

// checkRoundTrip writes a model as a preset and reads it back.
func checkRoundTrip(t *testing.T, a *Architecture) {
	t.Helper()
	data, err := MarshalPreset(a)
	if err != nil {
		t.Fatal(err)
	}
	b, err := ParsePreset("preset.yaml", data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("preset differs (-model +read back):\n%s", diff)
	}
}

func checkCounts(t *testing.T, a *Architecture) {
	t.Helper()
	c := a.Params()
	if c.Total <= 0 || c.Active <= 0 || a.WeightBytes() <= 0 || a.KVBytesPerToken(Format{}) < 0 || a.StateBytesPerSequence() < 0 {
		t.Fatalf("counts %+v", c)
	}
}

func BenchmarkLoadCatalog(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := LoadCatalog(configs.FS); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	c := catalog(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Lookup("deepseek_v3"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParams(b *testing.B) {
	a := preset(b, "deepseek-v3")
	b.ReportAllocs()
	for b.Loop() {
		_ = a.Params()
	}
}
