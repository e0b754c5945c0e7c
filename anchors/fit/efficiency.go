package fit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"infera/sim/accuracy"
	"infera/sim/software"
)

// Calibration is a fit with its cross-validated residuals, ready to be
// written.
type Calibration struct {
	Model   *Model
	samples []Sample
	// residuals are log(measured/predicted) of each sample at coefficients
	// fitted without its fold: time per output token, time to first token,
	// throughput; NaN where not measured.
	residuals [][3]float64
	start     software.StackValues
}

// Calibrate fits the samples and cross-validates the fit in folds. start is
// the stack of any architecture of the base file: the values that effects
// multiply.
func Calibrate(ctx context.Context, samples []Sample, start software.StackValues, folds int, opt Options) (*Calibration, error) {
	for name, v := range start.Values {
		c, err := software.ParseCoefficient(name)
		if err != nil {
			return nil, err
		}
		opt.Start[c] = v
	}
	for name, v := range start.Floors {
		c, err := software.ParseCoefficient(name)
		if err != nil {
			return nil, err
		}
		opt.Floor[c] = v
	}
	for c := range software.NumCoefficients {
		if !(opt.Start[c] > opt.Floor[c]) {
			return nil, fmt.Errorf("fit: %s starts at %v, not above its floor of %v", c, opt.Start[c], opt.Floor[c])
		}
	}
	all := make([]Point, len(samples))
	for i := range samples {
		all[i] = samples[i].Point()
	}
	out := &Calibration{samples: samples, residuals: make([][3]float64, len(samples)), start: start}
	for f := range folds {
		var train []Point
		for i := range samples {
			if samples[i].Fold(folds) != f {
				train = append(train, all[i])
			}
		}
		m, err := Fit(ctx, train, opt)
		if err != nil {
			return nil, fmt.Errorf("fold %d: %w", f, err)
		}
		for i := range samples {
			if s := &samples[i]; s.Fold(folds) == f {
				e := m.At(s.Levels())
				out.residuals[i] = s.residual(&e)
			}
		}
	}
	var err error
	if out.Model, err = Fit(ctx, all, opt); err != nil {
		return nil, err
	}
	return out, nil
}

// residual returns log(measured/predicted) of the sample's quantities.
func (s *Sample) residual(e *software.Efficiency) [3]float64 {
	out := [3]float64{math.NaN(), math.NaN(), math.NaN()}
	r, err := s.Prepared.Solve(e)
	if err != nil {
		return out
	}
	p := s.Measured
	for q, v := range [3][2]float64{
		{p.TPOT, float64(r.TPOT)}, {p.TTFT, float64(r.TTFT)}, {p.TotalPerGPU, s.Prepared.TotalPerGPU(r.RequestRate)},
	} {
		if v[0] > 0 && v[1] > 0 {
			out[q] = math.Log(v[0] / v[1])
		}
	}
	return out
}

// Unseen returns the pairs of configurations the fit had not seen, as
// cross-validation predicted them: time per output token, time to first token
// and throughput.
func (c *Calibration) Unseen() (tpot, ttft, throughput []accuracy.Pair) {
	out := [3]*[]accuracy.Pair{&tpot, &ttft, &throughput}
	for i := range c.samples {
		p := c.samples[i].Measured
		measured := [3]float64{p.TPOT, p.TTFT, p.TotalPerGPU}
		for q, r := range c.residuals[i] {
			if !math.IsNaN(r) {
				*out[q] = append(*out[q], accuracy.Pair{
					Measured: measured[q], Predicted: measured[q] * math.Exp(-r), Curve: p.Curve(),
				})
			}
		}
	}
	return tpot, ttft, throughput
}

// The fewest cross-validated points a band is taken from; smaller groups use
// the band of the group above.
const fewest = 30

// spread returns the band half-widths of the samples that match.
func (c *Calibration) spread(match func(*Sample) bool, above software.Spread) software.Spread {
	var abs [3][]float64
	for i := range c.samples {
		if !match(&c.samples[i]) {
			continue
		}
		for q, r := range c.residuals[i] {
			if !math.IsNaN(r) {
				abs[q] = append(abs[q], math.Abs(r))
			}
		}
	}
	width := func(v []float64, above float64) float64 {
		if len(v) < fewest {
			return above
		}
		slices.Sort(v)
		return round(v[int(software.BandCoverage*float64(len(v)-1))], 3)
	}
	return software.Spread{TPOT: width(abs[0], above.TPOT), TTFT: width(abs[1], above.TTFT), Throughput: width(abs[2], above.Throughput)}
}

// ByVendor splits samples by the vendor of their GPU. Vendors share neither
// kernels nor engine builds, so each is calibrated apart.
func ByVendor(samples []Sample) map[string][]Sample {
	out := map[string][]Sample{}
	for _, s := range samples {
		v := s.Request.GPU.Vendor
		out[v] = append(out[v], s)
	}
	return out
}

// AddTo adds the calibrated stacks to efficiency files called engine/isa, and
// those of the architectures to the one called base.
func (c *Calibration) AddTo(files map[string]*software.EfficiencyFile, source string) {
	base := files["base"]
	if base == nil {
		base = &software.EfficiencyFile{Source: source, Stacks: []software.StackValues{c.start}}
		files["base"] = base
	}
	all := c.spread(func(*Sample) bool { return true }, c.start.Spread)
	widths := map[string]software.Spread{}
	for _, isa := range c.groups(LevelArchitecture, "") {
		levels := [NumLevels]string{LevelArchitecture: isa}
		match := func(s *Sample) bool { return s.Levels()[LevelArchitecture] == isa }
		widths[isa] = c.spread(match, all)
		base.Stacks = append(base.Stacks, software.StackValues{
			ISA: isa, Vendor: c.vendor(match), Points: c.count(match), Spread: widths[isa], Values: c.values(levels),
		})
	}
	for _, stack := range c.groups(LevelStack, "") {
		var levels [NumLevels]string
		var engine string
		for i := range c.samples {
			if l := c.samples[i].Levels(); l[LevelStack] == stack {
				levels, engine = l, c.samples[i].Request.Engine.Name
				break
			}
		}
		levels[LevelEpoch], levels[LevelBuild] = "", ""
		isa := levels[LevelArchitecture]
		files[engine+"/"+isa] = &software.EfficiencyFile{
			Source: source, Stacks: []software.StackValues{c.stack(levels, widths[isa])},
		}
	}
}

func (c *Calibration) stack(levels [NumLevels]string, above software.Spread) software.StackValues {
	match := func(s *Sample) bool { return s.Levels()[LevelStack] == levels[LevelStack] }
	out := software.StackValues{ISA: levels[LevelArchitecture], Vendor: c.vendor(match), Points: c.count(match), Spread: c.spread(match, above), Values: c.values(levels)}
	for _, at := range c.leaves(levels[LevelStack]) {
		in := func(s *Sample) bool { return s.Levels() == at }
		e := software.EpochValues{Points: c.count(in), Spread: c.spread(in, out.Spread)}
		for i := range c.samples {
			if s := &c.samples[i]; in(s) {
				r := s.Request.Release
				e.From, e.To = earlier(e.From, r.From.String()), later(e.To, r.To.String())
				e.Mixed = r.Mixed()
			}
		}
		full := c.values(at)
		for name, v := range full {
			if math.Abs(math.Log(v/out.Values[name])) < 0.01 {
				delete(full, name)
			}
		}
		e.Values = full
		out.Epochs = append(out.Epochs, e)
	}
	return out
}

func earlier(a, b string) string {
	if a == "" || b < a {
		return b
	}
	return a
}

func later(a, b string) string {
	if b > a {
		return b
	}
	return a
}

// values returns the coefficients at the groups of levels.
func (c *Calibration) values(levels [NumLevels]string) map[string]float64 {
	e := c.Model.At(levels)
	out := make(map[string]float64, software.NumCoefficients)
	for k := range software.NumCoefficients {
		out[k.String()] = round(e.Values[k], 4)
	}
	return out
}

// vendor returns the vendor of the GPUs of matching samples.
func (c *Calibration) vendor(match func(*Sample) bool) string {
	for i := range c.samples {
		if s := &c.samples[i]; match(s) {
			return s.Request.GPU.Vendor
		}
	}
	return ""
}

func (c *Calibration) count(match func(*Sample) bool) int {
	n := 0
	for i := range c.samples {
		if match(&c.samples[i]) {
			n++
		}
	}
	return n
}

// leaves lists the most special groups of a stack, in order: its builds, and
// the epochs of points that mix builds.
func (c *Calibration) leaves(stack string) [][NumLevels]string {
	seen := map[string][NumLevels]string{}
	for i := range c.samples {
		if l := c.samples[i].Levels(); l[LevelStack] == stack {
			seen[l[LevelEpoch]+"|"+l[LevelBuild]] = l
		}
	}
	var out [][NumLevels]string
	for _, k := range sortedKeys(seen) {
		out = append(out, seen[k])
	}
	return out
}

// groups lists the groups of a level, in order, of one stack if given.
func (c *Calibration) groups(level int, stack string) []string {
	seen := map[string]bool{}
	for i := range c.samples {
		l := c.samples[i].Levels()
		if stack == "" || l[LevelStack] == stack {
			seen[l[level]] = true
		}
	}
	return sortedKeys(seen)
}

// round keeps n significant digits.
func round(v float64, n int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64)
	if err != nil {
		return v
	}
	return r
}
