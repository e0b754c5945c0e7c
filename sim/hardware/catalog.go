package hardware

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"infera/internal/nearest"
	"infera/internal/strict"
)

// The kinds of error a caller branches on.
var (
	// ErrUnknownGPU is a name that no profile has.
	ErrUnknownGPU = errors.New("unknown GPU")
	// ErrUnknownFabric is a name that no fabric has.
	ErrUnknownFabric = errors.New("unknown fabric")
	// ErrIncomplete is a profile without a number that planning needs.
	ErrIncomplete = errors.New("incomplete profile")
	// ErrInvalid is a value out of range; it is also the kind of every error
	// of a file that does not decode.
	ErrInvalid = strict.ErrInvalid
)

const (
	gpuDir    = "hardware"
	fabricDir = "fabrics"
	namesFile = gpuDir + "/names.yaml"
)

// Catalog finds profiles by name. It holds names only; a profile is decoded
// when it is asked for. Safe for concurrent use.
type Catalog struct {
	fsys    fs.FS
	names   []string            // sorted
	fabrics []string            // sorted
	aliases map[string][]string // by name, as in names.yaml
	keys    map[string]string   // folded spelling -> name
}

// Load reads the names of the profiles under hardware/ and fabrics/ of fsys
// (configs.FS, or the same tree elsewhere).
func Load(fsys fs.FS) (*Catalog, error) {
	c := &Catalog{fsys: fsys, aliases: map[string][]string{}, keys: map[string]string{}}
	var err error
	if c.names, err = list(fsys, gpuDir); err != nil {
		return nil, fmt.Errorf("load hardware profiles: %w", err)
	}
	if c.fabrics, err = list(fsys, fabricDir); err != nil {
		return nil, fmt.Errorf("load fabrics: %w", err)
	}
	c.names = slices.DeleteFunc(c.names, func(n string) bool { return n == "names" })
	data, err := fs.ReadFile(fsys, namesFile)
	if err != nil {
		return nil, fmt.Errorf("load hardware names: %w", err)
	}
	if err := strict.YAML(namesFile, data, &c.aliases); err != nil {
		return nil, err
	}
	return c, c.index()
}

// index maps every spelling to its profile and refuses one with two meanings.
func (c *Catalog) index() error {
	for _, name := range c.names {
		for _, spelling := range append([]string{name}, c.aliases[name]...) {
			key, _ := fold(spelling)
			if other, taken := c.keys[key]; taken && other != name {
				return fmt.Errorf("%s: %q names both %s and %s: %w", namesFile, spelling, other, name, ErrInvalid)
			}
			c.keys[key] = name
		}
	}
	for name := range c.aliases {
		if !slices.Contains(c.names, name) {
			return fmt.Errorf("%s: aliases of %q, which has no profile: %w", namesFile, name, ErrInvalid)
		}
	}
	return nil
}

func list(fsys fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".yaml"); ok && !e.IsDir() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Names returns the profile names, sorted; among them parts that are announced
// only and cpu, which [Catalog.Lookup] refuses and [Catalog.Describe] shows.
func (c *Catalog) Names() []string { return slices.Clone(c.names) }

// FabricNames returns the fabric names, sorted.
func (c *Catalog) FabricNames() []string { return slices.Clone(c.fabrics) }

// Lookup returns the profile of a GPU by any spelling of its name: its own,
// an alias (gfx942), a marketing or driver name ("AMD Instinct MI300X",
// "NVIDIA H100 80GB HBM3"). A name that no profile has is [ErrUnknownGPU]; a
// part whose figures do not suffice to plan on is [ErrIncomplete].
func (c *Catalog) Lookup(name string) (*GPU, error) {
	f, err := c.find(name)
	if err != nil {
		return nil, err
	}
	if err := f.complete(); err != nil {
		return nil, err
	}
	return c.named(f), nil
}

// Describe is [Catalog.Lookup] for display: it also returns a profile with
// gaps, and the keys of what is missing for planning.
func (c *Catalog) Describe(name string) (g *GPU, missing []string, err error) {
	f, err := c.find(name)
	if err != nil {
		return nil, nil, err
	}
	return c.named(f), f.missing(), nil
}

func (c *Catalog) named(f *file) *GPU {
	g := f.gpu()
	g.Aliases = slices.Clone(c.aliases[f.Name])
	return g
}

// complete returns ErrIncomplete with what is missing and the way forward.
func (f *file) complete() error {
	missing := f.missing()
	switch {
	case len(missing) == 0:
		return nil
	case f.Vendor == "cpu":
		return fmt.Errorf("%s is measured on the machine it stands for, probe it there: %w", f.Name, ErrIncomplete)
	case f.Announced:
		return fmt.Errorf("%s is announced, not disclosed are %s; state them in a --hardware file with \"base: %s\": %w",
			f.Name, strings.Join(missing, ", "), f.Name, ErrIncomplete)
	default:
		return fmt.Errorf("%s lacks %s: %w", f.Name, strings.Join(missing, ", "), ErrIncomplete)
	}
}

func (c *Catalog) find(spelling string) (*file, error) {
	key, marketed := fold(spelling)
	name, ok := c.keys[key]
	if !ok {
		return nil, c.unknown(spelling, key)
	}
	f, err := c.read(name)
	if err != nil {
		return nil, err
	}
	if marketed > 0 && !sameSize(marketed, int(f.Memory.Marketed)) {
		return nil, fmt.Errorf("%w %q: the profile %s is the %d GB part; use it with --hbm-capacity-gb, or a --hardware file",
			ErrUnknownGPU, spelling, name, f.Memory.Marketed)
	}
	return f, nil
}

// sameSize compares two marketing sizes of one part, which differ by up to a
// tenth between publications (B200: 180, 183, 192 GB).
func sameSize(a, b int) bool { return 10*max(a-b, b-a) <= b }

func (c *Catalog) unknown(spelling, key string) error {
	known := slices.Clone(c.names)
	for _, name := range c.names {
		known = append(known, c.aliases[name]...)
	}
	err := fmt.Errorf("%w %q (known: %s)", ErrUnknownGPU, spelling, strings.Join(c.names, ", "))
	if hint := nearest.Hint(key, known); hint != "" {
		return fmt.Errorf("%w; %s", err, hint)
	}
	return err
}

func (c *Catalog) read(name string) (*file, error) {
	p := path.Join(gpuDir, name+".yaml")
	data, err := fs.ReadFile(c.fsys, p)
	if err != nil {
		return nil, fmt.Errorf("load hardware profile: %w", err)
	}
	var f file
	if err := strict.YAML(p, data, &f); err != nil {
		return nil, err
	}
	if f.Name != name || f.Base != "" || f.Fabric != nil {
		return nil, fmt.Errorf("%s: a shipped profile is named as its file and has no base or fabric block: %w", p, ErrInvalid)
	}
	if err := f.check(p); err != nil {
		return nil, err
	}
	return &f, nil
}

// Fabric returns a fabric by name (case and separators do not count). Another
// name is [ErrUnknownFabric].
func (c *Catalog) Fabric(name string) (*Fabric, error) {
	f, err := c.readFabric(name)
	if err != nil {
		return nil, err
	}
	return f.fabric(), nil
}

// FabricOf returns the fabric that g sits in.
func (c *Catalog) FabricOf(g *GPU) (*Fabric, error) {
	f, err := c.Fabric(g.Fabric)
	if err != nil {
		return nil, fmt.Errorf("fabric of %s: %w", g.Name, err)
	}
	if f.DomainSize > 1 && f.Bandwidth(g) <= 0 {
		return nil, fmt.Errorf("fabric of %s: neither scale_up.gb_s nor scale_up_gb_s of %s is stated: %w", g.Name, f.Name, ErrIncomplete)
	}
	return f, nil
}

func (c *Catalog) readFabric(name string) (*fabricFile, error) {
	key := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")
	if !slices.Contains(c.fabrics, key) {
		err := fmt.Errorf("%w %q (known: %s)", ErrUnknownFabric, name, strings.Join(c.fabrics, ", "))
		if hint := nearest.Hint(name, c.fabrics); hint != "" {
			return nil, fmt.Errorf("%w; %s", err, hint)
		}
		return nil, err
	}
	p := path.Join(fabricDir, key+".yaml")
	data, err := fs.ReadFile(c.fsys, p)
	if err != nil {
		return nil, fmt.Errorf("load fabric: %w", err)
	}
	var f fabricFile
	if err := strict.YAML(p, data, &f); err != nil {
		return nil, err
	}
	if f.Name != key || f.Base != "" {
		return nil, fmt.Errorf("%s: a shipped fabric is named as its file and has no base: %w", p, ErrInvalid)
	}
	if err := f.check(p); err != nil {
		return nil, err
	}
	return &f, nil
}
