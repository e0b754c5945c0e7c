package hardware

import "infera/internal/units"

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
	Confidence    string // as in GPU
}

// Bandwidth returns the one-direction bandwidth of g to all its peers in the
// domain together, before efficiency; 0 in a domain of one.
func (f *Fabric) Bandwidth(g *GPU) units.BytesPerSecond {
	switch {
	case f.DomainSize <= 1:
		return 0
	case f.ScaleUp > 0:
		return f.ScaleUp
	default:
		return g.ScaleUp
	}
}

// PeerBandwidth returns the one-direction bandwidth of g to one peer, before
// efficiency: a share of the links in a mesh, everything through a switch.
func (f *Fabric) PeerBandwidth(g *GPU) units.BytesPerSecond {
	b := f.Bandwidth(g)
	if f.Topology == Mesh {
		return b / units.BytesPerSecond(max(1, f.DomainSize-1))
	}
	return b
}

// NICBandwidthPerGPU returns the share of the network of one GPU of the
// domain, one direction, before efficiency.
func (f *Fabric) NICBandwidthPerGPU() units.BytesPerSecond {
	return f.NIC * units.BytesPerSecond(f.NICs) / units.BytesPerSecond(max(1, f.DomainSize))
}
