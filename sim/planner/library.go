package planner

import (
	"fmt"
	"io/fs"
	"sync"

	"infera/models"
	"infera/sim/collective"
	"infera/sim/hardware"
	"infera/sim/kernel"
	"infera/sim/memory"
	"infera/sim/software"
)

// Library is the data that projections stand on. Safe for concurrent use.
type Library struct {
	Models       *models.Catalog
	Hardware     *hardware.Catalog
	Engines      *software.Catalog
	Efficiencies *software.Efficiencies

	fsys    fs.FS
	clients []client

	mu       sync.Mutex
	gpus     map[string]*hardware.GPU
	fabrics  map[*hardware.GPU]*hardware.Fabric
	presets  map[string]*models.Architecture
	kernels  map[*hardware.GPU]*kernel.Model
	tables   map[*hardware.GPU]*collective.Table
	releases map[releaseKey]*engineOn
	sizers   map[*models.Architecture]*memory.Sizer

	knobTable *knobs
}

type releaseKey struct {
	engine  *software.Engine
	release software.Release
	gpu     *hardware.GPU
}

// engineOn is an engine release on a GPU.
type engineOn struct {
	defaults   *software.Defaults
	efficiency software.Efficiency
	match      software.Match
}

// Open returns the library of the data in fsys: the tree that package configs
// embeds.
func Open(fsys fs.FS) (*Library, error) {
	l := &Library{
		fsys:     fsys,
		gpus:     map[string]*hardware.GPU{},
		fabrics:  map[*hardware.GPU]*hardware.Fabric{},
		presets:  map[string]*models.Architecture{},
		kernels:  map[*hardware.GPU]*kernel.Model{},
		tables:   map[*hardware.GPU]*collective.Table{},
		releases: map[releaseKey]*engineOn{},
		sizers:   map[*models.Architecture]*memory.Sizer{},
	}
	var err error
	if l.Models, err = models.LoadCatalog(fsys); err != nil {
		return nil, fmt.Errorf("open model presets: %w", err)
	}
	if l.Hardware, err = hardware.Load(fsys); err != nil {
		return nil, fmt.Errorf("open hardware profiles: %w", err)
	}
	if l.Engines, err = software.Load(fsys); err != nil {
		return nil, fmt.Errorf("open engines: %w", err)
	}
	if l.clients, err = loadClients(fsys); err != nil {
		return nil, err
	}
	l.Efficiencies = software.OpenEfficiencies(fsys, "engines/efficiency")
	return l, nil
}

// made returns m[k], which build gives on first use.
func made[K comparable, V any](l *Library, m map[K]V, k K, build func() (V, error)) (V, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v, ok := m[k]; ok {
		return v, nil
	}
	v, err := build()
	if err == nil {
		m[k] = v
	}
	return v, err
}

// GPU returns the profile of a GPU by name and the fabric it sits in. The same
// name gives the same objects, so that what is cached for a GPU is found again.
func (l *Library) GPU(name string) (*hardware.GPU, *hardware.Fabric, error) {
	g, err := made(l, l.gpus, name, func() (*hardware.GPU, error) { return l.Hardware.Lookup(name) })
	if err != nil {
		return nil, nil, err
	}
	f, err := made(l, l.fabrics, g, func() (*hardware.Fabric, error) { return l.Hardware.FabricOf(g) })
	if err != nil {
		return nil, nil, fmt.Errorf("fabric of %s: %w", g.Name, err)
	}
	return g, f, nil
}

// Model returns a preset by name; the same name gives the same object.
func (l *Library) Model(name string) (*models.Architecture, error) {
	return made(l, l.presets, name, func() (*models.Architecture, error) { return l.Models.Lookup(name) })
}

// kernel returns the kernel model of a GPU. GPUs are told apart by pointer: a
// caller that changes a profile makes a new one.
func (l *Library) kernel(g *hardware.GPU) (*kernel.Model, error) {
	return made(l, l.kernels, g, func() (*kernel.Model, error) {
		curves, err := kernel.LoadCurves(l.fsys, g)
		if err != nil {
			return nil, fmt.Errorf("load kernel curves of %s: %w", g.Name, err)
		}
		m, err := kernel.New(g, curves)
		if err != nil {
			return nil, fmt.Errorf("kernel model of %s: %w", g.Name, err)
		}
		return m, nil
	})
}

func (l *Library) collectives(g *hardware.GPU, f *hardware.Fabric, opt collective.Options) (*collective.Model, error) {
	t, err := made(l, l.tables, g, func() (*collective.Table, error) { return collective.LoadTable(l.fsys, g) })
	if err != nil {
		return nil, fmt.Errorf("load collective table of %s: %w", g.Name, err)
	}
	m, err := collective.New(g, f, t, opt)
	if err != nil {
		return nil, fmt.Errorf("collective model of %s: %w", g.Name, err)
	}
	return m, nil
}

func (l *Library) engine(e *software.Engine, r software.Release, g *hardware.GPU) (*engineOn, error) {
	return made(l, l.releases, releaseKey{e, r, g}, func() (*engineOn, error) {
		d, err := e.Defaults(r, g)
		if err != nil {
			return nil, fmt.Errorf("defaults of %s: %w", r, err)
		}
		on := &engineOn{defaults: d}
		if on.efficiency, on.match, err = l.Efficiencies.Find(e.Name, g.ISA, g.Vendor, r); err != nil {
			return nil, err
		}
		return on, nil
	})
}
