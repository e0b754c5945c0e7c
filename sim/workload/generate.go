package workload

import (
	"math"
	"math/rand/v2"
	"sort"

	"infera/internal/rng"
	"infera/internal/units"
)

// generator draws requests one after the other. It keeps nothing of those under
// way: what a later turn is follows from the numbers of its session and turn.
type generator struct {
	spec                             Spec
	times                            func() float64
	input, output, prefixes, classes *rand.Rand
	turns                            *rng.Family
	popularity                       []float64 // cumulative, of prefixes
	weights                          []float64 // cumulative, of classes
	made                             int       // first turns so far
}

// New returns the source of a generated workload. Requests are made when they
// are asked for; equal descriptions give equal requests, whatever the order in
// which answers come. The error is of kind [ErrSpec].
func New(s Spec) (Source, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	g := &generator{
		spec:  s,
		times: s.Arrivals.times(rng.Stream(s.Seed, "arrivals")),
		input: rng.Stream(s.Seed, "input lengths"), output: rng.Stream(s.Seed, "output lengths"),
		prefixes: rng.Stream(s.Seed, "prefixes"), classes: rng.Stream(s.Seed, "classes"),
		turns: rng.NewFamily(s.Seed, "turns"),
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
	return &source{next: g.next, follow: g.follow}, nil
}

// choose draws an index in proportion to the steps of a cumulative sum.
func choose(r *rand.Rand, cumulative []float64) int {
	at := r.Float64() * cumulative[len(cumulative)-1]
	return min(sort.SearchFloat64s(cumulative, at), len(cumulative)-1)
}

// Identities of content: what is common to all, the prefixes, then two for each
// turn of each request.
const common = 1

func prefix(k int) uint64 { return common + 1 + uint64(k) }

// prompt and answer identify what is new in a turn and what it generates; n
// counts first turns from 0.
func (g *generator) prompt(n, turn int) uint64 {
	return prefix(g.spec.Prefixes.Count) + (uint64(n)*MaxTurns+uint64(turn))*2
}

func (g *generator) answer(n, turn int) uint64 { return g.prompt(n, turn) + 1 }

// lengths draws the lengths of the n-th request of a class.
func (g *generator) lengths(n, class int, in, out *rand.Rand) Pair {
	var p Pair
	switch all := &g.spec.Pairs; {
	case len(all.Of) > 0 && all.InOrder:
		p = all.Of[n%len(all.Of)]
	case len(all.Of) > 0:
		p = all.Of[in.IntN(len(all.Of))]
	default:
		p = Pair{g.spec.Input.draw(in), g.spec.Output.draw(out)}
	}
	if class < len(g.spec.Classes) {
		c := &g.spec.Classes[class]
		if c.Input.Given() {
			p.Input = c.Input.draw(in)
		}
		if c.Output.Given() {
			p.Output = c.Output.draw(out)
		}
	}
	return p
}

// next draws a first turn.
func (g *generator) next() (Request, bool) {
	if g.made == g.spec.Requests {
		return Request{}, false
	}
	n := g.made
	g.made++
	r := Request{Arrival: min(units.Nanoseconds(units.Seconds(g.times())), horizon)}
	if len(g.weights) > 0 {
		r.Class = choose(g.classes, g.weights)
		r.Priority = g.spec.Classes[r.Class].Priority
	}
	p := g.lengths(n, r.Class, g.input, g.output)
	r.Input, r.Output = p.Input, p.Output
	id, shared := g.shared(r.Input)
	turns := g.turnsOf(n)
	if turns > 1 || shared > 0 {
		r.Content = make([]Segment, 0, 2)
		if shared > 0 {
			r.Content = append(r.Content, Segment{id, shared})
		}
		if shared < r.Input {
			r.Content = append(r.Content, Segment{g.prompt(n, 0), r.Input - shared})
		}
	}
	if turns > 1 {
		r.Session, r.Answer = uint64(n)+1, g.answer(n, 0)
	} else if r.Content != nil {
		r.Unshared = r.Input - shared
	}
	return r, true
}

// shared returns what a prompt begins with that others begin with too, and how
// many of its tokens that is.
func (g *generator) shared(input int) (id uint64, tokens int) {
	switch p := &g.spec.Prefixes; {
	case p.Count > 0 && p.Tokens > 0:
		return prefix(choose(g.prefixes, g.popularity)), min(p.Tokens, input)
	case p.Count > 0:
		return prefix(choose(g.prefixes, g.popularity)), input / 2
	}
	return common, int(g.spec.HitShare * float64(input))
}

// turnsOf returns the number of turns of the n-th conversation.
func (g *generator) turnsOf(n int) int {
	switch c := &g.spec.Sessions; {
	case c.Turns <= 1:
		return 1
	case c.Fixed:
		return int(c.Turns)
	default:
		// The geometric distribution on 1, 2, ... by inversion: the logarithm
		// of the chance of one more turn divides an exponential variable.
		more := g.turns.At(uint64(n)*MaxTurns).ExpFloat64() / -math.Log1p(-1/c.Turns)
		return 1 + int(min(more, MaxTurns-1))
	}
}

// follow draws the turn after one that ended. A conversation whose request was
// rejected is over.
func (g *generator) follow(r *Request, at units.Time, rejected bool) (Request, bool) {
	if r.Session == 0 || rejected {
		return Request{}, false
	}
	n, turn := int(r.Session-1), r.Turn+1
	turns := g.turnsOf(n)
	if turn >= turns {
		return Request{}, false
	}
	draw := g.turns.At(uint64(n)*MaxTurns + uint64(turn))
	c := &g.spec.Sessions
	think := units.Seconds(draw.ExpFloat64()) * c.Think
	p := g.lengths(n+turn, r.Class, draw, draw)
	if c.NewTokens.Given() {
		p.Input = c.NewTokens.draw(draw)
	}
	next := Request{
		Arrival: after(at, think), Input: r.Input + r.Output + p.Input, Output: p.Output,
		Session: r.Session, Turn: turn, Class: r.Class, Priority: r.Priority,
	}
	if next.Input > MaxTokens || c.MaxInput > 0 && next.Input > c.MaxInput {
		return Request{}, false
	}
	next.Content = make([]Segment, 0, len(r.Content)+2)
	next.Content = append(next.Content, r.Content...)
	next.Content = append(next.Content, Segment{r.Answer, r.Output}, Segment{g.prompt(n, turn), p.Input})
	if turn+1 < turns {
		next.Answer = g.answer(n, turn)
	} else {
		next.Unshared = p.Input
	}
	return next, true
}
