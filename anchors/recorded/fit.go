package recorded

import (
	"context"
	"fmt"
	"math"
	"slices"

	"infera/internal/units"
)

const (
	// rounds of replaying and fitting. The costs settle within ten; what goes on
	// moving is which of several equally good schedules comes out.
	rounds = 25
	// confidence is how much of an answer the start counts like: enough to keep
	// costs near it that the run does not tell apart, and little, since a cost is
	// easily three times what the hardware allows.
	confidence = 0.1
	// tail is where a residual, in units of its spread, counts half: cold starts
	// are outliers, and not few.
	tail = 2.4
)

// The least spreads of relative residuals: a simulated run would have none.
const (
	leastFirst = 1e-3
	leastLast  = 1e-4
)

// Start is where a fit begins.
type Start struct {
	Price
	// Least are costs that physics rules out to be lower.
	Least [NumTerms]units.Seconds
}

// Fit returns the price at which the replay of the run comes closest to the
// first n requests' times to the first token and from the first to the last,
// in relative terms. The later ones are there as load; their times are not
// looked at. Costs that the start has at 0 stay there.
func Fit(ctx context.Context, r *Run, n int, start *Start) (Price, error) {
	if n < 1 || n > len(r.Requests) {
		return Price{}, fmt.Errorf("fit %d requests of a run of %d", n, len(r.Requests))
	}
	for i, c := range start.Cost {
		if l := start.Least[i]; !(l >= 0 && l <= c) {
			return Price{}, fmt.Errorf("fit from a cost of %v s per %s, at least %v s", float64(c), Term(i), float64(l))
		}
	}
	at, best := start.Price, start.Price
	least := math.Inf(1)
	for range rounds {
		s, err := r.simulate(ctx, n, &at)
		if err != nil {
			return Price{}, err
		}
		if spread := math.Log(s.first) + math.Log(s.last); spread < least {
			best, least = at, spread
		}
		at.Cost = s.equations(start).solve(&at, start)
	}
	return best, nil
}

// answer is one measured time beside the simulated one.
type answer struct {
	work     work // that the request waited for in the replay
	measured float64
	residual float64 // logarithm of simulated over measured
	last     bool    // from the first to the last token; to the first otherwise
}

// simulation is a replay beside what was measured.
type simulation struct {
	answers []answer
	// first and last are the spreads of the residuals.
	first, last float64
}

// simulate replays the run and compares its first n requests.
func (r *Run) simulate(ctx context.Context, n int, p *Price) (*simulation, error) {
	records, done, err := r.replay(ctx, p)
	if err != nil {
		return nil, err
	}
	s := &simulation{}
	for i := range n {
		q, a := &r.Requests[i], &records[i]
		w := done.between(a.Arrival+units.Nanoseconds(p.Cost[TermRequest]), a.First)
		w[TermRequest] = 1
		s.add(w, a.First-a.Arrival, q.First-q.Arrival, false)
		if q.Output > 1 {
			s.add(done.between(a.First, a.Last), a.Last-a.First, q.Last-q.First, true)
		}
	}
	s.first, s.last = max(leastFirst, s.spread(false)), max(leastLast, s.spread(true))
	return s, nil
}

func (s *simulation) add(w work, simulated, measured units.Time, last bool) {
	y := float64(measured.Seconds())
	s.answers = append(s.answers, answer{w, y, math.Log(float64(simulated.Seconds()) / y), last})
}

// spread returns the median absolute residual of one kind.
func (s *simulation) spread(last bool) float64 {
	var abs []float64
	for i := range s.answers {
		if a := &s.answers[i]; a.last == last {
			abs = append(abs, math.Abs(a.residual))
		}
	}
	if len(abs) == 0 {
		return 0
	}
	slices.Sort(abs)
	return abs[len(abs)/2]
}

// equations are the normal equations of least squares, in units of the costs
// that the fit began with.
type equations struct {
	a [NumTerms][NumTerms]float64
	b [NumTerms]float64
}

// equations sets them up. It weighs each answer by its spread relative to what was measured, and
// the less the farther off it is (Cauchy's weights).
func (s *simulation) equations(start *Start) *equations {
	e := &equations{}
	for i := range s.answers {
		x := &s.answers[i]
		sigma := s.first
		if x.last {
			sigma = s.last
		}
		sigma *= 1.4826 // the median absolute residual of a unit normal is 0.6745
		off := x.residual / sigma / tail
		e.add(x, start, 1/(1+off*off)/(sigma*sigma*x.measured*x.measured))
	}
	for i := range e.a {
		e.a[i][i] += confidence
		e.b[i] += confidence
	}
	return e
}

func (e *equations) add(x *answer, start *Start, weight float64) {
	for i := range e.a {
		xi := x.work[i] * float64(start.Cost[i])
		e.b[i] += weight * xi * x.measured
		for j := range e.a[i] {
			e.a[i][j] += weight * xi * x.work[j] * float64(start.Cost[j])
		}
	}
}

// sweeps of the solver; it converges within a few hundred.
const sweeps = 2000

// solve returns the costs of least squares among those that are not too low, by
// coordinate descent.
func (e *equations) solve(at *Price, start *Start) [NumTerms]units.Seconds {
	var x, least [NumTerms]float64
	for i := range x {
		if c := start.Cost[i]; c > 0 {
			x[i], least[i] = float64(at.Cost[i]/c), float64(start.Least[i]/c)
		}
	}
	for range sweeps {
		for i := range x {
			rest := e.b[i]
			for j := range x {
				if j != i {
					rest -= e.a[i][j] * x[j]
				}
			}
			x[i] = max(least[i], rest/e.a[i][i])
		}
	}
	var cost [NumTerms]units.Seconds
	for i := range x {
		cost[i] = units.Seconds(x[i]) * start.Cost[i]
	}
	return cost
}
