// Package routing decides which worker serves a request. The simulator and the
// gateway use the same code, so that a policy simulated is the policy deployed.
//
// It is pure: it knows workers as small numbers, requests as block hashes and
// hints, and the world by being told. What a [Policy] reads is apart from its
// Pick: an [Index] of who holds which blocks (Stored, Removed, Cleared) and the
// [Load] of every worker (Sent, Finished, Reported). Whoever calls decides when
// it tells, and so how late a policy learns. A [Breaker] thins the candidates out
// before a pick.
//
// It must not know of tokenizers, protocols, engines or clocks: moments are
// given, and policies that draw are given their randomness. Load is counted in
// blocks (kv-aware) or in requests (all others); costs are blocks.
package routing
