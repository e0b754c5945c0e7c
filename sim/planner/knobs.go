package planner

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"infera/internal/nearest"
	"infera/internal/strict"
	"infera/internal/units"
	"infera/sim/software"
	"infera/sim/step"
)

// knobsFile is where the effects of knobs are in the tree of data files.
const knobsFile = "knobs.yaml"

// knobs are the effects of recipe settings that no fit covers.
type knobs struct {
	Source     string               `yaml:"source"`
	GraphModes map[string]graphKnob `yaml:"graph_modes"`
	Attention  struct {
		Factors map[string]float64 `yaml:"factors"`
		Default map[string]string  `yaml:"default"` // by vendor
	} `yaml:"attention_backends"`
	FusedKernels float64                 `yaml:"fused_kernels"`
	Transfers    map[string]transferKnob `yaml:"transfer_backends"`
}

type graphKnob struct {
	StepUs       float64 `yaml:"step_us"`
	MixedPenalty float64 `yaml:"mixed_penalty"`
}

type transferKnob struct {
	GBPerS    float64 `yaml:"gb_per_s"`
	LatencyUs float64 `yaml:"latency_us"`
}

// effects is what the knobs of one request do.
type effects struct {
	overhead       units.Seconds
	mixedPenalty   float64
	attentionScale float64
	fused          float64
	eager          bool
	warnings       []Warning
}

// apply adds the effects to the options of a pricer.
func (e *effects) apply(o *step.Options) {
	o.StepOverhead += e.overhead
	if o.MixedPenalty == 0 {
		o.MixedPenalty = e.mixedPenalty
	}
	o.AttentionScale, o.FusedKernels = e.attentionScale, e.fused
}

// knobs returns the effects of knobs, read once.
func (l *Library) knobs() (*knobs, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.knobTable != nil {
		return l.knobTable, nil
	}
	data, err := fs.ReadFile(l.fsys, knobsFile)
	if err != nil {
		return nil, fmt.Errorf("read knobs: %w", err)
	}
	k := new(knobs)
	if err := strict.YAML(knobsFile, data, k); err != nil {
		return nil, err
	}
	l.knobTable = k
	return k, nil
}

// effects translates the settings of a request that are named rather than
// numbered.
func (l *Library) effects(r *Request, on *engineOn) (effects, error) {
	e := &r.Engineering
	if e.GraphMode == "" && e.AttentionBackend == "" && !e.FusedKernels {
		return effects{}, nil
	}
	k, err := l.knobs()
	if err != nil {
		return effects{}, err
	}
	var out effects
	if e.FusedKernels {
		out.fused = k.FusedKernels
		out.warn("fused_kernels", "fused small kernels keep %g of the fitted fixed layer times (%s)", k.FusedKernels, k.Source)
	}
	if err := k.graphs(e.GraphMode, on.defaults, &out); err != nil {
		return effects{}, err
	}
	if err := k.attention(e.AttentionBackend, r.GPU.Vendor, &out); err != nil {
		return effects{}, err
	}
	return out, nil
}

func (e *effects) warn(code, format string, args ...any) {
	e.warnings = append(e.warnings, Warning{code, fmt.Sprintf(format, args...)})
}

// graphs prices a graph mode against the one the engine starts with.
func (k *knobs) graphs(mode string, d *software.Defaults, out *effects) error {
	if mode == "" {
		return nil
	}
	asked, ok := k.GraphModes[mode]
	if !ok {
		return unknownKnob("graph mode", mode, k.GraphModes)
	}
	usual := decodeGraphs(d.Graphs.Mode)
	if mode == usual {
		return nil
	}
	base := k.GraphModes[usual]
	out.overhead = units.Seconds(max(0, asked.StepUs-base.StepUs) * 1e-6)
	out.mixedPenalty = max(0, asked.MixedPenalty-base.MixedPenalty)
	out.eager = mode == "none"
	out.warn("cudagraph_mode", "graph mode %s instead of the engine's %s is priced by representative costs (%s)", mode, usual, k.Source)
	return nil
}

// decodeGraphs returns the graphs that pure decode steps run in under an
// engine's own word for its mode.
func decodeGraphs(mode string) string {
	switch {
	case mode == "" || mode == "none":
		return "none"
	case strings.Contains(mode, "full"):
		return "full"
	case strings.Contains(mode, "piecewise"):
		return "piecewise"
	}
	return "full"
}

// attention scales the attention cores against those of the vendor's default
// backend.
func (k *knobs) attention(backend, vendor string, out *effects) error {
	if backend == "" {
		return nil
	}
	asked, ok := k.Attention.Factors[backend]
	if !ok {
		return unknownKnob("attention backend", backend, k.Attention.Factors)
	}
	usual, ok := k.Attention.Default[vendor]
	if !ok {
		return fmt.Errorf("%w: attention backend %s is not modelled on %s GPUs", ErrBadRequest, backend, vendor)
	}
	if backend == usual {
		return nil
	}
	out.attentionScale = asked / k.Attention.Factors[usual]
	out.warn("attention_backend", "attention backend %s instead of %s is priced by a representative factor of %.2f (%s)",
		backend, usual, out.attentionScale, k.Source)
	return nil
}

// transferRate returns bandwidth and latency of a named transfer library.
func (l *Library) transferRate(name string) (units.BytesPerSecond, units.Seconds, error) {
	k, err := l.knobs()
	if err != nil {
		return 0, 0, err
	}
	t, ok := k.Transfers[name]
	if !ok {
		return 0, 0, unknownKnob("transfer backend", name, k.Transfers)
	}
	return units.BytesPerSecond(t.GBPerS * 1e9), units.Seconds(t.LatencyUs * 1e-6), nil
}

func unknownKnob[V any](what, name string, known map[string]V) error {
	names := slices.Sorted(maps.Keys(known))
	hint := nearest.Hint(name, names)
	if hint == "" {
		hint = "known: " + strings.Join(names, ", ")
	}
	return fmt.Errorf("%w: unknown %s %q; %s", ErrBadRequest, what, name, hint)
}
