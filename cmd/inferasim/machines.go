package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"infera/internal/cli"
	"infera/sim/hardware"
	"infera/sim/report"
	"infera/sim/report/catalog"
)

func (a *app) hardwareCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "hardware", Short: "List, show and probe GPUs"}
	list := &cobra.Command{
		Use: "list", Short: "List the GPU profiles",
		RunE: func(*cobra.Command, []string) error { return a.listHardware() },
	}
	show := &cobra.Command{
		Use: "show NAME", Short: "Show a GPU and the node it sits in",
		Args:    cobra.ExactArgs(1),
		Example: "  inferasim hardware show mi355x",
		RunE:    func(_ *cobra.Command, args []string) error { return a.showHardware(args[0]) },
	}
	probe := &cobra.Command{
		Use: "probe", Short: "Find out what this machine is made of",
		Long: "Find out what this machine is made of: its AMD and NVIDIA GPUs, and its processor, which is measured for about half a second.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.probeHardware(cmd.Context()) },
	}
	cmd.AddCommand(list, show, probe)
	return cmd
}

func (a *app) emitHardware(l catalog.HardwareList) error {
	return a.Emit(cli.Report{JSON: l, CSV: l.Records(), Text: func(w io.Writer, width int) error {
		return l.WriteTable(w, a.page(width))
	}})
}

func (a *app) listHardware() error {
	lib, err := a.library()
	if err != nil {
		return err
	}
	var l catalog.HardwareList
	for _, name := range lib.Hardware.Names() {
		g, _, err := lib.Hardware.Describe(name)
		if err != nil {
			return err
		}
		l.GPUs = append(l.GPUs, catalog.NewGPU(g))
	}
	for _, name := range lib.Hardware.FabricNames() {
		f, err := lib.Hardware.Fabric(name)
		if err != nil {
			return err
		}
		l.Fabrics = append(l.Fabrics, catalog.NewFabric(f))
	}
	return a.emitHardware(l)
}

func (a *app) showHardware(name string) error {
	lib, err := a.library()
	if err != nil {
		return err
	}
	g, missing, err := lib.Hardware.Describe(name)
	if err != nil {
		return err
	}
	l := catalog.HardwareList{GPUs: report.List[catalog.GPU]{catalog.NewGPU(g)}}
	if len(missing) > 0 {
		l.Warnings = append(l.Warnings, report.Warning{Code: "incomplete_profile",
			Text: "not enough to plan with; missing: " + strings.Join(missing, ", ")})
	}
	if g.Announced {
		l.Warnings = append(l.Warnings, report.Warning{Code: "announced_hardware", Text: g.Name + " is announced; its numbers are not final"})
	}
	if f, err := lib.Hardware.FabricOf(g); err == nil { // an incomplete profile may name none
		l.Fabrics = append(l.Fabrics, catalog.NewFabric(f))
	}
	return a.emitHardware(l)
}

func (a *app) probeHardware(ctx context.Context) error {
	lib, err := a.library()
	if err != nil {
		return err
	}
	devices, err := a.localGPUs(ctx, lib)
	if err != nil {
		return err
	}
	var l catalog.HardwareList
	var found []*hardware.GPU
	for _, d := range devices {
		if d.GPU == nil {
			l.Warnings = append(l.Warnings, report.Warning{Code: "no_profile", Text: fmt.Sprintf("%s GPU %d (%s): %s", d.Vendor, d.Index, d.Name, d.Problem)})
			continue
		}
		found = append(found, d.GPU)
	}
	if len(devices) == 0 {
		l.Warnings = append(l.Warnings, report.Warning{Code: "no_gpu", Text: "no GPU found on this machine"})
	}
	cpu, err := a.localCPU(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		l.Warnings = append(l.Warnings, report.Warning{Code: "no_profile", Text: err.Error()})
	default:
		found = append(found, cpu)
	}
	var fabrics []string
	for _, g := range found {
		l.GPUs = append(l.GPUs, catalog.NewGPU(g))
		f, err := lib.Hardware.FabricOf(g)
		if err != nil {
			return err
		}
		if !slices.Contains(fabrics, f.Name) {
			fabrics = append(fabrics, f.Name)
			l.Fabrics = append(l.Fabrics, catalog.NewFabric(f))
		}
	}
	return a.emitHardware(l)
}
