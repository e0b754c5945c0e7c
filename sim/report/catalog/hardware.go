package catalog

import (
	"infera/sim/hardware"
	"infera/sim/report"
)

// HardwareList is a set of GPUs and of the fabrics they sit in: the whole
// catalog for `hardware list`, one GPU and its fabric for `hardware show` and
// `hardware probe`.
type HardwareList struct {
	GPUs     report.List[GPU]            `json:"gpus"`
	Fabrics  report.List[Fabric]         `json:"fabrics"`
	Warnings report.List[report.Warning] `json:"warnings"`
}

// MarshalJSON writes the hardware contract, schema first.
func (l HardwareList) MarshalJSON() ([]byte, error) {
	type body HardwareList
	return report.Marshal(struct {
		Schema string `json:"schema"`
		body
	}{SchemaHardware, body(l)})
}

// GPU is one accelerator in SI units; see [hardware.GPU] for the meaning of
// each field. A number that is not known is 0.
type GPU struct {
	Name               string              `json:"name"`
	Aliases            report.List[string] `json:"aliases"`
	Vendor             string              `json:"vendor"`
	Arch               string              `json:"arch"`
	ISA                string              `json:"isa"`
	ComputeUnits       int                 `json:"compute_units"`
	DevicesPerPackage  int                 `json:"devices_per_package"`
	Chiplets           int                 `json:"chiplets"`
	ClockHz            report.Number       `json:"clock_hz"`
	MemoryType         string              `json:"memory_type"`
	MarketedGB         int                 `json:"marketed_gb"` // the size in its name
	HBMBytes           report.Number       `json:"hbm_bytes"`
	UsableBytes        report.Number       `json:"usable_bytes"`
	HBMBytesPerS       report.Number       `json:"hbm_bytes_per_s"`
	L2Bytes            report.Number       `json:"l2_bytes"`
	LastLevelBytes     report.Number       `json:"last_level_bytes"`
	LastLevelBytesPerS report.Number       `json:"last_level_bytes_per_s"`
	ScratchpadBytes    report.Number       `json:"scratchpad_bytes_per_compute_unit"`
	Peaks              Peaks               `json:"peak_flops_per_s"`
	VectorFP32         report.Number       `json:"vector_fp32_flops_per_s"`
	Fabric             string              `json:"fabric"`
	ScaleUpBytesPerS   report.Number       `json:"scale_up_bytes_per_s"`
	Links              int                 `json:"links"`
	LinkBytesPerS      report.Number       `json:"link_bytes_per_s"`
	HostLinkBytesPerS  report.Number       `json:"host_link_bytes_per_s"`
	PowerW             report.Number       `json:"power_w"`
	Announced          bool                `json:"announced"`
	Source             string              `json:"source"`
	Confidence         string              `json:"confidence"`
	Notes              report.List[string] `json:"notes"`
}

// Peaks holds dense matrix rates in FLOP/s; 0 = no such instruction.
type Peaks struct {
	FP32 report.Number `json:"fp32"`
	BF16 report.Number `json:"bf16"`
	FP16 report.Number `json:"fp16"`
	FP8  report.Number `json:"fp8"`
	FP6  report.Number `json:"fp6"`
	FP4  report.Number `json:"fp4"`
	INT8 report.Number `json:"int8"`
}

// Fabric is a scale-up domain and its network in SI units; see
// [hardware.Fabric].
type Fabric struct {
	Name             string        `json:"name"`
	Topology         string        `json:"topology"`
	DomainSize       int           `json:"domain_size"`
	ScaleUpBytesPerS report.Number `json:"scale_up_bytes_per_s"`
	LinkEfficiency   report.Number `json:"link_efficiency"`
	HopLatencyS      report.Number `json:"hop_latency_s"`
	NICs             int           `json:"nics"`
	NICBytesPerS     report.Number `json:"nic_bytes_per_s"`
	NICEfficiency    report.Number `json:"nic_efficiency"`
	NICLatencyS      report.Number `json:"nic_latency_s"`
	Source           string        `json:"source"`
	Confidence       string        `json:"confidence"`
}

// NewGPU copies a profile into its report form.
func NewGPU(g *hardware.GPU) GPU {
	p := g.Peaks
	return GPU{
		Name: g.Name, Aliases: g.Aliases, Vendor: g.Vendor, Arch: g.Arch, ISA: g.ISA,
		ComputeUnits: g.ComputeUnits, Chiplets: g.Chiplets, ClockHz: report.Number(g.Clock),
		HBMBytes: report.Number(g.Capacity), UsableBytes: report.Number(g.UsableCapacity()),
		HBMBytesPerS: report.Number(g.Bandwidth), L2Bytes: report.Number(g.L2),
		LastLevelBytes: report.Number(g.LastLevel), LastLevelBytesPerS: report.Number(g.LastLevelBandwidth),
		ScratchpadBytes: report.Number(g.Scratchpad),
		Peaks: Peaks{
			report.Number(p.FP32), report.Number(p.BF16), report.Number(p.FP16), report.Number(p.FP8),
			report.Number(p.FP6), report.Number(p.FP4), report.Number(p.INT8),
		},
		VectorFP32: report.Number(g.VectorFP32), Fabric: g.Fabric,
		ScaleUpBytesPerS: report.Number(g.ScaleUp), Links: g.Links, LinkBytesPerS: report.Number(g.LinkBandwidth),
		HostLinkBytesPerS: report.Number(g.HostLink), PowerW: report.Number(g.Power),
		Announced: g.Announced, Source: g.Source, Confidence: g.Confidence, Notes: g.Notes,
		DevicesPerPackage: g.DevicesPerPackage, MemoryType: g.MemoryType, MarketedGB: g.Marketed,
	}
}

// NewFabric copies a node type into its report form.
func NewFabric(f *hardware.Fabric) Fabric {
	return Fabric{
		Name: f.Name, Topology: string(f.Topology), DomainSize: f.DomainSize,
		ScaleUpBytesPerS: report.Number(f.ScaleUp), LinkEfficiency: report.Number(f.LinkEfficiency),
		HopLatencyS: report.Number(f.HopLatency), NICs: f.NICs, NICBytesPerS: report.Number(f.NIC),
		NICEfficiency: report.Number(f.NICEfficiency), NICLatencyS: report.Number(f.NICLatency), Source: f.Source, Confidence: f.Confidence,
	}
}
