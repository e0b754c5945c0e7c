package hardware

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"infera/internal/units"
)

// file is the YAML form of a profile, shipped or the user's. A zero means not
// stated; the decoder leaves untouched what an overlay does not mention, which
// is how one is laid over its base.
type file struct {
	// Base and Fabric are for overlays only.
	Base   string      `yaml:"base"`
	Fabric *fabricFile `yaml:"fabric"`

	Name              string  `yaml:"name"`
	Vendor            string  `yaml:"vendor"`
	Arch              string  `yaml:"arch"`
	ISA               string  `yaml:"isa"`
	ComputeUnits      int     `yaml:"compute_units"`
	Chiplets          int     `yaml:"chiplets"`
	DevicesPerPackage int     `yaml:"devices_per_package"`
	ClockMHz          float64 `yaml:"clock_mhz"`

	Memory     memoryFile  `yaml:"memory"`
	Cache      cacheFile   `yaml:"cache"`
	Peak       ratesFile   `yaml:"peak_tflops"`
	VectorFP32 float64     `yaml:"vector_fp32_tflops"`
	ScaleUp    scaleUpFile `yaml:"scale_up"`
	HostLink   float64     `yaml:"host_link_gb_s"`
	Power      float64     `yaml:"power_w"`
	Announced  bool        `yaml:"announced"`
	Source     string      `yaml:"source"`
	Confidence string      `yaml:"confidence"`
	Notes      []string    `yaml:"notes"`
}

type memoryFile struct {
	Type      string  `yaml:"type"`
	Marketed  int     `yaml:"marketed_gb"`
	Capacity  float64 `yaml:"capacity_gib"`
	Usable    float64 `yaml:"usable_gib"`
	Bandwidth float64 `yaml:"bandwidth_tb_s"`
}

type cacheFile struct {
	L2                 float64 `yaml:"l2_mib"`
	LastLevel          float64 `yaml:"last_level_mib"`
	LastLevelBandwidth float64 `yaml:"last_level_tb_s"`
	Scratchpad         float64 `yaml:"scratchpad_kib"`
}

type ratesFile struct {
	FP32 float64 `yaml:"fp32"`
	BF16 float64 `yaml:"bf16"`
	FP16 float64 `yaml:"fp16"`
	FP8  float64 `yaml:"fp8"`
	FP6  float64 `yaml:"fp6"`
	FP4  float64 `yaml:"fp4"`
	INT8 float64 `yaml:"int8"`
}

type scaleUpFile struct {
	Fabric string  `yaml:"fabric"`
	Total  float64 `yaml:"gb_s"`
	Links  int     `yaml:"links"`
	Link   float64 `yaml:"link_gb_s"`
}

type fabricFile struct {
	// Base is for overlays only.
	Base string `yaml:"base"`

	Name           string  `yaml:"name"`
	Topology       string  `yaml:"topology"`
	DomainSize     int     `yaml:"domain_size"`
	ScaleUp        float64 `yaml:"scale_up_gb_s"`
	LinkEfficiency float64 `yaml:"link_efficiency"`
	HopLatency     float64 `yaml:"hop_latency_us"`
	NIC            nicFile `yaml:"nic"`
	Source         string  `yaml:"source"`
	Confidence     string  `yaml:"confidence"`
}

type nicFile struct {
	PerDomain  int     `yaml:"per_domain"`
	Bandwidth  float64 `yaml:"gb_s"`
	Efficiency float64 `yaml:"efficiency"`
	Latency    float64 `yaml:"latency_us"`
}

// Bounds that no machine of this decade reaches; they catch a wrong unit.
const (
	maxCapacity  = 1e15 // bytes
	maxBandwidth = 1e15 // bytes per second
	maxRate      = 1e19 // operations per second
	maxClock     = 1e11 // hertz
	maxPower     = 1e6  // watts
	maxLatency   = 1.0  // seconds
	maxCount     = 1 << 20
)

// inRange reports a value that is not finite, not positive or at or above the
// bound.
func inRange(what string, v, limit float64) error {
	if math.IsNaN(v) || v <= 0 || v >= limit {
		return fmt.Errorf("%s is %v, want above 0 and below %v: %w", what, v, limit, ErrInvalid)
	}
	return nil
}

// number is one value of a file with its key, its value in SI and its bound.
type number struct {
	key      string
	value    float64
	limit    float64
	required bool
}

func (f *file) numbers() []number {
	return []number{
		{"compute_units", float64(f.ComputeUnits), maxCount, true},
		{"chiplets", float64(f.Chiplets), maxCount, false},
		{"devices_per_package", float64(f.DevicesPerPackage), maxCount, false},
		{"clock_mhz", f.ClockMHz * 1e6, maxClock, true},
		{"memory.marketed_gb", float64(f.Memory.Marketed), maxCount, false},
		{"memory.capacity_gib", f.Memory.Capacity * float64(units.GiB), maxCapacity, true},
		{"memory.usable_gib", f.Memory.Usable * float64(units.GiB), maxCapacity, false},
		{"memory.bandwidth_tb_s", f.Memory.Bandwidth * 1e12, maxBandwidth, true},
		{"cache.l2_mib", f.Cache.L2 * float64(units.MiB), maxCapacity, false},
		{"cache.last_level_mib", f.Cache.LastLevel * float64(units.MiB), maxCapacity, false},
		{"cache.last_level_tb_s", f.Cache.LastLevelBandwidth * 1e12, maxBandwidth, false},
		{"cache.scratchpad_kib", f.Cache.Scratchpad * float64(units.KiB), maxCapacity, false},
		{"peak_tflops.fp32", f.Peak.FP32 * 1e12, maxRate, false},
		{"peak_tflops.bf16", f.Peak.BF16 * 1e12, maxRate, true},
		{"peak_tflops.fp16", f.Peak.FP16 * 1e12, maxRate, false},
		{"peak_tflops.fp8", f.Peak.FP8 * 1e12, maxRate, false},
		{"peak_tflops.fp6", f.Peak.FP6 * 1e12, maxRate, false},
		{"peak_tflops.fp4", f.Peak.FP4 * 1e12, maxRate, false},
		{"peak_tflops.int8", f.Peak.INT8 * 1e12, maxRate, false},
		{"vector_fp32_tflops", f.VectorFP32 * 1e12, maxRate, true},
		{"scale_up.gb_s", f.ScaleUp.Total * 1e9, maxBandwidth, false},
		{"scale_up.links", float64(f.ScaleUp.Links), maxCount, false},
		{"scale_up.link_gb_s", f.ScaleUp.Link * 1e9, maxBandwidth, false},
		{"host_link_gb_s", f.HostLink * 1e9, maxBandwidth, true},
		{"power_w", f.Power, maxPower, false},
	}
}

// missing lists the keys a plan needs and the file does not state.
func (f *file) missing() []string {
	var keys []string
	for _, text := range []struct{ key, value string }{
		{"name", f.Name}, {"vendor", f.Vendor}, {"arch", f.Arch}, {"scale_up.fabric", f.ScaleUp.Fabric},
	} {
		if text.value == "" {
			keys = append(keys, text.key)
		}
	}
	for _, n := range f.numbers() {
		if n.required && n.value == 0 {
			keys = append(keys, n.key)
		}
	}
	return keys
}

var (
	vendors     = []string{"amd", "nvidia", "cpu"}
	confidences = []string{"confirmed", "recalled", "derived", "announced", "probed", "stated"}
)

// check reports every value that is out of range; not stated is not an error.
func (f *file) check(path string) error {
	errs := checkNumbers(path, f.numbers())
	if f.Memory.Usable > f.Memory.Capacity && f.Memory.Capacity > 0 {
		errs = append(errs, fmt.Errorf("%s: memory.usable_gib %v is above memory.capacity_gib %v: %w",
			path, f.Memory.Usable, f.Memory.Capacity, ErrInvalid))
	}
	if f.Vendor != "" && !slices.Contains(vendors, f.Vendor) {
		errs = append(errs, fmt.Errorf("%s: vendor %q, want one of %s: %w", path, f.Vendor, strings.Join(vendors, ", "), ErrInvalid))
	}
	if f.Confidence != "" && !slices.Contains(confidences, f.Confidence) {
		errs = append(errs, fmt.Errorf("%s: confidence %q, want one of %s: %w",
			path, f.Confidence, strings.Join(confidences, ", "), ErrInvalid))
	}
	return errors.Join(errs...)
}

func checkNumbers(path string, numbers []number) []error {
	var errs []error
	for _, n := range numbers {
		if n.value == 0 {
			continue
		}
		if err := inRange(n.key, n.value, n.limit); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
	}
	return errs
}

// gpu converts to SI.
func (f *file) gpu() *GPU {
	tera := func(v float64) units.FLOPsPerSecond { return units.FLOPsPerSecond(v * 1e12) }
	giga := func(v float64) units.BytesPerSecond { return units.BytesPerSecond(v * 1e9) }
	return &GPU{
		Name: f.Name, Vendor: f.Vendor, Arch: f.Arch, ISA: f.ISA,
		ComputeUnits: int(f.ComputeUnits), Chiplets: max(1, int(f.Chiplets)), DevicesPerPackage: max(1, int(f.DevicesPerPackage)),
		Clock:      units.Hertz(f.ClockMHz * 1e6),
		MemoryType: f.Memory.Type, Marketed: int(f.Memory.Marketed),
		Capacity: units.Bytes(f.Memory.Capacity) * units.GiB, Usable: units.Bytes(f.Memory.Usable) * units.GiB,
		Bandwidth: units.BytesPerSecond(f.Memory.Bandwidth * 1e12),
		L2:        units.Bytes(f.Cache.L2) * units.MiB, LastLevel: units.Bytes(f.Cache.LastLevel) * units.MiB,
		Scratchpad:         units.Bytes(f.Cache.Scratchpad) * units.KiB,
		LastLevelBandwidth: units.BytesPerSecond(f.Cache.LastLevelBandwidth * 1e12),
		Peaks: Rates{
			FP32: tera(f.Peak.FP32), BF16: tera(f.Peak.BF16), FP16: tera(f.Peak.FP16), FP8: tera(f.Peak.FP8),
			FP6: tera(f.Peak.FP6), FP4: tera(f.Peak.FP4), INT8: tera(f.Peak.INT8),
		},
		VectorFP32: tera(f.VectorFP32),
		Fabric:     f.ScaleUp.Fabric, ScaleUp: giga(f.ScaleUp.Total), Links: int(f.ScaleUp.Links), LinkBandwidth: giga(f.ScaleUp.Link),
		HostLink: giga(f.HostLink), Power: units.Watts(f.Power),
		Announced: f.Announced, Source: f.Source, Confidence: f.Confidence, Notes: f.Notes,
	}
}

func (f *fabricFile) numbers() []number {
	return []number{
		{"domain_size", float64(f.DomainSize), maxCount, true},
		{"scale_up_gb_s", f.ScaleUp * 1e9, maxBandwidth, false},
		{"link_efficiency", f.LinkEfficiency, math.Nextafter(1, 2), true},
		{"hop_latency_us", f.HopLatency * 1e-6, maxLatency, true},
		{"nic.per_domain", float64(f.NIC.PerDomain), maxCount, true},
		{"nic.gb_s", f.NIC.Bandwidth * 1e9, maxBandwidth, true},
		{"nic.efficiency", f.NIC.Efficiency, math.Nextafter(1, 2), true},
		{"nic.latency_us", f.NIC.Latency * 1e-6, maxLatency, true},
	}
}

// check reports what is out of range and what is missing: unlike a GPU, a
// fabric is complete or an error.
func (f *fabricFile) check(path string) error {
	errs := checkNumbers(path, f.numbers())
	var missing []string
	if f.Name == "" {
		missing = append(missing, "name")
	}
	switch Topology(f.Topology) {
	case Mesh, Switch, PCIe:
	case "":
		missing = append(missing, "topology")
	default:
		errs = append(errs, fmt.Errorf("%s: topology %q, want mesh, switch or pcie: %w", path, f.Topology, ErrInvalid))
	}
	for _, n := range f.numbers() {
		if n.required && n.value == 0 {
			missing = append(missing, n.key)
		}
	}
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("%s: fabric lacks %s: %w", path, strings.Join(missing, ", "), ErrIncomplete))
	}
	return errors.Join(errs...)
}

func (f *fabricFile) fabric() *Fabric {
	return &Fabric{
		Name: f.Name, Topology: Topology(f.Topology), DomainSize: int(f.DomainSize),
		ScaleUp: units.BytesPerSecond(f.ScaleUp * 1e9), LinkEfficiency: f.LinkEfficiency,
		HopLatency: units.Seconds(f.HopLatency * 1e-6),
		NICs:       int(f.NIC.PerDomain), NIC: units.BytesPerSecond(f.NIC.Bandwidth * 1e9),
		NICEfficiency: f.NIC.Efficiency, NICLatency: units.Seconds(f.NIC.Latency * 1e-6),
		Source: f.Source, Confidence: f.Confidence,
	}
}
