package routing

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
// The blocks are the same for all workers, so that the hits are written as a
// credit. Ties go to the less loaded, then to the first.
type kvAware struct {
	weight float64
	index  *Index
	load   *Load
	images map[int]*imageSet

	hits  []int
	alive []uint64
}

func (p *kvAware) Pick(r *Request, candidates []int) Choice {
	for _, w := range candidates {
		for w >= len(p.hits) {
			p.hits = append(p.hits, 0)
		}
	}
	weight := p.weight
	switch r.Hint {
	case HintLong:
		weight *= longFactor
	case HintNone:
		weight *= noneFactor
	}
	p.load.fade()
	p.alive = p.index.Matches(r.Chain, p.hits, p.alive)
	overlap, image := weight, 0.0
	if len(r.Images) > 0 {
		overlap, image = 0, weight*imageWeight
	}
	blocks := len(r.Chain) + r.Unshared
	best, least := Choice{Worker: -1}, 0.0
	for _, w := range candidates {
		load := float64(p.load.Active(w)) + p.load.Recent(w)
		cost := overlap*float64(blocks-p.hits[w]) + load
		if image > 0 {
			cost += image * float64(len(r.Images)-p.images[w].known(r.Images))
		}
		if best.Worker < 0 || cost < best.Cost || cost == best.Cost && load < least {
			best, least = Choice{Worker: w, Hits: p.hits[w], Cost: cost}, load
		}
	}
	// A short prompt counts as one block, one that is cached as nothing.
	work := float64(blocks - best.Hits)
	if blocks == 0 {
		work = 1
	}
	p.load.charge(best.Worker, work)
	if len(r.Images) > 0 {
		s := p.images[best.Worker]
		if s == nil {
			s = &imageSet{}
			p.images[best.Worker] = s
		}
		s.remember(r.Images)
	}
	return best
}

// imageSet are the images a worker saw last, the latest at the end.
type imageSet struct{ keys []Hash }

func (s *imageSet) at(h Hash) int {
	if s == nil {
		return -1
	}
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
