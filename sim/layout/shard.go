package layout

import (
	"math"

	"infera/models"
)

// ceilDiv returns the smallest integer not below n/d. Shards of an illegal
// layout are rounded up, so they still cover the whole.
func ceilDiv(n, d int) int { return (n + d - 1) / max(1, d) }

// HeadsPerRank returns the query heads of a layer on one rank; for a recurrent
// layer, its value heads.
func HeadsPerRank(at models.Attention, l Layout) int {
	if at.Kind == models.AttentionRecurrent {
		return ceilDiv(at.Recurrent.VHeads, l.AttentionTP())
	}
	return ceilDiv(at.Heads, l.AttentionTP())
}

// KVHeads returns the key/value heads that the cache of a layer holds before
// any parallelism: 1 for the latent of MLA, the key heads (Mamba-2 groups) of a
// recurrent layer.
func KVHeads(at models.Attention) int {
	switch at.Kind {
	case models.AttentionMLA:
		return 1
	case models.AttentionRecurrent:
		return at.Recurrent.KHeads
	case models.AttentionNone:
		return 0
	default:
		return at.KVHeads
	}
}

// KVHeadsPerRank returns the key/value heads of a layer on one rank. It is at
// least 1 for a layer that has any: fewer heads than ranks are replicated.
func KVHeadsPerRank(at models.Attention, l Layout) int {
	return ceilDiv(KVHeads(at), l.AttentionTP())
}

// KVReplication returns on how many ranks of an attention group each key/value
// head of a layer is stored: 1 = sharded, AttentionTP = replicated everywhere.
func KVReplication(at models.Attention, l Layout) int {
	n := KVHeads(at)
	if n == 0 {
		return 1
	}
	return max(1, l.AttentionTP()/n)
}

// ExpertsPerRank returns the routed experts on the fullest rank, redundant
// copies included; 0 for a layer without experts.
func ExpertsPerRank(f models.FFN, l Layout) int {
	if f.Experts == 0 {
		return 0
	}
	return ceilDiv(f.Experts+l.RedundantExperts, max(1, l.EP))
}

// ExpertWidthPerRank returns the columns of one routed expert on a rank, in
// the given storage format: micro-scaled formats are padded to whole groups.
func ExpertWidthPerRank(f models.FFN, format models.Format, l Layout) int {
	return padded(ceilDiv(f.ExpertIntermediate, l.ExpertTP()), format)
}

// DenseWidthPerRank returns the columns of a dense feed-forward layer (or of
// the dense branch beside experts) on a rank.
func DenseWidthPerRank(f models.FFN, format models.Format, l Layout) int {
	return padded(ceilDiv(f.Intermediate, l.DenseTP()), format)
}

// SharedWidthPerRank returns the summed columns of the shared experts on a rank.
func SharedWidthPerRank(f models.FFN, format models.Format, l Layout) int {
	return padded(ceilDiv(f.SharedIntermediate, l.DenseTP()), format)
}

// vocabMultiple is what engines pad the vocabulary to before they split it
// (DEFAULT_VOCAB_PADDING_SIZE of vLLM and SGLang).
const vocabMultiple = 64

// VocabPerRank returns the rows of the embedding and of the head on one rank:
// the stored vocabulary padded to a multiple of 64, then split evenly.
func VocabPerRank(a *models.Architecture, l Layout) int {
	return ceilDiv(ceilDiv(max(a.Vocab, a.PaddedVocab), vocabMultiple)*vocabMultiple, l.DenseTP())
}

// Stage is one pipeline stage.
type Stage struct {
	First, Layers int // first layer and number of layers
	// Groups counts the layers per group of the architecture.
	Groups []int
	// Embedding is set on the first stage, Head (with the final norm, the
	// sampler and the drafter) on the last.
	Embedding, Head bool
}

// Stages splits the layers over the pipeline: evenly, the remainder one each
// to the first stages, since the last one also has the head.
func Stages(a *models.Architecture, l Layout) []Stage {
	n := max(1, l.PP)
	stages := make([]Stage, n)
	first := 0
	for i := range stages {
		count := a.Layers() / n
		if i < a.Layers()%n {
			count++
		}
		s := Stage{First: first, Layers: count, Groups: make([]int, len(a.Groups)), Embedding: i == 0, Head: i == n-1}
		for _, g := range a.Pattern[first : first+count] {
			if int(g) < len(s.Groups) {
				s.Groups[g]++
			}
		}
		stages[i] = s
		first += count
	}
	return stages
}

// block returns how many neighbouring columns of a tensor share a scale: the
// side of a square tile for two-dimensional blocks (fp8_block: 128 x 128), the
// group otherwise; 1 without groups.
func block(f models.Format) int {
	if !tiled(f) {
		return max(1, f.Group)
	}
	return int(math.Round(math.Sqrt(float64(f.Group))))
}

// tiled reports a format whose scales belong to square tiles. One-dimensional
// groups in use reach 256 elements; a longer one is a tile.
func tiled(f models.Format) bool { return f.Group > 1024 }

// microScaled reports a format with 8-bit group scales (mxfp8, mxfp6, mxfp4,
// nvfp4), whose shards kernels pad to whole groups. Tiles and groups of other
// formats cannot be padded after the fact: their scales are stored per tile.
func microScaled(f models.Format) bool { return f.Group > 0 && f.ScaleBits == 8 }

func padded(width int, f models.Format) int {
	if b := block(f); microScaled(f) && width > 0 {
		return ceilDiv(width, b) * b
	}
	return width
}
