package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"infera/internal/cli"
	"infera/internal/units"
	"infera/sim/hardware"
	"infera/sim/hardware/probe"
	"infera/sim/planner"
)

// hardware finds the GPU and its node, then applies what the flags change.
func (r *resolver) hardware() error {
	f := r.flags
	if err := r.findGPU(); err != nil {
		return err
	}
	gpu := r.out.GPU
	if f.hbm > 0 {
		g, err := gpu.WithCapacity(f.hbm)
		if err != nil {
			return fmt.Errorf("--hbm-capacity-gb: %w", err)
		}
		gpu, r.out.memorySource = g, "--hbm-capacity-gb"
	}
	if f.clockMHz > 0 {
		g, err := gpu.WithClock(units.Hertz(f.clockMHz * 1e6))
		if err != nil {
			return fmt.Errorf("--gpu-clock-mhz: %w", err)
		}
		gpu = g
	}
	r.out.GPU = gpu
	return nil
}

// findGPU takes the GPU from --hardware, else from --gpu-arch, else from the
// machine.
func (r *resolver) findGPU() error {
	var overlay hardware.Overlay
	if file := r.flags.hardware; file != "" {
		path := r.path(file)
		data, err := r.State.ReadInput(path)
		if err != nil {
			return err
		}
		if overlay, err = r.lib.Hardware.Overlay(path, data); err != nil {
			return err
		}
	}
	gpu, fabric, source, err := r.baseGPU(overlay)
	if err != nil {
		return err
	}
	if overlay.Fabric != nil {
		fabric = overlay.Fabric
	}
	if fabric == nil {
		if fabric, err = r.lib.Hardware.FabricOf(gpu); err != nil {
			return fmt.Errorf("fabric of %s: %w", gpu.Name, err)
		}
	}
	r.out.GPU, r.out.Fabric, r.out.memorySource = gpu, fabric, source
	return nil
}

// baseGPU returns the GPU, its fabric (nil = look it up) and where both come
// from.
func (r *resolver) baseGPU(overlay hardware.Overlay) (*hardware.GPU, *hardware.Fabric, string, error) {
	arch := r.flags.gpuArch
	switch g := overlay.GPU; {
	case g != nil && arch != "" && !named(g, arch):
		return nil, nil, "", cli.WithHint(cli.Errorf(cli.BadInput, "--hardware describes %s and --gpu-arch asks for %s", g.Name, arch), "drop one of them")
	case g != nil:
		return g, nil, "file " + r.flags.hardware, nil
	case arch == "":
		g, source, err := r.localGPU()
		return g, nil, source, err
	case strings.EqualFold(arch, "cpu"):
		g, err := r.localCPU(r.ctx)
		return g, nil, "probe of this machine", err
	}
	g, fabric, err := r.lib.GPU(arch)
	if err != nil {
		return nil, nil, "", fmt.Errorf("--gpu-arch: %w", err)
	}
	return g, fabric, "profile of " + g.Name, nil
}

func named(g *hardware.GPU, name string) bool {
	same := func(n string) bool { return strings.EqualFold(n, name) }
	return same(g.Name) || slices.ContainsFunc(g.Aliases, same)
}

// localGPU is the device of this machine that --gpu-device names.
func (r *resolver) localGPU() (*hardware.GPU, string, error) {
	devices, err := r.localGPUs(r.ctx, r.lib)
	if err != nil {
		return nil, "", err
	}
	if len(devices) == 0 {
		return nil, "", cli.WithHint(cli.Errorf(cli.BadInput, "no GPU found on this machine"),
			"name the one to plan for with --gpu-arch (mi300x, mi325x, mi355x, h100, h200, b200, ..., cpu)")
	}
	i := r.flags.device
	if i >= len(devices) {
		return nil, "", cli.Errorf(cli.BadInput, "--gpu-device %d: this machine has %d GPUs, counted from 0", i, len(devices))
	}
	d := devices[i]
	if d.GPU == nil {
		return nil, "", cli.WithHint(cli.Errorf(cli.BadInput, "GPU %d of this machine (%s) has no profile: %s", i, d.Name, d.Problem),
			"name one with --gpu-arch or describe it with --hardware")
	}
	return d.GPU, "probe of GPU " + fmt.Sprint(i), nil
}

// localGPUs lists the accelerators of this machine, AMD ones first.
func (a *app) localGPUs(ctx context.Context, lib *planner.Library) ([]probe.Device, error) {
	devices, err := probe.AMD(a.State.Files.Dir("/"), lib.Hardware)
	if err != nil {
		return nil, err
	}
	more, err := probe.NVIDIA(ctx, a.tool, lib.Hardware)
	if err != nil {
		return nil, err
	}
	return append(devices, more...), nil
}

// localCPU describes the processor of this machine; it measures for about half
// a second.
func (a *app) localCPU(ctx context.Context) (*hardware.GPU, error) {
	return probe.CPU(ctx, a.State.Files.Dir("/"), probe.NewMeter(a.State.Now))
}

// toolPatience is how long a vendor's tool may take to answer.
const toolPatience = 10 * time.Second

// runTool runs a program of the machine.
func runTool(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, toolPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("%s: %w", name, probe.ErrNotInstalled)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", name, err)
	}
	return out, nil
}
