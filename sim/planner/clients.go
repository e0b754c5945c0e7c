package planner

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"infera/internal/strict"
	"infera/sim/accuracy"
)

// client is how the benchmark client behind a measured point loads an engine.
type client struct {
	Sources      []string  `yaml:"sources"`
	Workload     string    `yaml:"workload"` // part of the point's workload text
	InputLengths []float64 `yaml:"input_lengths"`

	LengthScale float64 `yaml:"length_scale"`
	Lockstep    bool    `yaml:"lockstep"`
	Rounds      float64 `yaml:"rounds"`
	Drain       float64 `yaml:"drain"`
	Source      string  `yaml:"source"`
}

const clientsFile = "measured/clients.yaml"

func loadClients(fsys fs.FS) ([]client, error) {
	data, err := fs.ReadFile(fsys, clientsFile)
	if err != nil {
		return nil, fmt.Errorf("load benchmark clients: %w", err)
	}
	var f struct {
		Clients []client `yaml:"clients"`
	}
	if err := strict.YAML(clientsFile, data, &f); err != nil {
		return nil, err
	}
	for i, c := range f.Clients {
		if !(c.LengthScale > 0 && c.LengthScale <= 1) || !(c.Rounds >= 1) || !(c.Drain > 0 && c.Drain <= 1) {
			return nil, fmt.Errorf("%s: client %d: length_scale, rounds or drain out of range", clientsFile, i+1)
		}
	}
	return f.Clients, nil
}

func (c *client) holds(p *accuracy.Point) bool {
	if len(c.Sources) > 0 && !slices.Contains(c.Sources, p.Source) {
		return false
	}
	if len(c.InputLengths) > 0 && !slices.Contains(c.InputLengths, p.InputLen) {
		return false
	}
	return c.Workload == "" || strings.Contains(p.Workload, c.Workload)
}

// load applies the client of a point to a request.
func (l *Library) load(p *accuracy.Point, r *Request) {
	for i := range l.clients {
		c := &l.clients[i]
		if !c.holds(p) {
			continue
		}
		r.LengthScale = p.LengthScale
		if c.Lockstep || p.LengthScale == 0 {
			r.LengthScale = c.LengthScale
		}
		r.Lockstep, r.Drain = c.Lockstep, c.Drain
		r.BurstShare = 1 / c.Rounds
		if p.Requests > 0 {
			r.BurstShare = min(1, p.Concurrency/float64(p.Requests))
		}
		return
	}
}
