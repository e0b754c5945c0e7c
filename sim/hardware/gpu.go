package hardware

import (
	"fmt"

	"infera/internal/units"
	"infera/models"
)

// Rates holds one arithmetic peak per operand type; a zero means the part has
// no matrix instruction for it (see [GPU.Peak]).
type Rates struct {
	FP32, BF16, FP16, FP8, FP6, FP4, INT8 units.FLOPsPerSecond
}

// GPU is one accelerator device as the data sheet and measurements describe
// it. All numbers come from configs/hardware, an overlay or a probe.
type GPU struct {
	Name    string   // mi355x, h200, ...
	Aliases []string // gfx950, ...
	Vendor  string   // amd, nvidia, cpu
	Arch    string   // cdna3, cdna4, hopper, blackwell, ...
	ISA     string   // gfx942, gfx950, sm_90, ...
	// ComputeUnits counts CUs (AMD), SMs (NVIDIA) or cores (CPU) of the device;
	// Chiplets counts XCDs (1 for a monolithic part).
	ComputeUnits, Chiplets int
	// DevicesPerPackage is how many such devices share a package: 2 for an
	// MI250X, 1 for all other parts.
	DevicesPerPackage int
	// Clock is the highest engine clock, at which the peaks are stated.
	Clock units.Hertz
	// MemoryType is HBM3e, ...; Marketed is the size printed on the data sheet
	// in its own "GB" (192 for an MI300X), which is a name, not a quantity.
	MemoryType string
	Marketed   int
	// Capacity is the HBM size of the data sheet; Usable is what a process is
	// told as total, when it is known to differ (0 = Capacity).
	Capacity, Usable units.Bytes
	Bandwidth        units.BytesPerSecond
	// L2 and LastLevel are cache sizes of the device; Scratchpad is LDS or
	// shared memory per compute unit. 0 = not disclosed or none.
	L2, LastLevel, Scratchpad units.Bytes
	LastLevelBandwidth        units.BytesPerSecond
	Peaks                     Rates
	VectorFP32                units.FLOPsPerSecond // vector (not matrix) fp32
	// Fabric names the scale-up fabric of configs/fabrics the part sits in.
	Fabric string
	// ScaleUp is the one-direction bandwidth to all peers together; Links and
	// LinkBandwidth are its parts.
	ScaleUp, LinkBandwidth units.BytesPerSecond
	Links                  int
	// HostLink is the one-direction bandwidth to host memory.
	HostLink units.BytesPerSecond
	Power    units.Watts // of the device, at full load
	// Announced marks a part whose numbers are not final.
	Announced  bool
	Source     string
	Confidence string // confirmed, recalled, derived, announced, probed, stated
	// Notes say how far single numbers can be trusted.
	Notes []string
}

// UsableCapacity returns the memory a process can see.
func (g *GPU) UsableCapacity() units.Bytes {
	if g.Usable > 0 {
		return g.Usable
	}
	return g.Capacity
}

// WithCapacity returns a copy of g whose memory, total and usable, is b: what
// a user states replaces what the profile knows. A size outside (0, 1 PB) is
// an error.
func (g *GPU) WithCapacity(b units.Bytes) (*GPU, error) {
	if err := inRange("memory capacity", float64(b), maxCapacity); err != nil {
		return nil, err
	}
	c := *g
	c.Capacity, c.Usable, c.Marketed = b, b, 0
	return &c, nil
}

// Peak returns the dense matrix rate with operands of type d. A part without
// instructions for d computes at the next wider type it has (fp4 on gfx942
// runs as bf16 after dequantisation), so the result is never zero for a loaded
// profile.
func (g *GPU) Peak(d models.DType) units.FLOPsPerSecond {
	if r := g.Peaks.of(d); r > 0 {
		return r
	}
	if d == models.FP32 && g.VectorFP32 > 0 {
		return g.VectorFP32
	}
	return g.Peaks.BF16
}

// Supports reports whether the part has matrix instructions for operands of
// type d.
func (g *GPU) Supports(d models.DType) bool { return g.Peaks.of(d) > 0 }

// of returns the rate stated for d; 0 = none.
func (p Rates) of(d models.DType) units.FLOPsPerSecond {
	switch d {
	case models.FP32:
		return p.FP32
	case models.BF16:
		return p.BF16
	case models.FP16:
		return p.FP16
	case models.FP8:
		return p.FP8
	case models.FP6:
		return p.FP6
	case models.FP4:
		return p.FP4
	case models.INT8:
		return p.INT8
	default:
		return 0
	}
}

// String returns a one-line summary: "mi300x (gfx942, 304 CUs, 191.98 GiB,
// 5.30 TB/s)".
func (g *GPU) String() string {
	kind := map[string]string{"amd": "CUs", "nvidia": "SMs", "cpu": "threads"}[g.Vendor]
	return fmt.Sprintf("%s (%s, %d %s, %.2f GiB, %.2f TB/s)", g.Name, g.ISA, g.ComputeUnits, kind,
		g.UsableCapacity().GiB(), float64(g.Bandwidth)/1e12)
}

// Validate reports the first figure a plan needs that is missing or out of
// range. A profile of a [Catalog] passes; one put together elsewhere (a probe,
// a test) should be asked.
func (g *GPU) Validate() error {
	for _, n := range []number{
		{key: "compute units", value: float64(g.ComputeUnits), limit: maxCount},
		{key: "clock", value: float64(g.Clock), limit: maxClock},
		{key: "memory capacity", value: float64(g.UsableCapacity()), limit: maxCapacity},
		{key: "memory bandwidth", value: float64(g.Bandwidth), limit: maxBandwidth},
		{key: "bf16 peak", value: float64(g.Peaks.BF16), limit: maxRate},
		{key: "vector fp32 peak", value: float64(g.VectorFP32), limit: maxRate},
		{key: "host link", value: float64(g.HostLink), limit: maxBandwidth},
	} {
		if err := inRange(n.key, n.value, n.limit); err != nil {
			return fmt.Errorf("%s: %w", g.Name, err)
		}
	}
	return nil
}
