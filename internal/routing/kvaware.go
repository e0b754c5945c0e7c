package routing

import (
	"math"
	"math/rand/v2"
)

// What hints make of the overlap weight, what an image counts against a block,
// and how many images of a worker are remembered.
const (
	longFactor  = 2
	noneFactor  = 0.1
	imageWeight = 48
	imageMemory = 256
)

// kvAware picks the worker for which the blocks to compute and the load are
// least:
//
//	cost = weight (blocks - hits) + image weight (images - known) + active + recent
//
// The blocks are the same for all workers, so that it is the hits, a credit, that
// decide. Ties go to the less loaded, then to the first.
type kvAware struct {
	o      Options
	index  *Index
	load   *Load
	random *rand.Rand

	hits  []int
	alive []uint64
}

func (p *kvAware) Pick(r *Request, candidates []int) Choice {
	for _, w := range candidates {
		for w >= len(p.hits) {
			p.hits = append(p.hits, 0)
		}
	}
	p.load.fade()
	p.alive = p.index.Matches(r.Chain, p.hits, p.alive)
	overlap, image := p.weights(r)
	limit := p.limit(candidates)
	blocks := len(r.Chain) + r.Unshared
	best, score, least := Choice{Worker: -1}, 0.0, 0.0
	for _, w := range candidates {
		if p.load.Outstanding(w) > limit {
			continue
		}
		load := float64(p.load.Active(w)) + p.load.Recent(w)
		cost := overlap*float64(blocks-p.hits[w]) + load
		if image > 0 {
			cost += image * float64(len(r.Images)-p.index.knownImages(w, r.Images))
		}
		s := cost
		if p.o.Temperature > 0 {
			// The least after subtracting Gumbel noise is a draw with odds that
			// fall exponentially with the cost.
			s += p.o.Temperature * math.Log(p.random.ExpFloat64())
		}
		if best.Worker < 0 || s < score || s == score && load < least {
			best, score, least = Choice{Worker: w, Hits: p.hits[w], Cost: cost}, s, load
		}
	}
	// A short prompt counts as one block, one that is cached as nothing.
	work := float64(blocks - best.Hits)
	if blocks == 0 {
		work = 1
	}
	p.load.charge(best.Worker, work)
	p.index.touch(best.Worker, r.Chain[:best.Hits])
	if len(r.Images) > 0 {
		p.index.sawImages(best.Worker, r.Images)
	}
	return best
}

// weights returns what a block and what an image to compute cost a request.
func (p *kvAware) weights(r *Request) (overlap, image float64) {
	weight := p.o.OverlapWeight
	switch r.Hint {
	case HintLong:
		weight *= longFactor
	case HintNone:
		weight *= noneFactor
	}
	if len(r.Images) > 0 {
		return 0, weight * imageWeight
	}
	return weight, 0
}

// limit returns how many requests in flight a worker to pick may have.
func (p *kvAware) limit(candidates []int) int {
	if p.o.MaxLead == 0 {
		return math.MaxInt
	}
	fewest := math.MaxInt
	for _, w := range candidates {
		fewest = min(fewest, p.load.Outstanding(w))
	}
	return fewest + min(p.o.MaxLead, math.MaxInt-fewest)
}

// imageSet are the images a worker saw last, the latest at the end.
type imageSet struct{ keys []Hash }

func (s *imageSet) at(h Hash) int {
	for i, k := range s.keys {
		if k == h {
			return i
		}
	}
	return -1
}

func (s *imageSet) known(images []Hash) int {
	n := 0
	for _, h := range images {
		if s.at(h) >= 0 {
			n++
		}
	}
	return n
}

func (s *imageSet) remember(images []Hash) {
	for _, h := range images {
		if i := s.at(h); i >= 0 {
			s.keys = append(s.keys[:i], s.keys[i+1:]...)
		} else if len(s.keys) == imageMemory {
			s.keys = append(s.keys[:0], s.keys[1:]...)
		}
		s.keys = append(s.keys, h)
	}
}
