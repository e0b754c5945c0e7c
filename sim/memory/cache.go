package memory

import (
	"infera/internal/units"
	"infera/models"
	"infera/sim/software"
)

// groupCache is what the layers of one group, on one rank, keep.
type groupCache struct {
	layers float64
	// perToken is the bytes of one cached token, all layers of the group
	// together, selector keys included.
	perToken float64
	// window bounds the cached tokens; 0 = the whole context.
	window int
	// perSequence is what each sequence keeps besides (compressed layers: the
	// uncompressed window and the compressor's running state).
	perSequence float64
	// passing is the part of a sequence's bytes that only the prompt tokens of
	// one step need: the engine reserves it for a request that starts, and
	// whoever has a prompt in the step uses it.
	passing float64
	// block is the granule of allocation in tokens.
	block int
}

// cache is what one rank keeps per sequence.
type cache struct {
	groups [maxGroups]groupCache
	n      int
	// slope is the bytes of one more token of context where no window binds;
	// state the recurrent state of one sequence, as allocated; stateRaw the
	// same without page padding.
	slope, state, stateRaw float64
	// uniform is set when a sequence costs slope x tokens and nothing else.
	uniform bool
	block   int
}

// latentShape and compressedShape are the widths that the engine's entry sizes
// are stated for.
const (
	latentShape     = 512 + 64
	compressedShape = 512
)

// stageCache sums what one rank of a stage keeps.
func (s *Sizer) stageCache(q *resolved, st *stage) cache {
	var c cache
	c.uniform = true
	c.block = s.block(q)
	recurrent, page, attention := 0.0, 0.0, 0.0
	for i := range s.layers {
		n := float64(st.layers[i])
		g := &s.arch.Groups[i]
		if n == 0 || g.Attention.KVShared {
			continue
		}
		switch g.Attention.Kind {
		case models.AttentionRecurrent:
			b := float64(g.StateBytesPerSequence(s.arch.Compute)) / float64(q.attentionTP)
			recurrent += n
			page = max(page, b)
			c.stateRaw += n * b
		case models.AttentionGQA, models.AttentionMLA:
			gc := q.group(g, n)
			c.add(gc)
			if gc.window == 0 {
				attention = max(attention, gc.perToken/n)
			}
		}
	}
	if q.SpeculativeTokens > 0 {
		s.draftCache(q, st, &c)
	}
	c.pages(q, recurrent, page, attention)
	for i := range c.groups[:c.n] {
		c.groups[i].block = c.block
	}
	return c
}

func (c *cache) add(gc groupCache) {
	if c.n == maxGroups {
		return
	}
	c.groups[c.n] = gc
	c.n++
	if gc.window == 0 {
		c.slope += gc.perToken
	}
	if gc.window > 0 || gc.perSequence > 0 {
		c.uniform = false
	}
}

// pages settles how recurrent state is allocated. In vLLM state shares the
// pool with attention blocks: the block grows in steps of 16 tokens until it
// is as large as a state page, and each state takes a whole block.
func (c *cache) pages(q *resolved, layers, page, attention float64) {
	c.state = c.stateRaw
	if layers == 0 {
		return
	}
	c.uniform = false
	if q.Engine.State != software.StatePages || attention == 0 {
		return
	}
	tokens := ceilDiv(int(page/attention)+1, 16) * 16
	if exact := page / attention; exact == float64(int(exact)) {
		tokens = ceilDiv(int(exact), 16) * 16
	}
	if tokens > c.block {
		c.block = tokens
	}
	c.state = layers * float64(c.block) * attention
}

// block returns the allocation granule before any state page is considered.
func (s *Sizer) block(q *resolved) int {
	if q.BlockTokens > 0 {
		return q.BlockTokens
	}
	if s.latent {
		return max(1, q.Engine.BlockTokensMLA)
	}
	return max(1, q.Engine.BlockTokens)
}

// group returns what n layers of one group keep on one rank.
func (q *resolved) group(g *models.LayerGroup, n float64) groupCache {
	t := &g.Attention
	entry := q.entryBytes(t)
	gc := groupCache{layers: n, perToken: entry}
	compress := float64(max(1, t.Sparse.Compress))
	if compress > 1 {
		gc.perToken = entry / compress
		held := float64(t.Window)
		each := (entry + float64(q.Engine.Entry.CompressorState)) * n
		if q.Engine.WindowBatched {
			step := float64(min(q.batched, q.longest))
			held += step
			gc.passing = step * each
		}
		gc.perSequence = held * each
	} else if t.Window > 0 && q.windows {
		gc.window = t.Window
		if q.Engine.WindowBatched {
			gc.window += q.batched - 1
		}
	}
	if t.Sparse.Indexer {
		gc.perToken += q.indexBytes(t) / compress
	}
	gc.perToken *= n / float64(q.dcp)
	return gc
}

// entryBytes is one uncompressed cache entry of one layer on one rank.
func (q *resolved) entryBytes(t *models.Attention) float64 {
	fp8 := q.kv.Element == models.FP8
	if t.Kind == models.AttentionMLA {
		width := float64(t.MLA.KVLoRA + t.MLA.Rope)
		if e := float64(q.Engine.Entry.SparseLatentFP8); fp8 && t.Sparse.TopK > 0 && e > 0 {
			return e * width / latentShape
		}
		return width * q.kvBytes
	}
	width := float64(t.KDim)
	if !t.TiedKV {
		width += float64(t.VDim)
	}
	heads := float64(kvHeads(t, q.attentionTP))
	if e := float64(q.Engine.Entry.CompressedFP8); fp8 && t.Sparse.Compress > 1 && e > 0 {
		return heads * e * width / compressedShape
	}
	return heads * width * q.kvBytes
}

// indexBytes is one selector key of one layer: fp8 with a scale for latent and
// compressed attention, in the cache's own type otherwise. Selectors have one
// key head, so every rank holds it.
func (q *resolved) indexBytes(t *models.Attention) float64 {
	d := float64(t.Sparse.IndexDim)
	if t.Kind == models.AttentionMLA || t.Sparse.Compress > 1 || q.kv.Element == models.FP8 {
		return d + float64(q.Engine.Entry.IndexScale)
	}
	return d * q.kvBytes
}

// draftCache adds the drafter's own cache, which follows the context.
func (s *Sizer) draftCache(q *resolved, st *stage, c *cache) {
	if !st.last {
		return
	}
	if q.DraftKVBytesPerToken > 0 {
		c.add(groupCache{layers: 1, perToken: float64(q.DraftKVBytesPerToken)})
		return
	}
	d := &s.arch.Draft
	if d.Layers == 0 || q.DraftWeights > 0 {
		return
	}
	switch d.Layer.Attention.Kind {
	case models.AttentionGQA, models.AttentionMLA:
		c.add(q.group(&d.Layer, float64(d.Layers)))
	}
}

// sequence returns the bytes one sequence of n tokens takes on this rank.
func (c *cache) sequence(n int) units.Bytes {
	total := c.state
	for i := range c.groups[:c.n] {
		g := &c.groups[i]
		held := n
		if g.window > 0 && g.window < held {
			held = g.window
		}
		total += float64(ceilDiv(held, g.block)*g.block)*g.perToken + g.perSequence
	}
	return units.Bytes(total)
}

// passing returns the bytes of one sequence that only the prompt tokens of a
// step need; see [groupCache].
func (c *cache) passing() units.Bytes {
	var total float64
	for i := range c.groups[:c.n] {
		total += c.groups[i].passing
	}
	return units.Bytes(total)
}

// tokens returns how many tokens of context a pool holds: whole blocks where a
// sequence costs nothing but its tokens, else the pool filled with requests of
// the given length, as current engines print it.
func (c *cache) tokens(pool units.Bytes, longest int) int {
	if pool <= 0 || (c.n == 0 && c.state == 0) {
		return 0
	}
	if c.uniform {
		if c.slope == 0 {
			return 0
		}
		return int(float64(pool)/(c.slope*float64(c.block))) * c.block
	}
	one := c.sequence(longest)
	if one <= 0 {
		return 0
	}
	return int(float64(pool/one) * float64(longest))
}

// longest returns the longest single sequence a pool holds, at most limit.
func (c *cache) longest(pool units.Bytes, limit int) int {
	if pool <= 0 || c.sequence(1) > pool {
		return 0
	}
	low, high := 1, limit
	for low < high {
		mid := low + (high-low+1)/2
		if c.sequence(mid) <= pool {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}
