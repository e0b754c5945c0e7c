package memory

import (
	"fmt"
	"os"
	"testing"

	"infera/models"
	"infera/sim/layout"
)

func TestProbeHF(t *testing.T) {
	fsys := os.DirFS("/work/shared/data/hf_configs")
	get := func(n string) *Sizer {
		a, w, err := models.ImportFS(fsys, n)
		if err != nil {
			t.Error(n, err)
			return nil
		}
		_ = w
		return sizer(t, a)
	}
	show := func(name string, r Request) {
		s := get(name)
		if s == nil {
			return
		}
		rep, err := s.Report(&r)
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Printf("== %s params %.4g groups %d\n%s weights %.2f GiB(%.1f GB) act %.2f pool %.2f kv/tok %.0f state %.2fMiB tokens %d one %.2f ok %v %s\n", name, float64(s.arch.Params().Total), len(s.arch.Groups), rep, rep.Weights.GiB(), rep.Weights.GB(), rep.Activation.GiB(), rep.Pool.GiB(), float64(rep.KVBytesPerToken), float64(rep.StateBytesPerSequence)/(1<<20), rep.KVCapacityTokens, rep.OneRequest.GiB(), rep.OK, rep.Short)
	}
	show("openai--gpt-oss-120b.json", Request{GPU: h100, Layout: plain(1), Engine: defaults(t, "vllm", "0.10.1", h100)})
	show("moonshotai--Kimi-K2-Instruct.json", Request{GPU: h200, Layout: plain(8), Engine: defaults(t, "vllm", "0.11.0", h200)})
	show("moonshotai--Kimi-K2.5.json", Request{GPU: h200, Layout: plain(8), Engine: defaults(t, "vllm", "0.11.0", h200)})
	show("nvidia--MiniMax-M3-NVFP4.json", Request{GPU: b200, Layout: plain(2), Engine: defaults(t, "vllm", "0.25.0", b200), KVFormat: fp8, MemoryFraction: .9})
	show("nvidia--MiniMax-M3-NVFP4.json", Request{GPU: b200, Layout: plain(8), Engine: defaults(t, "vllm", "0.25.0", b200), BlockTokens: 128})
	show("moonshotai--Kimi-K3.json", Request{GPU: mi355x, Layout: plain(8), Engine: defaults(t, "sglang", "0.5.15", mi355x), MaxContext: 32768, MemoryFraction: .8})
	show("deepseek-ai--DeepSeek-V4-Pro.json", Request{GPU: mi300x, Layout: plain(8), Engine: defaults(t, "vllm", "0.28.0", mi300x), KVFormat: fp8})
	show("deepseek-ai--DeepSeek-V4-Pro.json", Request{GPU: mi355x, Layout: layout.Layout{TP: 4, EP: 4, PP: 1, AttentionDP: 4}, Engine: defaults(t, "vllm", "0.26.0", mi355x), KVFormat: fp8, SpeculativeTokens: 1})
	show("deepseek-ai--DeepSeek-V4-Flash.json", Request{GPU: b200, Layout: layout.Layout{TP: 8, EP: 8, PP: 1, AttentionDP: 1}, Engine: defaults(t, "vllm", "0.26.0", b200), KVFormat: fp8, MemoryFraction: .95})
	show("deepseek-ai--DeepSeek-V4-Flash.json", Request{GPU: b200, Layout: layout.Layout{TP: 8, EP: 8, PP: 1, AttentionDP: 8}, Engine: defaults(t, "vllm", "0.26.0", b200), KVFormat: fp8, MemoryFraction: .95})
	show("deepseek-ai--DeepSeek-V3.2.json", Request{GPU: mi300x, Layout: plain(8), Engine: defaults(t, "sglang", "0.5.12", mi300x), KVFormat: fp8})
	show("Qwen--Qwen3.5-27B.json", Request{GPU: card("h20", "nvidia", "sm_90", 95.6), Layout: plain(1), Engine: defaults(t, "vllm", "0.19.0", h200), MaxContext: 32768, MaxSequences: 16, MaxBatchedTokens: 16384, MemoryFraction: .9})
	show("zai-org--GLM-5-FP8.json", Request{GPU: mi355x, Layout: plain(8), Engine: defaults(t, "sglang", "0.5.12", mi355x)})
	show("zai-org--GLM-5.2-FP8.json", Request{GPU: mi355x, Layout: plain(8), Engine: defaults(t, "sglang", "0.5.12", mi355x), KVFormat: fp8, MemoryFraction: .85})
}
