package cluster

import (
	"infera/internal/units"
	"infera/sim/step"
)

// Prices prices the steps of engines of one kind and remembers those of
// decodes alone, which recur. It is not safe for concurrent use.
type Prices struct {
	pricer step.Pricer
	// interference multiplies what prompts add to a step beside decodes.
	interference float64
	decode       map[decodeKey]price
}

type decodeKey struct {
	decodes, kv, tokens float64
}

// price is a step's time until its tokens and until the next may begin.
type price struct{ latency, interval units.Time }

// NewPrices returns prices of a pricer. interference multiplies the time that
// prompts add to a step that decodes, too; 0 = 1.
func NewPrices(p step.Pricer, interference float64) *Prices {
	if interference == 0 {
		interference = 1
	}
	return &Prices{pricer: p, interference: interference, decode: map[decodeKey]price{}}
}

// of returns the price of a batch; others says that sequences decode that take
// no part in it.
func (p *Prices) of(b *step.Batch, others bool) price {
	if len(b.Chunks) == 0 {
		return p.decodes(b)
	}
	t := p.pricer.Price(*b, nil)
	switch {
	case b.Decodes == 0 && others:
		// The prompts have their tokens when they are computed; those who wait
		// for the engine lose more time than that.
		v := priceOf(t)
		v.interval = max(v.latency, units.Time(p.interference*float64(v.interval)))
		return v
	case b.Decodes == 0 || p.interference == 1:
		return priceOf(t)
	}
	alone := p.decodes(&step.Batch{Decodes: b.Decodes, DecodeKV: b.DecodeKV, TokensPerSequence: b.TokensPerSequence})
	all := priceOf(t)
	scale := func(all, alone units.Time) units.Time {
		return alone + units.Time(p.interference*float64(max(0, all-alone)))
	}
	return price{scale(all.latency, alone.latency), scale(all.interval, alone.interval)}
}

func (p *Prices) decodes(b *step.Batch) price {
	k := decodeKey{b.Decodes, b.DecodeKV, b.TokensPerSequence}
	if v, ok := p.decode[k]; ok {
		return v
	}
	v := priceOf(p.pricer.Price(*b, nil))
	p.decode[k] = v
	return v
}

// priceOf rounds a step's time to simulated time. A step takes at least a
// nanosecond, so that time goes on.
func priceOf(t step.Time) price {
	return price{
		latency:  max(1, units.Nanoseconds(t.Latency)),
		interval: max(1, units.Nanoseconds(t.Interval)),
	}
}

// slowed returns a price on a GPU that is slower by a factor.
func (p price) slowed(factor float64) price {
	if factor == 1 {
		return p
	}
	return price{units.Time(float64(p.latency) * factor), units.Time(float64(p.interval) * factor)}
}
