package hardware

import (
	"infera/internal/units"
	"infera/models"
)

// Rates holds one arithmetic peak per operand type; a zero means the part has
// no matrix instruction for it (see [GPU.Peak]).
type Rates struct {
	FP32, BF16, FP16, FP8, FP6, FP4, INT8 units.FLOPsPerSecond
}

// GPU is one accelerator package as the data sheet and measurements describe
// it. All numbers come from configs/hardware.
type GPU struct {
	Name    string   // mi355x, h200, ...
	Aliases []string // gfx950, ...
	Vendor  string   // amd, nvidia, cpu
	Arch    string   // cdna3, cdna4, hopper, blackwell, ...
	ISA     string   // gfx942, gfx950, sm_90, ...
	// ComputeUnits counts CUs (AMD) or SMs (NVIDIA) of the package; Chiplets
	// counts XCDs (1 for a monolithic part).
	ComputeUnits, Chiplets int
	Clock                  units.Hertz
	// Capacity is the HBM size of the data sheet; Usable is what a driver
	// reports as total, when it is known to differ (0 = Capacity).
	Capacity, Usable units.Bytes
	Bandwidth        units.BytesPerSecond
	// L2 and LastLevel are cache sizes of the package; Scratchpad is LDS or
	// shared memory per compute unit.
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
	Power    units.Watts
	// Announced marks a part whose numbers are not final.
	Announced  bool
	Source     string
	Confidence string // confirmed, recalled, derived, announced, probed
}

// UsableCapacity returns the memory a process can see.
func (g *GPU) UsableCapacity() units.Bytes {
	if g.Usable > 0 {
		return g.Usable
	}
	return g.Capacity
}

// Peak returns the dense matrix rate with operands of type d. A part without
// instructions for d computes at the next wider type it has (fp4 on gfx942
// runs as bf16 after dequantisation), so the result is never zero for a loaded
// profile.
func (g *GPU) Peak(d models.DType) units.FLOPsPerSecond {
	p := g.Peaks
	switch d {
	case models.FP32:
		return p.FP32
	case models.FP16:
		if p.FP16 > 0 {
			return p.FP16
		}
	case models.FP8:
		if p.FP8 > 0 {
			return p.FP8
		}
	case models.FP6:
		if p.FP6 > 0 {
			return p.FP6
		}
	case models.FP4:
		if p.FP4 > 0 {
			return p.FP4
		}
	case models.INT8:
		if p.INT8 > 0 {
			return p.INT8
		}
	}
	return p.BF16
}

// Supports reports whether the part has matrix instructions for operands of
// type d.
func (g *GPU) Supports(d models.DType) bool {
	p := g.Peaks
	switch d {
	case models.FP32:
		return p.FP32 > 0
	case models.BF16:
		return p.BF16 > 0
	case models.FP16:
		return p.FP16 > 0
	case models.FP8:
		return p.FP8 > 0
	case models.FP6:
		return p.FP6 > 0
	case models.FP4:
		return p.FP4 > 0
	case models.INT8:
		return p.INT8 > 0
	}
	return false
}

// Topology is how the GPUs of one scale-up domain are wired.
type Topology string

// The wirings.
const (
	Mesh   Topology = "mesh"   // a direct link per pair: bandwidth to one peer is one link
	Switch Topology = "switch" // any peer at full bandwidth
	PCIe   Topology = "pcie"   // through the host
)

// Fabric is a node type: the scale-up domain of a GPU and the network between
// domains.
type Fabric struct {
	Name     string
	Topology Topology
	// DomainSize is how many GPUs one scale-up domain holds.
	DomainSize int
	// ScaleUp is the one-direction bandwidth of one GPU to all its peers; 0 =
	// take the GPU's.
	ScaleUp units.BytesPerSecond
	// LinkEfficiency is the achievable share of ScaleUp.
	LinkEfficiency float64
	// HopLatency is the time of one small remote write inside the domain.
	HopLatency units.Seconds
	// NICs per domain, the one-direction bandwidth of each, the achievable
	// share, and the one-way latency.
	NICs          int
	NIC           units.BytesPerSecond
	NICEfficiency float64
	NICLatency    units.Seconds
	Source        string
}
