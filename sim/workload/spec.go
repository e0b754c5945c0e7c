package workload

import (
	"fmt"
	"math"
	"math/rand/v2"

	"infera/internal/units"
)

const (
	// MaxTokens is the longest prompt or answer a workload may have.
	MaxTokens = 1_000_000_000
	// MaxTurns is the longest conversation that is generated.
	MaxTurns = 1 << 16
	// MaxRequests is the most requests, and prefixes, that are generated.
	MaxRequests = 1_000_000_000
)

// Length is a distribution of token counts. The zero value of all but Mean is a
// fixed length.
type Length struct {
	// Mean is the length, for RangeRatio the longest.
	Mean int
	// RangeRatio below 1 draws uniformly from the whole numbers between
	// RangeRatio x Mean, rounded down but at least 1, and Mean.
	RangeRatio float64
	// Sigma above 0 draws from a lognormal distribution with this standard
	// deviation of the logarithm and mean Mean: its median is Mean x
	// exp(-Sigma²/2), its 99th percentile exp(2.326 Sigma) times that.
	Sigma float64
	// Values, when set, are drawn from with equal probability.
	Values []int
	// Max bounds what is drawn; 0 = MaxTokens.
	Max int
}

// Given reports whether the length is more than the zero value.
func (l *Length) Given() bool { return l.Mean != 0 || len(l.Values) > 0 }

func (l *Length) validate(name string) error {
	for _, v := range l.Values {
		if v < 1 || v > MaxTokens {
			return fmt.Errorf("%w: %s of %d tokens, want 1 to %d", ErrSpec, name, v, MaxTokens)
		}
	}
	switch {
	case len(l.Values) == 0 && (l.Mean < 1 || l.Mean > MaxTokens):
		return fmt.Errorf("%w: %s of %d tokens, want 1 to %d", ErrSpec, name, l.Mean, MaxTokens)
	case !(l.RangeRatio >= 0 && l.RangeRatio <= 1):
		return fmt.Errorf("%w: range ratio %v of %s, want above 0 and at most 1", ErrSpec, l.RangeRatio, name)
	case !(l.Sigma >= 0 && l.Sigma <= 10):
		return fmt.Errorf("%w: sigma %v of %s, want 0 to 10", ErrSpec, l.Sigma, name)
	case l.RangeRatio > 0 && l.RangeRatio < 1 && l.Sigma > 0:
		return fmt.Errorf("%w: %s have both a range ratio and a sigma", ErrSpec, name)
	case l.Max < 0 || l.Max > MaxTokens:
		return fmt.Errorf("%w: %s of at most %d tokens, want 0 to %d", ErrSpec, name, l.Max, MaxTokens)
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

// Pair is the lengths of one recorded request, in tokens.
type Pair struct{ Input, Output int }

// Pairs are lengths that belong together, as recorded.
type Pairs struct {
	Of []Pair
	// InOrder takes them one after the other, from the first again after the
	// last, instead of drawing them with equal probability.
	InOrder bool
}

// Prefixes are prompt beginnings that requests share.
type Prefixes struct {
	// Count is how many there are, 0 = none; Tokens how long they are, 0 = half
	// of each prompt. A shorter prompt is all prefix.
	Count, Tokens int
	// Zipf is the exponent of their popularity: the k-th is asked for in
	// proportion to k^-Zipf. 0 = all alike.
	Zipf float64
}

// Sessions make every request the first turn of a conversation, with a person
// or, with many turns and little time between them, with tools. The prompt of a
// turn is all earlier prompts and answers, then new tokens.
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
	Name   string
	Weight float64
	// Priority is that of its requests; see [Request].
	Priority int
	// Objective names the latency targets of the class, "" = those of all.
	Objective string
	// Input and Output replace those of the workload when they are given.
	Input, Output Length
}

// Spec describes a workload to generate.
type Spec struct {
	// Requests is how many first turns there are.
	Requests int
	Arrivals Arrivals
	Input    Length
	Output   Length
	// Pairs, when there are any, replace Input and Output of the workload, but
	// not those of a class.
	Pairs    Pairs
	Prefixes Prefixes
	// HitShare of every prompt, rounded down, is common to all requests: a
	// prefix cache finds it from the second request on.
	HitShare float64
	Sessions Sessions
	Classes  []Class
	Seed     uint64
}

func (s *Spec) validate() error {
	if s.Requests < 1 || s.Requests > MaxRequests {
		return fmt.Errorf("%w: %d requests, want 1 to %d", ErrSpec, s.Requests, MaxRequests)
	}
	if err := s.Arrivals.validate(); err != nil {
		return err
	}
	if err := s.validateLengths(); err != nil {
		return err
	}
	switch p := &s.Prefixes; {
	case p.Count < 0 || p.Count > maxPrefixes || p.Tokens < 0 || p.Tokens > MaxTokens || !(p.Zipf >= 0) || math.IsInf(p.Zipf, 0):
		return fmt.Errorf("%w: %d prefixes of %d tokens, Zipf exponent %v", ErrSpec, p.Count, p.Tokens, p.Zipf)
	case !(s.HitShare >= 0 && s.HitShare < 1):
		return fmt.Errorf("%w: a share of %v of prompts in common, want 0 to below 1", ErrSpec, s.HitShare)
	case p.Count > 0 && s.HitShare > 0:
		return fmt.Errorf("%w: both prefixes and a share of prompts in common", ErrSpec)
	}
	switch c := &s.Sessions; {
	case !(c.Turns >= 0 && c.Turns <= MaxTurns) || c.Fixed && c.Turns != math.Trunc(c.Turns):
		return fmt.Errorf("%w: conversations of %v turns, want up to %d", ErrSpec, c.Turns, MaxTurns)
	case !isTime(c.Think):
		return fmt.Errorf("%w: %v s between an answer and the next turn", ErrSpec, float64(c.Think))
	case c.MaxInput < 0:
		return fmt.Errorf("%w: prompts of at most %d tokens in conversations", ErrSpec, c.MaxInput)
	case c.NewTokens.Given():
		return c.NewTokens.validate("turns")
	}
	return nil
}

// maxPrefixes bounds the table of popularities.
const maxPrefixes = 10_000_000

func (s *Spec) validateLengths() error {
	for _, p := range s.Pairs.Of {
		if min(p.Input, p.Output) < 1 || max(p.Input, p.Output) > MaxTokens {
			return fmt.Errorf("%w: a pair of %d and %d tokens, want 1 to %d", ErrSpec, p.Input, p.Output, MaxTokens)
		}
	}
	if len(s.Pairs.Of) == 0 {
		if err := s.Input.validate("prompts"); err != nil {
			return err
		}
		if err := s.Output.validate("answers"); err != nil {
			return err
		}
	}
	for i := range s.Classes {
		k := &s.Classes[i]
		if !(k.Weight > 0) || math.IsInf(k.Weight, 0) {
			return fmt.Errorf("%w: class %q has weight %v", ErrSpec, k.Name, k.Weight)
		}
		if k.Input.Given() {
			if err := k.Input.validate("prompts of class " + k.Name); err != nil {
				return err
			}
		}
		if k.Output.Given() {
			if err := k.Output.validate("answers of class " + k.Name); err != nil {
				return err
			}
		}
	}
	return nil
}
