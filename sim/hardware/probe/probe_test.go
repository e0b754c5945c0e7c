package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"infera/internal/units"
	"infera/sim/hardware"
)

func catalog(t testing.TB) *hardware.Catalog {
	t.Helper()
	c, err := hardware.Load(os.DirFS("../../../configs"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// node adds a KFD node with its render device to a tree.
func node(fs fstest.MapFS, n int, simds, version, mhz, xcc int, vram uint64, product string) {
	dir := fmt.Sprintf("sys/class/kfd/kfd/topology/nodes/%d/", n)
	fs[dir+"properties"] = &fstest.MapFile{Data: fmt.Appendf(nil,
		"cpu_cores_count 0\nsimd_count %d\nsimd_per_cu 4\ngfx_target_version %d\nmax_engine_clk_fcompute %d\nnum_xcc %d\n"+
			"drm_render_minor %d\nunique_id %d\n", simds, version, mhz, xcc, 126+n, 0xabc0+n)}
	card := fmt.Sprintf("sys/class/drm/renderD%d/device/", 126+n)
	if product != "" {
		fs[card+"product_name"] = &fstest.MapFile{Data: []byte(product + "\n")}
	}
	if vram > 0 {
		fs[card+"mem_info_vram_total"] = &fstest.MapFile{Data: fmt.Appendf(nil, "%d\n", vram)}
	}
}

const mib = 1 << 20

func TestAMD(t *testing.T) {
	c := catalog(t)
	for _, tt := range []struct {
		name                  string
		simds, version        int
		mhz, xcc              int
		vram                  uint64
		product               string
		want                  string
		matched               bool
		units                 int
		usable, tflops, bytes float64 // GiB, bf16 TFLOPS, TB/s
	}{
		{"mi300x", 1216, 90402, 2100, 8, 196592 * mib, "AMD Instinct MI300X OAM", "mi300x", true, 304, 191.984375, 1307.4, 5.3},
		{"no name", 1216, 90402, 2100, 8, 196592 * mib, "", "mi300x", true, 304, 191.984375, 1307.4, 5.3},
		{"mi325x by memory", 1216, 90402, 2100, 8, 262128 * mib, "", "mi325x", true, 304, 255.984375, 1307.4, 6},
		{"mi308x by units", 320, 90402, 2100, 4, 196592 * mib, "", "mi308x", true, 80, 191.984375, 344, 5.3},
		{"odd name", 1216, 90402, 2100, 8, 196592 * mib, "AMD Instinct MI300X HF", "mi300x", true, 304, 191.984375, 1307.4, 5.3},
		{"mi350x by clock", 1024, 90500, 2200, 8, 294896 * mib, "", "mi350x", true, 256, 287.984375, 2306.9, 8},
		{"mi355x by clock", 1024, 90500, 2400, 8, 294896 * mib, "", "mi355x", true, 256, 287.984375, 2516.6, 8},
		{"mi250x die", 440, 90010, 1700, 1, 65520 * mib, "", "mi250x", true, 110, 63.984375, 191.5, 1.6384},
		// One XCD of an MI300X (CPX) with its quarter-package memory (NPS4):
		// 38/304 = 1/8 of the peaks and of the bandwidth.
		{"partition", 152, 90402, 2100, 1, 49148 * mib, "AMD Instinct MI300X", "gfx942-38cu-48gib", false, 38, 47.99609375, 1307.4 / 8, 5.3 / 8},
		{"slower", 1216, 90402, 1050, 8, 98304 * mib, "", "gfx942-304cu-96gib", false, 304, 96, 1307.4 / 2, 5.3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := fstest.MapFS{}
			node(root, 0, 0, 0, 0, 0, 0, "") // the CPU
			node(root, 2, tt.simds, tt.version, tt.mhz, tt.xcc, tt.vram, tt.product)
			ds, err := AMD(root, c)
			if err != nil || len(ds) != 1 || ds[0].GPU == nil {
				t.Fatalf("AMD() = %+v, %v", ds, err)
			}
			d, g := ds[0], ds[0].GPU
			if g.Name != tt.want || d.Matched != tt.matched || g.ComputeUnits != tt.units || d.ID != "0x000000000000abc2" {
				t.Errorf("got %v matched %v id %s", g, d.Matched, d.ID)
			}
			if !tt.matched && (g.Confidence != "probed" || len(g.Notes) == 0) {
				t.Errorf("derived profile says %s, %q", g.Confidence, g.Notes)
			}
			for what, v := range map[string][2]float64{
				"usable GiB": {g.UsableCapacity().GiB(), tt.usable}, "TFLOPS": {float64(g.Peaks.BF16) / 1e12, tt.tflops},
				"TB/s": {float64(g.Bandwidth) / 1e12, tt.bytes},
			} {
				if math.Abs(v[0]-v[1]) > 1e-9*v[1] {
					t.Errorf("%s = %v, want %v", what, v[0], v[1])
				}
			}
		})
	}
}

func TestAMDOrderAndUnknown(t *testing.T) {
	root := fstest.MapFS{}
	for _, n := range []int{10, 2} {
		node(root, n, 1216, 90402, 2100, 8, 196592*mib, "")
	}
	node(root, 3, 240, 110000, 2500, 0, 24560*mib, "AMD Radeon RX 7900 XTX")
	ds, err := AMD(root, catalog(t))
	if err != nil || len(ds) != 3 {
		t.Fatalf("AMD() = %v, %v", ds, err)
	}
	if ds[0].ID != "0x000000000000abc2" || ds[2].ID != "0x000000000000abca" || ds[2].Index != 2 {
		t.Errorf("not in the order of the nodes: %+v", ds)
	}
	if ds[1].GPU != nil || !strings.Contains(ds[1].Problem, `instruction set "gfx1100"`) {
		t.Errorf("an unknown part became %v (%s)", ds[1].GPU, ds[1].Problem)
	}
}

func TestAMDMemoryBanks(t *testing.T) {
	root := fstest.MapFS{}
	node(root, 1, 1216, 90402, 2100, 8, 0, "")
	root["sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties"] = &fstest.MapFile{Data: []byte("heap_type 1\nsize_in_bytes 206141652992\n")}
	ds, err := AMD(root, catalog(t))
	if err != nil || len(ds) != 1 || ds[0].GPU.UsableCapacity() != 206141652992 {
		t.Fatalf("AMD() = %+v, %v", ds, err)
	}
}

func TestAMDWithoutKFD(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	root := fstest.MapFS{
		"sys/class/drm/card1/device/vendor":              file("0x1002\n"),
		"sys/class/drm/card1/device/product_name":        file("AMD Instinct MI355X\n"),
		"sys/class/drm/card1/device/mem_info_vram_total": file("309220868096\n"),
		"sys/class/drm/card1/device/pp_dpm_sclk":         file("0: 132Mhz\n1: 2400Mhz *\n"),
		"sys/class/drm/card1/device/unique_id":           file("a1b2\n"),
		"sys/class/drm/card0/device/vendor":              file("0x1a03\n"), // the console
		"sys/class/drm/card1-DP-1/device/vendor":         file("0x1002\n"), // a connector
	}
	ds, err := AMD(root, catalog(t))
	if err != nil || len(ds) != 1 || !ds[0].Matched || ds[0].GPU.Name != "mi355x" || ds[0].ID != "a1b2" {
		t.Fatalf("AMD() = %+v, %v", ds, err)
	}
}

func TestAMDMalformed(t *testing.T) {
	c := catalog(t)
	if ds, err := AMD(fstest.MapFS{}, c); err != nil || len(ds) != 0 {
		t.Errorf("AMD() of a machine without devices = %v, %v", ds, err)
	}
	for _, bad := range []string{"simd_count many\n", "simd_count\n", "simd_count -4\n", "simd_count 99999999999999999999\n", "x " + strings.Repeat("9", 1<<17)} {
		root := fstest.MapFS{"sys/class/kfd/kfd/topology/nodes/1/properties": &fstest.MapFile{Data: []byte(bad)}}
		if _, err := AMD(root, c); !errors.Is(err, hardware.ErrInvalid) || !strings.Contains(err.Error(), "nodes/1/properties") {
			t.Errorf("AMD() with %.20q = %.200v", bad, err)
		}
	}
	root := fstest.MapFS{"sys/class/kfd/kfd/topology/nodes/1/properties": &fstest.MapFile{
		Data: []byte("simd_count 18446744073709551615\ngfx_target_version 90402\nmax_engine_clk_fcompute 18446744073709551615\n")}}
	ds, err := AMD(root, c)
	if err != nil || len(ds) != 1 || ds[0].GPU != nil && ds[0].GPU.Validate() != nil {
		t.Errorf("AMD() with absurd numbers = %+v, %v", ds, err)
	}
}

func runner(out string, err error) Runner {
	return func(context.Context, string, ...string) ([]byte, error) { return []byte(out), err }
}

func TestNVIDIA(t *testing.T) {
	out := "0, NVIDIA H100 80GB HBM3, GPU-a, 81559, 1980, 9.0\n" +
		"1, NVIDIA H200, GPU-b, 143771, 1980, 9.0\n" +
		"2, NVIDIA B200, GPU-c, 183359, 1965, 10.0\n" +
		"3, NVIDIA H100 PCIe, GPU-d, 81559, 1755, 9.0\n" +
		"4, NVIDIA GB10, GPU-e, [N/A], [N/A], 12.1\n" +
		"5, NVIDIA A100-SXM4-40GB, GPU-f, 40960, 1410, 8.0\n"
	ds, err := NVIDIA(t.Context(), runner(out, nil), catalog(t))
	if err != nil || len(ds) != 6 {
		t.Fatalf("NVIDIA() = %v, %v", ds, err)
	}
	for i, want := range []string{"h100", "h200", "b200", "sm_90-132cu-80gib", "", "sm_80-108cu-40gib"} {
		d := ds[i]
		switch {
		case want == "":
			if d.GPU != nil || d.Problem == "" {
				t.Errorf("%s: got %v", d.Name, d.GPU)
			}
		case d.GPU == nil || d.GPU.Name != want || d.Index != i || d.Matched != !strings.HasPrefix(want, "sm"):
			t.Errorf("%s: got %+v, want %s", d.Name, d, want)
		}
	}
	if got := ds[0].GPU.UsableCapacity().GiB(); got != 79.19 {
		t.Errorf("a matched H100 has %v GiB, want what CUDA tells a process", got)
	}
}

func TestNVIDIAMalformed(t *testing.T) {
	c := catalog(t)
	if ds, err := NVIDIA(t.Context(), runner("", fmt.Errorf("nvidia-smi: %w", ErrNotInstalled)), c); err != nil || ds != nil {
		t.Errorf("without nvidia-smi: %v, %v", ds, err)
	}
	if ds, err := NVIDIA(t.Context(), runner("", nil), c); err != nil || len(ds) != 0 {
		t.Errorf("without devices: %v, %v", ds, err)
	}
	if _, err := NVIDIA(t.Context(), runner("", errors.New("exit status 9")), c); err == nil {
		t.Error("a failing nvidia-smi is no error")
	}
	for _, out := range []string{
		"No devices were found\n", "0, NVIDIA H200\n", "x, NVIDIA H200, GPU, 1, 1, 9.0\n", "0,\"NVIDIA\n", strings.Repeat(",", 100),
	} {
		if _, err := NVIDIA(t.Context(), runner(out, nil), c); !errors.Is(err, hardware.ErrInvalid) {
			t.Errorf("NVIDIA(%q) = %v, want ErrInvalid", out, err)
		}
	}
	ds, err := NVIDIA(t.Context(), runner("0, NVIDIA H200, GPU, -5, NaN, 9\n", nil), c)
	if err != nil || len(ds) != 1 || ds[0].GPU == nil || ds[0].GPU.Validate() != nil {
		t.Errorf("NVIDIA() with odd figures = %+v, %v", ds, err)
	}
}

func host(cpuinfo, meminfo string) fstest.MapFS {
	return fstest.MapFS{
		"proc/cpuinfo": &fstest.MapFile{Data: []byte(cpuinfo)},
		"proc/meminfo": &fstest.MapFile{Data: []byte(meminfo)},
	}
}

const (
	twoCores = "processor\t: 0\nmodel name\t: Some Xeon\nflags\t\t: fpu sse2 avx2 avx512f\n\nprocessor\t: 1\n"
	memInfo  = "MemTotal:       16777216 kB\nMemFree: 1 kB\n"
)

func fixed(context.Context, int) (Measurement, error) {
	return Measurement{Bandwidth: 20e9, Scalar: 10e9}, nil
}

func TestCPU(t *testing.T) {
	root := host(twoCores, memInfo)
	root["sys/devices/system/cpu/cpu0/cache/index2/size"] = &fstest.MapFile{Data: []byte("2048K\n")}
	root["sys/fs/cgroup/memory.max"] = &fstest.MapFile{Data: []byte("8589934592\n")}
	root["sys/fs/cgroup/cpu.max"] = &fstest.MapFile{Data: []byte("150000 100000\n")}
	threads := 0
	g, err := CPU(t.Context(), root, func(ctx context.Context, n int) (Measurement, error) {
		threads = n
		return fixed(ctx, n)
	})
	if err != nil {
		t.Fatal(err)
	}
	// 1.5 processors granted: one thread; 10e9/2 cycles x 64 = 320 GFLOPS.
	if threads != 1 || g.ComputeUnits != 1 || g.Peaks.FP32 != 320e9 || g.Peaks.BF16 != 320e9 || g.Clock != 5e9 {
		t.Errorf("threads %d, %+v", threads, g)
	}
	if g.Capacity != 16*units.GiB || g.UsableCapacity() != 8*units.GiB || g.L2 != 2*units.MiB || g.Bandwidth != 20e9 {
		t.Errorf("memory %+v", g)
	}
	if f, err := catalog(t).FabricOf(g); err != nil || f.DomainSize != 1 {
		t.Errorf("fabric %+v, %v", f, err)
	}
}

func TestCPUWithoutLimits(t *testing.T) {
	root := host("processor : 0\nFeatures : fp asimd\n", memInfo)
	root["sys/fs/cgroup/memory.max"] = &fstest.MapFile{Data: []byte("max\n")}
	root["sys/fs/cgroup/cpu.max"] = &fstest.MapFile{Data: []byte("max 100000\n")}
	g, err := CPU(t.Context(), root, fixed)
	if err != nil || g.UsableCapacity() != 16*units.GiB || g.ISA != "asimd" || g.ComputeUnits != 1 {
		t.Errorf("CPU() = %+v, %v", g, err)
	}
}

func TestCPUMalformed(t *testing.T) {
	for _, root := range []fstest.MapFS{
		host("", memInfo), host("nothing here", memInfo), host(twoCores, ""), host(twoCores, "MemTotal: lots kB\n"),
		host(twoCores, "MemTotal: 5 MB\n"), host(twoCores, "MemTotal:\n"), host(twoCores, "MemTotal: -3 kB\n"),
	} {
		if _, err := CPU(t.Context(), root, fixed); !errors.Is(err, hardware.ErrInvalid) {
			t.Errorf("CPU(%q) = %v, want ErrInvalid", root["proc/meminfo"].Data, err)
		}
	}
	if _, err := CPU(t.Context(), fstest.MapFS{}, fixed); err == nil {
		t.Error("CPU() without procfs succeeds")
	}
	failing := func(context.Context, int) (Measurement, error) { return Measurement{}, context.Canceled }
	if _, err := CPU(t.Context(), host(twoCores, memInfo), failing); !errors.Is(err, context.Canceled) {
		t.Errorf("CPU() with a stopped meter = %v", err)
	}
	zero := func(context.Context, int) (Measurement, error) { return Measurement{}, nil }
	if _, err := CPU(t.Context(), host(twoCores, memInfo), zero); !errors.Is(err, hardware.ErrInvalid) {
		t.Errorf("CPU() with a zero measurement = %v", err)
	}
}

func TestMeasure(t *testing.T) {
	start, measure := time.Now(), NewMeter(time.Now)
	m, err := measure(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	// Between an old laptop under load and a server core of the next decade.
	if m.Bandwidth < 1e8 || m.Bandwidth > 1e12 || m.Scalar < 1e8 || m.Scalar > 1e12 {
		t.Errorf("Measure() = %+v", m)
	}
	t.Logf("%.1f GB/s, %.2f GFLOPS scalar", float64(m.Bandwidth)/1e9, float64(m.Scalar)/1e9)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Measure() of a cancelled context = %v", err)
	}
}

func FuzzAMD(f *testing.F) {
	c := catalog(f)
	f.Add("simd_count 1216\nsimd_per_cu 4\ngfx_target_version 90402\n", "206141652992", "AMD Instinct MI300X")
	f.Add("simd_count 1\ngfx_target_version 999999\n", "-1", "")
	f.Fuzz(func(t *testing.T, props, vram, product string) {
		root := fstest.MapFS{
			"sys/class/kfd/kfd/topology/nodes/1/properties":     &fstest.MapFile{Data: []byte(props)},
			"sys/class/drm/renderD0/device/mem_info_vram_total": &fstest.MapFile{Data: []byte(vram)},
			"sys/class/drm/renderD0/device/product_name":        &fstest.MapFile{Data: []byte(product)},
		}
		ds, err := AMD(root, c)
		if err != nil {
			return
		}
		for _, d := range ds {
			if d.GPU == nil && d.Problem == "" {
				t.Fatal("neither a profile nor a problem")
			}
			if d.GPU != nil && d.GPU.Validate() != nil {
				t.Fatal(d.GPU.Validate())
			}
		}
	})
}

func FuzzNVIDIA(f *testing.F) {
	c := catalog(f)
	f.Add("0, NVIDIA H100 80GB HBM3, GPU-a, 81559, 1980, 9.0\n")
	f.Add("0, \"NVIDIA, H200\", , [N/A], 1e300, 9.0.0\n")
	f.Fuzz(func(t *testing.T, out string) {
		ds, err := NVIDIA(t.Context(), runner(out, nil), c)
		for _, d := range ds {
			if d.GPU == nil == (d.Problem == "") || d.GPU != nil && d.GPU.Validate() != nil {
				t.Fatalf("%+v", d)
			}
		}
		if err != nil && !errors.Is(err, hardware.ErrInvalid) {
			t.Fatal(err)
		}
	})
}
