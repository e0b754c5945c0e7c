package recorded

import (
	"context"
	"fmt"
	"sort"

	"infera/internal/units"
	"infera/sim/cluster"
	"infera/sim/metrics"
	"infera/sim/workload"
)

// Replay simulates the run at a price and returns when each request was
// answered, in the order of the run. It fails when one is rejected.
func (r *Run) Replay(ctx context.Context, p *Price) ([]metrics.Record, error) {
	records, _, err := r.replay(ctx, p)
	return records, err
}

// replay also returns what the engine computed when.
func (r *Run) replay(ctx context.Context, p *Price) ([]metrics.Record, timeline, error) {
	if err := p.validate(); err != nil {
		return nil, nil, err
	}
	requests := make([]workload.Request, len(r.Requests))
	for i := range requests {
		requests[i] = r.Requests[i].Request
	}
	records := make([]metrics.Record, len(requests))
	answered := 0
	var done timeline
	var sum work
	_, err := cluster.Run(ctx, &cluster.Config{
		Source: workload.Replay(requests),
		Fleet: []*cluster.Spec{{
			Name: r.Engine.Model, GPUs: 1, Scheduler: r.Engine.Scheduler, Pool: r.Engine.Pool, Prices: cluster.NewPrices(p, 1),
		}},
		Host:    cluster.Host{RequestFixed: p.Cost[TermRequest]},
		Explain: -1,
		OnStep: func(s cluster.StepRecord) {
			w := p.work(&s.Batch)
			w = work{}.plus(&w, float64(s.Times))
			done = append(done, stretch{s.Start, s.End, sum, w})
			sum = sum.plus(&w, 1)
		},
		OnAnswer: func(a metrics.Record) {
			records[a.ID] = a
			answered++
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("replay run of %s: %w", r.Engine.Model, err)
	}
	if answered < len(requests) {
		return nil, nil, fmt.Errorf("replay run of %s: %d of %d requests rejected", r.Engine.Model, len(requests)-answered, len(requests))
	}
	return records, done, nil
}

// timeline is what an engine computed, in order of time.
type timeline []stretch

// stretch is equal steps in a row.
type stretch struct {
	start, end units.Time
	before     work // all that was computed earlier
	work       work
}

// until returns what was computed up to a moment. A stretch counts for as much
// of it as has passed.
func (l timeline) until(t units.Time) work {
	i := sort.Search(len(l), func(i int) bool { return l[i].end > t })
	if i == len(l) {
		if i == 0 {
			return work{}
		}
		s := &l[i-1]
		return s.before.plus(&s.work, 1)
	}
	s := &l[i]
	if t <= s.start {
		return s.before
	}
	return s.before.plus(&s.work, float64(t-s.start)/float64(s.end-s.start))
}

// between returns what was computed in a span of time.
func (l timeline) between(from, to units.Time) work {
	a := l.until(from)
	b := l.until(to)
	return b.plus(&a, -1)
}
