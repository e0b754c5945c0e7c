// Package planner puts the parts of sim together for one question: a model, a
// GPU, a layout, an engine and a workload go in, a feasibility verdict and a
// steady state come out.
//
// A [Library] opens the shipped data and caches what many questions share
// (kernel curves, collective tables, engine defaults and efficiencies); a
// [Request] is typed and already resolved to the objects it names; a
// [Projection] holds finished numbers with bands and sources. Reading flags,
// files and the environment is the business of the commands, printing that of
// sim/report.
package planner
