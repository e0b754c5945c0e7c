// Package enginelog reads what an inference engine says about memory when it
// starts (vLLM, SGLang and ATOM lines) and sets it against a memory report,
// term by term.
//
// Engines print GiB, whatever they call it: SGLang and old vLLM write "GB" and
// divide by 2^30. A log of several ranks gives several values of a fact; the
// reader keeps the one that binds (the least memory left, the most used).
// Lines it does not know are passed over.
package enginelog
