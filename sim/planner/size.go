package planner

import (
	"fmt"

	"infera/internal/units"
	"infera/sim/layout"
	"infera/sim/memory"
)

// Sizing is the memory of one replica with every term.
type Sizing struct {
	*memory.Report
	// Request is what was sized, with the engine's defaults it was sized for.
	Request memory.Request
	// PerSequence is the cache of one request of Report.Planned tokens on the
	// binding GPU.
	PerSequence units.Bytes
}

// Size reports on the memory of one replica: of the request's layout, or of
// its decode pool when it is disaggregated.
func (l *Library) Size(r *Request) (*Sizing, error) {
	if r.Disagg == nil {
		return l.SizePool(r, r.Layout, r.Concurrency/float64(max(1, r.Replica)))
	}
	d := r.Disagg
	return l.SizePool(r, d.Decode, r.Concurrency/float64(max(1, d.DecodeReplicas)))
}

// SizePool reports on the memory of one replica of a layout that holds the
// given number of requests.
func (l *Library) SizePool(r *Request, lay layout.Layout, concurrency float64) (*Sizing, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	on, err := l.engine(r.Engine, r.Release, r.GPU)
	if err != nil {
		return nil, err
	}
	s, err := l.sizer(r.Arch)
	if err != nil {
		return nil, err
	}
	q := r.memoryRequest(on, lay, concurrency)
	report, err := s.Report(&q)
	if err != nil {
		return nil, fmt.Errorf("memory of %s: %w", r.Arch.Name, err)
	}
	out := &Sizing{Report: report, Request: q}
	if out.PerSequence, err = s.SequenceBytes(&q, report.Planned); err != nil {
		return nil, fmt.Errorf("memory of %s: %w", r.Arch.Name, err)
	}
	return out, nil
}
