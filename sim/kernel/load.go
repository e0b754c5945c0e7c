package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"infera/internal/nearest"
	"infera/internal/strict"
	"infera/sim/hardware"
)

// Dir is the directory of the curves in the tree of shipped files.
const Dir = "kernels"

// ErrNoCurves is the kind of the error of a part that no file of curves speaks
// for.
var ErrNoCurves = errors.New("no kernel curves")

// Load reads every file of curves in the directory kernels of fsys, in the order
// of their names. Unknown keys, unknown families, missing families and numbers
// out of range are errors.
func Load(fsys fs.FS) ([]*Curves, error) {
	entries, err := fs.ReadDir(fsys, Dir)
	if err != nil {
		return nil, fmt.Errorf("read kernel curves: %w", err)
	}
	var all []*Curves
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".yaml" {
			continue
		}
		c, err := loadFile(fsys, path.Join(Dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func loadFile(fsys fs.FS, name string) (*Curves, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("read kernel curves: %w", err)
	}
	return Decode(name, data)
}

// Decode reads one file of curves; name is used in messages only.
func Decode(name string, data []byte) (*Curves, error) {
	c := new(Curves)
	if err := strict.YAML(name, data, c); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// LoadCurves returns the curves of gpu from the directory kernels of fsys. The
// part's own instruction set wins (of several files the one closest in compute
// units), then its architecture, then a file that names the architecture among
// those it stands in for. The result says which (StandIn); a part nobody speaks
// for is an error of kind [ErrNoCurves].
func LoadCurves(fsys fs.FS, gpu *hardware.GPU) (*Curves, error) {
	if gpu == nil {
		return nil, fmt.Errorf("%w: no GPU given", ErrNoCurves)
	}
	heads, names, err := headers(fsys)
	if err != nil {
		return nil, err
	}
	best, bestRank := -1, math.Inf(1)
	for i := range heads {
		if r := heads[i].distance(gpu); r < bestRank {
			best, bestRank = i, r
		}
	}
	if best < 0 {
		return nil, fmt.Errorf("%w for %s (isa %q, architecture %q); known: %s", ErrNoCurves, gpu.Name, gpu.ISA, gpu.Arch, served(heads))
	}
	c, err := loadFile(fsys, names[best])
	if err != nil {
		return nil, err
	}
	c.StandIn = bestRank >= standInRank
	return c, nil
}

// header is what chooses among files of curves; the keys are those of [Curves].
type header struct {
	Name          string   `yaml:"name"`
	Vendor        string   `yaml:"vendor"`
	ISA           string   `yaml:"isa"`
	Arch          string   `yaml:"arch"`
	ComputeUnits  int      `yaml:"compute_units"`
	Power         float64  `yaml:"power_w"`
	StandsInFor   []string `yaml:"stands_in_for"`
	StandInSpread float64  `yaml:"stand_in_spread"`
	Source        string   `yaml:"source"`
}

// headers reads the part of every file above its curves: decoding all curves to
// take one would be most of the start-up of a command.
func headers(fsys fs.FS) (heads []header, names []string, err error) {
	entries, err := fs.ReadDir(fsys, Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read kernel curves: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".yaml" {
			continue
		}
		name := path.Join(Dir, e.Name())
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, nil, fmt.Errorf("read kernel curves: %w", err)
		}
		top, _, found := bytes.Cut(data, []byte("\nmatrix:"))
		if !found {
			return nil, nil, fmt.Errorf("%s: no key matrix after the part's own", name)
		}
		var h header
		if err := strict.YAML(name, top, &h); err != nil {
			return nil, nil, err
		}
		heads, names = append(heads, h), append(names, name)
	}
	return heads, names, nil
}

const (
	archRank    = 10
	standInRank = 20
)

// distance ranks the curves for a part: same instruction set by the logarithms of
// the unit and power ratios, same architecture, stand-in, or +Inf.
func (c *header) distance(gpu *hardware.GPU) float64 {
	off := 0.0
	if gpu.ComputeUnits > 0 && c.ComputeUnits > 0 {
		off = math.Abs(math.Log(float64(gpu.ComputeUnits) / float64(c.ComputeUnits)))
	}
	if gpu.Power > 0 && c.Power > 0 {
		off += math.Abs(math.Log(float64(gpu.Power) / c.Power))
	}
	switch {
	case gpu.ISA != "" && c.ISA == gpu.ISA:
		return off
	case gpu.Arch != "" && c.Arch == gpu.Arch:
		return archRank + off
	case gpu.Arch != "" && slices.Contains(c.StandsInFor, gpu.Arch):
		return standInRank + off
	}
	return math.Inf(1)
}

func served(all []header) string {
	var names []string
	for _, c := range all {
		names = append(names, c.Arch)
		names = append(names, c.StandsInFor...)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// validate checks that every family is there and no number is out of range, so
// that no price is negative, infinite or below its bound.
func (c *Curves) validate() error {
	errs := []error{
		complete(c.Matrix, familyNames[:numMatrix], MatrixCurve.check),
		complete(c.Prefill, familyNames[AttentionPrefillCore:AttentionDecodeCore], PrefillCurve.check),
		complete(c.Decode, familyNames[AttentionDecodeCore:RecurrentDecode], DecodeCurve.check),
		complete(c.Pass, familyNames[RecurrentDecode:numFamilies], PassCurve.check),
	}
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("kernel curves of %s: %w", c.Name, err)
		}
	}
	if !(c.StandInSpread >= 0 && c.StandInSpread < 10) {
		return fmt.Errorf("kernel curves of %s: stand_in_spread %g is not within 0..10", c.Name, c.StandInSpread)
	}
	return nil
}

func complete[T any](m map[string]T, known []string, check func(T) error) error {
	for _, name := range known {
		curve, ok := m[name]
		if !ok {
			return fmt.Errorf("family %s is missing", name)
		}
		if err := check(curve); err != nil {
			return fmt.Errorf("family %s: %w", name, err)
		}
	}
	if len(m) == len(known) {
		return nil
	}
	var odd []string
	for name := range m {
		if !slices.Contains(known, name) {
			odd = append(odd, name)
		}
	}
	slices.Sort(odd)
	text := fmt.Sprintf("unknown family %q", odd[0])
	if hint := nearest.Hint(odd[0], known); hint != "" {
		text += "; " + hint
	}
	return errors.New(text)
}

// within is one number and its range, both ends included.
type within struct {
	key           string
	value, lo, hi float64
}

func ranges(list ...within) error {
	for _, w := range list {
		if !(w.value >= w.lo && w.value <= w.hi) {
			return fmt.Errorf("%s %g is not within %g..%g", w.key, w.value, w.lo, w.hi)
		}
	}
	return nil
}

const (
	leastShare = 0.001
	longRamp   = 1e5 // us
	large      = 1e6
)

func (r Residual) ranges() within { return within{"residual.spread", r.Spread, 0, 10} }

func (c MatrixCurve) check() error {
	return ranges(
		within{"ramp_us", c.RampMicroseconds, 0, longRamp}, within{"memory", c.Memory, leastShare, 1},
		within{"compute", c.Compute, leastShare, 1}, within{"operand", c.Operand, 0, large},
		within{"prologue", c.Prologue, 0, large}, within{"split", c.Split, 1, large},
		within{"serial_ns", c.SerialNanoseconds, 0, large}, within{"reduce_ps", c.ReducePicoseconds, 0, large},
		within{"wave", c.Wave, 0, 1}, within{"overlap", c.Overlap, 0, 1}, within{"scatter", c.Scatter, 0, 10},
		within{"imbalance", c.Imbalance, 0, 1}, c.Residual.ranges(),
	)
}

func (c PrefillCurve) check() error {
	return ranges(
		within{"ramp_us", c.RampMicroseconds, 0, longRamp}, within{"memory", c.Memory, leastShare, 1},
		within{"compute", c.Compute, leastShare, 1}, within{"softmax", c.Softmax, 0, large},
		within{"tail", c.Tail, 0, 1}, within{"overlap", c.Overlap, 0, 1}, within{"narrow", c.Narrow, 0.1, 10},
		within{"prologue", c.Prologue, 0, large}, within{"narrow_ramp_us", c.NarrowRampMicroseconds, 0, longRamp}, within{"cached", c.Cached, 1, 1000}, within{"gather", c.Gather, leastShare, 1},
		c.Residual.ranges(),
	)
}

func (c DecodeCurve) check() error {
	return ranges(
		within{"ramp_us", c.RampMicroseconds, 0, longRamp}, within{"memory", c.Memory, leastShare, 1},
		within{"cast_ps", c.CastPicoseconds, 0, large}, within{"narrow_ramp_us", c.NarrowRampMicroseconds, 0, longRamp}, within{"compute", c.Compute, leastShare, 1},
		within{"rows", c.Rows, 1, 1024}, within{"item_ns", c.ItemNanoseconds, 0, large},
		within{"serial_ns", c.SerialNanoseconds, 0, large}, within{"split", c.Split, 1, large},
		within{"overlap", c.Overlap, 0, 1}, c.Residual.ranges(),
	)
}

func (c PassCurve) check() error {
	return ranges(
		within{"ramp_us", c.RampMicroseconds, 0, longRamp}, within{"memory", c.Memory, leastShare, 1},
		within{"compute", c.Compute, leastShare, 1}, within{"chunk", c.Chunk, 0, 4096}, c.Residual.ranges(),
	)
}
