package recorded

import (
	"fmt"
	"math"

	"infera/internal/units"
	"infera/sim/moe"
	"infera/sim/step"
)

// Term is a kind of work that a step, or a request, costs time for.
type Term uint8

// The terms of a price.
const (
	// TermStep is paid by every step: weights that all tokens share, kernel
	// launches and what the host does between steps.
	TermStep Term = iota
	// TermSequence is paid per decoding sequence.
	TermSequence
	// TermCachedToken is paid per cached token that decoding reads.
	TermCachedToken
	// TermPromptToken is paid per prompt token of the busiest attention group.
	TermPromptToken
	// TermPromptPair is paid per prompt token and token that it attends to.
	TermPromptPair
	// TermPromptStep is paid by a step with prompt tokens: it does not run as one
	// captured graph.
	TermPromptStep
	// TermPromptPiece is paid per piece of a prompt.
	TermPromptPiece
	// TermExperts is the time to read all routed experts, paid for the share of
	// them that the tokens of a step reach.
	TermExperts
	// TermRequest passes from a request's arrival until the scheduler has it.
	TermRequest
	// NumTerms counts the terms.
	NumTerms
)

var termNames = [NumTerms]string{
	"step", "sequence", "cached_token", "prompt_token", "prompt_pair", "prompt_step", "prompt_piece", "experts", "request",
}

// String returns the name of the term.
func (t Term) String() string {
	if t < NumTerms {
		return termNames[t]
	}
	return fmt.Sprintf("Term(%d)", uint8(t))
}

// work is an amount of each term: what a step computes, or many.
type work [NumTerms]float64

// plus returns w and share times more.
func (w work) plus(more *work, share float64) work {
	for i := range w {
		w[i] += share * more[i]
	}
	return w
}

// Price prices a step as the sum of what it computes, each kind of work at its
// own cost. It implements [step.Pricer] and fills no breakdown: a fit does not
// know which operation took the time.
type Price struct {
	// Cost is the time of one unit of each term, at least 0.
	Cost [NumTerms]units.Seconds
	// Groups are the attention-data-parallel ranks that the prompts of a step
	// spread over; 0 = 1.
	Groups int
	// Experts are the routed experts of a layer, of which a token visits TopK;
	// 0 = none.
	Experts, TopK int
}

// Price implements [step.Pricer].
func (p *Price) Price(b step.Batch, _ *step.Breakdown) step.Time {
	w := p.work(&b)
	var t units.Seconds
	for i, amount := range w {
		t += units.Seconds(amount) * p.Cost[i]
	}
	return step.Time{Latency: t, Interval: t}
}

// work returns what a step computes.
func (p *Price) work(b *step.Batch) work {
	var w work
	w[TermStep] = 1
	w[TermSequence], w[TermCachedToken] = b.Decodes, b.DecodeKV
	prompt, longest := 0.0, 0.0
	for i := range b.Chunks {
		c := &b.Chunks[i]
		n := max(1, c.Sequences)
		prompt += n * c.Tokens
		longest = max(longest, c.Tokens)
		// Token i of the piece attends to the context and i tokens of the piece.
		w[TermPromptPair] += n * c.Tokens * (c.Context + c.Tokens/2)
		w[TermPromptPiece] += n
	}
	if prompt > 0 {
		w[TermPromptStep] = 1
		// The ranks wait for the one with the most tokens, and a piece is not
		// divided.
		w[TermPromptToken] = max(longest, prompt/float64(max(1, p.Groups)))
	}
	if p.Experts > 0 {
		w[TermExperts] = moe.Distinct(p.Experts, p.TopK, prompt+b.Decodes) / float64(p.Experts)
	}
	return w
}

// validate refuses costs that are no times.
func (p *Price) validate() error {
	for i, c := range p.Cost {
		if !(c >= 0) || math.IsInf(float64(c), 0) {
			return fmt.Errorf("a cost of %v s per %s", float64(c), Term(i))
		}
	}
	return nil
}
