package fit

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"infera/sim/software"
)

// truth of the synthetic engine, by coefficient; the rest stays at its start.
const (
	trueHost  = 450e-6
	trueGEMM  = 1.7
	trueQueue = 0.4
)

// start returns the values that effects multiply, and fixes all coefficients
// but the named ones.
func start(free ...software.Coefficient) Options {
	opt := Defaults()
	opt.Iterations, opt.Workers = 30, 1
	for c := range software.NumCoefficients {
		opt.Start[c], opt.Fixed[c] = 1, true
	}
	opt.Start[software.HostStep] = 300e-6
	for _, c := range free {
		opt.Fixed[c] = false
	}
	return opt
}

// engine predicts a step that takes host time and a stream of the given
// seconds at an efficiency, and a prompt of several times that with a queue.
func engine(stream float64) func(*software.Efficiency) (tpot, ttft float64) {
	return func(e *software.Efficiency) (tpot, ttft float64) {
		v := &e.Values
		step := v[software.HostStep] + v[software.GEMMDecodeBF16]*stream
		return step, 20 * step * (1 + v[software.PrefillQueue]*stream*2000)
	}
}

// synthetic returns points that truth generates with a relative noise.
func synthetic(n int, host, gemm, noise float64, levels [NumLevels]string, r *rand.Rand) []Point {
	var e software.Efficiency
	e.Values[software.HostStep], e.Values[software.GEMMDecodeBF16], e.Values[software.PrefillQueue] = host, gemm, trueQueue
	points := make([]Point, n)
	for i := range points {
		predict := engine(50e-6 * math.Exp(4*r.Float64()))
		tpot, ttft := predict(&e)
		points[i] = Point{
			Predict: predict, Levels: levels,
			TPOT: tpot * math.Exp(noise*r.NormFloat64()), TTFT: ttft * math.Exp(noise*r.NormFloat64()),
		}
	}
	return points
}

func level(stack string) [NumLevels]string {
	return [NumLevels]string{LevelArchitecture: "isa", LevelEngine: "engine", LevelStack: stack}
}

func check(t *testing.T, m *Model, levels [NumLevels]string, host, gemm, tolerance float64) {
	t.Helper()
	e := m.At(levels)
	for _, c := range []struct {
		name      software.Coefficient
		got, want float64
	}{
		{software.HostStep, e.Values[software.HostStep], host},
		{software.GEMMDecodeBF16, e.Values[software.GEMMDecodeBF16], gemm},
		{software.PrefillQueue, e.Values[software.PrefillQueue], trueQueue},
	} {
		if d := math.Abs(math.Log(c.got / c.want)); !(d < tolerance) {
			t.Errorf("%s = %.4g, want %.4g within %v", c.name, c.got, c.want, tolerance)
		}
	}
	if got := e.Values[software.AllToAll]; got != 1 {
		t.Errorf("a fixed coefficient went to %v", got)
	}
}

// TestRecovery: points generated from known coefficients give them back.
func TestRecovery(t *testing.T) {
	free := []software.Coefficient{software.HostStep, software.GEMMDecodeBF16, software.PrefillQueue}
	r := rand.New(rand.NewPCG(1, 1))
	for _, noise := range []float64{0, 0.05} {
		points := synthetic(300, trueHost, trueGEMM, noise, level("a"), r)
		m, err := Fit(t.Context(), points, start(free...))
		if err != nil {
			t.Fatal(err)
		}
		check(t, m, level("a"), trueHost, trueGEMM, 0.06)
	}
}

// TestOutliers: a tenth of the points that are off by a factor of five, all in
// one direction, hardly move the fit.
func TestOutliers(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	points := synthetic(300, trueHost, trueGEMM, 0.05, level("a"), r)
	for i := 0; i < len(points); i += 10 {
		points[i].TPOT *= 5
		points[i].TTFT *= 5
	}
	m, err := Fit(t.Context(), points, start(software.HostStep, software.GEMMDecodeBF16, software.PrefillQueue))
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, level("a"), trueHost, trueGEMM, 0.15)
}

// TestHierarchy: two stacks keep their own values, a stack with one point that
// says otherwise leans towards the others, and one without points has what its
// engine says.
func TestHierarchy(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	points := synthetic(200, trueHost, 1.4, 0.02, level("a"), r)
	points = append(points, synthetic(200, trueHost, 1.9, 0.02, level("b"), r)...)
	points = append(points, synthetic(1, trueHost, 4, 0.02, level("c"), r)...)
	points[len(points)-1].TTFT = 0
	m, err := Fit(t.Context(), points, start(software.HostStep, software.GEMMDecodeBF16, software.PrefillQueue))
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, level("a"), trueHost, 1.4, 0.1)
	check(t, m, level("b"), trueHost, 1.9, 0.1)
	few := m.At(level("c")).Values[software.GEMMDecodeBF16]
	if few < 1.4 || few > 3.8 {
		t.Errorf("one point that says 4 gives %v; want it drawn towards the engine's 1.4 to 1.9", few)
	}
	unknown := m.At(level("none")).Values[software.GEMMDecodeBF16]
	if unknown < 1.4 || unknown > 2 {
		t.Errorf("a stack without points has %v, want what its engine says", unknown)
	}
}

// TestWorkers: the number of workers does not change the answer, and the loss
// never rises at one noise scale.
func TestWorkers(t *testing.T) {
	fitted := func(workers int) software.Efficiency {
		r := rand.New(rand.NewPCG(4, 4))
		opt := start(software.HostStep, software.GEMMDecodeBF16)
		opt.Workers = workers
		last := math.Inf(1)
		opt.Progress = func(iteration int, loss float64) {
			if iteration > 0 && loss > last {
				t.Errorf("iteration %d: loss rises from %v to %v", iteration, last, loss)
			}
			last = loss
		}
		m, err := Fit(t.Context(), synthetic(60, trueHost, trueGEMM, 0.1, level("a"), r), opt)
		if err != nil {
			t.Fatal(err)
		}
		return m.At(level("a"))
	}
	if one, three := fitted(1), fitted(3); one != three {
		t.Errorf("one worker finds %v, three %v", one.Values, three.Values)
	}
}

// TestUnmeasured: a quantity that is not measured, or not predicted, pulls at
// nothing.
func TestUnmeasured(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	points := synthetic(100, trueHost, trueGEMM, 0, level("a"), r)
	for i := range points {
		points[i].TTFT = 0
	}
	points = append(points, Point{Predict: func(*software.Efficiency) (float64, float64) { return 0, 0 }, TPOT: 1, TTFT: 1})
	opt := start(software.HostStep, software.GEMMDecodeBF16, software.PrefillQueue)
	m, err := Fit(t.Context(), points, opt)
	if err != nil {
		t.Fatal(err)
	}
	e := m.At(level("a"))
	if got := e.Values[software.PrefillQueue]; got != opt.Start[software.PrefillQueue] {
		t.Errorf("a coefficient of what was not measured went to %v", got)
	}
	if got := e.Values[software.GEMMDecodeBF16]; math.Abs(got/trueGEMM-1) > 0.06 {
		t.Errorf("gemm = %v, want %v", got, trueGEMM)
	}
}

func TestNoPoints(t *testing.T) {
	if m, err := Fit(t.Context(), nil, Defaults()); !errors.Is(err, ErrNoPoints) || m != nil {
		t.Errorf("no points: %v, %v; want ErrNoPoints", m, err)
	}
}

func TestRound(t *testing.T) {
	for _, c := range []struct {
		v    float64
		n    int
		want float64
	}{{1.23456, 3, 1.23}, {3.0004e-4, 4, 3e-4}, {99.96, 3, 100}, {0, 4, 0}} {
		if got := round(c.v, c.n); got != c.want {
			t.Errorf("round(%v, %d) = %v, want %v", c.v, c.n, got, c.want)
		}
	}
}
