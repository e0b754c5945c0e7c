package catalog

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"infera/sim/report"
	"infera/sim/report/page"
)

// WriteTable prints one GPU in full, or several as a grid.
func (l HardwareList) WriteTable(w io.Writer, o page.Options) error {
	g := page.New(o)
	if len(l.GPUs) == 1 {
		gpu(g, l.GPUs[0])
		for _, f := range l.Fabrics {
			fabric(g, f)
		}
		report.PutWarnings(g, l.Warnings)
		return g.Flush(w)
	}
	if err := gpus(g, l.GPUs); err != nil {
		return err
	}
	if len(l.Fabrics) > 0 {
		var cells [][]string
		for _, f := range l.Fabrics {
			cells = append(cells, []string{
				f.Name, f.Topology, page.Count(int64(f.DomainSize)), scaled(f.ScaleUpBytesPerS, 1e9, 0),
				page.Count(int64(f.NICs)), scaled(f.NICBytesPerS, 1e9, 1),
			})
		}
		g.Subtitle("Fabrics")
		if err := g.Grid(0, []page.Column{
			{Name: "name"}, {Name: "topology"}, {Name: "GPUs", Right: true},
			{Name: "GB/s per GPU", Right: true}, {Name: "NICs", Right: true, Drop: 1}, {Name: "GB/s per NIC", Right: true, Drop: 1},
		}, cells); err != nil {
			return err
		}
	}
	report.PutWarnings(g, l.Warnings)
	return g.Flush(w)
}

// scaled prints v/unit; "-" for 0, which means not known.
func scaled(v report.Number, unit float64, decimals int) string {
	if v == 0 {
		return "-"
	}
	return fixed(v/report.Number(unit), decimals)
}

func gpus(p *page.Page, list []GPU) error {
	var cells [][]string
	announced := false
	for _, x := range list {
		name := x.Name
		if x.Announced {
			name += "*"
			announced = true
		}
		cells = append(cells, []string{
			name, page.OrDash(x.Arch), page.OrDash(x.ISA), page.Count(int64(x.ComputeUnits)), scaled(x.HBMBytes, 1e9, 0), scaled(x.HBMBytesPerS, 1e12, 2),
			scaled(x.Peaks.BF16, 1e12, 0), scaled(x.Peaks.FP8, 1e12, 0), scaled(x.Peaks.FP4, 1e12, 0),
			scaled(x.ScaleUpBytesPerS, 1e9, 0), page.OrDash(x.Fabric), strings.Join(x.Aliases, " "),
		})
	}
	p.Subtitle("GPUs: memory in GB, bandwidth in TB/s, dense peaks in TFLOP/s, links in GB/s")
	err := p.Grid(0, []page.Column{
		{Name: "name"}, {Name: "arch", Drop: 3}, {Name: "isa", Drop: 5}, {Name: "CUs", Right: true, Drop: 4},
		{Name: "GB", Right: true}, {Name: "TB/s", Right: true},
		{Name: "bf16", Right: true}, {Name: "fp8", Right: true}, {Name: "fp4", Right: true}, {Name: "links", Right: true, Drop: 2},
		{Name: "fabric", Drop: 6}, {Name: "aliases", Flex: true, Drop: 7},
	}, cells)
	if announced {
		p.Line("* announced: the numbers are not final")
		p.Blank()
	}
	return err
}

// gpu prints one GPU in full.
func gpu(p *page.Page, x GPU) {
	title := "GPU " + x.Name
	if x.Announced {
		title += " (announced)"
	}
	p.Title(title)
	identity := []page.Row{
		{Label: "Aliases", Text: page.OrDash(strings.Join(x.Aliases, ", "))},
		{Label: "Vendor, architecture", Text: page.OrDash(describe(x.Vendor, x.Arch, x.ISA))},
		{Label: "Source", Text: page.OrDash(describe(x.Source, bracket(x.Confidence)))},
	}
	if x.DevicesPerPackage > 1 {
		identity = append(identity, page.Row{Label: "Package", Text: fmt.Sprintf("one of %d devices", x.DevicesPerPackage)})
	}
	core := []page.Row{
		{Label: "Compute units", Number: page.Count(int64(x.ComputeUnits)), Note: fmt.Sprintf("in %d chiplet(s)", x.Chiplets)},
		{Label: "Clock", Number: scaled(x.ClockHz, 1e6, 0), Unit: "MHz"},
		{Label: "Power", Number: scaled(x.PowerW, 1, 0), Unit: "W"},
	}
	rate := ""
	if x.LastLevelBytesPerS > 0 {
		rate = "at " + scaled(x.LastLevelBytesPerS, 1e12, 2) + " TB/s"
	}
	memory := []page.Row{
		{Label: describe("Memory", bracket(x.MemoryType)), Number: scaled(x.HBMBytes, 1e9, 1), Unit: "GB", Note: "= " + scaled(x.HBMBytes, gib, 1) + " GiB, usable " + scaled(x.UsableBytes, gib, 1) + " GiB"},
		{Label: "Memory bandwidth", Number: scaled(x.HBMBytesPerS, 1e12, 2), Unit: "TB/s"},
		{Label: "L2 cache", Number: scaled(x.L2Bytes, 1<<20, 1), Unit: "MiB"},
		{Label: "Last-level cache", Number: scaled(x.LastLevelBytes, 1<<20, 1), Unit: "MiB", Note: rate},
		{Label: "Scratchpad per CU", Number: scaled(x.ScratchpadBytes, 1<<10, 1), Unit: "KiB"},
	}
	var peaks []page.Row
	for _, k := range []struct {
		name string
		v    report.Number
	}{
		{"fp32", x.Peaks.FP32}, {"bf16", x.Peaks.BF16}, {"fp16", x.Peaks.FP16}, {"fp8", x.Peaks.FP8},
		{"fp6", x.Peaks.FP6}, {"fp4", x.Peaks.FP4}, {"int8", x.Peaks.INT8}, {"vector fp32", x.VectorFP32},
	} {
		peaks = append(peaks, page.Row{Label: "Peak " + k.name, Number: scaled(k.v, 1e12, 1), Unit: "TFLOP/s"})
	}
	links := []page.Row{
		{Label: "Fabric", Text: page.OrDash(x.Fabric)},
		{Label: "Scale-up", Number: scaled(x.ScaleUpBytesPerS, 1e9, 0), Unit: "GB/s", Note: fmt.Sprintf("%d link(s) of %s GB/s", x.Links, scaled(x.LinkBytesPerS, 1e9, 0))},
		{Label: "Host link", Number: scaled(x.HostLinkBytesPerS, 1e9, 0), Unit: "GB/s"},
	}
	p.Rows(identity, core, memory, peaks, links)
	notes := make([]page.Item, 0, len(x.Notes))
	for _, n := range x.Notes {
		notes = append(notes, page.Item{Text: n})
	}
	p.List("Notes", page.None, notes)
}

func fabric(p *page.Page, f Fabric) {
	p.Title("Fabric " + f.Name)
	scaleUp := page.Row{Label: "Scale-up per GPU", Text: "that of the GPU,"}
	if f.ScaleUpBytesPerS > 0 {
		scaleUp = page.Row{Label: scaleUp.Label, Number: scaled(f.ScaleUpBytesPerS, 1e9, 0), Unit: "GB/s"}
	}
	scaleUp.Note = "achievable share " + scaled(f.LinkEfficiency, 1, 2)
	p.Rows([]page.Row{
		{Label: "Topology", Text: fmt.Sprintf("%s of %d GPU", page.OrDash(f.Topology), f.DomainSize)},
		scaleUp,
		{Label: "Hop latency", Number: scaled(f.HopLatencyS, 1e-6, 2), Unit: "us"},
		{Label: "NICs", Number: page.Count(int64(f.NICs)), Note: "of " + scaled(f.NICBytesPerS, 1e9, 1) + " GB/s, achievable share " + scaled(f.NICEfficiency, 1, 2)},
		{Label: "NIC latency", Number: scaled(f.NICLatencyS, 1e-6, 2), Unit: "us"},
		{Label: "Source", Text: page.OrDash(describe(f.Source, bracket(f.Confidence)))},
	})
}

// Records returns one row per GPU, in SI units.
func (l HardwareList) Records() [][]string {
	records := [][]string{{
		"name", "vendor", "arch", "isa", "compute_units", "chiplets", "clock_hz", "hbm_bytes", "usable_bytes", "hbm_bytes_per_s",
		"fp32_flops_per_s", "bf16_flops_per_s", "fp16_flops_per_s", "fp8_flops_per_s", "fp6_flops_per_s", "fp4_flops_per_s", "int8_flops_per_s",
		"fabric", "scale_up_bytes_per_s", "power_w", "announced", "aliases", "source", "confidence",
	}}
	for _, x := range l.GPUs {
		line := []string{x.Name, x.Vendor, x.Arch, x.ISA, strconv.Itoa(x.ComputeUnits), strconv.Itoa(x.Chiplets)}
		p := x.Peaks
		for _, n := range []report.Number{x.ClockHz, x.HBMBytes, x.UsableBytes, x.HBMBytesPerS, p.FP32, p.BF16, p.FP16, p.FP8, p.FP6, p.FP4, p.INT8} {
			line = append(line, n.Text())
		}
		line = append(line, x.Fabric, x.ScaleUpBytesPerS.Text(), x.PowerW.Text(), strconv.FormatBool(x.Announced),
			strings.Join(x.Aliases, ";"), x.Source, x.Confidence)
		records = append(records, line)
	}
	return records
}
