package routing

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"

	"infera/internal/nearest"
)

// Hint says how long a client wants its prompt kept.
type Hint uint8

// The hints. HintNone was given explicitly; HintUnset is no hint at all.
const (
	HintUnset Hint = iota
	HintNone
	HintShort
	HintLong
)

// Request is what a policy may know of a request.
type Request struct {
	// Chain are the hashes of its full blocks, Tokens the length of its prompt.
	Chain  []Hash
	Tokens int
	// BlockTokens is the size of a block; 0 when it has none.
	BlockTokens int
	// Unshared is how many full blocks it has besides that no other request
	// shares: a simulation need not hash them.
	Unshared int
	// Session is the same for requests that belong together; 0 = none.
	Session uint64
	// Images are the keys of its images. With any, the text does not count:
	// the placeholder tokens of all images are the same.
	Images []Hash
	Hint   Hint
}

// Choice is the worker that was picked, and why.
type Choice struct {
	Worker int
	// Hits is how many leading blocks it was known to hold.
	Hits int
	// Cost is what the kv-aware policy charged; lower is better.
	Cost float64
}

// Policy picks a worker. Candidates are in a fixed order and never empty. A
// Policy is not safe for concurrent use.
type Policy interface {
	Pick(r *Request, candidates []int) Choice
}

// ErrPolicy is the kind of errors about unknown policies.
var ErrPolicy = errors.New("unknown routing policy")

// The names of the policies; aliases are accepted, too.
var names = map[string]string{
	"kv-aware": "kv-aware", "kv_aware": "kv-aware", "kv": "kv-aware",
	"round-robin": "round-robin", "round_robin": "round-robin",
	"random":            "random",
	"least-outstanding": "least-outstanding", "least_outstanding": "least-outstanding",
	"power-of-two": "power-of-two", "power_of_two": "power-of-two",
	"prefix-hash": "prefix-hash", "prefix_hash": "prefix-hash", "prefix-aware": "prefix-hash", "prefix_aware": "prefix-hash",
	"session-affinity": "session-affinity", "session_affinity": "session-affinity",
}

// Names returns the names of the policies, aliases left out, in order.
func Names() []string {
	var out []string
	for alias, name := range names {
		if alias == name {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

// UsesIndex reports whether a policy asks which worker holds which blocks: the
// others need not be told.
func UsesIndex(name string) bool { return names[name] == "kv-aware" }

// Options are the settings of policies.
type Options struct {
	// OverlapWeight is what a block that must be computed costs, in blocks of
	// load; NaN is refused, 0 ignores the cache.
	OverlapWeight float64
	// PrefixTokens is how much of a prompt counts as its beginning for
	// prefix-hash; 0 = 1,024.
	PrefixTokens int
}

// New returns a policy by name, which learns from index and load. random is
// for the policies that draw. The error is of kind [ErrPolicy].
func New(name string, o Options, index *Index, load *Load, random *rand.Rand) (Policy, error) {
	if !(o.OverlapWeight >= 0) || math.IsInf(o.OverlapWeight, 0) || o.PrefixTokens < 0 {
		return nil, fmt.Errorf("%w: overlap weight %v, beginnings of %d tokens", ErrPolicy, o.OverlapWeight, o.PrefixTokens)
	}
	switch names[name] {
	case "kv-aware":
		return &kvAware{weight: o.OverlapWeight, index: index, load: load, images: map[int]*imageSet{}}, nil
	case "round-robin":
		return &roundRobin{}, nil
	case "random":
		return &uniform{random}, nil
	case "least-outstanding":
		return &leastOutstanding{load}, nil
	case "power-of-two":
		return &powerOfTwo{load, random}, nil
	case "prefix-hash":
		tokens := o.PrefixTokens
		if tokens == 0 {
			tokens = prefixTokens
		}
		return &prefixHash{load: load, tokens: tokens}, nil
	case "session-affinity":
		return &sessionAffinity{homes: map[uint64]int{}, fallback: leastOutstanding{load}}, nil
	}
	err := fmt.Errorf("%w %q (known: %v)", ErrPolicy, name, Names())
	if hint := nearest.Hint(name, Names()); hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return nil, err
}

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

func (p *prefixHash) Pick(r *Request, candidates []int) Choice {
	if len(r.Chain) == 0 {
		return p.turn.Pick(r, candidates)
	}
	total := 1
	for _, w := range candidates {
		total += p.load.Outstanding(w)
	}
	limit := int(math.Ceil(boundedLoad * float64(total) / float64(len(candidates))))
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

// sessionAffinity keeps a session on the worker that served it first, as long
// as that is a candidate.
type sessionAffinity struct {
	homes    map[uint64]int
	fallback leastOutstanding
}

func (p *sessionAffinity) Pick(r *Request, candidates []int) Choice {
	if r.Session != 0 {
		if home, ok := p.homes[r.Session]; ok {
			for _, w := range candidates {
				if w == home {
					return Choice{Worker: w}
				}
			}
		}
	}
	c := p.fallback.Pick(r, candidates)
	if r.Session != 0 {
		p.homes[r.Session] = c.Worker
	}
	return c
}
