package routing

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

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

// Policy picks a worker. Candidates are in a fixed order, different and never
// empty. Requests that have nothing to do with each other, of different models
// or to different roles, have policies of their own; these may share an [Index]
// and a [Load]. A Policy is not safe for concurrent use.
type Policy interface {
	Pick(r *Request, candidates []int) Choice
}

// The kinds of errors: about unknown policies, and about settings.
var (
	ErrPolicy  = errors.New("unknown routing policy")
	ErrOptions = errors.New("routing options")
)

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
	slices.Sort(out)
	return out
}

// UsesIndex reports whether a policy asks which worker holds which blocks: the
// others need not be told.
func UsesIndex(name string) bool { return names[name] == "kv-aware" }

// Options are the settings of policies.
type Options struct {
	// OverlapWeight is what a block that must be computed costs the kv-aware
	// policy, in blocks of load; 0 ignores the cache.
	OverlapWeight float64
	// MaxLead is how many more requests in flight than the least loaded
	// candidate a worker may have for the kv-aware policy to pick it; 0 = any
	// number. A popular prefix then spreads before it overloads its holder.
	MaxLead int
	// Temperature is the scale, in blocks of cost, at which the kv-aware policy
	// draws instead of taking the least: the odds of two workers are e to the
	// difference of their costs over it. 0 takes the least. Routers that do not
	// know of each other's picks then do not all make the same.
	Temperature float64
	// PrefixTokens is how much of a prompt counts as its beginning for
	// prefix-hash; 0 = 1,024.
	PrefixTokens int
}

func (o *Options) check() error {
	for _, f := range []struct {
		what  string
		value float64
	}{
		{"overlap weight", o.OverlapWeight},
		{"lead over the least loaded", float64(o.MaxLead)},
		{"temperature", o.Temperature},
		{"tokens of a beginning", float64(o.PrefixTokens)},
	} {
		if !(f.value >= 0) || math.IsInf(f.value, 0) {
			return fmt.Errorf("%w: %s: %v is not a finite number of at least 0", ErrOptions, f.what, f.value)
		}
	}
	return nil
}

// New returns a policy by name, which learns from index and load. random is
// for the policies that draw. The error is of kind [ErrPolicy] or [ErrOptions].
func New(name string, o Options, index *Index, load *Load, random *rand.Rand) (Policy, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	canonical := names[name]
	draws := canonical == "random" || canonical == "power-of-two" || canonical == "kv-aware" && o.Temperature > 0
	if draws && random == nil {
		return nil, fmt.Errorf("%w: %s draws, without a source of randomness", ErrOptions, canonical)
	}
	switch canonical {
	case "kv-aware":
		return &kvAware{o: o, index: index, load: load, random: random}, nil
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
		return &sessionAffinity{load: load, homes: map[uint64]int{}, fallback: leastOutstanding{load}}, nil
	}
	err := fmt.Errorf("%w %q (known: %s)", ErrPolicy, name, strings.Join(Names(), ", "))
	if hint := nearest.Hint(name, append(Names(), slices.Sorted(maps.Keys(names))...)); hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return nil, err
}
