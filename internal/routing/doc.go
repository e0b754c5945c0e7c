// Package routing decides which worker serves a request. The simulator and the
// gateway use the same code, so that a policy simulated is the policy deployed.
//
// It is pure: it knows workers as numbers, requests as block hashes and hints,
// and learns of the world by being told (Stored, Removed, Sent, Finished). It
// has no clock, no network and no randomness of its own. Whoever calls decides
// how late it learns.
package routing
