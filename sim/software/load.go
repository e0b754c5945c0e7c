package software

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"infera/internal/strict"
	"infera/internal/units"
	"infera/models"
	"infera/sim/hardware"
)

// engineFile is configs/engines/<engine>.yaml.
type engineFile struct {
	Name      string          `yaml:"name"`
	Title     string          `yaml:"title"`
	Aliases   []string        `yaml:"aliases"`
	Host      string          `yaml:"host"`
	TagWords  []string        `yaml:"tag_words"`
	Source    string          `yaml:"source"`
	Releases  []calendarEntry `yaml:"releases"`
	Rules     []rule          `yaml:"rules"`
	WeightsAs []formatRule    `yaml:"weights_as"`
}

// rule gives settings under conditions.
type rule struct {
	Source string   `yaml:"source"`
	Since  string   `yaml:"since"` // version or date
	Until  string   `yaml:"until"` // first version or date it no longer holds
	Vendor string   `yaml:"vendor"`
	ISA    []string `yaml:"isa"`
	// MemoryFrom and MemoryBelow bound the card memory the process sees.
	MemoryFrom  string   `yaml:"memory_from"`
	MemoryBelow string   `yaml:"memory_below"`
	Except      []string `yaml:"except"` // GPU names
	Set         settings `yaml:"set"`

	since, until Date
	from, below  units.Bytes
}

// scheduler is the YAML form of a Scheduler.
type scheduler struct {
	Policy           string  `yaml:"policy"`
	AnswerShare      float64 `yaml:"answer_share"`
	LeastAnswerShare float64 `yaml:"least_answer_share"`
	AnswerShareSteps int     `yaml:"answer_share_steps"`
	LongestAnswer    int     `yaml:"longest_answer"`
	RetractSteps     int     `yaml:"retract_steps"`
	PrefixOrderLimit int     `yaml:"prefix_order_limit"`
	Ahead            bool    `yaml:"plans_ahead"`
}

// settings are the keys a rule may set; absent keys keep what earlier rules
// gave.
type settings struct {
	Pool               *PoolRule `yaml:"pool"`
	MemoryFraction     *float64  `yaml:"memory_fraction"`
	MultimodalFraction *float64  `yaml:"multimodal_fraction"`
	MaxBatchedTokens   *int      `yaml:"max_batched_tokens"`
	PrefillChunk       *int      `yaml:"prefill_chunk"`
	MaxSequences       *int      `yaml:"max_sequences"`
	ChunkedPrefill     *bool     `yaml:"chunked_prefill"`
	// ExclusivePrefill runs prompts in steps of their own.
	ExclusivePrefill   *bool      `yaml:"exclusive_prefill"`
	Scheduler          *scheduler `yaml:"scheduler"`
	PrefixCaching      *bool      `yaml:"prefix_caching"`
	BlockTokens        *int       `yaml:"block_tokens"`
	BlockTokensMLA     *int       `yaml:"block_tokens_mla"`
	SlidingWindow      *bool      `yaml:"sliding_window"`
	SlidingWindowMixed *bool      `yaml:"sliding_window_mixed"`
	WindowBatched      *bool      `yaml:"window_batched"`
	DenseSharded       *bool      `yaml:"dense_sharded"`
	Entry              *entryFile `yaml:"cache_entry"`
	DraftEmbedding     *bool      `yaml:"draft_embedding"`
	State              *StateRule `yaml:"state"`
	StateShare         *float64   `yaml:"state_share"`

	GraphMode         *string  `yaml:"graph_mode"`
	GraphSizes        []string `yaml:"graph_sizes"` // "1", "2", "8..512/8"
	GraphCharged      *bool    `yaml:"graph_charged"`
	GraphBase         *string  `yaml:"graph_base"`
	GraphPerLayerSize *string  `yaml:"graph_per_layer_size"`

	Reserve    *reserveFile    `yaml:"reserve"`
	Activation *activationFile `yaml:"activation"`
	Context    *string         `yaml:"context"`
	Collective *string         `yaml:"collective_per_peer"`
	Workspace  *string         `yaml:"workspace"`
	Host       *hostFile       `yaml:"host"`
}

type reserveFile struct {
	Constant            string `yaml:"constant"`
	PerChunkToken       string `yaml:"per_chunk_token"`
	MinChunk            int    `yaml:"min_chunk"`
	PerGraphBatch       string `yaml:"per_graph_batch"`
	PerGPU              string `yaml:"per_gpu"`
	Floor               string `yaml:"floor"`
	FloorAbove          string `yaml:"floor_above"`
	PerAttentionDPBatch string `yaml:"per_attention_dp_batch"`
	Speculative         string `yaml:"speculative"`
}

type activationFile struct {
	Hidden  float64 `yaml:"hidden_copies"`
	FFN     float64 `yaml:"ffn_copies"`
	Expert  float64 `yaml:"expert_copies"`
	Scatter float64 `yaml:"scatter_copies"`
	Logit   float64 `yaml:"logit_copies"`
	Sparse  float64 `yaml:"compressed_copies"`
	Attend  float64 `yaml:"attention_copies"`
}

type entryFile struct {
	SparseLatentFP8 string `yaml:"sparse_latent_fp8"`
	CompressedFP8   string `yaml:"compressed_fp8"`
	IndexScale      string `yaml:"index_scale"`
	CompressorState string `yaml:"compressor_state"`
}

type hostFile struct {
	Step     string `yaml:"step"`
	Sequence string `yaml:"sequence"`
	Request  string `yaml:"request"`
	Token    string `yaml:"token"`
}

// Load reads every engines/*.yaml of fsys. Plug-in engines take the calendar
// conditions and rules of their host first, then their own.
func Load(fsys fs.FS) (*Catalog, error) {
	names, err := fs.Glob(fsys, "engines/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list engines: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("list engines: no engines/*.yaml: %w", fs.ErrNotExist)
	}
	slices.Sort(names)
	c := &Catalog{byName: map[string]*Engine{}}
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read engine: %w", err)
		}
		e, err := parse(name, data)
		if err != nil {
			return nil, err
		}
		for _, key := range append([]string{e.Name}, e.Aliases...) {
			key = strings.ToLower(key)
			if other, taken := c.byName[key]; taken {
				return nil, fmt.Errorf("%s: name %q is taken by %s", name, key, other.Name)
			}
			c.byName[key] = e
		}
		c.engines = append(c.engines, e)
	}
	slices.SortFunc(c.engines, func(a, b *Engine) int { return cmp.Compare(a.Name, b.Name) })
	return c, c.adopt()
}

// adopt gives plug-in engines their host's rules.
func (c *Catalog) adopt() error {
	for _, e := range c.engines {
		if e.Host == "" {
			continue
		}
		host, ok := c.byName[e.Host]
		if !ok || host.Host != "" {
			return fmt.Errorf("engine %s: host %q is not an engine of its own", e.Name, e.Host)
		}
		inherited := make([]rule, 0, len(host.rules)+len(e.rules))
		inherited = append(inherited, host.rules...)
		e.rules = append(inherited, e.rules...)
		e.formats = append(append([]formatRule{}, host.formats...), e.formats...)
		e.words = append(e.words, host.words...)
	}
	return nil
}

// parse decodes one engine file and checks it.
func parse(name string, data []byte) (*Engine, error) {
	var f engineFile
	if err := strict.YAML(name, data, &f); err != nil {
		return nil, err
	}
	if want := strings.TrimSuffix(path.Base(name), ".yaml"); f.Name != want {
		return nil, fmt.Errorf("%s: name is %q, want %q as the file", name, f.Name, want)
	}
	if len(f.Releases) == 0 {
		return nil, fmt.Errorf("%s: no releases", name)
	}
	e := &Engine{Name: f.Name, Title: f.Title, Aliases: f.Aliases, Host: f.Host, Source: f.Source,
		calendar: f.Releases, rules: f.Rules, formats: f.WeightsAs,
		words: append([]string{f.Name}, f.TagWords...)}
	if err := e.prepareCalendar(name); err != nil {
		return nil, err
	}
	for i := range e.rules {
		if err := e.prepareRule(&e.rules[i]); err != nil {
			return nil, fmt.Errorf("%s: rule %d: %w", name, i+1, err)
		}
	}
	for i := range e.formats {
		if err := e.prepareFormat(&e.formats[i]); err != nil {
			return nil, fmt.Errorf("%s: weights_as %d: %w", name, i+1, err)
		}
	}
	return e, nil
}

func (e *Engine) prepareCalendar(name string) error {
	for i := range e.calendar {
		c := &e.calendar[i]
		first, _, err := ParseDate(c.Date)
		if err != nil {
			return fmt.Errorf("%s: release %q: %w", name, c.Version, err)
		}
		c.day = first
		number, _, ok := parseVersion(c.Version)
		if !ok {
			return fmt.Errorf("%s: release %q: not a version number", name, c.Version)
		}
		c.number = number
		if i > 0 && c.day < e.calendar[i-1].day {
			return fmt.Errorf("%s: release %s is listed after a newer one", name, c.Version)
		}
	}
	return nil
}

func (e *Engine) prepareRule(r *rule) error {
	var err error
	if r.Source == "" {
		return fmt.Errorf("no source")
	}
	if r.since, err = e.boundary(r.Since); err != nil {
		return fmt.Errorf("since: %w", err)
	}
	if r.until, err = e.boundary(r.Until); err != nil {
		return fmt.Errorf("until: %w", err)
	}
	if r.from, err = bytes(r.MemoryFrom); err != nil {
		return fmt.Errorf("memory_from: %w", err)
	}
	if r.below, err = bytes(r.MemoryBelow); err != nil {
		return fmt.Errorf("memory_below: %w", err)
	}
	var scratch Defaults
	return r.Set.apply(&scratch)
}

// boundary turns a version or date of a rule into a day; "" is no boundary.
func (e *Engine) boundary(s string) (Date, error) {
	if s == "" {
		return 0, nil
	}
	if first, _, err := ParseDate(s); err == nil {
		return first, nil
	}
	for i := range e.calendar {
		if e.calendar[i].Version == s {
			return e.calendar[i].day, nil
		}
	}
	return 0, fmt.Errorf("%q is neither a date nor a release of the calendar", s)
}

func (e *Engine) prepareFormat(r *formatRule) (err error) {
	if r.element, err = dtype(r.Element); err != nil {
		return err
	}
	if r.Compute != "" {
		if r.compute, err = dtype(r.Compute); err != nil {
			return err
		}
	}
	for _, c := range r.Class {
		if !knownClass(c) {
			return fmt.Errorf("unknown tensor class %q", c)
		}
	}
	if r.ResidentBits < 0 || r.PadWidth < 0 || r.PadHidden < 0 {
		return fmt.Errorf("bits and multiples must not be negative")
	}
	if r.Source == "" {
		return fmt.Errorf("no source")
	}
	r.day, err = e.boundary(r.Since)
	return err
}

func dtype(s string) (models.DType, error) {
	for d := models.FP32; d <= models.INT4; d++ {
		if d.String() == s {
			return d, nil
		}
	}
	return models.DTypeUnknown, fmt.Errorf("unknown dtype %q", s)
}

func knownClass(s string) bool {
	for c := models.TensorClass(0); c < models.NumTensorClasses; c++ {
		if c.String() == s {
			return true
		}
	}
	return false
}

// Defaults returns what release r of the engine does on a card.
func (e *Engine) Defaults(r Release, gpu *hardware.GPU) (*Defaults, error) {
	d := &Defaults{Release: r, MultimodalFraction: 1, formats: e.formats, sources: map[string]string{}}
	for i := range e.rules {
		rule := &e.rules[i]
		if !rule.holds(r.Date, gpu) {
			continue
		}
		if err := rule.Set.apply(d); err != nil {
			return nil, fmt.Errorf("%s rule %d: %w", e.Name, i+1, err)
		}
		rule.Set.keys(func(key string) { d.sources[key] = rule.Source })
	}
	if d.Pool == "" || (d.MemoryFraction == 0 && d.Pool == PoolTotal) || d.BlockTokens == 0 {
		return nil, fmt.Errorf("engine %s: no settings for %s on %s", e.Name, r, gpu.Name)
	}
	if d.BlockTokensMLA == 0 {
		d.BlockTokensMLA = d.BlockTokens
	}
	return d, nil
}

func (r *rule) holds(day Date, gpu *hardware.GPU) bool {
	if day < r.since || (r.until != 0 && day >= r.until) {
		return false
	}
	if r.Vendor != "" && r.Vendor != gpu.Vendor {
		return false
	}
	if len(r.ISA) > 0 && !contains(r.ISA, gpu.ISA) {
		return false
	}
	card := gpu.UsableCapacity()
	if card < r.from || (r.below > 0 && card >= r.below) {
		return false
	}
	return !contains(r.Except, gpu.Name)
}
