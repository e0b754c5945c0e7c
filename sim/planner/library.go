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

// GPU returns the profile of a GPU by name and the fabric it sits in. The same
// name gives the same objects, so that what is cached for a GPU is found again.
func (l *Library) GPU(name string) (*hardware.GPU, *hardware.Fabric, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g, ok := l.gpus[name]; ok {
		return g, l.fabrics[g], nil
	}
	g, err := l.Hardware.Lookup(name)
	if err != nil {
		return nil, nil, err
	}
	f, err := l.Hardware.FabricOf(g)
	if err != nil {
		return nil, nil, fmt.Errorf("fabric of %s: %w", g.Name, err)
	}
	l.gpus[name], l.fabrics[g] = g, f
	return g, f, nil
}

// Model returns a preset by name; the same name gives the same object.
func (l *Library) Model(name string) (*models.Architecture, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, ok := l.presets[name]; ok {
		return a, nil
	}
	a, err := l.Models.Lookup(name)
	if err != nil {
		return nil, err
	}
	l.presets[name] = a
	return a, nil
}

// kernel returns the kernel model of a GPU. GPUs are told apart by pointer: a
// caller that changes a profile makes a new one.
func (l *Library) kernel(g *hardware.GPU) (*kernel.Model, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m, ok := l.kernels[g]; ok {
		return m, nil
	}
	curves, err := kernel.LoadCurves(l.fsys, g)
	if err != nil {
		return nil, fmt.Errorf("load kernel curves of %s: %w", g.Name, err)
	}
	m, err := kernel.New(g, curves)
	if err != nil {
		return nil, fmt.Errorf("kernel model of %s: %w", g.Name, err)
	}
	l.kernels[g] = m
	return m, nil
}

func (l *Library) collectives(g *hardware.GPU, f *hardware.Fabric, opt collective.Options) (*collective.Model, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, ok := l.tables[g]
	if !ok {
		var err error
		if t, err = collective.LoadTable(l.fsys, g); err != nil {
			return nil, fmt.Errorf("load collective table of %s: %w", g.Name, err)
		}
		l.tables[g] = t
	}
	m, err := collective.New(g, f, t, opt)
	if err != nil {
		return nil, fmt.Errorf("collective model of %s: %w", g.Name, err)
	}
	return m, nil
}

func (l *Library) engine(e *software.Engine, r software.Release, g *hardware.GPU) (*engineOn, error) {
	key := releaseKey{e, r, g}
	l.mu.Lock()
	defer l.mu.Unlock()
	if on, ok := l.releases[key]; ok {
		return on, nil
	}
	d, err := e.Defaults(r, g)
	if err != nil {
		return nil, fmt.Errorf("defaults of %s: %w", r, err)
	}
	on := &engineOn{defaults: d}
	if on.efficiency, on.match, err = l.Efficiencies.Find(e.Name, g.ISA, g.Vendor, r); err != nil {
		return nil, err
	}
	l.releases[key] = on
	return on, nil
}
