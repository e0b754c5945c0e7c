package software

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strings"
	"sync"

	"infera/internal/strict"
)

// Efficiencies are the fitted efficiencies of all engines, read from
// configs/engines/efficiency when they are asked for. Safe for concurrent use.
type Efficiencies struct {
	fsys fs.FS
	dir  string

	mu    sync.Mutex
	files map[string]*EfficiencyFile
}

// OpenEfficiencies returns the efficiencies under dir of fsys.
func OpenEfficiencies(fsys fs.FS, dir string) *Efficiencies {
	return &Efficiencies{fsys: fsys, dir: dir, files: map[string]*EfficiencyFile{}}
}

// EfficiencyFile is the file of one engine on one architecture,
// <engine>/<isa>.yaml; base.yaml holds what an unmeasured engine or
// architecture starts from.
type EfficiencyFile struct {
	Source string        `yaml:"source"`
	Stacks []StackValues `yaml:"stacks"`
}

// StackValues are the coefficients of an engine on one architecture.
type StackValues struct {
	ISA string `yaml:"isa"` // "" = any
	// Vendor is who makes the architecture: a relative is looked for among its
	// own.
	Vendor string             `yaml:"vendor,omitempty"`
	Points int                `yaml:"points"`
	Spread Spread             `yaml:"spread,flow"`
	Values map[string]float64 `yaml:"values"`
	// Floors bound the values of a calibration from below.
	Floors map[string]float64 `yaml:"floors,omitempty"`
	Epochs []EpochValues      `yaml:"epochs,omitempty"`
}

// EpochValues are the coefficients in which one release epoch of a stack
// differs from the stack.
type EpochValues struct {
	// From and To are the first and last day of the builds the values were
	// fitted on. Mixed marks points that are medians over builds of the whole
	// span.
	From   string             `yaml:"from"`
	To     string             `yaml:"to"`
	Mixed  bool               `yaml:"mixed,omitempty"`
	Points int                `yaml:"points"`
	Spread Spread             `yaml:"spread,flow"`
	Values map[string]float64 `yaml:"values,omitempty"`

	from, to Date
}

// Match says how well an efficiency fits what was asked for.
type Match struct {
	// Exact is set when the engine was measured on this architecture; Epoch
	// when it was at the asked release.
	Exact, Epoch bool
	// Points is how many measured points stand behind the values.
	Points int
	// Text names what was used: "sglang on gfx950, 2026-01..2026-03".
	Text string
}

// unmeasured widens the spread where no point of the engine on the
// architecture exists.
const unmeasured = 2

// Find returns the efficiency of an engine release on an instruction-set
// architecture. Without measurements of the engine there, those of the engine
// on a relative, then of any engine on the architecture's vendor are taken; the
// match says so. The caller must not modify the result.
func (e *Efficiencies) Find(engine, isa, vendor string, r Release) (Efficiency, Match, error) {
	base, err := e.file("base")
	if err != nil {
		return Efficiency{}, Match{}, err
	}
	out := Efficiency{Source: base.Source}
	start := base.stack(isa, vendor)
	if start == nil {
		return out, Match{}, fmt.Errorf("engine efficiencies: base has no values for %s", vendor)
	}
	if err := start.apply(&out, nil); err != nil {
		return out, Match{}, err
	}
	match := Match{Text: "typical engine on " + vendor}
	own, s, err := e.engine(engine, isa, vendor)
	if err != nil {
		return out, match, err
	}
	if s == nil {
		out.Spread = out.Spread.widened(unmeasured)
		return out, match, nil
	}
	out.Source = own.Source
	match = Match{Exact: s.ISA == isa, Points: s.Points, Text: engine + " on " + s.ISA}
	epoch := s.epoch(r)
	if err := s.apply(&out, epoch); err != nil {
		return out, match, err
	}
	if epoch != nil {
		match.Epoch = r.Date >= epoch.from && r.Date <= epoch.to
		match.Points = epoch.Points
		match.Text += fmt.Sprintf(", %s..%s", epoch.From, epoch.To)
	}
	if !match.Exact {
		out.Spread = out.Spread.widened(unmeasured)
	}
	return out, match, nil
}

// engine returns the file and the stack of an engine on an architecture, else
// those of the vendor's architecture it was measured on most; nil without any.
// Each architecture has a file of its own, so that one question reads little.
func (e *Efficiencies) engine(engine, isa, vendor string) (*EfficiencyFile, *StackValues, error) {
	f, err := e.file(engine + "/" + isa)
	if err == nil {
		return f, f.stack(isa, vendor), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	entries, err := fs.ReadDir(e.fsys, path.Join(e.dir, engine))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("engine efficiencies: %w", err)
	}
	var best *EfficiencyFile
	var most *StackValues
	for _, entry := range entries {
		f, err := e.file(engine + "/" + strings.TrimSuffix(entry.Name(), ".yaml"))
		if err != nil {
			return nil, nil, err
		}
		if s := f.stack(isa, vendor); s != nil && (most == nil || s.Points > most.Points) {
			best, most = f, s
		}
	}
	return best, most, nil
}

func (s Spread) widened(f float64) Spread {
	return Spread{TPOT: s.TPOT * f, TTFT: s.TTFT * f, Throughput: s.Throughput * f}
}

func (e *Efficiencies) file(name string) (*EfficiencyFile, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f, ok := e.files[name]; ok {
		return f, nil
	}
	p := path.Join(e.dir, name+".yaml")
	data, err := fs.ReadFile(e.fsys, p)
	if err != nil {
		return nil, fmt.Errorf("engine efficiencies: %w", err)
	}
	f := new(EfficiencyFile)
	if err := strict.YAML(p, data, f); err != nil {
		return nil, err
	}
	if err := f.prepare(p); err != nil {
		return nil, err
	}
	e.files[name] = f
	return f, nil
}

func (f *EfficiencyFile) prepare(p string) error {
	for i := range f.Stacks {
		s := &f.Stacks[i]
		if err := checkValues(s.Values); err != nil {
			return fmt.Errorf("%s: stack %s: %w", p, s.ISA, err)
		}
		if err := checkValues(s.Floors); err != nil {
			return fmt.Errorf("%s: stack %s: floors: %w", p, s.ISA, err)
		}
		for j := range s.Epochs {
			ep := &s.Epochs[j]
			if err := checkValues(ep.Values); err != nil {
				return fmt.Errorf("%s: stack %s, epoch %s: %w", p, s.ISA, ep.From, err)
			}
			var err error
			if ep.from, _, err = ParseDate(ep.From); err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
			if _, ep.to, err = ParseDate(ep.To); err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
		}
	}
	return nil
}

func checkValues(values map[string]float64) error {
	for name, v := range values {
		if _, err := ParseCoefficient(name); err != nil {
			return err
		}
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return fmt.Errorf("coefficient %s: %v is not a usable value", name, v)
		}
	}
	return nil
}

// stack returns the stack of an architecture, else the one of its vendor that
// has the most points, else one for any vendor; nil without any.
func (f *EfficiencyFile) stack(isa, vendor string) *StackValues {
	var best *StackValues
	for i := range f.Stacks {
		s := &f.Stacks[i]
		if s.ISA == isa && isa != "" {
			return s
		}
		if s.Vendor != "" && s.Vendor != vendor {
			continue
		}
		if best == nil || (best.Vendor == "" && s.Vendor != "") || (best.Vendor == s.Vendor && s.Points > best.Points) {
			best = s
		}
	}
	return best
}

// epoch returns the epoch of a release: for a span of builds the mixed epoch,
// for a single day the one that holds it, else the nearest one.
func (s *StackValues) epoch(r Release) *EpochValues {
	var best *EpochValues
	nearest := Date(math.MaxInt32)
	for i := range s.Epochs {
		ep := &s.Epochs[i]
		gap := Date(0)
		switch {
		case r.Date < ep.from:
			gap = ep.from - r.Date
		case r.Date > ep.to:
			gap = r.Date - ep.to
		}
		switch {
		case ep.Mixed != r.Mixed():
			gap += 10 * 365
		case ep.Mixed: // told apart by the start of the span
			gap = max(ep.from-r.From, r.From-ep.from)
		}
		if gap < nearest {
			best, nearest = ep, gap
		}
	}
	return best
}

// Mixed reports whether r stands for builds of so long a span that no single
// epoch describes it.
func (r Release) Mixed() bool { return r.Span() && r.To-r.From > mixedSpan }

// mixedSpan is the longest span of builds, in days, that still counts as one
// release epoch.
const mixedSpan = 45

func (s *StackValues) apply(e *Efficiency, epoch *EpochValues) error {
	set := func(values map[string]float64) error {
		for name, v := range values {
			c, err := ParseCoefficient(name)
			if err != nil {
				return err
			}
			e.Values[c] = v
		}
		return nil
	}
	if err := set(s.Values); err != nil {
		return err
	}
	e.Spread = s.Spread
	if epoch != nil {
		if err := set(epoch.Values); err != nil {
			return err
		}
		if epoch.Spread.TPOT > 0 {
			e.Spread = epoch.Spread
		}
	}
	return nil
}

// Start returns the values of the base file that hold for any architecture:
// where a calibration starts from.
func (e *Efficiencies) Start() (StackValues, error) {
	base, err := e.file("base")
	if err != nil {
		return StackValues{}, err
	}
	for _, s := range base.Stacks {
		if s.ISA == "" && s.Vendor == "" {
			return s, nil
		}
	}
	return StackValues{}, errors.New("engine efficiencies: base has no values for any architecture")
}
