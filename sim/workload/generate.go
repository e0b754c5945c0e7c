package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"infera/internal/rng"
	"infera/internal/units"
)

// MaxTokens is the longest prompt or answer a workload may have.
const MaxTokens = 1_000_000_000

// Length is a distribution of token counts. The zero value of all but Mean is a
// fixed length.
type Length struct {
	// Mean is the length, for RangeRatio the longest.
	Mean int
	// RangeRatio below 1 draws uniformly from [RangeRatio x Mean, Mean].
	RangeRatio float64
	// Sigma above 0 draws from a lognormal distribution with this standard
	// deviation of the logarithm and mean Mean.
	Sigma float64
	// Values, when set, are drawn from with equal probability.
	Values []int
	// Max bounds what is drawn; 0 = MaxTokens.
	Max int
}

func (l *Length) validate(name string) error {
	bad := l.Mean < 1 && len(l.Values) == 0 || l.Mean > MaxTokens || !(l.RangeRatio >= 0 && l.RangeRatio <= 1) ||
		!(l.Sigma >= 0 && l.Sigma <= 10) || l.Max < 0
	for _, v := range l.Values {
		bad = bad || v < 1 || v > MaxTokens
	}
	if bad {
		return fmt.Errorf("%w: %s of %d tokens, range ratio %v, sigma %v, at most %d", ErrSpec, name, l.Mean, l.RangeRatio, l.Sigma, l.Max)
	}
	return nil
}

func (l *Length) draw(r *rand.Rand) int {
	n := l.Mean
	switch {
	case len(l.Values) > 0:
		n = l.Values[r.IntN(len(l.Values))]
	case l.Sigma > 0:
		mu := math.Log(float64(l.Mean)) - l.Sigma*l.Sigma/2
		n = int(math.Round(min(math.Exp(mu+l.Sigma*r.NormFloat64()), MaxTokens)))
	case l.RangeRatio > 0 && l.RangeRatio < 1:
		least := max(1, int(l.RangeRatio*float64(l.Mean)))
		n = least + r.IntN(l.Mean-least+1)
	}
	if l.Max > 0 {
		n = min(n, l.Max)
	}
	return max(1, n)
}

// Prefixes are prompt beginnings that requests share.
type Prefixes struct {
	// Count is how many there are, 0 = none; Tokens how long they are.
	Count, Tokens int
	// Zipf is the exponent of their popularity: the k-th is asked for in
	// proportion to k^-Zipf. 0 = all alike.
	Zipf float64
}

// Sessions make every request the first turn of a conversation.
type Sessions struct {
	// Turns is the mean number of turns, geometrically distributed; 0 or 1 =
	// no conversations. Fixed makes it the same for all.
	Turns float64
	Fixed bool
	// Think is the mean time, exponentially distributed, between an answer and
	// the next turn: a person's, or a tool's.
	Think units.Seconds
	// NewTokens is the length of what a turn adds to the history; the zero
	// value draws it like the first prompt.
	NewTokens Length
	// MaxInput ends a conversation whose prompt would be longer; 0 = no limit.
	MaxInput int
}

// Class is a kind of requests within a workload.
type Class struct {
	Name     string
	Weight   float64
	Priority int
	// Input and Output replace those of the workload when their Mean is set.
	Input, Output Length
}

// Spec describes a workload to generate.
type Spec struct {
	// Requests is how many first turns there are.
	Requests int
	Arrivals Arrivals
	Input    Length
	Output   Length
	Prefixes Prefixes
	// HitShare of every prompt, rounded down, is common to all requests: a
	// prefix cache finds it from the second request on.
	HitShare float64
	Sessions Sessions
	Classes  []Class
	Seed     uint64
}

func (s *Spec) validate() error {
	for _, err := range []error{s.Arrivals.validate(), s.Input.validate("prompts"), s.Output.validate("answers")} {
		if err != nil {
			return err
		}
	}
	p, c := &s.Prefixes, &s.Sessions
	switch {
	case s.Requests < 1:
		return fmt.Errorf("%w: %d requests", ErrSpec, s.Requests)
	case p.Count < 0 || p.Tokens < 0 || p.Tokens > MaxTokens || !(p.Zipf >= 0) || math.IsInf(p.Zipf, 0):
		return fmt.Errorf("%w: %d prefixes of %d tokens, Zipf %v", ErrSpec, p.Count, p.Tokens, p.Zipf)
	case !(s.HitShare >= 0 && s.HitShare < 1):
		return fmt.Errorf("%w: a share of %v of prompts in common, want 0 to below 1", ErrSpec, s.HitShare)
	case !(c.Turns >= 0) || math.IsInf(c.Turns, 0) || !(c.Think >= 0) || math.IsInf(float64(c.Think), 0) || c.MaxInput < 0:
		return fmt.Errorf("%w: conversations of %v turns, %v s apart, prompts up to %d", ErrSpec, c.Turns, float64(c.Think), c.MaxInput)
	}
	if c.NewTokens.Mean != 0 {
		if err := c.NewTokens.validate("turns"); err != nil {
			return err
		}
	}
	for i := range s.Classes {
		k := &s.Classes[i]
		if !(k.Weight > 0) || math.IsInf(k.Weight, 0) {
			return fmt.Errorf("%w: class %q has weight %v", ErrSpec, k.Name, k.Weight)
		}
		for name, l := range map[string]*Length{"prompts": &k.Input, "answers": &k.Output} {
			if l.Mean != 0 {
				if err := l.validate(name + " of class " + k.Name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// generator draws requests one after the other.
type generator struct {
	spec                                       Spec
	times                                      func() float64
	input, output, prefixes, sessions, classes *rand.Rand
	popularity                                 []float64 // cumulative, of prefixes
	weights                                    []float64 // cumulative, of classes
	left                                       int
	content                                    uint64 // the last identity given
	session                                    uint64
	turns                                      map[uint64]int // left in open sessions
}

// New returns the source of a generated workload. The error is of kind
// [ErrSpec].
func New(s Spec) (Source, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	g := &generator{
		spec: s, left: s.Requests, turns: map[uint64]int{},
		times: s.Arrivals.times(rng.Stream(s.Seed, "arrivals")),
		input: rng.Stream(s.Seed, "input lengths"), output: rng.Stream(s.Seed, "output lengths"),
		prefixes: rng.Stream(s.Seed, "prefixes"), sessions: rng.Stream(s.Seed, "sessions"), classes: rng.Stream(s.Seed, "classes"),
	}
	sum := 0.0
	for k := range s.Prefixes.Count {
		sum += math.Pow(float64(k+1), -s.Prefixes.Zipf)
		g.popularity = append(g.popularity, sum)
	}
	sum = 0
	for _, c := range s.Classes {
		sum += c.Weight
		g.weights = append(g.weights, sum)
	}
	// Identities of prefixes come first, then those of everything else.
	g.content = uint64(s.Prefixes.Count) + 1
	return &source{next: g.next, follow: g.follow}, nil
}

// choose draws an index in proportion to the steps of a cumulative sum.
func choose(r *rand.Rand, cumulative []float64) int {
	at := r.Float64() * cumulative[len(cumulative)-1]
	return min(sort.SearchFloat64s(cumulative, at), len(cumulative)-1)
}

func (g *generator) identity() uint64 {
	g.content++
	return g.content
}

// common is the identity of what HitShare makes common to all prompts.
const common = 1

// next draws a first turn.
func (g *generator) next() (Request, bool) {
	if g.left == 0 {
		return Request{}, false
	}
	g.left--
	r := Request{Arrival: units.Nanoseconds(units.Seconds(g.times()))}
	in, out := &g.spec.Input, &g.spec.Output
	if len(g.weights) > 0 {
		r.Class = choose(g.classes, g.weights)
		c := &g.spec.Classes[r.Class]
		r.Priority = c.Priority
		if c.Input.Mean != 0 {
			in = &c.Input
		}
		if c.Output.Mean != 0 {
			out = &c.Output
		}
	}
	r.Input, r.Output = in.draw(g.input), out.draw(g.output)
	shared := 0
	switch p := &g.spec.Prefixes; {
	case p.Count > 0:
		shared = min(p.Tokens, r.Input)
		if p.Tokens == 0 {
			shared = r.Input / 2
		}
		r.Content = addSegment(nil, uint64(choose(g.prefixes, g.popularity))+2, shared)
	case g.spec.HitShare > 0:
		shared = min(int(g.spec.HitShare*float64(r.Input)), r.Input-1)
		r.Content = addSegment(nil, common, shared)
	}
	turns := g.turnsOf()
	if turns > 1 || r.Content != nil {
		r.Content = addSegment(r.Content, g.identity(), r.Input-shared)
	}
	if turns > 1 {
		g.session++
		r.Session, r.Answer = g.session, g.identity()
		g.turns[r.Session] = turns - 1
	}
	return r, true
}

func addSegment(content []Segment, id uint64, tokens int) []Segment {
	if tokens == 0 {
		return content
	}
	return append(content, Segment{id, tokens})
}

// turnsOf draws the number of turns of a conversation.
func (g *generator) turnsOf() int {
	c := &g.spec.Sessions
	if c.Turns <= 1 {
		return 1
	}
	if c.Fixed {
		return int(math.Round(c.Turns))
	}
	n := 1
	for n < 1<<16 && g.sessions.Float64() >= 1/c.Turns {
		n++
	}
	return n
}

// follow draws the turn after one that ended.
func (g *generator) follow(r *Request, at units.Time, rejected bool) (Request, bool) {
	left := g.turns[r.Session]
	if r.Session == 0 || left == 0 {
		return Request{}, false
	}
	c := &g.spec.Sessions
	length := c.NewTokens
	if length.Mean == 0 {
		length = g.spec.Input
	}
	added := length.draw(g.input)
	next := Request{
		Arrival: at + units.Nanoseconds(units.Seconds(g.sessions.ExpFloat64())*c.Think),
		Input:   r.Input + r.Output + added, Output: g.spec.Output.draw(g.output),
		Session: r.Session, Turn: r.Turn + 1, Class: r.Class, Priority: r.Priority,
	}
	if rejected || c.MaxInput > 0 && next.Input > c.MaxInput || next.Input > MaxTokens {
		delete(g.turns, r.Session)
		return Request{}, false
	}
	next.Content = addSegment(addSegment(slices.Clone(r.Content), r.Answer, r.Output), g.identity(), added)
	next.Answer = g.identity()
	if left--; left == 0 {
		delete(g.turns, r.Session)
		next.Answer = 0
	} else {
		g.turns[r.Session] = left
	}
	return next, true
}
