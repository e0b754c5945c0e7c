package planner

import (
	"errors"

	"infera/sim/accuracy"
	"infera/sim/layout"
)

// Scored is a measured point with what was predicted for it; a pair whose
// Measured is 0 was not measured.
type Scored struct {
	TPOT, TTFT, TotalPerGPU accuracy.Pair
	// Doubt says why the point should not have run ("" = no objection): it did
	// run, so it is priced all the same.
	Doubt string
}

// Score predicts one measured point. Errors of kind [ErrSkip] say why it
// cannot be predicted.
func (l *Library) Score(pt *accuracy.Point) (Scored, error) {
	if pt.TPOT <= 0 && pt.TTFT <= 0 && pt.TotalPerGPU <= 0 {
		return Scored{}, skip("no measured value")
	}
	r, err := l.FromPoint(pt)
	if err != nil {
		return Scored{}, err
	}
	out := Scored{}
	p, err := l.projectPoint(r, &out)
	if err != nil {
		return Scored{}, err
	}
	curve := pt.Curve()
	out.TPOT = pairOf(pt.TPOT, p.TPOT, curve)
	out.TTFT = pairOf(pt.TTFT, p.TTFT, curve)
	out.TotalPerGPU = pairOf(pt.TotalPerGPU, p.TotalPerGPU, curve)
	return out, nil
}

func pairOf(measured float64, b Band, curve string) accuracy.Pair {
	return accuracy.Pair{Measured: measured, Predicted: b.Value, Low: b.Low, High: b.High, Curve: curve}
}

// projectPoint is [Library.Project] for a point that is known to have run: its
// layout and memory are doubted, not refused.
func (l *Library) projectPoint(r *Request, out *Scored) (*Projection, error) {
	on, err := l.engine(r.Engine, r.Release, r.GPU)
	if err != nil {
		return nil, skip("no data for the engine on this GPU: " + err.Error())
	}
	for _, v := range layout.Check(r.Arch, r.Layout, r.Fabric) {
		if !v.Note {
			out.Doubt = "predicted illegal layout: " + v.Code
			break
		}
	}
	replicas := max(1, r.Replica)
	fit, err := l.fit(r, on, r.Layout, r.Concurrency/float64(replicas))
	if err != nil {
		return nil, err
	}
	limit := 0.0
	if fit.OK {
		limit = r.running(&fit, on)
	} else if out.Doubt == "" {
		out.Doubt = "predicted not to fit: " + string(fit.Short)
	}
	prepared, err := l.Prepare(r, limit)
	if errors.Is(err, ErrBadRequest) {
		return nil, skip("impossible request: " + err.Error())
	}
	if err != nil {
		return nil, err
	}
	p := &Projection{Request: r, GPUs: r.Layout.GPUs() * replicas, Memory: fit}
	if p.Steady, err = prepared.Solve(&on.efficiency); err != nil {
		return nil, err
	}
	p.finish(r, on, p.Steady.RequestRate*float64(replicas))
	return p, nil
}
