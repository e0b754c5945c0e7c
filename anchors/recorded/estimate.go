package recorded

import (
	"infera/internal/units"
	"infera/models"
	"infera/sim/hardware"
)

// launch stands for what has no bound: the steps' and the requests' fixed host
// times, for a fit to move.
const launch units.Seconds = 1e-3

// Estimate returns what the hardware allows at best, for a fit to start from:
// bytes at the bandwidth and operations at the peak of the GPUs. Every step
// reads the weights and the cache, so that these cost that at least; operations
// may hide behind it. Recurrent and sparse layers count as full attention of
// their heads.
func Estimate(a *models.Architecture, g *hardware.GPU, e *Engine) *Start {
	tp, dp := float64(max(1, e.TensorParallel)), float64(max(1, e.DataParallel))
	bytes, params := a.ClassBytes(), a.Params()
	bandwidth, peak := float64(g.Bandwidth), float64(g.Peak(a.Compute))
	routed := bytes[models.ClassRoutedExpert]
	dense := a.WeightBytes() - routed
	if !a.Tied {
		dense -= bytes[models.ClassEmbedding] // of which a step reads few rows
	}
	// A multiply and an add per parameter and token; twice that per head
	// dimension and pair of tokens, for the scores and for the values.
	perToken := 2 * float64(params.Active) / tp / peak
	perPair := 0.0
	p := &Start{}
	p.Groups = int(dp)
	for i := range a.Groups {
		l := &a.Groups[i]
		perPair += 2 * float64(l.Count*l.Attention.Heads*(l.Attention.KDim+l.Attention.VDim)) / tp / peak
		if l.FFN.Kind == models.FFNMoE {
			p.Experts, p.TopK = l.FFN.Experts, l.FFN.TopK
		}
	}
	expertRanks := tp
	if e.ExpertParallel {
		expertRanks *= dp
	}
	p.Cost = [NumTerms]units.Seconds{
		TermStep:        units.Seconds(float64(dense) / tp / bandwidth),
		TermSequence:    units.Seconds(perToken / dp),
		TermCachedToken: units.Seconds(float64(a.KVBytesPerToken(a.KV())) / tp / dp / bandwidth),
		TermPromptToken: units.Seconds(perToken),
		TermPromptPair:  units.Seconds(perPair),
		TermPromptStep:  launch,
		TermPromptPiece: launch,
		TermExperts:     units.Seconds(float64(routed) / expertRanks / bandwidth),
		TermRequest:     launch,
	}
	p.Least[TermStep], p.Least[TermCachedToken] = p.Cost[TermStep], p.Cost[TermCachedToken]
	return p
}
