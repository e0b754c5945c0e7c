package models

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"infera/internal/nearest"
	"infera/internal/strict"
)

// ErrUnknownModel is the kind of error [Catalog.Lookup] returns for a name that
// no preset has.
var ErrUnknownModel = errors.New("unknown model")

// catalogDir is where presets stand in the tree of shipped files.
const catalogDir = "models"

// Catalog finds the presets that ship with the program. It reads the index
// once, and a preset only when it is asked for.
type Catalog struct {
	fsys   fs.FS
	names  []string          // in the order of the alphabet
	byName map[string]string // folded name or alias -> name
	all    []string          // names and aliases, for hints
}

// indexFile is configs/models/index.yaml: the aliases of each preset. It
// repeats what the preset files say, so that finding one does not read all; a
// test keeps them in step.
type indexFile struct {
	Models map[string][]string `yaml:"models"`
}

// LoadCatalog reads models/index.yaml from a tree of data files such as
// configs.FS.
func LoadCatalog(fsys fs.FS) (*Catalog, error) {
	file := catalogDir + "/index.yaml"
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, fmt.Errorf("load model catalog: %w", err)
	}
	var index indexFile
	if err := strict.YAML(file, data, &index); err != nil {
		return nil, fmt.Errorf("load model catalog: %w", err)
	}
	c := &Catalog{fsys: fsys, byName: make(map[string]string, 4*len(index.Models))}
	for name := range index.Models {
		c.names = append(c.names, name)
	}
	slices.Sort(c.names)
	for _, name := range c.names {
		for _, alias := range append([]string{name}, index.Models[name]...) {
			key := fold(alias)
			if other, taken := c.byName[key]; taken && other != name {
				return nil, fmt.Errorf("load model catalog: %s: %q names both %s and %s", file, alias, other, name)
			}
			c.byName[key] = name
			c.all = append(c.all, alias)
		}
	}
	return c, nil
}

// fold is what two spellings of one name share: letters in lower case and
// digits.
func fold(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		switch ch := s[i]; {
		case ch >= 'A' && ch <= 'Z':
			b.WriteByte(ch + 'a' - 'A')
		case ch >= 'a' && ch <= 'z', ch >= '0' && ch <= '9', ch >= 0x80:
			b.WriteByte(ch)
		}
	}
	return b.String()
}

// Names lists the presets in the order of the alphabet.
func (c *Catalog) Names() []string { return slices.Clone(c.names) }

// Resolve returns the preset name that a name, alias or Hugging Face id means,
// whatever its case and punctuation.
func (c *Catalog) Resolve(name string) (string, bool) {
	n, ok := c.byName[fold(name)]
	return n, ok
}

// Lookup returns the preset of a name, alias or Hugging Face id. An unknown
// name is an [ErrUnknownModel] with the nearest one.
func (c *Catalog) Lookup(name string) (*Architecture, error) {
	n, ok := c.Resolve(name)
	if !ok {
		hint := nearest.Hint(name, c.all)
		if hint == "" {
			hint = fmt.Sprintf("%d presets are known, or give a config.json", len(c.names))
		}
		return nil, fmt.Errorf("%w %q; %s", ErrUnknownModel, name, hint)
	}
	file := catalogDir + "/" + n + ".yaml"
	data, err := fs.ReadFile(c.fsys, file)
	if err != nil {
		return nil, fmt.Errorf("load model preset: %w", err)
	}
	return ParsePreset(file, data)
}
