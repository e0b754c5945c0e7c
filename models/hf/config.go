package hf

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"infera/models"
	"infera/models/hf/hfjson"
)

// config is a config.json being read: the language model's part, what its
// class defines, and the problems found so far.
type config struct {
	path     string
	root     hfjson.Object
	text     hfjson.Object
	class    classFacts
	warnings []Warning
	missing  []string
	problem  error
	// intLists and textLists remember lists already read, which layers ask for
	// one by one.
	intLists  map[string][]int
	textLists map[string][]string
}

// textKeys are where multimodal configs keep their language model.
var textKeys = []string{"text_config", "llm_config", "language_config", "language_model", "text_model", "llm", "thinker_config"}

func newConfig(src string, root hfjson.Object) (*config, error) {
	c := &config{path: src, root: root, text: root, intLists: map[string][]int{}, textLists: map[string][]string{}}
	for range 3 { // thinker_config.text_config
		if c.hasDims(c.text) {
			break
		}
		t, ok := c.text.Object(textKeys...)
		if !ok {
			break
		}
		c.text = t
	}
	if f, ok := root.Flag("is_encoder_decoder"); ok && f {
		return nil, fmt.Errorf("%w: %s: encoder-decoder models are not modelled", models.ErrBadConfig, src)
	}
	facts, err := loadClassFacts()
	if err != nil {
		return nil, err
	}
	known := false
	c.class, known = facts.of(c.modelType(), c.rootType())
	if !known {
		c.warn("model_type", fmt.Sprintf("%q is not a known class: read by its keys alone", c.modelType()))
	}
	if c.class.Suspect != "" {
		c.warn("model_type", c.class.Suspect)
	}
	return c, nil
}

func (c *config) hasDims(o hfjson.Object) bool {
	_, _, width := o.Find(hiddenKeys...)
	return width
}

func (c *config) modelType() string {
	if s, ok := c.text.Text("model_type"); ok {
		return s
	}
	return c.rootType()
}

func (c *config) rootType() string {
	s, _ := c.root.Text("model_type")
	return s
}

func (c *config) name() string {
	base := strings.TrimSuffix(path.Base(c.path), ".json")
	if _, after, ok := strings.Cut(base, "--"); ok {
		base = after
	}
	return strings.TrimSuffix(base, ".partial")
}

func (c *config) warn(key, text string) {
	w := Warning{Key: key, Text: text}
	if !slices.Contains(c.warnings, w) {
		c.warnings = append(c.warnings, w)
	}
}

func (c *config) fail(format string, args ...any) {
	if c.problem == nil {
		c.problem = fmt.Errorf("%w: %s: "+format, append([]any{models.ErrBadConfig, c.path}, args...)...)
	}
}

func (c *config) err() error {
	if c.problem != nil {
		return c.problem
	}
	if len(c.missing) > 0 {
		return fmt.Errorf("%w: %s: missing %s", models.ErrBadConfig, c.path, strings.Join(c.missing, ", "))
	}
	return nil
}

func (c *config) miss(keys ...string) {
	m := keys[0]
	if !slices.Contains(c.missing, m) {
		c.missing = append(c.missing, m)
	}
}

// find returns the value of the first key present in the language model's part
// or in one of the blocks that some families group their keys in.
func (c *config) find(keys ...string) (any, string, bool) {
	if v, k, ok := c.text.Find(keys...); ok {
		return v, k, true
	}
	for _, block := range [...]string{"attn_config", "ffn_config", "moe", "ssm_cfg"} {
		if o, ok := c.text.Object(block); ok {
			if v, k, ok := o.Find(keys...); ok {
				return v, k, true
			}
		}
	}
	return nil, "", false
}

// dim returns the dimension under the first key present; 0 when none is and
// the class defines no default. A list counts as its first element, which is
// the language model's where experts differ by modality.
func (c *config) dim(keys ...string) int {
	v, k, ok := c.find(keys...)
	if !ok {
		for _, k := range keys {
			if n, ok := c.class.Defaults[k]; ok {
				c.warn(k, fmt.Sprintf("not stated; %d is the default of class %s", n, c.modelType()))
				return n
			}
		}
		return 0
	}
	return c.number(k, v)
}

func (c *config) number(key string, v any) int {
	n, err := hfjson.Count(key, v, c.warn)
	if err != nil {
		c.fail("%w", err)
	}
	return n
}

// need is dim for a dimension that must be there and above 0.
func (c *config) need(keys ...string) int {
	if _, k, ok := c.find(keys...); ok {
		n := c.dim(keys...)
		if n == 0 {
			c.fail("%s is 0", k)
		}
		return n
	}
	n := c.dim(keys...)
	if n == 0 {
		c.miss(keys...)
	}
	return n
}

func (c *config) flag(keys ...string) bool {
	v, _ := c.stated(keys...)
	return v
}

// stated returns a boolean and whether the config states it.
func (c *config) stated(keys ...string) (value, ok bool) {
	if v, ok := c.text.Flag(keys...); ok {
		return v, true
	}
	if o, ok := c.text.Object("attn_config"); ok {
		return o.Flag(keys...)
	}
	return false, false
}

// ints returns a list of whole numbers.
func (c *config) ints(keys ...string) ([]int, bool) {
	if l, ok := c.intLists[keys[0]]; ok {
		return l, true
	}
	l, ok := c.text.List(keys...)
	if !ok {
		return nil, false
	}
	if len(l) > 1<<16 {
		c.fail("%s has %d entries", keys[0], len(l))
		return nil, false
	}
	out := make([]int, len(l))
	for i, v := range l {
		n, err := hfjson.Int(v)
		if b, isBool := v.(bool); isBool {
			if n, err = 0, nil; b {
				n = 1
			}
		}
		if err != nil {
			c.fail("%s[%d]: %w", keys[0], i, err)
			return nil, false
		}
		out[i] = n
	}
	c.intLists[keys[0]] = out
	return out, true
}

// texts returns a list of strings.
func (c *config) texts(keys ...string) ([]string, bool) {
	if l, ok := c.textLists[keys[0]]; ok {
		return l, true
	}
	l, ok := c.text.List(keys...)
	if !ok || len(l) == 0 {
		return nil, false
	}
	out := make([]string, len(l))
	for i, v := range l {
		if out[i], ok = v.(string); !ok {
			c.fail("%s[%d]: %s is not a string", keys[0], i, hfjson.Show(v))
			return nil, false
		}
	}
	c.textLists[keys[0]] = out
	return out, true
}
