package hardware

import (
	"fmt"
	"slices"

	"infera/internal/strict"
)

// Overlay is what a user's hardware file says. GPU is nil when the file only
// has a fabric block; Fabric is nil when it has none.
type Overlay struct {
	GPU    *GPU
	Fabric *Fabric
}

// Overlay decodes a user's hardware file; path is for messages only. Keys are
// those of the shipped profiles, plus:
//
//	base: mi300x      # start from this profile and change what is stated
//	fabric:           # the node; its base is the GPU's fabric unless stated
//	  base: xgmi-mi300x
//	  nic: {per_domain: 4}
//
// Without a base the file must be complete: [ErrIncomplete] names what it
// lacks. A file with a base may also complete an announced part.
func (c *Catalog) Overlay(path string, data []byte) (Overlay, error) {
	var stated file
	if err := strict.YAML(path, data, &stated); err != nil {
		return Overlay{}, err
	}
	var o Overlay
	if !onlyFabric(&stated) {
		g, err := c.overlayGPU(path, data, &stated)
		if err != nil {
			return Overlay{}, err
		}
		o.GPU = g
	}
	if stated.Fabric == nil {
		return o, nil
	}
	f, err := c.overlayFabric(path, data, &stated, o.GPU)
	if err != nil {
		return Overlay{}, err
	}
	o.Fabric = f
	if o.GPU != nil {
		o.GPU.Fabric = f.Name
	}
	return o, nil
}

// onlyFabric reports a file that says nothing of a GPU.
func onlyFabric(f *file) bool {
	if f.Fabric == nil || f.Base != "" || f.Name != "" || f.Vendor != "" || f.Arch != "" || f.ScaleUp != (scaleUpFile{}) {
		return false
	}
	return !slices.ContainsFunc(f.numbers(), func(n number) bool { return n.value != 0 })
}

func (c *Catalog) overlayGPU(path string, data []byte, stated *file) (*GPU, error) {
	var merged file
	if stated.Base == "" {
		if key, _ := fold(stated.Name); c.keys[key] != "" {
			return nil, fmt.Errorf("%s: %s is a shipped profile; write \"base: %s\" to change it, or choose another name: %w",
				path, stated.Name, c.keys[key], ErrInvalid)
		}
	} else {
		base, err := c.find(stated.Base)
		if err != nil {
			return nil, fmt.Errorf("%s: base: %w", path, err)
		}
		merged = *base
	}
	source, confidence := merged.Source, merged.Confidence
	merged.Source, merged.Confidence = "", ""
	if err := strict.YAML(path, data, &merged); err != nil {
		return nil, err
	}
	merged.derive(stated)
	if own := stated.Fabric; own != nil && own.Name != "" {
		merged.ScaleUp.Fabric = own.Name
	}
	if merged.Source == "" {
		merged.Source = path
		if source != "" {
			merged.Source += " over " + source
		}
	}
	if merged.Confidence == "" {
		merged.Confidence = "stated"
	}
	if confidence == "announced" && stated.Confidence == "" {
		merged.Confidence = confidence
	}
	if err := merged.check(path); err != nil {
		return nil, err
	}
	if missing := merged.missing(); len(missing) > 0 && !merged.Announced {
		return nil, fmt.Errorf("%s: %w", path, merged.complete())
	} else if len(missing) > 0 {
		return nil, fmt.Errorf("%s: still missing for %s: %v: %w", path, merged.Name, missing, ErrIncomplete)
	}
	if stated.Fabric == nil {
		if _, err := c.FabricOf(merged.gpu()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	g := merged.gpu()
	if stated.Name == "" {
		g.Aliases = slices.Clone(c.aliases[merged.Name])
	}
	return g, nil
}

// derive drops or recomputes what follows from a value the overlay changed.
func (f *file) derive(stated *file) {
	if stated.Memory.Capacity != 0 {
		f.Memory.Marketed = stated.Memory.Marketed
		f.Memory.Usable = stated.Memory.Usable
	}
	switch s := stated.ScaleUp; {
	case s.Total != 0 && s.Link == 0 && f.ScaleUp.Links > 0:
		f.ScaleUp.Link = s.Total / float64(f.ScaleUp.Links)
	case s.Total == 0 && (s.Link != 0 || s.Links != 0):
		f.ScaleUp.Total = float64(f.ScaleUp.Links) * f.ScaleUp.Link
	}
	if stated.Peak.BF16 != 0 && stated.Peak.FP16 == 0 {
		f.Peak.FP16 = stated.Peak.BF16
	}
}

func (c *Catalog) overlayFabric(path string, data []byte, stated *file, g *GPU) (*Fabric, error) {
	var merged fabricFile
	base := stated.Fabric.Base
	if base == "" && g != nil && stated.Fabric.Name == "" {
		base = g.Fabric
	}
	if base != "" {
		b, err := c.readFabric(base)
		if err != nil {
			return nil, fmt.Errorf("%s: fabric.base: %w", path, err)
		}
		merged = *b
	}
	source := merged.Source
	merged.Source, merged.Confidence = "", ""
	// The file is decoded again over the base, which keeps what it leaves out.
	whole := file{Fabric: &merged}
	if err := strict.YAML(path, data, &whole); err != nil {
		return nil, err
	}
	if merged.Source == "" {
		merged.Source = path
		if source != "" {
			merged.Source += " over " + source
		}
	}
	if merged.Confidence == "" {
		merged.Confidence = "stated"
	}
	if err := merged.check(path); err != nil {
		return nil, err
	}
	f := merged.fabric()
	if g != nil && f.DomainSize > 1 && f.Bandwidth(g) <= 0 {
		return nil, fmt.Errorf("%s: neither scale_up.gb_s nor fabric.scale_up_gb_s is stated: %w", path, ErrIncomplete)
	}
	return f, nil
}
