package hf

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"infera/internal/measured"
)

// sharedFS returns the data folder that may stand beside the repository, or
// skips the test.
func sharedFS(t testing.TB, sub string) fs.FS {
	t.Helper()
	return os.DirFS(filepath.Join(measured.Dir(t), sub))
}

// TestImportShared imports every published config at hand: all must be
// readable, survive the preset schema, and have the published size.
func TestImportShared(t *testing.T) {
	fsys := sharedFS(t, "hf_configs")
	names, err := fs.Glob(fsys, "*.json")
	if err != nil {
		t.Fatal(err)
	}
	published := map[string]float64{ // billions, main stack only
		"openai--gpt-oss-120b.json": 116.83, "openai--gpt-oss-20b.json": 20.91,
		"meta-llama--Meta-Llama-3.1-8B.json": 8.03, "meta-llama--Meta-Llama-3.1-70B.json": 70.55, "meta-llama--Meta-Llama-3.1-405B.json": 405.85,
		"deepseek-ai--DeepSeek-V3.json": 671, "deepseek-ai--DeepSeek-R1.json": 671, "deepseek-ai--DeepSeek-V4-Flash.json": 284,
		"Qwen--Qwen3-235B-A22B.json": 235.1, "Qwen--Qwen3-30B-A3B.json": 30.5, "Qwen--Qwen3-Coder-480B-A35B-Instruct.json": 480,
		"Qwen--Qwen3.5-397B-A17B.json": 397, "mistralai--Mixtral-8x7B-v0.1.json": 46.7, "mistralai--Mixtral-8x22B-v0.1.json": 140.6,
		"moonshotai--Kimi-K2-Instruct.json": 1026, "meta-llama--Llama-4-Scout-17B-16E-Instruct.json": 107.8,
		"meta-llama--Llama-4-Maverick-17B-128E-Instruct.json": 400.7, "zai-org--GLM-4.5-Air.json": 106.85, "zai-org--GLM-5.json": 744,
		"nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8.json": 120.6, "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.json": 31.6,
		"nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16.json": 550, "nvidia--Gemma-4-26B-A4B-NVFP4.json": 25.2,
	}
	for _, n := range names {
		if strings.Contains(n, "hf_quant_config") || strings.Contains(n, "fragment") {
			continue
		}
		t.Run(n, func(t *testing.T) {
			a, _, err := ImportFS(fsys, n)
			if err != nil {
				t.Fatal(err)
			}
			if want, ok := published[n]; ok {
				got := float64(a.Params().Total) / 1e9
				if math.Abs(got/want-1) > 0.01 {
					t.Errorf("%.2f B parameters, published %.2f", got, want)
				}
			}
			checkRoundTrip(t, a)
		})
	}
}

// TestImportSharedPartial checks that configs the manifest calls doubtful say so.
func TestImportSharedPartial(t *testing.T) {
	fsys := sharedFS(t, "hf_configs")
	for _, n := range []string{
		"MiniMaxAI--MiniMax-M3.json", "meta-llama--Llama-4-Scout-17B-16E-Instruct.json", "XiaomiMiMo--MiMo-7B-Base.json",
		"sgl-project--DeepSeek-V4-Pro-FP8.json", "stepfun-ai--Step-3.7-Flash.json", "Qwen--Qwen3-Coder-Next.partial.json",
	} {
		a, w, err := ImportFS(fsys, n)
		if err != nil {
			t.Errorf("%s: %v", n, err)
			continue
		}
		if !a.Partial || len(w) == 0 {
			t.Errorf("%s: Partial = %v with %d warnings, want true with at least one", n, a.Partial, len(w))
		}
	}
}
