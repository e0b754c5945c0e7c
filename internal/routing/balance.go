package routing

import "math/rand/v2"

// roundRobin takes turns. The turn is remembered as the last worker served, so
// that joining and leaving workers do not shift it.
type roundRobin struct {
	last int
	any  bool
}

func (p *roundRobin) Pick(_ *Request, candidates []int) Choice {
	best := -1
	for _, w := range candidates {
		if p.any && w > p.last && (best < 0 || w < best) {
			best = w
		}
	}
	if best < 0 {
		best = candidates[0]
		for _, w := range candidates {
			best = min(best, w)
		}
	}
	p.last, p.any = best, true
	return Choice{Worker: best}
}

type uniform struct{ random *rand.Rand }

func (p *uniform) Pick(_ *Request, candidates []int) Choice {
	return Choice{Worker: candidates[p.random.IntN(len(candidates))]}
}

type leastOutstanding struct{ load *Load }

func (p *leastOutstanding) Pick(_ *Request, candidates []int) Choice {
	best := candidates[0]
	for _, w := range candidates[1:] {
		if p.load.Outstanding(w) < p.load.Outstanding(best) {
			best = w
		}
	}
	return Choice{Worker: best}
}

// powerOfTwo takes the less loaded of two workers drawn at random.
type powerOfTwo struct {
	load   *Load
	random *rand.Rand
}

func (p *powerOfTwo) Pick(_ *Request, candidates []int) Choice {
	i := p.random.IntN(len(candidates))
	a := candidates[i]
	if len(candidates) == 1 {
		return Choice{Worker: a}
	}
	j := p.random.IntN(len(candidates) - 1)
	if j >= i {
		j++
	}
	b := candidates[j]
	if p.load.Outstanding(b) < p.load.Outstanding(a) {
		a = b
	}
	return Choice{Worker: a}
}
