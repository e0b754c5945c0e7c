package recorded

import (
	"errors"
	"fmt"

	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/kvcache"
	"infera/sim/workload"
)

// ErrRun is the kind of errors about runs that cannot be used.
var ErrRun = errors.New("bad recorded run")

// Run is what an engine did with a workload.
type Run struct {
	Engine Engine
	// Requests are in order of arrival.
	Requests []Request
}

// Engine is what ran. One with data-parallel ranks is described as a whole: its
// scheduler and its pool are those of all ranks together, since the ranks step
// together.
type Engine struct {
	Model, Version string
	// TensorParallel and DataParallel are the ranks; ExpertParallel spreads the
	// experts over all of them.
	TensorParallel, DataParallel int
	ExpertParallel               bool
	Scheduler                    engine.Options
	Pool                         kvcache.Options
}

// Request is one request and when the engine dealt with it. Times are from the
// first arrival of the run.
type Request struct {
	workload.Request
	// Name is what the run calls it.
	Name string
	// Queued is when the engine's scheduler got it, Scheduled when its first
	// step was planned, First and Last when its first and last token were out.
	Queued, Scheduled, First, Last units.Time
}

// SetContents tells what the prompts of the run share: requests are the ones of
// the workload that was replayed, in order of arrival. The error is of kind
// [ErrRun].
func (r *Run) SetContents(requests []workload.Request) error {
	if len(requests) != len(r.Requests) {
		return fmt.Errorf("%w: %d requests, the workload has %d", ErrRun, len(r.Requests), len(requests))
	}
	own := make([]workload.Request, len(requests))
	for i := range requests {
		own[i] = r.Requests[i].Request
		if w := &requests[i]; w.Input != own[i].Input || w.Output != own[i].Output {
			return fmt.Errorf("%w: request %s has %d + %d tokens, %d + %d in the workload",
				ErrRun, r.Requests[i].Name, own[i].Input, own[i].Output, w.Input, w.Output)
		}
		own[i].Content = requests[i].Content
	}
	workload.MarkUnshared(own)
	for i := range own {
		r.Requests[i].Request = own[i]
	}
	return nil
}
