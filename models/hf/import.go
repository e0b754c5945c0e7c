package hf

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"infera/models"
	"infera/models/hf/hfjson"
	"infera/models/hf/quant"
)

// Source is a checkpoint's description as published on Hugging Face.
type Source struct {
	// Path names the source in messages; the model is called after its last
	// part.
	Path string
	// Config is the content of config.json.
	Config []byte
	// Quant is the content of hf_quant_config.json (NVIDIA ModelOpt), Index
	// that of model.safetensors.index.json; both may be nil.
	Quant, Index []byte
}

// Warning is something about a model description that a reader should know
// and that does not stop its use.
type Warning struct {
	// Key is the config key the warning is about; "" if none.
	Key  string
	Text string
}

// String returns "key: text".
func (w Warning) String() string {
	if w.Key == "" {
		return w.Text
	}
	return w.Key + ": " + w.Text
}

// ImportFS reads a model description from a config.json, or from a directory
// that holds one, together with the hf_quant_config.json and
// model.safetensors.index.json beside it. For a file called NAME.json the
// neighbours NAME.hf_quant_config.json and NAME.index.json count as well.
func ImportFS(fsys fs.FS, name string) (*models.Architecture, []Warning, error) {
	src, err := readSource(fsys, path.Clean(name))
	if err != nil {
		return nil, nil, err
	}
	return Import(src)
}

func readSource(fsys fs.FS, name string) (Source, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return Source{}, fmt.Errorf("read model config: %w", err)
	}
	file, label := name, name
	if info.IsDir() {
		file = path.Join(name, "config.json")
	}
	config, err := fs.ReadFile(fsys, file)
	if errors.Is(err, fs.ErrNotExist) {
		return Source{}, fmt.Errorf("%w: %s holds no config.json", models.ErrBadConfig, name)
	}
	if err != nil {
		return Source{}, fmt.Errorf("read model config: %w", err)
	}
	dir, base := path.Split(file)
	stem := strings.TrimSuffix(base, ".json")
	if base == "config.json" {
		if label = path.Clean(dir); label == "." {
			label = file
		}
	}
	src := Source{Path: label, Config: config}
	for _, side := range []struct {
		to    *[]byte
		names []string
	}{
		{&src.Quant, []string{stem + ".hf_quant_config.json", "hf_quant_config.json"}},
		{&src.Index, []string{stem + ".index.json", "model.safetensors.index.json"}},
	} {
		if base != "config.json" {
			side.names = side.names[:1] // a neighbour of many configs belongs to none of them
		}
		for _, n := range side.names {
			data, err := fs.ReadFile(fsys, dir+n)
			if err == nil {
				*side.to = data
				break
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return Source{}, fmt.Errorf("read model config: %w", err)
			}
		}
	}
	return src, nil
}

// Import reads a Hugging Face config.json by the meaning of its keys. What the
// config does not say and its Hugging Face class does not define is an error
// naming the missing keys; class defaults that stand in for a dimension, and
// anything else that is doubtful, are warnings. Errors are
// [models.ErrBadConfig].
func Import(src Source) (*models.Architecture, []Warning, error) {
	root, err := hfjson.Parse(src.Config)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %s: %w", models.ErrBadConfig, src.Path, err)
	}
	c, err := newConfig(src.Path, root)
	if err != nil {
		return nil, nil, err
	}
	a := c.architecture()
	if err := c.err(); err != nil {
		return nil, nil, err
	}
	if err := c.readFormats(a, src.Quant); err != nil {
		return nil, nil, err
	}
	if err := a.Validate(); err != nil {
		return nil, nil, err
	}
	if err := c.compareIndex(a, src.Index); err != nil {
		return nil, nil, err
	}
	return a, c.warnings, nil
}

// stored is where the config may say how tensors are stored.
func (c *config) stored() quant.Config {
	return quant.Config{Text: c.text, Root: c.root}
}

// readFormats fills the formats of the tensor classes and of the cache.
func (c *config) readFormats(a *models.Architecture, file []byte) error {
	from := c.stored()
	from.Layers = c.dim(layerKeys...)
	if file != nil {
		var err error
		if from.File, err = hfjson.Parse(file); err != nil {
			return fmt.Errorf("%w: %s: hf_quant_config.json: %w", models.ErrBadConfig, c.path, err)
		}
	}
	if err := quant.Read(a, from, c.warn); err != nil {
		return fmt.Errorf("%w: %s: %w", models.ErrBadConfig, c.path, err)
	}
	return nil
}

// compareIndex warns when the stored size differs from the sum of the
// safetensors files.
func (c *config) compareIndex(a *models.Architecture, data []byte) error {
	if data == nil {
		return nil
	}
	index, err := hfjson.Parse(data)
	if err != nil {
		return fmt.Errorf("%w: %s: model.safetensors.index.json: %w", models.ErrBadConfig, c.path, err)
	}
	meta, _ := index.Object("metadata")
	v, ok := meta["total_size"]
	if !ok {
		c.warn("", "the safetensors index states no total_size")
		return nil
	}
	stated, err := hfjson.Float(v)
	if err != nil || stated <= 0 {
		return fmt.Errorf("%w: %s: model.safetensors.index.json: total_size is %s", models.ErrBadConfig, c.path, hfjson.Show(v))
	}
	bytes := a.ClassBytes()
	var most float64
	for _, b := range bytes {
		most += float64(b)
	}
	least := float64(a.WeightBytes())
	// A checkpoint may leave out drafter and vision tower.
	if least > stated*1.02 || most < stated*0.98 {
		c.warn("", fmt.Sprintf("the safetensors index holds %.2f GB, the shapes give %.2f GB (%.2f with drafter and vision tower): more than 2%% apart",
			stated/1e9, least/1e9, most/1e9))
	}
	return nil
}
