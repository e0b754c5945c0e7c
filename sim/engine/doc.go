// Package engine is the scheduler of a serving engine as a state machine
// without a clock: requests are submitted, Next says what the next step
// computes, the caller prices it and tells with Apply when it ran.
//
// Three schedulers are told apart:
//
//   - vLLM (V1): one token budget per step, running requests first, then the
//     waiting queue; prompts are cut to what is left of the budget; cache
//     blocks are taken as tokens are computed, and the request admitted last is
//     thrown back, to be computed again, when they run out.
//   - SGLang: prompts go first and alone (or with the decodes, as an option);
//     a request is admitted when its prompt and a share of the answers still to
//     come fit; the one that has generated least is retracted when they do not.
//   - ATOM: prompts go first and alone, blocks for the whole of one are taken
//     when it is admitted; the request admitted last is thrown back.
//
// Invariants: a request submitted is rejected at once or answered; tokens of a
// step never exceed the budget (SGLang's is one of steps with prompts); blocks
// held never exceed the pool; the state after a step repeated k times is the
// state after k steps.
//
// The package knows nothing of time's passing, of arrivals, of other engines
// and of prices.
package engine
