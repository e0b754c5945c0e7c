package collective

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"infera/internal/nearest"
	"infera/internal/strict"
	"infera/internal/units"
	"infera/sim/hardware"
)

// Directory is where [LoadTable] looks for tables in the tree of shipped files.
const Directory = "fabrics/collectives"

// ErrNoTable is the kind of the error of [LoadTable] for a part which no table
// covers.
var ErrNoTable = errors.New("no collective table")

// Operation is what a collective computes.
type Operation string

// The operations a table holds measurements of.
const (
	AllReduce     Operation = "all_reduce"
	AllGather     Operation = "all_gather"     // message = the gathered size
	ReduceScatter Operation = "reduce_scatter" // message = the size before scattering
	AllToAll      Operation = "all_to_all"     // message = what one rank sends, its own share included
	SendReceive   Operation = "send_receive"
)

// Family is the kind of code that carries out a collective.
type Family string

// The families.
const (
	Custom      Family = "custom"       // the engine's own kernel, one-shot or two-shot
	QuickReduce Family = "quick_reduce" // two-shot with quantised transfers
	Library     Family = "library"      // RCCL, NCCL
	Expert      Family = "expert"       // dispatch and combine kernels: MoRI-EP, DeepEP
)

// Line is one line of an envelope: t = Floor + bytes * PerByte.
type Line struct {
	Floor   units.Seconds
	PerByte float64 // seconds per byte of the message
}

// maxLines bounds an envelope, so that it can live on the stack.
const maxLines = 4

// Fit is what was measured of one implementation with one group size: the
// least of its lines, between the smallest and the largest measured message.
type Fit struct {
	Ranks             int
	Smallest, Largest units.Bytes
	Lines             []Line
	// Spread is the standard deviation of ln(measured/fitted).
	Spread float64
	// Derived marks numbers carried over from another part or group size.
	Derived bool
}

// Launch says what running outside a captured graph adds: no call is faster
// than Least, and each takes Slowdown times its captured time.
type Launch struct {
	Least    units.Seconds
	Slowdown float64
}

// Implementation is one way to carry out one operation.
type Implementation struct {
	Name      string
	Family    Family
	Operation Operation
	// Quantisation names the element type on the wire when it is not the
	// message's own (quick-reduce: int8, int6, int4), and WireShare is its share
	// of the bytes of a 16-bit element, scales included; 1 without.
	Quantisation string
	WireShare    float64
	Eager        Launch
	Fits         []Fit // by ascending group size
	Source       string
}

// Wiring is the fabric a table was measured on.
type Wiring struct {
	Topology hardware.Topology
	Domain   int
	ScaleUp  units.BytesPerSecond // one direction, one GPU to all peers
}

// Network is what crossing scale-up domains adds.
type Network struct {
	// ExchangeFloor is the fixed time of an all-to-all per doubling of the
	// number of domains; CollectiveFloor that of the other operations.
	ExchangeFloor, CollectiveFloor units.Seconds
	// PeerCost is the time per remote peer of a direct all-to-all.
	PeerCost units.Seconds
	// Overlap is the share of the shorter of the two transfers (inside,
	// between) that hides behind the longer.
	Overlap float64
	// Spread is the assumed uncertainty of multi-domain times.
	Spread float64
}

// Table holds the measured collectives of one GPU generation. It is immutable.
type Table struct {
	Name string
	// DerivedFrom names the part the numbers were measured on, when it is
	// another one.
	DerivedFrom string
	Measured    Wiring
	// CustomMax is the largest message engines give to their own all-reduce;
	// ExchangeMax the largest for which the measured all-to-all is used.
	CustomMax, ExchangeMax units.Bytes
	// FusedNorm is the factor on an all-reduce that also does the residual add
	// and the norm, standing for the norm kernel it saves.
	FusedNorm       float64
	Network         Network
	Implementations []Implementation
	Source          string

	unresolved bool // holds only the name of the table it is like
}

// LoadTable returns the table of gpu's ISA, or of its architecture when no
// table names the ISA. A table lives in the file of its own name, which is an
// ISA or an architecture; only a part without such a file makes it read them
// all. A part without a table gives [ErrNoTable] with the parts that have one.
func LoadTable(fsys fs.FS, gpu *hardware.GPU) (*Table, error) {
	if gpu == nil {
		return nil, errors.New("load collective table: no GPU given")
	}
	for _, name := range []string{gpu.ISA, gpu.Arch} {
		if name == "" || !fs.ValidPath(name) {
			continue
		}
		t, f, err := load(fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if slices.Contains(f.ISA, gpu.ISA) || slices.Contains(f.Arch, gpu.Arch) {
			return resolve(fsys, t)
		}
	}
	return scan(fsys, gpu)
}

// load reads the table of one name.
func load(fsys fs.FS, name string) (*Table, *tableFile, error) {
	file := path.Join(Directory, name+".yaml")
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, nil, fmt.Errorf("read collective table: %w", err)
	}
	t, f, err := parse(file, data)
	if err == nil && f.Name != name {
		err = fmt.Errorf("%s: the table is named %q; a table lives in the file of its name", file, f.Name)
	}
	return t, f, err
}

// scan looks through all tables for a part that no file is named after.
func scan(fsys fs.FS, gpu *hardware.GPU) (*Table, error) {
	files, err := fs.Glob(fsys, path.Join(Directory, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list collective tables: %w", err)
	}
	var byISA, byArch *Table
	var known []string
	for _, file := range files {
		t, f, err := load(fsys, strings.TrimSuffix(path.Base(file), ".yaml"))
		if err != nil {
			return nil, err
		}
		known = append(append(known, f.ISA...), f.Arch...)
		if gpu.ISA != "" && slices.Contains(f.ISA, gpu.ISA) {
			byISA = t
		}
		if gpu.Arch != "" && slices.Contains(f.Arch, gpu.Arch) {
			byArch = t
		}
	}
	switch {
	case byISA != nil:
		return resolve(fsys, byISA)
	case byArch != nil:
		return resolve(fsys, byArch)
	}
	slices.Sort(known)
	hint := nearest.Hint(cmp.Or(gpu.ISA, gpu.Arch), known)
	if hint != "" {
		hint = "; " + hint
	}
	return nil, fmt.Errorf("%w for %s (isa %q, arch %q); known: %s%s",
		ErrNoTable, gpu.Name, gpu.ISA, gpu.Arch, strings.Join(slices.Compact(known), ", "), hint)
}

// resolve returns t, or the table it is like under t's own name.
func resolve(fsys fs.FS, t *Table) (*Table, error) {
	if !t.unresolved {
		return t, nil
	}
	like, _, err := load(fsys, t.DerivedFrom)
	if err != nil || like.unresolved {
		return nil, fmt.Errorf("collective table %q: like %q names no table with measurements", t.Name, t.DerivedFrom)
	}
	like.Name, like.DerivedFrom, like.Source = t.Name, t.DerivedFrom, t.Source
	return like, nil
}

// Parse decodes one table file with measurements of its own; path is used in
// messages only.
func Parse(path string, data []byte) (*Table, error) {
	t, f, err := parse(path, data)
	if err != nil {
		return nil, err
	}
	if t.unresolved {
		return nil, fmt.Errorf("%s: table %q has no measurements, it is like %q", path, f.Name, f.Like)
	}
	return t, nil
}

func parse(path string, data []byte) (*Table, *tableFile, error) {
	var f tableFile
	if err := strict.YAML(path, data, &f); err != nil {
		return nil, nil, err
	}
	t, err := f.table()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, &f, nil
}

// find returns the first implementation of an operation by a family, and with
// the quantisation when one is named; nil when the table has none.
func (t *Table) find(op Operation, family Family, quantisation string) *Implementation {
	for i := range t.Implementations {
		im := &t.Implementations[i]
		if im.Operation == op && im.Family == family && (quantisation == "" || im.Quantisation == quantisation) {
			return im
		}
	}
	return nil
}

// quantisations lists the transfer formats of quick-reduce the table knows.
func (t *Table) quantisations() []string {
	var names []string
	for i := range t.Implementations {
		if im := &t.Implementations[i]; im.Family == QuickReduce && !slices.Contains(names, im.Quantisation) {
			names = append(names, im.Quantisation)
		}
	}
	return names
}

// within reports whether every value is a number in [low, high].
func within(low, high float64, values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || v < low || v > high {
			return false
		}
	}
	return true
}
