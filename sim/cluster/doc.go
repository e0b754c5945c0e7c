// Package cluster simulates a fleet of engines serving a workload: arrivals ->
// router -> engines -> links -> metrics, in virtual time.
//
// Everything happens in one ordered loop of events: a request arrives, a run of
// steps ends, a transfer ends, a tier delivers, an instance becomes ready, a
// fault begins. At equal times arrivals come before the ends of steps, so that
// a request that arrives when a step ends is seen by the next one. Same
// configuration, same workload, same seed: same result.
//
// Equal decode steps are run in one event. A run is cut short when a request
// arrives at its engine, at the end of the step under way then, so that the
// result is the one of stepping one by one.
//
// The package knows schedulers, caches, routing policies and links; it knows
// prices only as step.Pricer, and models and hardware not at all.
package cluster
