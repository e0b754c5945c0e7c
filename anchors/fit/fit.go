package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"gonum.org/v1/gonum/mat"

	"infera/sim/software"
)

// ErrNoPoints is returned for a fit without usable points.
var ErrNoPoints = errors.New("no points to fit")

// Point is one measured point with its predictor.
type Point struct {
	// Predict returns time per output token and time to first token in seconds
	// at given coefficients; 0 for what it cannot say.
	Predict func(*software.Efficiency) (tpot, ttft float64)
	// TPOT and TTFT are the measured times; 0 = not measured.
	TPOT, TTFT float64
	// Levels are the groups the point belongs to, from common to special:
	// architecture, engine, stack, epoch, build.
	Levels [NumLevels]string
	// Weight scales the point's influence; 0 = 1.
	Weight float64
}

// NumLevels is the depth of the hierarchy below the common effect.
const NumLevels = 5

// The levels of the hierarchy.
const (
	LevelArchitecture = iota
	LevelEngine
	LevelStack
	LevelEpoch
	LevelBuild
)

// tie returns the coefficient that stands for c at a level. A single build
// moves its engine's coefficients in groups: all fixed times together, the
// matrix products and experts of one format, all attention, all collectives.
func tie(level int, c software.Coefficient) software.Coefficient {
	if level != LevelBuild {
		return c
	}
	switch {
	case c == software.RequestFixed || c == software.PrefillQueue || c == software.PrefillInterference:
		return software.RequestFixed
	case c.IsTime():
		return software.HostStep
	case c >= software.GEMMDecodeBF16 && c <= software.MoEPrefillINT4:
		return software.GEMMDecodeBF16 + (c-software.GEMMDecodeBF16)%4
	case c >= software.AttentionDecodeGQA && c <= software.AttentionPrefillRecurrent:
		return software.AttentionDecodeGQA
	case c >= software.AllReduceSmall && c <= software.AttentionDP:
		return software.AllReduceSmall
	}
	return c
}

// family returns the coefficient that stands for those c tends to move with:
// an engine whose kernels of one format are slow mostly has slow kernels of the
// others, too.
func family(c software.Coefficient) software.Coefficient {
	if c >= software.GEMMDecodeBF16 && c <= software.MoEPrefillINT4 {
		return software.GEMMDecodeBF16
	}
	return tie(LevelBuild, c)
}

// Options steer a fit.
type Options struct {
	// Start holds the values the effects multiply.
	Start [software.NumCoefficients]float64
	// Floor bounds the values from below; effects multiply what is above it.
	Floor [software.NumCoefficients]float64
	// Fixed coefficients are not fitted.
	Fixed [software.NumCoefficients]bool
	// Deviation is the prior standard deviation of the log effects: common
	// first, then one per level.
	Deviation [NumLevels + 1]float64
	// Family is the prior standard deviation of the log effects that all
	// coefficients of a family share, one per level; 0 = none.
	Family [NumLevels]float64
	// TPOTNoise and TTFTNoise are the log-standard deviations of a measurement.
	TPOTNoise, TTFTNoise float64
	// Iterations bounds the Gauss-Newton steps.
	Iterations int
	// Workers is how many points are predicted at once; 0 = 1.
	Workers int
	// Progress, when set, is told the loss after each iteration.
	Progress func(iteration int, loss float64)
}

// Defaults returns the options used for the shipped efficiencies.
func Defaults() Options {
	return Options{
		Deviation: [NumLevels + 1]float64{1.0, 0.3, 0.15, 0.15, 0.10, 0.25},
		Family:    [NumLevels]float64{0.2, 0.15, 0.15, 0.1, 0},
		TPOTNoise: 0.08, TTFTNoise: 0.40, Iterations: 60, Workers: 2,
	}
}

// effect identifies one unknown: a coefficient, or the family it stands for, at
// one group of one level (level -1 = common).
type effect struct {
	level       int
	group       string
	coefficient software.Coefficient
	family      bool
}

// deviation is the prior standard deviation of an effect.
func (o *Options) deviation(e effect) float64 {
	if e.family {
		return o.Family[e.level]
	}
	return o.Deviation[e.level+1]
}

// effectsOf calls do for every effect that moves a coefficient of a point in
// the groups of levels.
func (o *Options) effectsOf(levels *[NumLevels]string, c software.Coefficient, do func(effect)) {
	do(effect{level: -1, coefficient: c})
	for l, g := range levels {
		if g == "" {
			continue
		}
		do(effect{level: l, group: g, coefficient: tie(l, c)})
		if o.Family[l] > 0 {
			do(effect{level: l, group: g, coefficient: family(c), family: true})
		}
	}
}

// Model holds fitted effects.
type Model struct {
	opt     Options
	index   map[effect]int
	effects []effect
	x       []float64
}

// At returns the efficiency of the groups of a point; unknown groups add
// nothing.
func (m *Model) At(levels [NumLevels]string) software.Efficiency {
	var e software.Efficiency
	for c := range software.NumCoefficients {
		floor := m.opt.Floor[c]
		e.Values[c] = floor + (m.opt.Start[c]-floor)*math.Exp(m.sum(levels, c))
	}
	return e
}

func (m *Model) sum(levels [NumLevels]string, c software.Coefficient) float64 {
	var s float64
	m.opt.effectsOf(&levels, c, func(e effect) {
		if i, ok := m.index[e]; ok {
			s += m.x[i]
		}
	})
	return s
}

// cooling is the schedule of noise scales: with wide tails first, so that the
// many decide where the coefficients go before the loss starts to disregard
// points that are far off.
var cooling = [...]float64{4, 2, 1}

// Fit estimates the effects from points. It stops with the context's error when
// that ends.
func Fit(ctx context.Context, points []Point, opt Options) (*Model, error) {
	if len(points) == 0 {
		return nil, ErrNoPoints
	}
	m := &Model{opt: opt, index: map[effect]int{}}
	s := &solver{m: m, points: points}
	s.depends = make([][]software.Coefficient, len(points))
	for _, s.scale = range cooling {
		s.linearise()
		if err := s.descend(ctx, max(1, opt.Iterations/len(cooling))); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// descend takes damped Gauss-Newton steps at the current noise scale until
// they no longer help.
func (s *solver) descend(ctx context.Context, iterations int) error {
	m := s.m
	lambda := 1e-3
	loss := s.loss(s.residuals)
	fresh := true // the slopes are those of the current effects
	for it := range iterations {
		if err := ctx.Err(); err != nil {
			return err
		}
		step, err := s.solve(lambda)
		if err != nil {
			return err
		}
		old := append([]float64(nil), m.x...)
		before := loss
		for range 6 {
			for i := range m.x {
				m.x[i] = old[i] + step[i]
			}
			terms := s.evaluate()
			if next := s.loss(terms); next < loss {
				loss, s.residuals = next, terms
				lambda = max(lambda/4, 1e-6)
				break
			}
			for i := range step {
				step[i] /= 2
			}
			lambda *= 3
		}
		if m.opt.Progress != nil {
			m.opt.Progress(it, loss)
		}
		if loss == before {
			copy(m.x, old)
			if fresh {
				return nil
			}
			s.linearise()
			fresh = true
			continue
		}
		if fresh && before-loss < 1e-4*loss {
			return nil
		}
		// Slopes change slowly: every other step does with the last ones.
		if fresh = !fresh; fresh {
			s.linearise()
		}
	}
	return nil
}

// term is one observed quantity of a point.
type term struct {
	residual float64 // log(predicted/measured) over the noise
	weight   float64
}

type solver struct {
	m         *Model
	points    []Point
	residuals []term // two per point: TPOT, TTFT
	jacobian  []sparse
	// depends lists the coefficients a point was found to depend on.
	depends [][]software.Coefficient
	scale   float64 // of the noise; residuals and slopes are stored at 1
}

// sparse is one row of the Jacobian by coefficient.
type sparse struct {
	coefficient []software.Coefficient
	slope       []float64
}

func (s *solver) predict(p *Point, e *software.Efficiency) [2]float64 {
	tpot, ttft := p.Predict(e)
	return [2]float64{tpot, ttft}
}

func (s *solver) terms(p *Point, v [2]float64) [2]term {
	var out [2]term
	w := p.Weight
	if w == 0 {
		w = 1
	}
	measured := [2]float64{p.TPOT, p.TTFT}
	noise := [2]float64{s.m.opt.TPOTNoise, s.m.opt.TTFTNoise}
	for q := range out {
		if measured[q] > 0 && v[q] > 0 {
			out[q] = term{math.Log(v[q]/measured[q]) / noise[q], w}
		}
	}
	return out
}

// evaluate returns the residual terms at the current effects.
func (s *solver) evaluate() []term {
	out := make([]term, 2*len(s.points))
	s.each(func(i int) {
		p := &s.points[i]
		e := s.m.At(p.Levels)
		t := s.terms(p, s.predict(p, &e))
		out[2*i], out[2*i+1] = t[0], t[1]
	})
	return out
}

// each calls do for every point, spread over the workers. Results go to the
// point's own place, so the outcome does not depend on their number.
func (s *solver) each(do func(i int)) {
	workers := max(1, s.m.opt.Workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(s.points); i += workers {
				do(i)
			}
		})
	}
	wg.Wait()
}

// tails is the degrees of freedom of the Student-t loss. Published points of
// early builds are off by up to a factor of ten; with such tails they neither
// move a coefficient nor have to be left out by hand.
const tails = 4

func (s *solver) loss(terms []term) float64 {
	var sum float64
	for _, t := range terms {
		r := t.residual / s.scale
		sum += t.weight * (tails + 1) / 2 * math.Log1p(r*r/tails)
	}
	for i, e := range s.m.effects {
		d := s.m.x[i] / s.m.opt.deviation(e)
		sum += d * d / 2
	}
	return sum
}

// linearise fills residuals and Jacobian by finite differences in the
// logarithm of each coefficient the point depends on, and adds the effects
// that its first visit to a group brings.
func (s *solver) linearise() {
	if s.residuals == nil {
		s.residuals = make([]term, 2*len(s.points))
		s.jacobian = make([]sparse, 2*len(s.points))
	}
	s.each(s.linearisePoint)
	for i := range s.jacobian {
		for _, c := range s.jacobian[i].coefficient {
			s.register(&s.points[i/2], c)
		}
	}
}

func (s *solver) linearisePoint(i int) {
	const h = 0.02
	p := &s.points[i]
	e := s.m.At(p.Levels)
	base := s.predict(p, &e)
	t := s.terms(p, base)
	s.residuals[2*i], s.residuals[2*i+1] = t[0], t[1]
	noise := [2]float64{s.m.opt.TPOTNoise, s.m.opt.TTFTNoise}
	s.jacobian[2*i], s.jacobian[2*i+1] = sparse{}, sparse{}
	var found []software.Coefficient
	for _, c := range s.candidates(i) {
		keep := e.Values[c]
		e.Values[c] = keep * math.Exp(h)
		v := s.predict(p, &e)
		e.Values[c] = keep
		for q := range v {
			if v[q] <= 0 || base[q] <= 0 {
				continue
			}
			// The effect moves the part above the floor.
			slope := math.Log(v[q]/base[q]) / h * (keep - s.m.opt.Floor[c]) / keep
			if math.Abs(slope) < 1e-3 {
				continue
			}
			if len(found) == 0 || found[len(found)-1] != c {
				found = append(found, c)
			}
			row := &s.jacobian[2*i+q]
			row.coefficient = append(row.coefficient, c)
			row.slope = append(row.slope, slope/noise[q])
		}
	}
	if s.depends[i] == nil {
		s.depends[i] = found
	}
}

// candidates returns the coefficients to differentiate a point by: all that
// are fitted at first, then those it was found to depend on.
func (s *solver) candidates(i int) []software.Coefficient {
	if d := s.depends[i]; d != nil {
		return d
	}
	all := make([]software.Coefficient, 0, software.NumCoefficients)
	for c := range software.NumCoefficients {
		if !s.m.opt.Fixed[c] {
			all = append(all, c)
		}
	}
	return all
}

func (s *solver) register(p *Point, c software.Coefficient) {
	s.m.opt.effectsOf(&p.Levels, c, func(e effect) {
		if _, ok := s.m.index[e]; !ok {
			s.m.index[e] = len(s.m.effects)
			s.m.effects = append(s.m.effects, e)
			s.m.x = append(s.m.x, 0)
		}
	})
}

// effectsOf returns the effects that a row of the Jacobian depends on, each
// once, and their slopes.
func (s *solver) effectsOf(row int, at []int, slope []float64) ([]int, []float64) {
	p, j := &s.points[row/2], &s.jacobian[row]
	add := func(e effect, v float64) {
		i := s.m.index[e]
		for k := len(at) - 1; k >= 0; k-- {
			if at[k] == i {
				slope[k] += v
				return
			}
		}
		at, slope = append(at, i), append(slope, v)
	}
	for k, c := range j.coefficient {
		s.m.opt.effectsOf(&p.Levels, c, func(e effect) { add(e, j.slope[k]) })
	}
	return at, slope
}

// solve returns the damped Gauss-Newton step.
func (s *solver) solve(lambda float64) ([]float64, error) {
	n := len(s.m.effects)
	a := mat.NewSymDense(n, nil)
	b := make([]float64, n)
	var at []int
	var slope []float64
	for i, row := range s.jacobian {
		t := s.residuals[i]
		if t.weight == 0 || len(row.slope) == 0 {
			continue
		}
		r := t.residual / s.scale
		w := t.weight * (tails + 1) / (tails + r*r) / (s.scale * s.scale)
		at, slope = s.effectsOf(i, at[:0], slope[:0])
		for x := range at {
			b[at[x]] -= w * slope[x] * t.residual
			for y := range at {
				if at[y] >= at[x] {
					a.SetSym(at[x], at[y], a.At(at[x], at[y])+w*slope[x]*slope[y])
				}
			}
		}
	}
	for i, e := range s.m.effects {
		d := s.m.opt.deviation(e)
		prior := 1 / (d * d)
		b[i] -= prior * s.m.x[i]
		a.SetSym(i, i, a.At(i, i)*(1+lambda)+prior)
	}
	var chol mat.Cholesky
	if !chol.Factorize(a) {
		return nil, fmt.Errorf("fit: the normal equations of %d effects are not positive definite", n)
	}
	var x mat.VecDense
	if err := chol.SolveVecTo(&x, mat.NewVecDense(n, b)); err != nil {
		return nil, fmt.Errorf("fit: solve for %d effects: %w", n, err)
	}
	return x.RawVector().Data, nil
}
