package hardware

import (
	"errors"
	"strings"
	"testing"

	"infera/models"
)

const complete = `
name: toy
vendor: amd
arch: cdna3
isa: gfx942
compute_units: 100
clock_mhz: 1000
memory: {capacity_gib: 10, bandwidth_tb_s: 1}
peak_tflops: {bf16: 100}
vector_fp32_tflops: 10
scale_up: {fabric: xgmi-mi300x, gb_s: 100}
host_link_gb_s: 16
`

func TestOverlay(t *testing.T) {
	c := load(t)
	for _, tt := range []struct {
		name, in string
		check    func(o Overlay) bool
	}{
		{"one number", "base: MI300X\nmemory: {bandwidth_tb_s: 4.9}\n", func(o Overlay) bool {
			return o.GPU.Name == "mi300x" && o.GPU.Bandwidth == 4.9e12 && o.GPU.ComputeUnits == 304 &&
				o.GPU.UsableCapacity().GiB() == 191.98 && strings.HasPrefix(o.GPU.Source, "my.yaml over AMD") &&
				o.GPU.Confidence == "stated" && o.Fabric == nil
		}},
		{"capacity drops the base's usable", "base: mi300x\nmemory: {capacity_gib: 64}\n", func(o Overlay) bool {
			return o.GPU.UsableCapacity().GiB() == 64
		}},
		{"fewer links", "base: mi300x\nscale_up: {links: 3}\n", func(o Overlay) bool { return o.GPU.ScaleUp == 3*64e9 }},
		{"total over the links", "base: mi300x\nscale_up: {gb_s: 700}\n", func(o Overlay) bool { return o.GPU.LinkBandwidth == 100e9 }},
		{"fp16 follows bf16", "base: mi300x\npeak_tflops: {bf16: 1000}\n", func(o Overlay) bool {
			return o.GPU.Peak(models.FP16) == 1e15 && o.GPU.Peaks.FP8 == 2614.9e12
		}},
		{"complete", complete, func(o Overlay) bool {
			return o.GPU.Name == "toy" && o.GPU.Source == "my.yaml" && o.GPU.Chiplets == 1 && len(o.GPU.Aliases) == 0
		}},
		{"announced part completed", "base: mi440x\ncompute_units: 256\nclock_mhz: 2400\npeak_tflops: {bf16: 5000}\n" +
			"vector_fp32_tflops: 100\nscale_up: {gb_s: 900}\nhost_link_gb_s: 64\n", func(o Overlay) bool {
			return o.GPU.Announced && o.GPU.Confidence == "announced" && o.GPU.Capacity.GiB() == 432
		}},
		{"fabric only", "fabric: {base: xgmi-mi300x, nic: {per_domain: 4}}\n", func(o Overlay) bool {
			return o.GPU == nil && o.Fabric.NICs == 4 && o.Fabric.NIC == 50e9 && o.Fabric.DomainSize == 8
		}},
		{"both", "base: mi355x\npower_w: 1200\nfabric: {link_efficiency: 0.5}\n", func(o Overlay) bool {
			return o.GPU.Power == 1200 && o.Fabric.Name == "xgmi-mi350x" && o.Fabric.LinkEfficiency == 0.5 && o.GPU.Fabric == "xgmi-mi350x"
		}},
		{"own fabric", strings.Replace(complete, "fabric: xgmi-mi300x, ", "", 1) +
			"fabric: {name: ring, topology: switch, domain_size: 4, link_efficiency: 1, hop_latency_us: 1, nic: {per_domain: 1, gb_s: 12.5, efficiency: 0.9, latency_us: 5}}\n",
			func(o Overlay) bool { return o.Fabric.Name == "ring" && o.GPU.Fabric == "ring" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, err := c.Overlay("my.yaml", []byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if !tt.check(o) {
				t.Errorf("Overlay() = %+v, %+v", o.GPU, o.Fabric)
			}
		})
	}
}

func TestBadOverlay(t *testing.T) {
	c := load(t)
	for _, tt := range []struct {
		name, in, want string
		kind           error
	}{
		{"empty", "", "my.yaml: the file is empty", ErrInvalid},
		{"syntax", "base: [\n", "my.yaml:1:", ErrInvalid},
		{"unknown key", "base: mi300x\nmemory:\n  bandwith_tb_s: 5\n", `my.yaml:3: unknown key "bandwith_tb_s"; did you mean "bandwidth_tb_s"?`, ErrInvalid},
		{"unknown top key", "base: mi300x\nclock: 5\n", `my.yaml:2: unknown key "clock"`, ErrInvalid},
		{"wrong type", "base: mi300x\nclock_mhz: fast\n", "my.yaml:2: cannot unmarshal", ErrInvalid},
		{"half a CU", "base: mi300x\ncompute_units: 1.5\n", "my.yaml:2: 1.5 is not a whole number", ErrInvalid},
		{"unbounded count", "base: mi300x\nchiplets: .inf\n", "my.yaml:2: cannot unmarshal !!float `.inf` into int", ErrInvalid},
		{"unknown base", "base: mi301x\n", `my.yaml: base: unknown GPU "mi301x"`, ErrUnknownGPU},
		{"negative", "base: mi300x\npower_w: -1\n", "power_w is -1", ErrInvalid},
		{"infinite", "base: mi300x\npeak_tflops: {fp8: .inf}\n", "peak_tflops.fp8 is +Inf", ErrInvalid},
		{"zeroed", "base: mi300x\nmemory: {bandwidth_tb_s: 0}\n", "mi300x lacks memory.bandwidth_tb_s", ErrIncomplete},
		{"wrong unit", "base: mi300x\nmemory: {bandwidth_tb_s: 5300}\n", "memory.bandwidth_tb_s is 5.3e+15", ErrInvalid},
		{"usable above total", "base: mi300x\nmemory: {usable_gib: 193}\n", "usable_gib 193 is above", ErrInvalid},
		{"incomplete", "name: toy\nvendor: amd\n", "toy lacks arch, scale_up.fabric, compute_units, clock_mhz", ErrIncomplete},
		{"still incomplete", "base: mi440x\ncompute_units: 256\n", "still missing for mi440x: [clock_mhz", ErrIncomplete},
		{"shipped name", strings.Replace(complete, "name: toy", "name: MI300X", 1), `MI300X is a shipped profile; write "base: mi300x"`, ErrInvalid},
		{"unknown fabric", "base: mi300x\nscale_up: {fabric: xgmi}\n", `unknown fabric "xgmi"`, ErrUnknownFabric},
		{"fabric without base", "fabric: {link_efficiency: 0.5}\n", "fabric lacks name, topology", ErrIncomplete},
		{"fabric efficiency", "fabric: {base: host, link_efficiency: 1.5}\n", "link_efficiency is 1.5", ErrInvalid},
		{"fabric topology", "fabric: {base: host, topology: torus}\n", `topology "torus", want mesh, switch or pcie`, ErrInvalid},
		{"no scale-up", strings.Replace(complete, ", gb_s: 100", "", 1), "neither scale_up.gb_s nor", ErrIncomplete},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, err := c.Overlay("my.yaml", []byte(tt.in))
			if err == nil {
				t.Fatalf("Overlay() = %+v, want an error", o.GPU)
			}
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Overlay() = %v, want %v saying %q", err, tt.kind, tt.want)
			}
		})
	}
}

func FuzzOverlay(f *testing.F) {
	c, err := Load(shipped)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(complete))
	f.Add([]byte("base: mi300x\nmemory: {bandwidth_tb_s: 1e400}\nfabric: {}\n"))
	f.Add([]byte("base: {}\nfabric: null\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := c.Overlay("f.yaml", data)
		if err != nil {
			return
		}
		if o.GPU == nil && o.Fabric == nil {
			t.Fatal("neither GPU nor fabric, and no error")
		}
		if o.GPU != nil {
			for d := models.FP32; d <= models.INT4; d++ {
				if p := float64(o.GPU.Peak(d)); !(p > 0 && p < maxRate) {
					t.Fatalf("Peak(%v) = %v", d, p)
				}
			}
			if b := float64(o.GPU.UsableCapacity()); !(b > 0 && b < maxCapacity) {
				t.Fatalf("capacity %v", b)
			}
		}
	})
}
