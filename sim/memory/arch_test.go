package memory

import (
	"sync"
	"testing"

	"infera/configs"
	"infera/internal/units"
	"infera/models"
	"infera/sim/hardware"
	"infera/sim/layout"
	"infera/sim/software"
)

// Formats of the checkpoints used here.
var (
	bf16  = models.Format{Name: "bf16", Element: models.BF16, Activation: models.BF16}
	fp32  = models.Format{Name: "fp32", Element: models.FP32, Activation: models.FP32}
	fp8   = models.Format{Name: "fp8", Element: models.FP8, Activation: models.FP8}
	fp8b  = models.Format{Name: "fp8_block", Element: models.FP8, Group: 128 * 128, ScaleBits: 32, Activation: models.FP8}
	mxfp4 = models.Format{Name: "mxfp4", Element: models.FP4, Group: 32, ScaleBits: 8, Activation: models.BF16}
	nvfp4 = models.Format{Name: "nvfp4", Element: models.FP4, Group: 16, ScaleBits: 8, Activation: models.FP4}
	int4  = models.Format{Name: "int4", Element: models.INT4, Group: 32, ScaleBits: 16, Activation: models.BF16}
)

// all gives every tensor class one format.
func all(f models.Format) (out [models.NumTensorClasses]models.Format) {
	for i := range out {
		out[i] = f
	}
	return out
}

func gqa(heads, kv, dim int) models.Attention {
	return models.Attention{Kind: models.AttentionGQA, Heads: heads, KVHeads: kv, KDim: dim, VDim: dim}
}

func swiglu(width int) models.FFN {
	return models.FFN{Kind: models.FFNDense, Intermediate: width, Gated: true}
}

// group appends n layers of a kind to an architecture.
func group(a *models.Architecture, n int, t models.Attention, f models.FFN) {
	k := uint8(len(a.Groups))
	a.Groups = append(a.Groups, models.LayerGroup{Count: n, Attention: t, FFN: f, Norms: 2})
	for range n {
		a.Pattern = append(a.Pattern, k)
	}
}

// Meta Llama 3.1, config.json of the three sizes.
func llama(name string, hidden, layers, heads, inter int) *models.Architecture {
	a := &models.Architecture{Name: name, Source: "config.json", Hidden: hidden, Vocab: 128256, MaxContext: 131072, Compute: models.BF16, Formats: all(bf16)}
	group(a, layers, gqa(heads, 8, 128), swiglu(inter))
	return a
}

func llama8B() *models.Architecture { return llama("llama-3.1-8b", 4096, 32, 32, 14336) }

// llama70BFP8 quantises the linear layers only (compressed-tensors
// FP8-dynamic); embedding and head stay in bf16.
func llama70BFP8() *models.Architecture {
	a := llama("llama-3.3-70b-fp8-dynamic", 8192, 80, 64, 28672)
	a.Formats[models.ClassAttention], a.Formats[models.ClassDenseFFN] = fp8, fp8
	return a
}

// kimiK2 is moonshotai/Kimi-K2-Thinking: routed experts in int4 with groups of
// 32, the rest in bf16.
func kimiK2() *models.Architecture {
	a := &models.Architecture{Name: "kimi-k2-thinking", Source: "config.json", Hidden: 7168, Vocab: 163840, MaxContext: 262144, Compute: models.BF16, Formats: all(bf16)}
	a.Formats[models.ClassRoutedExpert] = int4
	mla := models.Attention{Kind: models.AttentionMLA, Heads: 64, KVHeads: 64, KDim: 192, VDim: 128,
		MLA: models.MLA{QLoRA: 1536, KVLoRA: 512, Rope: 64, NoPE: 128}}
	group(a, 1, mla, swiglu(18432))
	group(a, 60, mla, models.FFN{Kind: models.FFNMoE, Gated: true, Experts: 384, TopK: 8, ExpertIntermediate: 2048, SharedIntermediate: 2048})
	return a
}

// deepseekV3 is deepseek-ai/DeepSeek-V3 with block fp8.
func deepseekV3() *models.Architecture {
	a := &models.Architecture{Name: "deepseek-v3", Source: "config.json", Hidden: 7168, Vocab: 129280, MaxContext: 163840, Compute: models.BF16, Formats: all(fp8b)}
	a.Formats[models.ClassEmbedding], a.Formats[models.ClassHead], a.Formats[models.ClassNorm], a.Formats[models.ClassRouter] = bf16, bf16, bf16, bf16
	mla := models.Attention{Kind: models.AttentionMLA, Heads: 128, KVHeads: 128, KDim: 192, VDim: 128,
		MLA: models.MLA{QLoRA: 1536, KVLoRA: 512, Rope: 64, NoPE: 128}}
	moe := models.FFN{Kind: models.FFNMoE, Gated: true, Experts: 256, TopK: 8, ExpertIntermediate: 2048, SharedIntermediate: 2048}
	group(a, 3, mla, swiglu(18432))
	group(a, 58, mla, moe)
	a.Draft = models.Draft{Layers: 1, Layer: models.LayerGroup{Count: 1, Attention: mla, FFN: moe, Norms: 2}, SharesEmbedding: true}
	return a
}

// gptOSS120B is openai/gpt-oss-120b: experts in mxfp4, half the layers with a
// window of 128.
func gptOSS120B() *models.Architecture {
	a := &models.Architecture{Name: "gpt-oss-120b", Source: "config.json", Hidden: 2880, Vocab: 201088, MaxContext: 131072, Compute: models.BF16, Formats: all(bf16)}
	a.Formats[models.ClassRoutedExpert] = mxfp4
	t := gqa(64, 8, 64)
	t.Bias, t.OutputBias, t.Sinks = true, true, true
	moe := models.FFN{Kind: models.FFNMoE, Gated: true, Experts: 128, TopK: 4, ExpertIntermediate: 2880, Bias: true}
	w := t
	w.Window = 128
	group(a, 18, w, moe)
	group(a, 18, t, moe)
	return a
}

// minimaxM3 is MiniMaxAI/MiniMax-M3: 60 layers, 57 of them with a block
// selector of width 128; experts in nvfp4 in nvidia/MiniMax-M3-NVFP4.
func minimaxM3() *models.Architecture {
	a := &models.Architecture{Name: "minimax-m3-nvfp4", Source: "config.json", Hidden: 6144, Vocab: 200064, MaxContext: 1048576, Compute: models.BF16, Formats: all(bf16)}
	a.Formats[models.ClassRoutedExpert] = nvfp4
	t := gqa(64, 4, 128)
	t.QKNorm = true
	sparse := t
	sparse.Sparse = models.Sparse{TopK: 2048, IndexHeads: 4, IndexDim: 128, Indexer: true, BlockTokens: 128}
	moe := models.FFN{Kind: models.FFNMoE, Gated: true, Experts: 128, TopK: 4, ExpertIntermediate: 3072, SharedIntermediate: 3072}
	group(a, 3, t, swiglu(12288))
	group(a, 57, sparse, moe)
	return a
}

// kimiK3 is moonshotai/Kimi-K3: 69 KDA and 24 latent-attention layers, 896
// routed experts of width 3072 behind a latent of 3584, in mxfp4.
func kimiK3() *models.Architecture {
	a := &models.Architecture{Name: "kimi-k3", Source: "config.json", Hidden: 7168, Vocab: 163840, MaxContext: 1048576, Compute: models.BF16, Formats: all(bf16), VisionParams: 400e6}
	a.Formats[models.ClassRoutedExpert] = mxfp4
	mla := models.Attention{Kind: models.AttentionMLA, Heads: 96, KVHeads: 96, KDim: 192, VDim: 128, OutputGate: true,
		MLA: models.MLA{QLoRA: 1536, KVLoRA: 512, Rope: 64, NoPE: 128}}
	kda := models.Attention{Kind: models.AttentionRecurrent, Recurrent: models.Recurrent{Kind: models.KDA, KHeads: 96, VHeads: 96,
		KDim: 128, VDim: 128, ConvKernel: 4, ConvChannels: 3 * 96 * 128, StateDType: models.FP32}}
	moe := models.FFN{Kind: models.FFNMoE, Gated: true, Experts: 896, TopK: 16, ExpertIntermediate: 3072, SharedIntermediate: 6144, LatentDim: 3584}
	group(a, 1, kda, swiglu(33792))
	group(a, 68, kda, moe)
	group(a, 24, mla, moe)
	return a
}

// qwen27B stands for the hybrid 27B Qwen models in fp8: 16 of 64 layers are
// full attention with 4 key/value heads of 256, the others a gated delta net
// of 48 heads with a 128 x 128 fp32 state.
func qwen27B() *models.Architecture {
	a := &models.Architecture{Name: "qwen3.5-27b-fp8", Source: "config.json", Hidden: 5120, Vocab: 248320, MaxContext: 262144, Compute: models.BF16, Formats: all(fp8b)}
	a.Formats[models.ClassEmbedding], a.Formats[models.ClassHead], a.Formats[models.ClassNorm] = bf16, bf16, bf16
	full := gqa(24, 4, 256)
	full.OutputGate = true
	gdn := models.Attention{Kind: models.AttentionRecurrent, Recurrent: models.Recurrent{Kind: models.GatedDelta, KHeads: 16, VHeads: 48,
		KDim: 128, VDim: 128, ConvKernel: 4, ConvChannels: 2*16*128 + 48*128, StateDType: models.FP32}}
	group(a, 48, gdn, swiglu(17408))
	group(a, 16, full, swiglu(17408))
	return a
}

// deepseekV4Pro is deepseek-ai/DeepSeek-V4-Pro: one key/value head of 512,
// layers that keep one entry per 4 or per 128 tokens, fp4 experts.
func deepseekV4Pro() *models.Architecture {
	a := &models.Architecture{Name: "deepseek-v4-pro", Source: "config.json", Hidden: 7168, Vocab: 129280, MaxContext: 1048576,
		Compute: models.BF16, Formats: all(fp8b), ResidualStreams: 4}
	a.Formats[models.ClassRoutedExpert] = mxfp4
	a.Formats[models.ClassEmbedding], a.Formats[models.ClassHead], a.Formats[models.ClassNorm] = bf16, bf16, fp32
	t := models.Attention{Kind: models.AttentionGQA, Heads: 128, KVHeads: 1, KDim: 512, VDim: 512, TiedKV: true, Window: 128,
		MLA: models.MLA{QLoRA: 1536, OutputLoRA: 1024, OutputGroups: 16, Rope: 64}}
	c4, c128 := t, t
	c4.Sparse = models.Sparse{TopK: 1024, IndexHeads: 64, IndexDim: 128, Indexer: true, Compress: 4}
	c128.Sparse = models.Sparse{Compress: 128}
	moe := models.FFN{Kind: models.FFNMoE, Gated: true, Experts: 384, TopK: 6, ExpertIntermediate: 3072, SharedIntermediate: 3072}
	group(a, 30, c4, moe)
	group(a, 31, c128, moe)
	a.Draft = models.Draft{Layers: 1, Layer: models.LayerGroup{Count: 1, Attention: t, FFN: moe, Norms: 2}, SharesEmbedding: true}
	return a
}

// scout is Llama-4-Scout: every layer a mixture of 16 experts and a shared one.
func scout() *models.Architecture {
	a := &models.Architecture{Name: "llama-4-scout", Source: "config.json", Hidden: 5120, Vocab: 202048, MaxContext: 131072, Compute: models.BF16, Formats: all(bf16)}
	group(a, 48, gqa(40, 8, 128), models.FFN{Kind: models.FFNMoE, Gated: true, Experts: 16, TopK: 1, ExpertIntermediate: 8192, SharedIntermediate: 8192})
	return a
}

// card returns a GPU of a size the driver reports.
func card(name, vendor, isa string, gib float64) *hardware.GPU {
	r := hardware.Rates{FP32: 1, BF16: 1, FP16: 1, FP8: 1, INT8: 1}
	if isa == "gfx950" || isa == "sm_100" {
		r.FP4, r.FP6 = 1, 1
	}
	return &hardware.GPU{Name: name, Vendor: vendor, ISA: isa, Capacity: units.Bytes(gib) * units.GiB, Peaks: r}
}

var (
	mi300x  = card("mi300x", "amd", "gfx942", 191.98)
	mi355x  = card("mi355x", "amd", "gfx950", 287.98)
	h100    = card("h100", "nvidia", "sm_90", 79.18)
	h200    = card("h200", "nvidia", "sm_90", 139.81)
	b200    = card("b200", "nvidia", "sm_100", 178.35)
	rtx3090 = card("rtx3090", "nvidia", "sm_86", 23.69)
	rtx4090 = card("rtx4090", "nvidia", "sm_89", 23.52)
)

func plain(tp int) layout.Layout { return layout.Layout{TP: tp, PP: 1, EP: 1, AttentionDP: 1} }

// engines loads the shipped engine files once.
var engines = sync.OnceValues(func() (*software.Catalog, error) { return software.Load(configs.FS) })

func defaults(t testing.TB, engine, release string, gpu *hardware.GPU) *software.Defaults {
	t.Helper()
	c, err := engines()
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Lookup(engine)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Release(release)
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.Defaults(r, gpu)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func sizer(t testing.TB, a *models.Architecture) *Sizer {
	t.Helper()
	s, err := New(a)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
