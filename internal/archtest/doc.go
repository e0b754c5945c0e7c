// Package archtest holds the rules of ARCHITECTURE.md that a compiler does not
// check, as tests: which floor may import which, the order of the rooms inside
// sim, what the functional core may not touch, where a library with weight may
// be imported, and which third-party modules each binary links.
//
// It has no code of its own. When a test here fails, move the code rather than
// the rule; a rule that moves is a decision and is written down with its reason.
package archtest
