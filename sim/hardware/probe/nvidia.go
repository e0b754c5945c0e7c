package probe

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"infera/internal/units"
	"infera/sim/hardware"
)

// ErrNotInstalled is what a [Runner] returns for a program that the machine
// does not have.
var ErrNotInstalled = errors.New("not installed")

// Runner runs a program and returns its standard output.
type Runner func(ctx context.Context, name string, args ...string) ([]byte, error)

var nvidiaQuery = []string{"index", "name", "uuid", "memory.total", "clocks.max.sm", "compute_cap"}

// NVIDIA lists the devices that nvidia-smi reports. A machine without it has
// none; output that is not the table asked for is an error.
func NVIDIA(ctx context.Context, run Runner, c *hardware.Catalog) ([]Device, error) {
	out, err := run(ctx, "nvidia-smi", "--query-gpu="+strings.Join(nvidiaQuery, ","), "--format=csv,noheader,nounits")
	if errors.Is(err, ErrNotInstalled) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("probe NVIDIA devices: %w", err)
	}
	r := csv.NewReader(strings.NewReader(string(out)))
	r.FieldsPerRecord = len(nvidiaQuery)
	r.TrimLeadingSpace = true
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("probe NVIDIA devices: output of nvidia-smi: %w: %w", err, hardware.ErrInvalid)
	}
	devices := make([]Device, 0, len(rows))
	for _, row := range rows {
		index, err := strconv.Atoi(strings.TrimSpace(row[0]))
		if err != nil {
			return nil, fmt.Errorf("probe NVIDIA devices: output of nvidia-smi: index %q: %w", row[0], hardware.ErrInvalid)
		}
		f := facts{name: strings.TrimSpace(row[1]), memory: units.Bytes(number(row[3])) * units.MiB, clock: units.Hertz(number(row[4])) * 1e6}
		if major, minor, ok := strings.Cut(strings.TrimSpace(row[5]), "."); ok {
			f.isa = "sm_" + major + minor
		}
		d := Device{Vendor: "nvidia", Index: index, Name: f.name, ID: strings.TrimSpace(row[2])}
		devices = append(devices, d.with(c, f))
	}
	return devices, nil
}

// number reads a figure; "[N/A]", "[Not Supported]" and the like are 0.
func number(s string) float64 {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(v > 0) || v > 1e12 {
		return 0
	}
	return v
}
