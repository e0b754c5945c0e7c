package probe

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"infera/internal/units"
	"infera/sim/hardware"
)

const (
	kfdNodes  = "sys/class/kfd/kfd/topology/nodes"
	drmCards  = "sys/class/drm/card[0-9]*/device/vendor"
	amdVendor = "0x1002"
)

// AMD lists the AMD devices of the machine whose root directory is root. The
// KFD topology (compute nodes) comes first; without it the display-driver
// cards are listed, which tell name, memory and clock only. No device is an
// empty list; files that contradict their format are errors.
func AMD(root fs.FS, c *hardware.Catalog) ([]Device, error) {
	devices, err := kfd(root, c)
	if err != nil || len(devices) > 0 {
		return devices, err
	}
	return drm(root, c)
}

func kfd(root fs.FS, c *hardware.Catalog) ([]Device, error) {
	entries, err := fs.ReadDir(root, kfdNodes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("probe AMD devices: %w", err)
	}
	var ids []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			ids = append(ids, n)
		}
	}
	slices.Sort(ids) // the directory lists 10 before 2
	var devices []Device
	for _, n := range ids {
		file := path.Join(kfdNodes, strconv.Itoa(n), "properties")
		data, err := fs.ReadFile(root, file)
		if errors.Is(err, fs.ErrPermission) {
			continue // another container's device
		}
		if err != nil {
			return nil, fmt.Errorf("probe AMD devices: %w", err)
		}
		props, err := properties(file, data)
		if err != nil {
			return nil, err
		}
		if props["simd_count"] == 0 {
			continue // a CPU
		}
		d := kfdDevice(root, c, n, props)
		d.Index = len(devices)
		devices = append(devices, d)
	}
	return devices, nil
}

func kfdDevice(root fs.FS, c *hardware.Catalog, node int, props map[string]uint64) Device {
	card := fmt.Sprintf("sys/class/drm/renderD%d/device", props["drm_render_minor"])
	f := facts{
		name:     text(root, path.Join(card, "product_name")),
		isa:      isa(props["gfx_target_version"]),
		units:    bounded(props["simd_count"] / max(1, props["simd_per_cu"])),
		chiplets: bounded(props["num_xcc"]),
		clock:    units.Hertz(props["max_engine_clk_fcompute"]) * 1e6,
		memory:   vram(root, card),
	}
	if f.memory == 0 {
		f.memory = banks(root, node)
	}
	d := Device{Vendor: "amd", Name: f.name}
	if id := props["unique_id"]; id != 0 {
		d.ID = fmt.Sprintf("0x%016x", id)
	}
	return d.with(c, f)
}

// with settles the profile of a device. What an AMD driver reports as memory
// is what a process is told.
func (d Device) with(c *hardware.Catalog, f facts) Device {
	g, matched, err := identify(c, f)
	if err != nil {
		d.Problem = err.Error()
		return d
	}
	if matched && d.Vendor == "amd" && f.memory > 0 {
		own := *g
		own.Usable, own.Capacity = f.memory, max(g.Capacity, f.memory)
		g = &own
	}
	d.GPU, d.Matched = g, matched
	return d
}

func drm(root fs.FS, c *hardware.Catalog) ([]Device, error) {
	files, err := fs.Glob(root, drmCards)
	if err != nil {
		return nil, fmt.Errorf("probe AMD devices: %w", err)
	}
	slices.SortFunc(files, func(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)) })
	var devices []Device
	for _, file := range files {
		// card0-DP-1 and the like are connectors of a card.
		if strings.Contains(path.Base(path.Dir(path.Dir(file))), "-") || text(root, file) != amdVendor {
			continue
		}
		card := path.Dir(file)
		f := facts{name: text(root, path.Join(card, "product_name")), memory: vram(root, card), clock: topClock(text(root, path.Join(card, "pp_dpm_sclk")))}
		d := Device{Vendor: "amd", Index: len(devices), Name: f.name, ID: text(root, path.Join(card, "unique_id"))}
		devices = append(devices, d.with(c, f))
	}
	return devices, nil
}

// properties parses "name value" lines with whole numbers.
func properties(file string, data []byte) (map[string]uint64, error) {
	props := map[string]uint64{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		name, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if name == "" {
			continue
		}
		v, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("%s:%d: %q is not a name and a whole number: %w", file, n, lines.Text(), hardware.ErrInvalid)
		}
		props[name] = v
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", file, err, hardware.ErrInvalid)
	}
	return props, nil
}

// isa spells gfx_target_version (90402) as the compiler does: gfx942.
func isa(version uint64) string {
	if version == 0 || version > 1e6 {
		return ""
	}
	return fmt.Sprintf("gfx%d%x%x", version/10000, version/100%100, version%100)
}

func bounded(n uint64) int { return int(min(n, math.MaxInt32)) }

// text returns the trimmed content of a small file; "" when there is none.
func text(root fs.FS, file string) string {
	data, err := fs.ReadFile(root, file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func vram(root fs.FS, card string) units.Bytes {
	n, err := strconv.ParseUint(text(root, path.Join(card, "mem_info_vram_total")), 10, 64)
	if err != nil {
		return 0
	}
	return units.Bytes(n)
}

// banks sums the memory banks KFD lists for a node.
func banks(root fs.FS, node int) units.Bytes {
	files, err := fs.Glob(root, path.Join(kfdNodes, strconv.Itoa(node), "mem_banks/*/properties"))
	if err != nil {
		return 0
	}
	var sum units.Bytes
	for _, file := range files {
		if props, err := properties(file, []byte(text(root, file))); err == nil {
			sum += units.Bytes(props["size_in_bytes"])
		}
	}
	return sum
}

// topClock returns the highest state of pp_dpm_sclk ("1: 2100Mhz *").
func topClock(states string) units.Hertz {
	var top units.Hertz
	for line := range strings.Lines(states) {
		_, value, _ := strings.Cut(line, ":")
		value, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(value)), "mhz")
		if mhz, err := strconv.ParseFloat(value, 64); err == nil {
			top = max(top, units.Hertz(mhz)*1e6)
		}
	}
	return top
}
