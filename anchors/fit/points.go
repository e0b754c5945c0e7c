package fit

import (
	"errors"
	"fmt"
	"hash/fnv"
	"sort"
	"strings"

	"infera/sim/accuracy"
	"infera/sim/planner"
	"infera/sim/software"
)

// Sample is a measured point that can be predicted.
type Sample struct {
	Measured *accuracy.Point
	Request  *planner.Request
	Prepared *planner.Prepared
	Epoch    string
}

// Samples prepares the points that can be predicted; skipped counts the others
// by reason.
func Samples(l *planner.Library, points []accuracy.Point) (samples []Sample, skipped map[string]int, err error) {
	skipped = map[string]int{}
	for i := range points {
		p := &points[i]
		if p.TPOT <= 0 && p.TTFT <= 0 {
			skipped["no latency"]++
			continue
		}
		r, err := l.FromPoint(p)
		if errors.Is(err, planner.ErrSkip) {
			skipped[err.Error()]++
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", p.Line, err)
		}
		prepared, err := l.PreparePoint(r)
		if errors.Is(err, planner.ErrSkip) {
			skipped[err.Error()]++
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", p.Line, err)
		}
		samples = append(samples, Sample{Measured: p, Request: r, Prepared: prepared, Epoch: planner.EpochOf(r.Release)})
	}
	return samples, skipped, nil
}

// Levels returns the groups of a sample in the hierarchy of effects.
func (s *Sample) Levels() [NumLevels]string {
	stack := s.Request.Stack()
	return [NumLevels]string{
		LevelArchitecture: s.Request.GPU.ISA,
		LevelEngine:       kernels(s.Request.Engine),
		LevelStack:        stack,
		LevelEpoch:        stack + "|" + s.Epoch,
		LevelBuild:        s.build(stack),
	}
}

// build names the single build of a sample or, when it is a median over builds,
// their span: points of one span mix the same builds.
func (s *Sample) build(stack string) string {
	r := s.Request.Release
	if r.Mixed() {
		return stack + "|" + r.From.String() + ".." + r.To.String()
	}
	return stack + "|" + r.Date.String()
}

// kernels names whose kernels an engine runs: a plug-in brings those of its
// own project into its host's scheduler.
func kernels(e *software.Engine) string {
	if e.Host != "" {
		return strings.TrimSuffix(e.Name, "-"+e.Host)
	}
	return e.Name
}

// Point returns the fit's view of a sample.
func (s *Sample) Point() Point {
	return Point{
		Predict: s.predict, TPOT: s.Measured.TPOT, TTFT: s.Measured.TTFT, Levels: s.Levels(),
	}
}

func (s *Sample) predict(e *software.Efficiency) (tpot, ttft float64) {
	r, err := s.Prepared.Solve(e)
	if err != nil {
		return 0, 0
	}
	return float64(r.TPOT), float64(r.TTFT)
}

// Fold returns the cross-validation fold of a sample: all points of one
// configuration (GPU, model, format, engine, TP, lengths) share a fold, as
// the points of a new configuration would.
func (s *Sample) Fold(folds int) int {
	p := s.Measured
	h := fnv.New32a()
	fmt.Fprintf(h, "%s|%s|%s|%s|%d|%v|%v", p.GPU, p.Model, p.WeightDType, p.Engine, p.TP, p.InputLen, p.OutputLen)
	return int(h.Sum32() % uint32(folds))
}

// sortedKeys returns the keys of m in order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
