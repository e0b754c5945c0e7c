package kernel

import "infera/models"

// Family names the group of kernels that one efficiency curve describes.
type Family uint8

// The families: dense products by operand formats, expert products likewise,
// attention by phase and kind, the rest.
const (
	GEMMBF16             Family = iota
	GEMMFP8                     // fp8 with one scale per tensor, token or channel
	GEMMFP8Block                // fp8 with one scale per block (1x128, mxfp8)
	GEMMMXFP4                   // 4-bit (or 6-bit) floats on both sides
	GEMMInt8                    // int8 on both sides
	GEMMInt4                    // 4-bit (or 8-bit) weights, wide activations
	GEMMFP4FP8                  // fp4 weights, fp8 activations
	MoEBF16                     // expert products, as above
	MoEFP8                      //
	MoEFP8Block                 //
	MoEMXFP4                    //
	MoEInt8                     //
	MoEInt4                     //
	MoEFP4Weight                // fp4 weights, bf16 activations
	MoEFP4FP8                   //
	AttentionPrefillCore        // flash attention over a chunk
	AttentionPrefillMLA         // the same with expanded latent heads (192/128)
	AttentionDecodeCore         // split-KV paged decode
	AttentionDecodeMLA          // decode over absorbed latents
	RecurrentDecode             // one step of a recurrent state
	RecurrentPrefill            // chunked recurrent scan
	Streaming                   // element-wise passes
	numFamilies
)

const numMatrix = int(MoEFP4FP8) + 1

var familyNames = [numFamilies]string{
	"gemm_bf16", "gemm_fp8", "gemm_fp8_block", "gemm_mxfp4", "gemm_int8", "gemm_int4", "gemm_fp4_fp8",
	"moe_bf16", "moe_fp8", "moe_fp8_block", "moe_mxfp4", "moe_int8", "moe_int4", "moe_fp4_weight", "moe_fp4_fp8",
	"attention_prefill", "attention_prefill_mla", "attention_decode", "attention_decode_mla",
	"recurrent_decode", "recurrent_prefill", "streaming",
}

// String returns the key of the family in configs/kernels.
func (f Family) String() string {
	if f < numFamilies {
		return familyNames[f]
	}
	return "unknown"
}

// Families lists all families in order.
func Families() []Family {
	list := make([]Family, numFamilies)
	for i := range list {
		list[i] = Family(i)
	}
	return list
}

// GEMMFamily returns the curve that prices dense products with weights of
// format w.
func GEMMFamily(w models.Format) Family {
	switch w.Activation {
	case models.FP8:
		switch {
		case w.Element.Bits() < 8:
			return GEMMFP4FP8
		case w.Group > 0:
			return GEMMFP8Block
		}
		return GEMMFP8
	case models.FP4, models.FP6:
		return GEMMMXFP4
	case models.INT8:
		return GEMMInt8
	}
	if w.Element.Bits() <= 8 {
		return GEMMInt4
	}
	return GEMMBF16
}

// MoEFamily returns the curve that prices expert products with weights of
// format w.
func MoEFamily(w models.Format) Family {
	switch f := GEMMFamily(w); f {
	case GEMMFP8:
		return MoEFP8
	case GEMMFP8Block:
		return MoEFP8Block
	case GEMMMXFP4:
		return MoEMXFP4
	case GEMMInt8:
		return MoEInt8
	case GEMMFP4FP8:
		return MoEFP4FP8
	case GEMMInt4:
		if w.Element == models.FP4 || w.Element == models.FP6 {
			return MoEFP4Weight
		}
		return MoEInt4
	}
	return MoEBF16
}
