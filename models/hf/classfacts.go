package hf

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"infera/configs"
	"infera/internal/strict"
	"infera/models"
)

// classFacts is what a Hugging Face modelling class defines and its config
// does not say.
type classFacts struct {
	// Defaults are dimensions the class falls back to when a sparse config
	// leaves them out; using one is a warning.
	Defaults map[string]int `yaml:"defaults"`
	// Tied, Ungated, QKVBias, OutputBias, FFNBias, QKNorm, Sinks and
	// OutputGate are structure the class fixes.
	Tied       bool `yaml:"tied"`
	Ungated    bool `yaml:"ungated"`
	QKVBias    bool `yaml:"qkv_bias"`
	OutputBias bool `yaml:"output_bias"`
	FFNBias    bool `yaml:"ffn_bias"`
	QKNorm     bool `yaml:"qk_norm"`
	Sinks      bool `yaml:"sinks"`
	OutputGate bool `yaml:"output_gate"`
	SharedGate bool `yaml:"shared_gate"`
	// Shared is set when every mixture-of-experts layer has a shared expert of
	// the routed width (Llama-4).
	Shared bool `yaml:"shared"`
	// Norms is the number of norms of a layer; 0 = 2.
	Norms int `yaml:"norms"`
	// FullEvery is how the class places sliding windows when the config states
	// only their length: every Nth layer is full; 0 = none is.
	FullEvery int `yaml:"full_every"`
	// Recurrent names the recurrent layer that "linear_attention" means.
	Recurrent string `yaml:"recurrent"`
	// FourTimes is set when the feed-forward width is four times the hidden
	// size unless stated.
	FourTimes bool `yaml:"four_times"`
	// Suspect is a caveat about public copies of this class's configs.
	Suspect string `yaml:"suspect"`
}

// classFile is configs/models/defaults.yaml.
type classFile struct {
	Source  string                `yaml:"source"`
	Classes map[string]classFacts `yaml:"classes"`
	// Known lists classes without anything to define.
	Known []string `yaml:"known"`
}

// defaultsPath is where the facts about Hugging Face classes ship.
const defaultsPath = "models/defaults.yaml"

var loadClassFacts = sync.OnceValues(func() (*classFile, error) {
	data, err := fs.ReadFile(configs.FS, defaultsPath)
	if err != nil {
		return nil, fmt.Errorf("read class defaults: %w", err)
	}
	return parseClassFacts(data)
})

func parseClassFacts(data []byte) (*classFile, error) {
	f := new(classFile)
	if err := strict.YAML(defaultsPath, data, f); err != nil {
		return nil, err
	}
	for name, c := range f.Classes {
		for key, n := range c.Defaults {
			if n < 1 || n > models.MaxVocab {
				return nil, fmt.Errorf("%s: default %s of %s is %d", defaultsPath, key, name, n)
			}
		}
		if _, ok := models.RecurrentKindOf(c.Recurrent); c.Recurrent != "" && !ok {
			return nil, fmt.Errorf("%s: recurrent kind %q of %s", defaultsPath, c.Recurrent, name)
		}
	}
	return f, nil
}

// of returns the facts of the language model's class, looking it up by its own
// model type, then by that of the multimodal config around it.
func (f *classFile) of(types ...string) (classFacts, bool) {
	for _, t := range types {
		for _, name := range [...]string{t, strings.TrimSuffix(t, "_text")} {
			if c, ok := f.Classes[name]; ok {
				return c, true
			}
			for _, k := range f.Known {
				if k == name && name != "" {
					return classFacts{}, true
				}
			}
		}
	}
	return classFacts{}, false
}
