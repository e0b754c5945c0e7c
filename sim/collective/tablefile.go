package collective

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"infera/internal/nearest"
	"infera/internal/units"
	"infera/sim/hardware"
)

// tableFile is a table as written in configs/fabrics/collectives. Suffixes say
// the unit: _us microseconds, _gb_s 1e9 bytes per second, _mib 2^20 bytes.
type tableFile struct {
	Name string   `yaml:"name"`
	ISA  []string `yaml:"isa"`
	Arch []string `yaml:"arch"`
	// Like names the table whose implementations this part takes over; it then
	// has none of its own.
	Like       string `yaml:"like"`
	MeasuredOn struct {
		Topology    string  `yaml:"topology"`
		DomainSize  int     `yaml:"domain_size"`
		ScaleUpGBps float64 `yaml:"scale_up_gb_s"`
	} `yaml:"measured_on"`
	CustomMaxMiB   float64 `yaml:"custom_max_mib"`
	ExchangeMaxMiB float64 `yaml:"exchange_max_mib"`
	FusedNorm      float64 `yaml:"fused_norm"`
	Network        struct {
		ExchangeFloorUS   float64 `yaml:"exchange_floor_us"`
		CollectiveFloorUS float64 `yaml:"collective_floor_us"`
		PeerCostUS        float64 `yaml:"peer_cost_us"`
		Overlap           float64 `yaml:"overlap"`
		Spread            float64 `yaml:"spread"`
		Source            string  `yaml:"source"`
	} `yaml:"network"`
	Implementations []implementationFile `yaml:"implementations"`
	Source          string               `yaml:"source"`
}

type implementationFile struct {
	Name         string  `yaml:"name"`
	Family       string  `yaml:"family"`
	Operation    string  `yaml:"operation"`
	Quantisation string  `yaml:"quantisation,omitempty"`
	WireShare    float64 `yaml:"wire_share,omitempty"`
	Eager        struct {
		LeastUS  float64 `yaml:"least_us"`
		Slowdown float64 `yaml:"slowdown"`
	} `yaml:"eager"`
	Source string    `yaml:"source"`
	Fits   []fitFile `yaml:"fits"`
}

type fitFile struct {
	Ranks    int        `yaml:"ranks"`
	Smallest float64    `yaml:"smallest_bytes"`
	Largest  float64    `yaml:"largest_bytes"`
	Spread   float64    `yaml:"spread"`
	Derived  bool       `yaml:"derived,omitempty"`
	Lines    []lineFile `yaml:"lines"`
}

type lineFile struct {
	FloorUS float64 `yaml:"floor_us"`
	GBps    float64 `yaml:"gb_s"`
}

// Bounds of what a table may hold: wide enough for any link, narrow enough to
// catch a wrong unit.
const (
	maxMicroseconds = 1e6
	maxGBps         = 1e6
	maxRanks        = 1 << 16
)

var (
	operations = []string{string(AllReduce), string(AllGather), string(ReduceScatter), string(AllToAll), string(SendReceive)}
	families   = []string{string(Custom), string(QuickReduce), string(Library), string(Expert)}
	topologies = []string{string(hardware.Mesh), string(hardware.Switch), string(hardware.PCIe)}
)

func (f *tableFile) table() (*Table, error) {
	if f.Like != "" {
		return f.like()
	}
	t := &Table{
		Name: f.Name, Source: f.Source,
		Measured: Wiring{
			Topology: hardware.Topology(f.MeasuredOn.Topology),
			Domain:   f.MeasuredOn.DomainSize,
			ScaleUp:  units.BytesPerSecond(f.MeasuredOn.ScaleUpGBps * 1e9),
		},
		CustomMax:   units.Bytes(f.CustomMaxMiB) * units.MiB,
		ExchangeMax: units.Bytes(f.ExchangeMaxMiB) * units.MiB,
		FusedNorm:   f.FusedNorm,
		Network: Network{
			ExchangeFloor:   units.Seconds(f.Network.ExchangeFloorUS * 1e-6),
			CollectiveFloor: units.Seconds(f.Network.CollectiveFloorUS * 1e-6),
			PeerCost:        units.Seconds(f.Network.PeerCostUS * 1e-6),
			Overlap:         f.Network.Overlap,
			Spread:          f.Network.Spread,
		},
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	for i := range f.Implementations {
		im, err := f.Implementations[i].implementation()
		if err != nil {
			return nil, fmt.Errorf("implementation %q: %w", f.Implementations[i].Name, err)
		}
		t.Implementations = append(t.Implementations, im)
	}
	for _, op := range []Operation{AllReduce, AllGather, ReduceScatter, AllToAll, SendReceive} {
		if t.find(op, Library, "") == nil {
			return nil, fmt.Errorf("no %s implementation of %s: every table needs one, derived if not measured", Library, op)
		}
	}
	return t, nil
}

func (f *tableFile) like() (*Table, error) {
	switch {
	case f.Name == "" || f.Source == "":
		return nil, errors.New("name and source are both needed")
	case len(f.ISA)+len(f.Arch) == 0:
		return nil, errors.New("isa and arch are both missing")
	case f.Implementations != nil:
		return nil, errors.New("like and implementations exclude each other")
	}
	return &Table{Name: f.Name, DerivedFrom: f.Like, Source: f.Source, unresolved: true}, nil
}

func (f *tableFile) check() error {
	switch n, m := f.Network, f.MeasuredOn; {
	case f.Name == "":
		return errors.New("name is missing")
	case f.Source == "":
		return errors.New("source is missing")
	case len(f.ISA)+len(f.Arch) == 0:
		return errors.New("isa and arch are both missing")
	case !slices.Contains(topologies, m.Topology):
		return unknown("topology", m.Topology, topologies)
	case m.DomainSize < 2 || m.DomainSize > maxRanks:
		return fmt.Errorf("measured_on.domain_size is %d; want 2 or more", m.DomainSize)
	case m.ScaleUpGBps <= 0 || !within(0, maxGBps, m.ScaleUpGBps):
		return fmt.Errorf("measured_on.scale_up_gb_s is %g; want a positive bandwidth", m.ScaleUpGBps)
	case !within(0, 1e6, f.CustomMaxMiB, f.ExchangeMaxMiB):
		return errors.New("custom_max_mib and exchange_max_mib must be sizes of 0 or more")
	case f.FusedNorm <= 0 || !within(0, 1, f.FusedNorm):
		return fmt.Errorf("fused_norm is %g; want a factor in (0, 1]", f.FusedNorm)
	case !within(0, maxMicroseconds, n.ExchangeFloorUS, n.CollectiveFloorUS, n.PeerCostUS):
		return errors.New("network times must be 0 or more microseconds")
	case !within(0, 1, n.Overlap) || !within(0, 10, n.Spread):
		return errors.New("network.overlap must be in [0, 1] and network.spread 0 or more")
	}
	return nil
}

func unknown(what, name string, known []string) error {
	hint := nearest.Hint(name, known)
	if hint != "" {
		hint = "; " + hint
	}
	return fmt.Errorf("unknown %s %q; known: %s%s", what, name, strings.Join(known, ", "), hint)
}

func (f *implementationFile) implementation() (Implementation, error) {
	im := Implementation{
		Name: f.Name, Family: Family(f.Family), Operation: Operation(f.Operation),
		Quantisation: f.Quantisation, WireShare: f.WireShare, Source: f.Source,
		Eager: Launch{Least: units.Seconds(f.Eager.LeastUS * 1e-6), Slowdown: f.Eager.Slowdown},
	}
	if im.WireShare == 0 {
		im.WireShare = 1
	}
	if im.Eager.Slowdown == 0 {
		im.Eager.Slowdown = 1
	}
	switch {
	case f.Name == "" || f.Source == "":
		return im, errors.New("name and source are both needed")
	case !slices.Contains(families, f.Family):
		return im, unknown("family", f.Family, families)
	case !slices.Contains(operations, f.Operation):
		return im, unknown("operation", f.Operation, operations)
	case !within(0.01, 1, im.WireShare):
		return im, fmt.Errorf("wire_share is %g; want a share in (0, 1]", f.WireShare)
	case !within(1, 100, im.Eager.Slowdown) || !within(0, maxMicroseconds, f.Eager.LeastUS):
		return im, errors.New("eager needs least_us >= 0 and slowdown >= 1")
	case len(f.Fits) == 0:
		return im, errors.New("fits are missing")
	}
	for _, ff := range f.Fits {
		fit, err := ff.fit()
		if err != nil {
			return im, fmt.Errorf("ranks %d: %w", ff.Ranks, err)
		}
		if n := len(im.Fits); n > 0 && im.Fits[n-1].Ranks >= fit.Ranks {
			return im, fmt.Errorf("ranks %d: fits must be in ascending order of ranks", ff.Ranks)
		}
		im.Fits = append(im.Fits, fit)
	}
	return im, nil
}

func (f *fitFile) fit() (Fit, error) {
	fit := Fit{
		Ranks: f.Ranks, Smallest: units.Bytes(f.Smallest), Largest: units.Bytes(f.Largest),
		Spread: f.Spread, Derived: f.Derived,
	}
	switch {
	case f.Ranks < 2 || f.Ranks > maxRanks:
		return fit, errors.New("a group has 2 ranks or more")
	case !within(0, 1e15, f.Smallest, f.Largest) || f.Largest < f.Smallest:
		return fit, errors.New("smallest_bytes and largest_bytes must be an ascending range")
	case !within(0, 10, f.Spread):
		return fit, fmt.Errorf("spread is %g; want 0 or more", f.Spread)
	case len(f.Lines) == 0 || len(f.Lines) > maxLines:
		return fit, fmt.Errorf("%d lines; want 1 to %d", len(f.Lines), maxLines)
	}
	for _, l := range f.Lines {
		if !within(0, maxMicroseconds, l.FloorUS) || l.GBps <= 0 || !within(0, maxGBps, l.GBps) {
			return fit, fmt.Errorf("line (%g us, %g GB/s): want a floor of 0 or more and a positive bandwidth", l.FloorUS, l.GBps)
		}
		fit.Lines = append(fit.Lines, Line{Floor: units.Seconds(l.FloorUS * 1e-6), PerByte: 1 / (l.GBps * 1e9)})
	}
	return fit, nil
}
