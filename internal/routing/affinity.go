package routing

import (
	"math"
	"slices"
)

// prefixHash sends prompts that begin alike to the same worker: rendezvous
// hashing of the beginning, which moves only the share of a worker that comes or
// goes. A worker with more than its bounded share of the requests in flight is
// passed over (consistent hashing with bounded loads).
type prefixHash struct {
	load   *Load
	tokens int
	turn   roundRobin
}

// prefixTokens is how much of a prompt counts as its beginning unless asked for
// otherwise. A system prompt that everybody shares must be shorter, or it sends
// everybody to one worker: the first 512 tokens of Mooncake's conversation trace
// tell few requests apart.
const prefixTokens = 1024

// beginning returns the hash of a prompt's first tokens; r has blocks.
func (r *Request) beginning(tokens int) Hash {
	return r.Chain[min(len(r.Chain), max(1, tokens/max(1, r.BlockTokens)))-1]
}

// boundedLoad is how far above the mean a worker's requests in flight may be. A
// tighter bound finds less and waits less: on Mooncake's conversation trace 1.25
// finds a tenth more and takes 7 % longer to the first token.
const boundedLoad = 1.1

// share returns a multiple of the mean of the requests in flight, the one to
// place included, rounded up.
func (l *Load) share(candidates []int, multiple float64) int {
	total := 1
	for _, w := range candidates {
		total += l.Outstanding(w)
	}
	return int(math.Ceil(multiple * float64(total) / float64(len(candidates))))
}

func (p *prefixHash) Pick(r *Request, candidates []int) Choice {
	if len(r.Chain) == 0 {
		return p.turn.Pick(r, candidates)
	}
	limit := p.load.share(candidates, boundedLoad)
	first := r.beginning(p.tokens)
	best, score := -1, uint64(0)
	for _, w := range candidates {
		if p.load.Outstanding(w) >= limit {
			continue
		}
		if s := rendezvous(first, w); best < 0 || s > score {
			best, score = w, s
		}
	}
	return Choice{Worker: best}
}

// rendezvous scores a worker for a key.
func rendezvous(h Hash, worker int) uint64 {
	v := uint64(h) ^ (uint64(worker)+1)*0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// A worker with sessionLoad times the mean of the requests in flight and
// sessionSlack more sends sessions away: moving costs the cache of a whole
// conversation, and where few are in flight a handful more is no overload.
// sessionMemory is how many sessions are remembered.
const (
	sessionLoad   = 2
	sessionSlack  = 8
	sessionMemory = 1 << 16
)

// sessionAffinity keeps a session on the worker that served it first. When that
// is gone or overloaded, the session moves for good: the next turn finds this
// one's blocks at its new home. Sessions not heard of for long are forgotten.
type sessionAffinity struct {
	load     *Load
	homes    map[uint64]int
	latest   recency[uint64]
	fallback leastOutstanding
}

func (p *sessionAffinity) Pick(r *Request, candidates []int) Choice {
	if r.Session == 0 {
		return p.fallback.Pick(r, candidates)
	}
	home, known := p.homes[r.Session]
	p.latest.touch(r.Session, known)
	if known && slices.Contains(candidates, home) &&
		p.load.Outstanding(home) < p.load.share(candidates, sessionLoad)+sessionSlack {
		return Choice{Worker: home}
	}
	c := p.fallback.Pick(r, candidates)
	p.homes[r.Session] = c.Worker
	if len(p.homes) > sessionMemory {
		delete(p.homes, p.latest.oldest())
	}
	return c
}
