// Package step prices one engine step: a merged batch of prompt chunks and
// decoding sequences that goes through the model once.
//
// An [Analytic] pricer compiles an architecture, a layout and an engine's
// efficiencies into a short list of operations per pipeline stage. Pricing a
// [Batch] walks that list: every matrix product sees all tokens of the step
// (its weights are streamed once, however prefill and decode mix), attention
// is priced apart for chunks and for decodes, collectives move the tokens'
// activations, and each layer pays a fixed time for the launches and small
// kernels that no stream of bytes explains. No operation is ever cheaper than
// its physical lower bound.
//
// [Pricer] is the interface that the steady state, the scheduler cores and the
// live simulated engine consume; there is no second cost model.
//
// The package must not know of requests, queues, clocks or arrival rates.
package step
