package calibrate

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"

	"infera/sim/hardware"
	"infera/sim/kernel"
)

// WarmShare is the share of the HBM bandwidth above which a measured time is
// taken for one with a warm cache.
const WarmShare = 0.95

// minRows is the least number of rows that fits a curve.
const minRows = 12

// ErrFewRows is the kind of the error of a family with too few measurements.
var ErrFewRows = errors.New("too few rows")

// Options limits a fit; the zero value is the documented default.
type Options struct {
	// Evaluations bounds the calls of the objective of each of the three
	// restarts; 0 = 600.
	Evaluations int
	// MaxRows bounds the rows the objective prices; 0 = 6000. The residuals are
	// of all rows.
	MaxRows int
	// Free lists the keys of the numbers that may move; nil = all of the curve.
	Free []string
	// Families lists what [Refit] fits; nil = the families whose curve states a
	// fit already.
	Families []kernel.Family
}

// Summary says how a fitted family does in one range of sizes.
type Summary struct {
	Family kernel.Family
	// From and To bound Row.Size.
	From, To float64
	HeldOut  bool
	Rows     int
	// Median and P90 of |model/measured - 1|, Bias the median of model/measured
	// - 1.
	Median, P90, Bias float64
}

// Usable returns the rows of one family on one part that are physically
// possible there and not cache-warm.
func Usable(gpu *hardware.GPU, start *kernel.Curves, rows []Row, partName string, family kernel.Family) ([]Row, error) {
	model, err := kernel.New(gpu, start)
	if err != nil {
		return nil, err
	}
	var kept []Row
	for _, r := range rows {
		if r.Part != partName || r.Family != family {
			continue
		}
		e := r.Price(model)
		if r.Seconds < float64(e.Lower) || float64(e.Bytes)/float64(gpu.Bandwidth) > WarmShare*r.Seconds {
			continue
		}
		kept = append(kept, r)
	}
	return kept, nil
}

// Fit returns start with the curve of family moved to fit the rows (see
// [Usable]) of the part gpu. start is not changed. The curve carries its
// residuals.
func Fit(gpu *hardware.GPU, start *kernel.Curves, family kernel.Family, rows []Row, o Options) (*kernel.Curves, error) {
	if len(rows) < minRows {
		return nil, fmt.Errorf("fit %s: %w: %d, at least %d are needed", family, ErrFewRows, len(rows), minRows)
	}
	curves := clone(start)
	knobs := knobsOf(curves, family, o.Free)
	if len(knobs) == 0 {
		return nil, fmt.Errorf("fit %s: nothing may move", family)
	}
	price, weights := sample(rows, cmpOr(o.MaxRows, 6000))
	origin := make([]float64, len(knobs))
	for i, k := range knobs {
		origin[i] = k.get()
	}
	objective := func(x []float64) float64 {
		for i, k := range knobs {
			k.set(x[i])
		}
		return loss(gpu, curves, price, weights) + pull(x, origin)
	}
	at, least := slices.Clone(origin), math.Inf(1)
	for range 3 {
		settings := &optimize.Settings{FuncEvaluations: cmpOr(o.Evaluations, 600)}
		result, err := optimize.Minimize(optimize.Problem{Func: objective}, at, settings, &optimize.NelderMead{})
		if result == nil {
			return nil, fmt.Errorf("fit %s: %w", family, err)
		}
		if result.F < least {
			at, least = slices.Clone(result.X), result.F
		}
	}
	for i, k := range knobs {
		k.set(at[i])
	}
	model, err := kernel.New(gpu, round(curves, family))
	if err != nil {
		return nil, fmt.Errorf("fit %s: %w", family, err)
	}
	setResidual(curves, family, residual(model, rows))
	return curves, nil
}

// SizeBounds are the ranges of Row.Size that [Refit] reports.
func SizeBounds() []float64 { return []float64{0, 16, 64, 256, 1024, 4096, 1e12} }

// Refit fits the families of start (see [Options.Families]) to the rows that were
// measured on partName, and summarises them in the order of the families. A family
// with too few rows keeps its curve.
func Refit(gpu *hardware.GPU, start *kernel.Curves, partName string, rows []Row, o Options) (*kernel.Curves, []Summary, error) {
	curves := start
	var summaries []Summary
	for _, f := range kernel.Families() {
		if o.Families == nil && start.Residual(f).Rows == 0 || o.Families != nil && !slices.Contains(o.Families, f) {
			continue
		}
		usable, err := Usable(gpu, curves, rows, partName, f)
		if err != nil {
			return nil, nil, err
		}
		fitted, err := Fit(gpu, curves, f, usable, o)
		if errors.Is(err, ErrFewRows) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		curves = fitted
		s, err := Summarise(gpu, curves, f, usable, SizeBounds())
		if err != nil {
			return nil, nil, err
		}
		summaries = append(summaries, s...)
	}
	return curves, summaries, nil
}

func cmpOr(v, def int) int {
	if v > 0 {
		return v
	}
	return def
}

// pull keeps numbers that the rows do not determine near where they started.
func pull(x, origin []float64) float64 {
	s := 0.0
	for i := range x {
		s += (x[i] - origin[i]) * (x[i] - origin[i])
	}
	return 0.0005 * s
}

func loss(gpu *hardware.GPU, c *kernel.Curves, rows []Row, weights []float64) float64 {
	model, err := kernel.New(gpu, c)
	if err != nil {
		return math.Inf(1)
	}
	sum, total := 0.0, 0.0
	for i := range rows {
		sum += weights[i] * math.Abs(math.Log(float64(rows[i].Price(model).Time)/rows[i].Seconds))
		total += weights[i]
	}
	return sum / total
}

// sample picks at most limit rows outside the held-out shapes, evenly per octave
// of size, and weighs them so that octaves count alike.
func sample(rows []Row, limit int) ([]Row, []float64) {
	octaves := map[int][]Row{}
	for _, r := range rows {
		if !r.HeldOut {
			o := int(math.Log2(math.Max(1, r.Size)))
			octaves[o] = append(octaves[o], r)
		}
	}
	keys := slices.Sorted(maps.Keys(octaves))
	each := limit/max(1, len(keys)) + 1
	var kept []Row
	var weights []float64
	for _, o := range keys {
		list := octaves[o]
		w := math.Min(1, float64(len(list))/30)
		if o <= 8 {
			w *= 2
		}
		step := (len(list) + each - 1) / each
		n := (len(list) + step - 1) / step
		for i := 0; i < len(list); i += step {
			kept = append(kept, list[i])
			weights = append(weights, w/float64(n))
		}
	}
	return kept, weights
}

// errorsOf returns model/measured - 1 of the rows for which take is true.
func errorsOf(m *kernel.Model, rows []Row, take func(*Row) bool) []float64 {
	var list []float64
	for i := range rows {
		if take(&rows[i]) {
			list = append(list, float64(rows[i].Price(m).Time)/rows[i].Seconds-1)
		}
	}
	slices.Sort(list)
	return list
}

func quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(p*float64(len(sorted)-1))]
}

func absolute(list []float64) []float64 {
	out := make([]float64, len(list))
	for i, v := range list {
		out[i] = math.Abs(v)
	}
	slices.Sort(out)
	return out
}

// z80 is the half width of the central 80 % of a normal distribution.
const z80 = 1.2816

// Judge returns the residuals of curves over rows of one family.
func Judge(gpu *hardware.GPU, curves *kernel.Curves, rows []Row) (kernel.Residual, error) {
	m, err := kernel.New(gpu, curves)
	if err != nil {
		return kernel.Residual{}, err
	}
	return residual(m, rows), nil
}

func residual(m *kernel.Model, rows []Row) kernel.Residual {
	fitted := errorsOf(m, rows, func(r *Row) bool { return !r.HeldOut })
	held := errorsOf(m, rows, func(r *Row) bool { return r.HeldOut })
	all := errorsOf(m, rows, func(*Row) bool { return true })
	a := absolute(fitted)
	low, high := quantile(all, 0.1), quantile(all, 0.9)
	return kernel.Residual{
		Rows: len(fitted), HeldOut: len(held), Median: digits(quantile(a, 0.5)), P90: digits(quantile(a, 0.9)),
		HeldOutMedian: digits(quantile(absolute(held), 0.5)),
		Spread:        digits((math.Log1p(high) - math.Log1p(low)) / (2 * z80)),
	}
}

// Summarise reports the errors of curves over the rows, by range of size, fitted
// and held-out apart.
func Summarise(gpu *hardware.GPU, curves *kernel.Curves, family kernel.Family, rows []Row, bounds []float64) ([]Summary, error) {
	m, err := kernel.New(gpu, curves)
	if err != nil {
		return nil, err
	}
	var out []Summary
	for _, held := range []bool{false, true} {
		for i := range bounds[1:] {
			from, to := bounds[i], bounds[i+1]
			list := errorsOf(m, rows, func(r *Row) bool { return r.HeldOut == held && r.Size >= from && r.Size < to })
			if len(list) == 0 {
				continue
			}
			a := absolute(list)
			out = append(out, Summary{family, from, to, held, len(list), quantile(a, 0.5), quantile(a, 0.9), quantile(list, 0.5)})
		}
	}
	return out, nil
}
