package collective

import (
	"math"

	"infera/internal/units"
)

// How much wider the spread gets where a time is not a measurement: carried
// over from another part or group size, and per doubling beyond the measured
// sizes. They are judgements about the method, not about a part.
const (
	derivedSpread  = 0.15
	betweenSpread  = 0.10
	doublingSpread = 0.05
	outsideSpread  = 0.30 // at most, for sizes
)

// point is one value of a curve.
type point struct {
	time     float64 // seconds
	floor    float64 // the same with no bytes
	measured bool
	spread   float64
	name     string
}

// curve is one implementation carried to one fabric.
type curve struct {
	im       *Implementation
	from, to Wiring
	derived  bool
	eager    bool
	// fixed replaces the measured fixed time when it is 0 or more.
	fixed float64
}

// at returns the time of a message of b bytes between ranks GPUs of one domain.
func (c *curve) at(ranks int, b float64) point {
	fits := c.im.Fits
	if c.im.Operation == SendReceive {
		ranks = fits[0].Ranks
	}
	i := 0
	for i < len(fits) && fits[i].Ranks < ranks {
		i++
	}
	var p point
	switch {
	case i < len(fits) && fits[i].Ranks == ranks:
		p = c.eval(&fits[i], 1, 1, b)
	case i == 0:
		p = c.beyond(&fits[0], ranks, b)
	case i == len(fits):
		p = c.beyond(&fits[i-1], ranks, b)
	default:
		p = c.between(&fits[i-1], &fits[i], ranks, b)
	}
	p.name = c.im.Name
	if c.fixed >= 0 {
		p.time += c.fixed - p.floor
		p.floor = c.fixed
	}
	if c.eager {
		p.time = max(float64(c.im.Eager.Least), p.time*c.im.Eager.Slowdown)
		p.floor = max(float64(c.im.Eager.Least), p.floor*c.im.Eager.Slowdown)
	}
	return p
}

// eval evaluates one fit with its floors and slopes scaled.
func (c *curve) eval(f *Fit, floorScale, slopeScale, b float64) point {
	slopeScale *= c.to.perByte(c.im.Operation, f.Ranks) / c.from.perByte(c.im.Operation, f.Ranks)
	p := point{time: math.Inf(1), floor: math.Inf(1)}
	for _, l := range f.Lines {
		floor := float64(l.Floor) * floorScale
		p.floor = min(p.floor, floor)
		p.time = min(p.time, floor+b*l.PerByte*slopeScale)
	}
	p.spread = f.Spread
	p.measured = !f.Derived && !c.derived
	if !p.measured {
		p.spread += derivedSpread
	}
	outside := 0.0
	switch {
	case b > float64(f.Largest):
		outside = math.Log2(b / float64(f.Largest))
	case b < float64(f.Smallest):
		// The floor is what decides below the smallest measured message.
		p.measured = p.measured && b >= float64(f.Smallest)/4
	}
	if outside > 0 {
		p.measured = false
		p.spread += min(outsideSpread, doublingSpread*outside)
	}
	return p
}

// between takes the geometric mean, in log2 of the group size, of the two
// measured neighbours.
func (c *curve) between(low, high *Fit, ranks int, b float64) point {
	p, q := c.eval(low, 1, 1, b), c.eval(high, 1, 1, b)
	w := math.Log2(float64(ranks)/float64(low.Ranks)) / math.Log2(float64(high.Ranks)/float64(low.Ranks))
	return point{
		time:   math.Pow(p.time, 1-w) * math.Pow(q.time, w),
		floor:  math.Pow(p.floor, 1-w) * math.Pow(q.floor, w),
		spread: max(p.spread, q.spread) + betweenSpread,
	}
}

// beyond carries the outermost measured group size further: the floor with the
// number of rounds (log2 of the group), the slope with the bytes on the wire.
func (c *curve) beyond(f *Fit, ranks int, b float64) point {
	rounds := math.Log2(float64(ranks)) / math.Log2(float64(f.Ranks))
	slope := c.to.perByte(c.im.Operation, ranks) / c.to.perByte(c.im.Operation, f.Ranks)
	p := c.eval(f, rounds, slope, b)
	p.measured = false
	p.spread += betweenSpread * math.Abs(math.Log2(float64(ranks)/float64(f.Ranks)))
	return p
}

// approach moves from one curve to another beyond the size limit at which the
// implementation changes: the time never falls below that at the limit and
// rises no faster than the square of the size, so neither direction of a
// mismatch makes a cliff. It is monotone because the median of a constant and
// two increasing functions is.
func approach(before, after point, limit, b float64) point {
	x := b / limit
	after.floor = before.floor
	after.time = min(max(after.time, before.time), before.time*x*x)
	return after
}

func seconds(t float64) units.Seconds { return units.Seconds(t) }
