package probe

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"infera/internal/units"
	"infera/sim/hardware"
)

// Measurement is what a [Meter] found with all threads running.
type Measurement struct {
	Bandwidth units.BytesPerSecond // of reading memory
	// Scalar is the rate of independent scalar multiplies and adds. Cores
	// since about 2013 start two per cycle, so half of it is the cycles per
	// second that the threads really get.
	Scalar units.FLOPsPerSecond
}

// Meter measures the processor with n threads. [NewMeter] makes the real one.
type Meter func(ctx context.Context, n int) (Measurement, error)

// simd lists vector extensions, widest first, with the fp32 operations one
// core starts per cycle: lanes x 2 (multiply and add) x 2 units. Sources: Intel
// 64 and IA-32 Optimization Reference Manual; Arm Neoverse optimization guides.
var simd = []struct {
	flag     string
	perCycle float64
}{
	{"avx512f", 64}, {"avx2", 32}, {"avx", 16}, {"sse2", 8}, {"sve", 16}, {"asimd", 16},
}

// CPU describes the processor and main memory as one device named cpu: cores
// and memory within the limits of the control group, measured bandwidth, and
// the vector peak at the measured speed. root is the root directory.
func CPU(ctx context.Context, root fs.FS, measure Meter) (*hardware.GPU, error) {
	info, err := fs.ReadFile(root, "proc/cpuinfo")
	if err != nil {
		return nil, fmt.Errorf("probe CPU: %w", err)
	}
	cpu := parseCPU(string(info))
	if cpu.threads == 0 {
		return nil, fmt.Errorf("probe CPU: proc/cpuinfo lists no processor: %w", hardware.ErrInvalid)
	}
	total, err := memTotal(root)
	if err != nil {
		return nil, fmt.Errorf("probe CPU: %w", err)
	}
	threads := cpu.threads
	if quota := cpuQuota(root); quota > 0 {
		threads = min(threads, quota)
	}
	m, err := measure(ctx, threads)
	if err != nil {
		return nil, fmt.Errorf("probe CPU: %w", err)
	}
	g := &hardware.GPU{
		Name: "cpu", Vendor: "cpu", Arch: "host", ISA: cpu.isa, ComputeUnits: threads, Chiplets: 1, DevicesPerPackage: 1,
		Clock: units.Hertz(float64(m.Scalar) / 2 / float64(threads)), MemoryType: "DRAM",
		Capacity: total, Usable: min(total, memLimit(root, total)), Bandwidth: m.Bandwidth, HostLink: m.Bandwidth,
		L2: cache(root, "index2"), LastLevel: cache(root, "index3"),
		Fabric: "host", Source: "probed: " + cpu.model, Confidence: "probed",
		Notes: []string{
			fmt.Sprintf("Memory bandwidth is measured by reading with %d threads.", threads),
			fmt.Sprintf("Peaks are %.0f fp32 operations per cycle (%s) at the measured speed; narrower types run at the fp32 rate.", cpu.perCycle, cpu.isa),
		},
	}
	g.VectorFP32 = m.Scalar / 2 * units.FLOPsPerSecond(cpu.perCycle)
	g.Peaks.FP32, g.Peaks.BF16, g.Peaks.FP16 = g.VectorFP32, g.VectorFP32, g.VectorFP32
	if err := g.Validate(); err != nil {
		return nil, fmt.Errorf("probe CPU: %w", err)
	}
	return g, nil
}

type cpuInfo struct {
	model, isa string
	threads    int
	perCycle   float64
}

func parseCPU(info string) cpuInfo {
	c := cpuInfo{model: "unknown processor", isa: "scalar", perCycle: 2}
	var flags []string
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "processor":
			c.threads++
		case "model name", "Model":
			c.model = value
		case "flags", "Features":
			flags = strings.Fields(value)
		}
	}
	has := map[string]bool{}
	for _, f := range flags {
		has[f] = true
	}
	for _, s := range simd {
		if has[s.flag] {
			c.isa, c.perCycle = s.flag, s.perCycle
			break
		}
	}
	return c
}

// memTotal reads MemTotal of proc/meminfo.
func memTotal(root fs.FS) (units.Bytes, error) {
	data, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			fields := strings.Fields(value)
			if len(fields) == 2 && fields[1] == "kB" {
				if n := number(fields[0]); n > 0 {
					return units.Bytes(n) * units.KiB, nil
				}
			}
			return 0, fmt.Errorf("proc/meminfo: MemTotal %q: %w", strings.TrimSpace(value), hardware.ErrInvalid)
		}
	}
	return 0, fmt.Errorf("proc/meminfo has no MemTotal: %w", hardware.ErrInvalid)
}

// memLimit returns the memory limit of the control group, or total.
func memLimit(root fs.FS, total units.Bytes) units.Bytes {
	for _, file := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		// "max", and the near-2^63 of version 1, mean no limit.
		if n, err := strconv.ParseInt(text(root, file), 10, 64); err == nil && n > 0 && units.Bytes(n) < total {
			return units.Bytes(n)
		}
	}
	return total
}

// cpuQuota returns the whole processors the control group grants, at least
// one; 0 = no limit.
func cpuQuota(root fs.FS) int {
	fields := strings.Fields(text(root, "sys/fs/cgroup/cpu.max"))
	if len(fields) != 2 {
		return 0
	}
	quota, period := number(fields[0]), number(fields[1])
	if quota == 0 || period == 0 {
		return 0
	}
	return max(1, int(quota/period))
}

// cache reads the size of a cache of the first core ("2048K").
func cache(root fs.FS, index string) units.Bytes {
	s := text(root, path.Join("sys/devices/system/cpu/cpu0/cache", index, "size"))
	for suffix, unit := range map[string]units.Bytes{"K": units.KiB, "M": units.MiB} {
		if digits, ok := strings.CutSuffix(s, suffix); ok {
			return units.Bytes(number(digits)) * unit
		}
	}
	return 0
}
