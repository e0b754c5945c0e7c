package probe

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"infera/internal/units"
	"infera/sim/hardware"
)

// Device is one accelerator found on the machine.
type Device struct {
	Vendor string // amd, nvidia
	Index  int    // as the driver counts
	Name   string // as the driver says, may be empty
	ID     string // unique id or UUID, may be empty
	// GPU is the profile to plan with; nil when none could be given, and then
	// Problem says why.
	GPU     *hardware.GPU
	Problem string
	// Matched is set when GPU is a shipped profile, not one derived from it.
	Matched bool
}

// facts are what a driver tells about a device; zero = not told.
type facts struct {
	name, isa string
	units     int // compute units
	chiplets  int
	clock     units.Hertz
	memory    units.Bytes
}

// memoryTolerance covers what drivers keep for themselves and the difference
// between what they and the runtime report (H200: 140.4 and 139.8 GiB); the
// closest sizes of one instruction set are a third apart.
const memoryTolerance = 0.04

// agrees reports that no fact contradicts the profile.
func (f facts) agrees(g *hardware.GPU) bool {
	if f.units > 0 && f.units != g.ComputeUnits {
		return false
	}
	return f.memory <= 0 || math.Abs(float64(f.memory/g.Capacity)-1) <= memoryTolerance
}

// identify finds the profile of a device or derives one.
func identify(c *hardware.Catalog, f facts) (g *hardware.GPU, matched bool, err error) {
	named, nameErr := c.Lookup(f.name)
	if nameErr == nil && f.agrees(named) {
		return named, true, nil
	}
	base := named
	if nameErr != nil {
		same := sameISA(c, f.isa)
		if len(same) == 0 {
			return nil, false, fmt.Errorf("no profile has its name %q or instruction set %q: %w", f.name, f.isa, hardware.ErrUnknownGPU)
		}
		fitting := slices.DeleteFunc(slices.Clone(same), func(g *hardware.GPU) bool { return !f.agrees(g) })
		switch {
		case len(fitting) > 0 && f.units > 0:
			// A driver's name may be empty or an odd variant; units and memory decide.
			return closestClock(fitting, f.clock), true, nil
		case len(fitting) > 0:
			base = closestClock(fitting, f.clock)
		default:
			base = closestUnits(same, f.units)
		}
	}
	g = derive(base, f)
	return g, false, g.Validate()
}

func sameISA(c *hardware.Catalog, isa string) []*hardware.GPU {
	if isa == "" {
		return nil
	}
	var found []*hardware.GPU
	for _, name := range c.Names() {
		if g, err := c.Lookup(name); err == nil && g.ISA == isa {
			found = append(found, g)
		}
	}
	return found
}

// closestClock tells parts apart that differ in nothing else (MI350X, MI355X).
func closestClock(gs []*hardware.GPU, clock units.Hertz) *hardware.GPU {
	return slices.MinFunc(gs, func(x, y *hardware.GPU) int {
		return cmp.Compare(math.Abs(float64(x.Clock-clock)), math.Abs(float64(y.Clock-clock)))
	})
}

func closestUnits(gs []*hardware.GPU, n int) *hardware.GPU {
	return slices.MinFunc(gs, func(x, y *hardware.GPU) int {
		return cmp.Compare(math.Abs(float64(x.ComputeUnits-n)), math.Abs(float64(y.ComputeUnits-n)))
	})
}

// derive scales base to the device: arithmetic by compute units and clock,
// memory bandwidth and L2 by compute units (a partition of a package owns its
// share of both; a part with fewer units may have more, which the note says).
func derive(base *hardware.GPU, f facts) *hardware.GPU {
	g := *base
	g.Aliases, g.Marketed = nil, 0
	share, speed := 1.0, 1.0
	if f.units > 0 {
		share = float64(f.units) / float64(base.ComputeUnits)
		g.ComputeUnits = f.units
	}
	if f.clock > 0 {
		speed = float64(f.clock / base.Clock)
		g.Clock = f.clock
	}
	if f.chiplets > 0 {
		g.Chiplets = f.chiplets
	}
	rate := units.FLOPsPerSecond(share * speed)
	p := &g.Peaks
	for _, r := range []*units.FLOPsPerSecond{&p.FP32, &p.BF16, &p.FP16, &p.FP8, &p.FP6, &p.FP4, &p.INT8, &g.VectorFP32} {
		*r *= rate
	}
	if share < 1 {
		g.Bandwidth *= units.BytesPerSecond(share)
		g.L2 *= units.Bytes(share)
	}
	if f.memory > 0 {
		g.Capacity, g.Usable = f.memory, 0
	}
	g.Name = fmt.Sprintf("%s-%dcu-%.0fgib", cmp.Or(f.isa, base.ISA), g.ComputeUnits, math.Round(g.Capacity.GiB()))
	g.Confidence = "probed"
	g.Source = fmt.Sprintf("probed %q, derived from %s", f.name, base.Name)
	g.Notes = []string{
		fmt.Sprintf("Peaks are those of %s x %.3g (compute units) x %.3g (clock).", base.Name, share, speed),
		fmt.Sprintf("Memory bandwidth is that of %s x %.3g; links, caches and power are its own. State better figures with --hardware.",
			base.Name, min(share, 1)),
	}
	return &g
}
