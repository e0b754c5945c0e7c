package kernel

import "infera/models"

// queryTile is the number of query rows one workgroup of flash attention holds.
const queryTile = 128

// prefill is a [PrefillCurve] made ready for one part.
type prefill struct {
	ramp, perByte, perFLOP, inverse float64
	softmax, tail, prologue         float64
	overlap                         float64
	narrow, narrowRamp              float64
	invCU                           float64
	perCached                       float64 // s per byte re-read through the caches
	perGathered                     float64 // s per byte fetched for one query alone
}

// visible returns the sum over queries i = 1..n of smaller(context + i, limit):
// the number of scores of a causal chunk.
func visible(n, context, limit float64) float64 {
	whole := larger(0, smaller(n, limit-context)) // queries that see all before them
	return whole*smaller(limit, context+(whole+1)*0.5) + (n-whole)*limit
}

// PrefillAttention prices the attention core over one chunk (or over Sequences
// equal chunks in one launch): causal scores only, every query tile padded to
// 128 rows, softmax priced beside the two products, K and V re-read from the
// caches once per query tile.
func (m *Model) PrefillAttention(a PrefillAttention) Estimate {
	if !(a.Tokens > 0) || a.Heads <= 0 {
		return Estimate{}
	}
	c := &m.prefill[0]
	if a.MLA {
		c = &m.prefill[1]
	}
	sequences := larger(1, a.Sequences)
	context := larger(0, a.Context)
	all := context + a.Tokens
	limit := all
	if a.Window > 0 {
		limit = smaller(limit, float64(a.Window))
	}
	if a.TopK > 0 {
		limit = smaller(limit, a.TopK)
	}
	heads, dims := float64(a.Heads), float64(a.KDim+a.VDim)
	scores := visible(a.Tokens, context, limit)
	flops := 2 * sequences * heads * scores * dims

	// The diagonal, the far edge of a window and the ragged end are computed in
	// whole tiles: half a tile more per query, a whole one behind a window.
	tiles := stepUp(a.Tokens * (1.0 / queryTile))
	if group := heads / larger(1, float64(a.KVHeads)); group > 1 {
		// Short chunks pack the query heads of one KV head into a tile.
		tiles = smaller(tiles, stepUp(a.Tokens*group*(1.0/queryTile))/group)
	}
	edge := (0.5*queryTile + c.prologue) * a.Tokens
	if a.Window > 0 {
		edge += 0.5 * queryTile * larger(0, smaller(a.Tokens, all-limit))
	}
	padded := larger(scores+edge, tiles*queryTile*(scores/a.Tokens+c.prologue))
	longest := queryTile * (smaller(all+0.5*queryTile, limit+queryTile) + c.prologue)
	ramp := c.ramp
	perScore := (2*dims + c.softmax) * c.perFLOP
	if a.KV.Element.Bits() <= 8 && a.KV.Element != models.DTypeUnknown {
		perScore *= c.narrow
		ramp += c.narrowRamp
	}
	unit := longest * perScore
	arithmetic := larger(sequences*heads*padded*perScore*c.invCU+c.tail*unit, unit)

	// Only what the last query can still see is read from the cache.
	resident := all
	if a.Window > 0 {
		resident = smaller(resident, a.Tokens+float64(a.Window))
	}
	entry := float64(a.KVHeads) * dims
	if a.MLA && a.KVHeads == 1 && a.Heads > 1 {
		entry = float64(a.KDim)
	}
	perToken := entry * a.KV.BitsPerElement() * 0.125
	if a.TopK > 0 {
		// A chunk of queries reads at least what one of them picks.
		resident = smaller(resident, larger(a.Tokens, limit))
	}
	bytes := sequences * (a.Tokens*heads*dims*2 + resident*perToken)
	memory := bytes * c.perByte
	if a.TopK > 0 {
		// Each query fetches entries of its own; none is shared once the choice
		// is small against what there is.
		memory += sequences * scores * perToken * c.perGathered * (1 - limit/all)
	}
	memory = larger(memory, sequences*heads*tiles*(scores/a.Tokens)*dims*2*c.perCached)
	t := combine(ramp, c.overlap, memory, arithmetic)
	return m.estimate(t, bytes, flops, c.inverse, ramp, memory, arithmetic)
}

// decode is a [DecodeCurve] made ready for one part.
type decode struct {
	ramp, perByte, cast, narrowRamp, perFLOP, inverse float64
	invRows, rows                                     float64
	item, serial, invSplit, overlap                   float64
	invCU                                             float64
}

// DecodeAttention prices one decode step: every sequence's cache is read once
// per KV head (once for all heads with absorbed latents), the queries that share
// a KV head are packed into one tile, long sequences are split over the part.
func (m *Model) DecodeAttention(d DecodeAttention) Estimate {
	if !(d.Sequences > 0) || d.Heads <= 0 {
		return Estimate{}
	}
	kvHeads := larger(1, float64(d.KVHeads))
	dims := float64(d.KDim + d.VDim)
	read := kvHeads * dims
	out := dims
	c := &m.decode[0]
	if d.LatentDim > 0 {
		// Absorbed: scores over latent + rope, values are the latent itself.
		c = &m.decode[1]
		kvHeads = 1
		read = float64(d.LatentDim + d.RopeDim)
		dims = float64(2*d.LatentDim + d.RopeDim)
		out = dims
	}
	heads := float64(d.Heads)
	tokens := larger(1, d.Tokens)
	elements := d.KVTokens * read
	flops := 2 * tokens * d.KVTokens * heads * dims
	bytes := elements*d.KV.BitsPerElement()*0.125 + d.Sequences*tokens*heads*out*2
	memory := bytes * c.perByte

	ramp := c.ramp
	rows := tokens * heads / kvHeads
	padded := larger(rows, stepUp(rows*c.invRows)*c.rows)
	work := d.KVTokens * kvHeads * 2 * padded * dims * c.perFLOP
	if d.KV.Element.Bits() <= 8 && d.KV.Element != models.DTypeUnknown {
		work += elements * c.cast
		ramp += c.narrowRamp
	}
	items := d.Sequences * kvHeads * stepUp(rows*c.invRows)
	arithmetic := larger((work+items*c.item)*c.invCU, d.KVTokens/d.Sequences*c.serial*larger(c.invSplit, smaller(1, items*c.invCU)))
	t := combine(ramp, c.overlap, memory, arithmetic)
	return m.estimate(t, bytes, flops, c.inverse, ramp, memory, arithmetic)
}

func newPrefill(c PrefillCurve, g part) prefill {
	cached := g.bandwidth * c.Cached
	return prefill{
		ramp: c.RampMicroseconds * 1e-6, perByte: 1 / (g.bandwidth * c.Memory),
		perFLOP: g.units / (g.bf16 * c.Compute), inverse: 1 / g.bf16,
		softmax: c.Softmax, tail: c.Tail, prologue: c.Prologue, overlap: c.Overlap, narrow: c.Narrow, narrowRamp: c.NarrowRampMicroseconds * 1e-6, invCU: 1 / g.units,
		perCached: 1 / cached, perGathered: 1 / (cached * c.Gather),
	}
}

func newDecode(c DecodeCurve, g part) decode {
	return decode{
		ramp: c.RampMicroseconds * 1e-6, perByte: 1 / (g.bandwidth * c.Memory), cast: c.CastPicoseconds * 1e-12, narrowRamp: c.NarrowRampMicroseconds * 1e-6,
		perFLOP: g.units / (g.bf16 * c.Compute), inverse: 1 / g.bf16,
		invRows: 1 / c.Rows, rows: c.Rows,
		item: c.ItemNanoseconds * 1e-9, serial: c.SerialNanoseconds * 1e-9, invSplit: 1 / c.Split, overlap: c.Overlap,
		invCU: 1 / g.units,
	}
}
