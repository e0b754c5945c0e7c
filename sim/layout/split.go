package layout

import (
	"fmt"

	"infera/models"
)

// attention checks that the heads of a layer and their storage blocks split
// over the attention group.
func (c *checker) attention(at models.Attention) {
	switch at.Kind {
	case models.AttentionNone:
	case models.AttentionRecurrent:
		c.recurrent(at.Recurrent)
	case models.AttentionMLA:
		if c.heads(at) {
			c.aligned(at)
		}
	default:
		if c.heads(at) && c.kvHeads(at) {
			c.aligned(at)
			if format := c.a.Formats[models.ClassAttention]; tiled(format) {
				c.onBlocks("key", format, KVHeadsPerRank(at, c.l)*at.KDim)
			}
		}
	}
}

// aligned: the output projection is cut along its inputs, where groups run, and
// the query projection along its outputs, where only square tiles have borders.
func (c *checker) aligned(at models.Attention) {
	format := c.a.Formats[models.ClassAttention]
	c.onBlocks("attention output", format, HeadsPerRank(at, c.l)*at.VDim)
	if tiled(format) {
		c.onBlocks("query", format, HeadsPerRank(at, c.l)*at.KDim)
	}
}

func (c *checker) heads(at models.Attention) bool {
	tp := c.l.AttentionTP()
	if at.Heads%tp == 0 {
		return true
	}
	c.add(false, CodeHeads,
		func() string { return fmt.Sprintf("%d query heads do not divide by attention TP %d", at.Heads, tp) },
		func() string {
			return around("attention TP", tp, at.Heads, func(n int) bool { return at.Heads%n == 0 })
		})
	return false
}

// kvHeads: heads are dealt out when there are at least as many as ranks, and
// each copied to the same number of ranks when there are fewer.
func (c *checker) kvHeads(at models.Attention) bool {
	tp, n := c.l.AttentionTP(), at.KVHeads
	if n <= 0 || splitsOrReplicates(n, tp) {
		if n > 0 && n < tp {
			c.add(true, CodeReplicated, func() string {
				return fmt.Sprintf("%d KV heads on attention TP %d: each is stored on %d ranks", n, tp, tp/n)
			}, nil)
		}
		return true
	}
	c.add(false, CodeKVHeads,
		func() string { return fmt.Sprintf("%d KV heads neither divide by attention TP %d nor into it", n, tp) },
		func() string {
			return around("attention TP", tp, at.Heads, func(t int) bool { return at.Heads%t == 0 && splitsOrReplicates(n, t) })
		})
	return false
}

func splitsOrReplicates(heads, ranks int) bool { return heads%ranks == 0 || ranks%heads == 0 }

// recurrent: value heads are dealt out; the groups of Mamba-2 may be copied
// when there is one, key heads of the delta-rule layers may not.
func (c *checker) recurrent(r models.Recurrent) {
	tp := c.l.AttentionTP()
	if r.Kind == models.ShortConv {
		if r.ConvChannels%tp != 0 {
			c.add(false, CodeRecurrent, func() string {
				return fmt.Sprintf("%d convolution channels do not divide by attention TP %d", r.ConvChannels, tp)
			}, func() string {
				return around("attention TP", tp, r.ConvChannels, func(n int) bool { return r.ConvChannels%n == 0 })
			})
		}
		return
	}
	ok := func(n int) bool {
		keys := r.KHeads <= 0 || r.KHeads%n == 0 || r.Kind == models.Mamba2 && r.KHeads == 1
		return keys && r.VHeads%n == 0
	}
	if !ok(tp) {
		c.add(false, CodeRecurrent, func() string {
			return fmt.Sprintf("%d key and %d value heads of the %s layers do not divide by attention TP %d", r.KHeads, r.VHeads, r.Kind, tp)
		}, func() string { return around("attention TP", tp, max(r.VHeads, 1), ok) })
	}
}

// ffn checks experts and feed-forward widths.
func (c *checker) ffn(f models.FFN) {
	if f.Intermediate > 0 {
		c.width(CodeDenseWidth, "feed-forward", "attention TP", f.Intermediate, c.l.DenseTP(), c.a.Formats[models.ClassDenseFFN])
	}
	if f.SharedIntermediate > 0 {
		c.width(CodeDenseWidth, "shared-expert", "attention TP", f.SharedIntermediate, c.l.DenseTP(), c.a.Formats[models.ClassSharedExpert])
	}
	if f.Experts == 0 || c.skipExperts {
		return
	}
	c.experts(f)
	c.width(CodeExpertWidth, "expert", "TP/EP", f.ExpertIntermediate, c.l.ExpertTP(), c.a.Formats[models.ClassRoutedExpert])
}

func (c *checker) experts(f models.FFN) {
	ep, extra := c.l.EP, c.l.RedundantExperts
	switch {
	case extra > f.Experts:
		c.add(false, CodeExperts, func() string {
			return fmt.Sprintf("%d redundant experts are more than the %d experts", extra, f.Experts)
		}, func() string { return fmt.Sprintf("%d or fewer redundant experts", f.Experts) })
	case extra > 0 && ep == 1:
		c.add(false, CodeExperts, func() string {
			return fmt.Sprintf("%d redundant experts have no ranks to spread over with EP 1", extra)
		}, func() string { return "EP above 1, or no redundant experts" })
	case (f.Experts+extra)%ep != 0:
		c.add(false, CodeExperts, func() string {
			return fmt.Sprintf("%d experts and %d redundant ones do not divide by EP %d", f.Experts, extra, ep)
		}, func() string {
			s := around("EP", ep, f.Experts+extra, func(n int) bool { return (f.Experts+extra)%n == 0 })
			if fill := ceilDiv(f.Experts, ep)*ep - f.Experts; fill <= f.Experts {
				s += fmt.Sprintf(", or %d redundant experts", fill)
			}
			return s
		})
	}
}

// width checks that columns split evenly over ranks without cutting a block.
func (c *checker) width(code, what, knob string, columns, ranks int, format models.Format) {
	if columns%ranks != 0 {
		c.add(false, code,
			func() string { return fmt.Sprintf("%d %s columns do not divide by %s %d", columns, what, knob, ranks) },
			func() string {
				return around(knob, ranks, columns, func(n int) bool { return fits(columns, n, format) })
			})
		return
	}
	if fits(columns, ranks, format) {
		if n := columns / ranks; padded(n, format) != n {
			c.add(true, CodePadded, func() string {
				return fmt.Sprintf("%d %s columns per rank are padded to %d, whole groups of %d (%s)", n, what, padded(n, format), block(format), format.Name)
			}, nil)
		}
		return
	}
	c.add(false, CodeBlock, func() string {
		return fmt.Sprintf("%d %s columns over %s %d are %d per rank, not a multiple of the %d-column block of %s",
			columns, what, knob, ranks, columns/ranks, block(format), format.Name)
	}, func() string {
		s := around(knob, ranks, columns, func(n int) bool { return fits(columns, n, format) })
		if knob == "TP/EP" && c.l.EP < c.l.TP {
			s += fmt.Sprintf(" (EP %d keeps experts whole)", c.l.TP)
		}
		return s
	})
}

// fits reports that columns split over ranks evenly and on block borders.
func fits(columns, ranks int, format models.Format) bool {
	if columns%ranks != 0 {
		return false
	}
	return ranks == 1 || microScaled(format) || (columns/ranks)%block(format) == 0
}

// onBlocks checks that columns, which are per rank already, are whole blocks.
func (c *checker) onBlocks(what string, format models.Format, perRank int) {
	tp := c.l.AttentionTP()
	if tp == 1 || microScaled(format) || perRank%block(format) == 0 {
		return
	}
	c.add(false, CodeBlock, func() string {
		return fmt.Sprintf("%d %s columns per rank at attention TP %d are not a multiple of the %d-column block of %s",
			perRank, what, tp, block(format), format.Name)
	}, func() string { return "a lower attention TP (more attention DP)" })
}
