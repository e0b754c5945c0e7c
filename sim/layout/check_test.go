package layout

import (
	"strings"
	"testing"

	"infera/models"
	"infera/sim/hardware"
)

// Shapes of published checkpoints, reduced to what splitting depends on.
var (
	bf16     = models.Format{Name: "bf16", Element: models.BF16, Activation: models.BF16}
	fp8Block = models.Format{Name: "fp8_block", Element: models.FP8, Group: 128 * 128, ScaleBits: 32, Activation: models.FP8}
	mxfp4    = models.Format{Name: "mxfp4", Element: models.FP4, Group: 32, ScaleBits: 8, Activation: models.BF16}
	int4     = models.Format{Name: "int4", Element: models.INT4, Group: 128, ScaleBits: 16, Activation: models.BF16}
)

func formats(f models.Format) (all [models.NumTensorClasses]models.Format) {
	for i := range all {
		all[i] = f
	}
	return all
}

func stack(name string, vocab int, format models.Format, groups ...models.LayerGroup) *models.Architecture {
	a := &models.Architecture{Name: name, Vocab: vocab, Groups: groups, Formats: formats(format), Compute: models.BF16}
	for i, g := range groups {
		for range g.Count {
			a.Pattern = append(a.Pattern, uint8(i))
		}
	}
	return a
}

func gqa(heads, kv, dim int) models.Attention {
	return models.Attention{Kind: models.AttentionGQA, Heads: heads, KVHeads: kv, KDim: dim, VDim: dim}
}

func dense(width int) models.FFN {
	return models.FFN{Kind: models.FFNDense, Intermediate: width, Gated: true}
}

func moe(experts, topK, width, shared int) models.FFN {
	return models.FFN{Kind: models.FFNMoE, Experts: experts, TopK: topK, ExpertIntermediate: width, SharedIntermediate: shared, Gated: true}
}

func llama70B() *models.Architecture {
	return stack("llama-70b", 128256, bf16, models.LayerGroup{Count: 80, Attention: gqa(64, 8, 128), FFN: dense(28672)})
}

func llamaWithHeads(heads, kv, dim int) *models.Architecture {
	return stack("llama", 128256, bf16, models.LayerGroup{Count: 80, Attention: gqa(heads, kv, dim), FFN: dense(28672)})
}

func deepSeek() *models.Architecture {
	mla := models.Attention{
		Kind: models.AttentionMLA, Heads: 128, KVHeads: 128, KDim: 192, VDim: 128,
		MLA: models.MLA{QLoRA: 1536, KVLoRA: 512, Rope: 64, NoPE: 128},
	}
	return stack("deepseek-v3", 129280, fp8Block,
		models.LayerGroup{Count: 3, Attention: mla, FFN: dense(18432)},
		models.LayerGroup{Count: 58, Attention: mla, FFN: moe(256, 8, 2048, 2048)})
}

func qwen235B() *models.Architecture {
	return stack("qwen3-235b-fp8", 151936, fp8Block, models.LayerGroup{Count: 94, Attention: gqa(64, 4, 128), FFN: moe(128, 8, 1536, 0)})
}

func gptOSS() *models.Architecture {
	a := stack("gpt-oss-120b", 201088, bf16, models.LayerGroup{Count: 36, Attention: gqa(64, 8, 64), FFN: moe(128, 4, 2880, 0)})
	a.Formats[models.ClassRoutedExpert] = mxfp4
	return a
}

// hybrid has the head counts of Qwen3-Next-80B-A3B.
func hybrid() *models.Architecture {
	delta := models.Attention{Kind: models.AttentionRecurrent, Recurrent: models.Recurrent{
		Kind: models.GatedDelta, KHeads: 16, VHeads: 32, KDim: 128, VDim: 128, ConvKernel: 4, ConvChannels: 8192,
	}}
	return stack("qwen3-next", 151936, bf16,
		models.LayerGroup{Count: 36, Attention: delta, FFN: moe(512, 10, 512, 512)},
		models.LayerGroup{Count: 12, Attention: gqa(16, 2, 256), FFN: moe(512, 10, 512, 512)})
}

func lay(tp, pp, ep, dp int) Layout { return Layout{TP: tp, PP: pp, EP: ep, AttentionDP: dp} }

func codes(vs []Violation) string {
	var s []string
	for _, v := range vs {
		c := v.Code
		if v.Note {
			c = "(" + c + ")"
		}
		s = append(s, c)
	}
	return strings.Join(s, " ")
}

func TestCheck(t *testing.T) {
	withCP := func(l Layout, cp int) Layout { l.DecodeCP = cp; return l }
	withExtra := func(l Layout, n int) Layout { l.RedundantExperts = n; return l }
	withFormat := func(a *models.Architecture, f models.Format) *models.Architecture { a.Formats = formats(f); return a }
	for _, tt := range []struct {
		name string
		a    *models.Architecture
		l    Layout
		want string // codes, notes in brackets
		say  string // part of the first finding
	}{
		{"one GPU", llama70B(), lay(1, 1, 1, 1), "", ""},
		{"tp8", llama70B(), lay(8, 1, 1, 1), "", ""},
		{"kv replicated", llama70B(), lay(16, 1, 1, 1), "(kv_replicated)", "8 KV heads on attention TP 16: each is stored on 2 ranks"},
		// 64 = 5 x 12 + 4; 28672 = 2389 x 12 + 4.
		{"tp12", llama70B(), lay(12, 1, 1, 1), "tp_heads tp_ffn_width", "64 query heads do not divide by attention TP 12; attention TP 8 or 16"},
		{"dp in tp", llama70B(), lay(8, 1, 1, 4), "", ""},
		{"dp not in tp", llama70B(), lay(8, 1, 1, 3), "attention_dp_tp", "attention DP 3 does not divide TP 8; attention DP 2 or 4"},
		{"zero", llama70B(), lay(0, 1, 1, 1), "layout_count", "TP is 0; 1 to 4096 are possible"},
		{"negative", llama70B(), lay(1, -2, 1, 0), "layout_count layout_count", "PP is -2"},
		{"huge", llama70B(), lay(1<<40, 1, 1, 1), "layout_count", "TP is 1099511627776"},
		{"too many GPUs", llama70B(), lay(4096, 1024, 1, 1), "layout_count", "a replica of 4194304 GPUs"},
		{"pp81", llama70B(), lay(1, 81, 1, 1), "pp_layers", "PP 81 exceeds the 80 layers; PP 80 or less"},
		{"ep on dense", llama70B(), lay(8, 1, 8, 1), "ep_dense", "llama-70b has no routed experts to spread over EP 8"},
		// Six heads of keys on four ranks: neither 6 % 4 nor 4 % 6 is 0.
		{"kv heads", stack("x", 64, bf16, models.LayerGroup{Count: 1, Attention: gqa(24, 6, 128), FFN: dense(4096)}), lay(4, 1, 1, 1),
			"tp_kv_heads", "6 KV heads neither divide by attention TP 4 nor into it; attention TP 3 or 6"},

		// Expert shard 2048/16 = 128 is one block, 2048/32 = 64 is half of one;
		// so is the shared expert's. 18432/32 = 576 = 4.5 blocks.
		{"deepseek tp8", deepSeek(), lay(8, 1, 1, 1), "", ""},
		{"deepseek tp16", deepSeek(), lay(16, 1, 1, 1), "", ""},
		{"deepseek tp32", deepSeek(), lay(32, 1, 1, 1), "tp_quant_block tp_quant_block tp_quant_block",
			"18432 feed-forward columns over attention TP 32 are 576 per rank, not a multiple of the 128-column block of fp8_block; attention TP 24 or 36"},
		{"deepseek tp8 ep8", deepSeek(), lay(8, 1, 8, 1), "", ""},
		{"deepseek dp8 ep8", deepSeek(), lay(8, 1, 8, 8), "", ""},
		{"deepseek wide ep", deepSeek(), lay(8, 1, 32, 8), "", ""},
		{"deepseek ep12", deepSeek(), lay(8, 1, 12, 8), "ep_tp", "EP 12 neither divides TP 8 nor is a multiple of it; EP 8 or 16"},
		{"deepseek ep320", deepSeek(), withExtra(lay(1, 1, 320, 1), 64), "", ""},
		{"deepseek ep24", deepSeek(), lay(8, 1, 24, 8), "ep_experts", "256 experts and 0 redundant ones do not divide by EP 24; EP 16 or 32, or 8 redundant experts"},
		{"redundant without ep", deepSeek(), withExtra(lay(8, 1, 1, 1), 8), "ep_experts", "EP above 1, or no redundant experts"},
		{"too redundant", deepSeek(), withExtra(lay(8, 1, 8, 1), 264), "ep_experts", "264 redundant experts are more than the 256 experts"},

		// 1536/8 = 192 = 1.5 blocks; 1536/4 = 384 = 3 blocks.
		{"qwen fp8 tp8", qwen235B(), lay(8, 1, 1, 1), "tp_quant_block (kv_replicated)", "1536 expert columns over TP/EP 8 are 192 per rank, not a multiple of the 128-column block of fp8_block; TP/EP 6 or 12 (EP 8 keeps experts whole)"},
		{"qwen fp8 tp4", qwen235B(), lay(4, 1, 1, 1), "", ""},
		{"qwen fp8 tp8 ep8", qwen235B(), lay(8, 1, 8, 1), "(kv_replicated)", ""},
		{"qwen fp8 tp8 ep2", qwen235B(), lay(8, 1, 2, 1), "(kv_replicated)", ""},

		// 2880/8 = 360 -> 384 = 12 groups of 32; 2880/2 = 1440 = 45 groups.
		{"gpt-oss tp8", gptOSS(), lay(8, 1, 1, 1), "(width_padded)", "360 expert columns per rank are padded to 384"},
		{"gpt-oss tp2", gptOSS(), lay(2, 1, 1, 1), "", ""},
		// 2880/16 = 180 = 1.4 groups of 128.
		{"int4 cannot pad", withFormat(gptOSS(), int4), lay(16, 1, 1, 1), "tp_quant_block (kv_replicated)", "2880 expert columns over TP/EP 16 are 180 per rank"},
		// One head of 64 columns is half a tile, of keys and of queries.
		{"half a head tile", withFormat(llamaWithHeads(64, 8, 64), fp8Block), lay(8, 1, 1, 1), "tp_quant_block", "64 key columns per rank at attention TP 8"},
		{"half a head group", withFormat(llamaWithHeads(64, 8, 64), int4), lay(64, 1, 1, 1), "tp_quant_block tp_quant_block (kv_replicated)", "64 attention output columns per rank"},

		{"hybrid tp8", hybrid(), lay(8, 1, 1, 1), "(kv_replicated)", "2 KV heads on attention TP 8"},
		{"hybrid tp32", hybrid(), lay(32, 1, 1, 1), "tp_recurrent_heads tp_heads", "16 key and 32 value heads of the gated_delta layers do not divide by attention TP 32; attention TP 16"},

		// 16 ranks over 8 heads: two copies. MLA has one latent: 8 copies.
		{"decode cp2", llama70B(), withCP(lay(16, 1, 1, 1), 2), "(kv_replicated)", ""},
		{"decode cp4", llama70B(), withCP(lay(16, 1, 1, 1), 4), "decode_cp (kv_replicated)", "decode CP 2"},
		{"decode cp mla", deepSeek(), withCP(lay(8, 1, 1, 1), 8), "", ""},
		{"decode cp without copies", llama70B(), withCP(lay(8, 1, 1, 1), 2), "decode_cp", "has 1; decode CP 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Check(tt.a, tt.l, nil)
			if codes(got) != tt.want {
				t.Fatalf("Check(%v) = %s, want %s\n%v", tt.l, codes(got), tt.want, got)
			}
			if tt.say != "" && !strings.Contains(got[0].String(), tt.say) {
				t.Errorf("Check(%v) says %q, want %q in it", tt.l, got[0], tt.say)
			}
		})
	}
}

func TestCheckPlacement(t *testing.T) {
	node := &hardware.Fabric{Name: "xgmi", DomainSize: 8}
	for _, tt := range []struct {
		a    *models.Architecture
		l    Layout
		want string
	}{
		{llama70B(), lay(8, 2, 1, 1), ""},
		{llama70B(), lay(16, 1, 1, 1), "(kv_replicated) (crosses_domain)"},
		{deepSeek(), lay(8, 1, 32, 8), "(crosses_domain)"},
		{llama70B(), lay(2, 3, 1, 1), "(idle_gpus)"}, // 6 of 8
		{llama70B(), lay(2, 1, 1, 1), ""},            // four replicas share the node
	} {
		if got := codes(Check(tt.a, tt.l, node)); got != tt.want {
			t.Errorf("Check(%s, %v) = %s, want %s", tt.a.Name, tt.l, got, tt.want)
		}
	}
}

func TestPlace(t *testing.T) {
	node := &hardware.Fabric{DomainSize: 8}
	for _, tt := range []struct {
		l    Layout
		want Placement
	}{
		{lay(8, 1, 1, 1), Placement{Domains: 1, TP: Span{8, 8, 1}, AttentionTP: Span{8, 8, 1}, EP: Span{1, 1, 1}}},
		{lay(4, 4, 4, 4), Placement{Domains: 2, TP: Span{4, 4, 1}, AttentionTP: Span{1, 1, 1}, EP: Span{4, 4, 1}, NearHops: 2, FarHops: 1}},
		{lay(16, 2, 16, 2), Placement{Domains: 4, TP: Span{16, 8, 2}, AttentionTP: Span{8, 8, 1}, EP: Span{16, 8, 2}, FarHops: 1}},
		{lay(1, 1, 12, 1), Placement{Domains: 2, Idle: 4, TP: Span{1, 1, 1}, AttentionTP: Span{1, 1, 1}, EP: Span{12, 8, 2}}},
	} {
		if got := Place(tt.l, node); got != tt.want {
			t.Errorf("Place(%v) = %+v, want %+v", tt.l, got, tt.want)
		}
	}
}
