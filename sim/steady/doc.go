// Package steady solves the closed-form steady state of a serving replica, or
// of a pool of prefill replicas feeding a pool of decode replicas.
//
// A replica is a closed loop of C clients (or an open stream of requests)
// around one engine. A request waits for its prompt to be processed, then
// advances one token (or one accepted burst) per step. Prompts of other
// requests stretch its decode steps: every unit of wall time carries a share
// of prompt work equal to the arrival rate times the work one prompt adds. The
// fixed point of rate, concurrency and step time follows from Little's law;
// each step is priced by a [step.Pricer], so nothing here knows of kernels.
//
// Percentiles are the business of the discrete-event simulator: this package
// answers with means.
package steady
