package engine

import (
	"errors"
	"fmt"
)

// ErrOptions is the kind of errors about impossible settings.
var ErrOptions = errors.New("bad scheduler options")

// Policy names a scheduler.
type Policy uint8

// The schedulers.
const (
	VLLM Policy = iota
	SGLang
	ATOM
	numPolicies
)

// String returns the name of the engine whose scheduler it is.
func (p Policy) String() string {
	return [...]string{"vllm", "sglang", "atom"}[min(p, ATOM)]
}

// Options are the settings of a scheduler. Token counts are those of the whole
// engine: an engine with attention data parallelism has its ranks' sums.
type Options struct {
	Policy Policy
	// MaxSequences is the most requests that run at once.
	MaxSequences int
	// MaxWaiting is the longest queue; a request that finds it full is
	// rejected. 0 = no limit.
	MaxWaiting int
	// MaxBatchedTokens is the most tokens of one step; 0 = no limit.
	MaxBatchedTokens int
	// PrefillChunk is the most prompt tokens of one request in one step
	// (chunked prefill size, long-prefill threshold); 0 = the budget.
	PrefillChunk int
	// WholePrompts forbids cutting prompts: one that is longer than the budget
	// is rejected.
	WholePrompts bool
	// NewPerStep is the most requests admitted in one step; 0 = no limit.
	NewPerStep int
	// MaxContext is the longest prompt and answer together; longer requests
	// are rejected. 0 = no limit.
	MaxContext int
	// ReserveAnswer admits a request only when its whole answer fits beside
	// what runs, and keeps that room for it.
	ReserveAnswer bool
	// Priority orders the waiting queue, and chooses who is thrown back, by
	// the requests' priorities.
	Priority bool
	// MixedPrefill lets decodes join SGLang's prompt steps.
	MixedPrefill bool
	// LongestPrefix orders SGLang's waiting queue by the length of the prompt
	// found in the cache, up to PrefixOrderLimit waiting requests.
	LongestPrefix    bool
	PrefixOrderLimit int
	// AnswerShare is the share of answers still to come that SGLang counts on
	// when it admits; see [AnswerShare].
	AnswerShare AnswerShare
	// DraftTokens is the number of tokens drafted per step and sequence, and
	// Acceptance[i] the probability that draft i is accepted given that those
	// before it were.
	DraftTokens int
	Acceptance  []float64
	// StreamInterval is how many tokens are sent at once; 0 = 1.
	StreamInterval int
	// Stages is the number of pipeline stages: as many steps are under way at
	// once, of different requests. 0 = 1.
	Stages int
	// AsyncScheduling plans a step when the one before it begins, so that the
	// GPU never waits for a plan: what arrives or ends while a step runs is not
	// seen by the next step but by the one after. vLLM calls it asynchronous
	// scheduling, SGLang the overlap scheduler. It has no effect with several
	// pipeline stages.
	AsyncScheduling bool
	// HoldEnded keeps the blocks of requests that ended until LetGo: the caches
	// of a prefill engine are still to be transferred.
	HoldEnded bool
	// SingleSteps forbids coalescing: every step is planned by itself.
	SingleSteps bool
}

// AnswerShare is SGLang's guess of how much of the longest possible answers
// will be generated: it starts at Initial, falls to Least within Steps decode
// steps and rises again when the guess proved too low.
type AnswerShare struct {
	Initial, Least float64
	Steps          int
	// Longest is how many tokens of an answer are counted at most; 0 = all.
	Longest int
	// RetractSteps is how many decode steps the engine wants to get through
	// after it retracted requests.
	RetractSteps int
}

func (o *Options) validate() error {
	for _, n := range []struct {
		name  string
		v, at int
	}{
		{"the most running sequences", o.MaxSequences, 1}, {"the longest queue", o.MaxWaiting, 0},
		{"the token budget", o.MaxBatchedTokens, 0}, {"the prefill chunk", o.PrefillChunk, 0},
		{"new requests per step", o.NewPerStep, 0}, {"the longest context", o.MaxContext, 0},
		{"draft tokens", o.DraftTokens, 0}, {"the stream interval", o.StreamInterval, 0}, {"pipeline stages", o.Stages, 0},
	} {
		if n.v < n.at {
			return fmt.Errorf("%w: %s is %d", ErrOptions, n.name, n.v)
		}
	}
	if o.Policy >= numPolicies {
		return fmt.Errorf("%w: scheduler %d", ErrOptions, o.Policy)
	}
	if len(o.Acceptance) != o.DraftTokens {
		return fmt.Errorf("%w: %d acceptance rates for %d draft tokens", ErrOptions, len(o.Acceptance), o.DraftTokens)
	}
	for _, p := range o.Acceptance {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("%w: acceptance rate %v", ErrOptions, p)
		}
	}
	if s := o.AnswerShare; !(s.Initial >= 0 && s.Initial <= 1 && s.Least >= 0 && s.Least <= s.Initial && s.Steps >= 0 && s.RetractSteps >= 0 && s.Longest >= 0) {
		return fmt.Errorf("%w: share of answers from %v to %v in %d steps", ErrOptions, s.Initial, s.Least, s.Steps)
	}
	return nil
}
