package software

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"

	"infera/internal/nearest"
	"infera/internal/units"
	"infera/models"
	"infera/sim/hardware"
)

// ErrEngine is the kind of error for a name that no engine has.
var ErrEngine = errors.New("unknown engine")

// Engine is one inference engine.
type Engine struct {
	Name    string   // vllm, sglang, atom, ...
	Title   string   // as its makers write it
	Aliases []string // other spellings; an alias may be a prefix of a longer name
	// Host is the engine this one runs inside of as a plug-in; "" for none.
	Host string
	// Source says where the file's facts come from in general.
	Source string

	calendar []calendarEntry
	rules    []rule
	formats  []formatRule
	words    []string // what precedes a release number in an image tag
}

// Catalog is the set of known engines.
type Catalog struct {
	engines []*Engine
	byName  map[string]*Engine
}

// Engines returns all engines by name.
func (c *Catalog) Engines() []*Engine { return c.engines }

// Lookup returns the engine with a name or alias, ignoring case. A longer name
// that starts with an alias and a space matches too ("TensorRT 10.11"), as do
// orchestrated forms ("dynamo-vllm", "mori-sglang"). The error is of kind
// [ErrEngine].
func (c *Catalog) Lookup(name string) (*Engine, error) {
	key := strings.ToLower(strings.TrimSpace(name))
	if e, ok := c.byName[key]; ok {
		return e, nil
	}
	if first, _, found := strings.Cut(key, " "); found {
		if e, ok := c.byName[first]; ok {
			return e, nil
		}
	}
	known := make([]string, 0, len(c.engines))
	for _, e := range c.engines {
		known = append(known, e.Name)
	}
	err := fmt.Errorf("engine %q: %w; know %s", name, ErrEngine, strings.Join(known, ", "))
	if hint := nearest.Hint(name, known); hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return nil, err
}

// PoolRule says what the memory fraction of an engine is a fraction of.
type PoolRule string

// The ways engines size their cache pool.
const (
	// PoolTotal: everything the process allocates stays under fraction x card;
	// the pool is what is left after weights, overhead and the profiled
	// activation peak (vLLM, ATOM).
	PoolTotal PoolRule = "total"
	// PoolStatic: weights and pool together take fraction x (card after the
	// process has started); activations and graphs live in the rest (SGLang).
	PoolStatic PoolRule = "static"
	// PoolFree: the pool takes a fraction of what is free after the model is
	// loaded and profiled (TensorRT-LLM).
	PoolFree PoolRule = "free"
	// PoolDemand: the cache is allocated for slots x context, no more
	// (llama.cpp).
	PoolDemand PoolRule = "demand"
)

// StateRule says where the per-sequence state of recurrent layers lives.
type StateRule string

// The ways engines keep recurrent state.
const (
	// StatePages: in pages of the one cache pool; attention blocks grow until a
	// block is as large as a state page (vLLM).
	StatePages StateRule = "pages"
	// StatePool: in a pool of its own that takes a share of the cache memory
	// (SGLang).
	StatePool StateRule = "pool"
	// StateSlots: one slot per possible sequence, allocated up front (ATOM,
	// llama.cpp).
	StateSlots StateRule = "slots"
)

// Defaults is what an engine release does on a card unless told otherwise.
type Defaults struct {
	Release Release

	Pool PoolRule
	// MemoryFraction is the share of [Pool]; 0 when it follows from Reserve.
	MemoryFraction float64
	// Reserve gives the memory kept out of a static pool when no fraction is
	// set.
	Reserve StaticReserve
	// MultimodalFraction multiplies the fraction for models with a vision or
	// audio tower; 1 = no change.
	MultimodalFraction float64

	// MaxBatchedTokens bounds the tokens of one step; PrefillChunk the prompt
	// tokens of one step (0 = the same).
	MaxBatchedTokens, PrefillChunk int
	// MaxSequences bounds the sequences that run at once; 0 = bounded by the
	// pool only.
	MaxSequences   int
	ChunkedPrefill bool
	// ExclusivePrefill is set when prompts run in steps of their own while
	// decoding sequences wait.
	ExclusivePrefill bool
	Scheduler        Scheduler
	PrefixCaching    bool

	// BlockTokens is the cache block of ordinary attention, BlockTokensMLA of
	// latent attention.
	BlockTokens, BlockTokensMLA int
	// SlidingWindow is set when layers with a window keep only the window.
	SlidingWindow bool
	// SlidingWindowMixed is set when that also holds for models whose window
	// layers store wider or narrower entries than their other layers.
	SlidingWindowMixed bool
	State              StateRule
	// WindowBatched is set when a window layer must also hold the tokens of one
	// step besides its window while a prompt is read.
	WindowBatched bool
	// Entry gives widths of cache entries that are not plain elements.
	Entry CacheEntry
	// StateShare is the share of the cache memory given to recurrent state
	// under [StatePool], as the ratio state : rest.
	StateShare float64

	// DenseSharded is set when, under attention data parallelism, dense
	// feed-forward weights and the head stay sharded over the whole tensor
	// group; else every attention group holds its own copy.
	DenseSharded bool
	// DraftEmbedding is set when a built-in drafter holds an embedding and a
	// head of its own, even where the checkpoint shares the main model's.
	DraftEmbedding bool

	Graphs Graphs
	// Activation gives the peak of temporary tensors.
	Activation Activation
	Overhead   Overhead
	Host       HostCost

	formats []formatRule
	sources map[string]string
}

// Source returns where a setting (by its key in the file) comes from, or "".
func (d *Defaults) Source(key string) string { return d.sources[key] }

// Scheduler is how an engine decides what a step computes.
type Scheduler struct {
	// Policy names the scheduler: vllm, sglang, atom; "" = vllm.
	Policy string
	// AnswerShare is the share of the answers still to come that is counted on
	// when a request is admitted; it falls to LeastAnswerShare within
	// AnswerShareSteps decode steps. RetractSteps is how many steps the engine
	// wants to get through after it took requests back.
	AnswerShare, LeastAnswerShare float64
	AnswerShareSteps              int
	// LongestAnswer is how many tokens of an answer are counted at most; 0 = all.
	LongestAnswer, RetractSteps int
	// PrefixOrderLimit is how many waiting requests are still ordered by the
	// length of the prompt found in the cache, where that is asked for.
	PrefixOrderLimit int
	// Ahead is set when a step is planned while the one before it runs, without
	// knowing what that brings (asynchronous scheduling).
	Ahead bool
}

// StaticReserve is the memory a PoolStatic engine leaves out of weights and
// pool: Constant + max(chunk, MinChunk) x PerChunkToken + largest graph batch x
// PerGraphBatch + GPUs x PerGPU, at least Floor; attention data parallelism
// and speculation add to it.
type StaticReserve struct {
	Constant, PerChunkToken, PerGraphBatch, PerGPU units.Bytes
	MinChunk                                       int
	Floor, FloorAbove                              units.Bytes // Floor holds for cards above FloorAbove
	PerAttentionDPBatch                            units.Bytes // x graph batch x attention groups
	Speculative                                    units.Bytes
}

// Bytes returns the reserve for a chunk, the largest graph batch, the GPUs of
// the replica, its attention groups (1 = none) and speculation.
func (s StaticReserve) Bytes(card units.Bytes, chunk, graphBatch, gpus, groups int, speculative bool) units.Bytes {
	b := s.Constant + units.Bytes(max(chunk, s.MinChunk))*s.PerChunkToken +
		units.Bytes(graphBatch)*s.PerGraphBatch + units.Bytes(gpus)*s.PerGPU
	if groups > 1 {
		b += units.Bytes(graphBatch*groups) * s.PerAttentionDPBatch
	}
	if card > s.FloorAbove {
		b = max(b, s.Floor)
	}
	if speculative {
		b += s.Speculative
	}
	return b
}

// Graphs describes captured execution graphs (CUDA or HIP).
type Graphs struct {
	// Mode is the engine's own word for what is captured; "none" = nothing.
	Mode string
	// Sizes are the captured batch sizes (tokens per step), ascending.
	Sizes []int
	// Charged is set when the engine takes graph memory out of the budget
	// before it sizes the pool.
	Charged bool
	// Base is the fixed memory of all graphs; PerLayerSize is added for each
	// captured size and layer.
	Base, PerLayerSize units.Bytes
}

// Bytes returns the memory graphs hold for a stack of layers.
func (g Graphs) Bytes(layers int) units.Bytes {
	if g.Mode == "" || g.Mode == "none" {
		return 0
	}
	return g.Base + g.PerLayerSize*units.Bytes(layers*len(g.Sizes))
}

// Largest returns the largest captured size; 0 = nothing is captured.
func (g Graphs) Largest() int {
	if len(g.Sizes) == 0 {
		return 0
	}
	return g.Sizes[len(g.Sizes)-1]
}

// Padded returns the captured size a batch of n runs at, and false when none
// is large enough (the step then runs without a graph).
func (g Graphs) Padded(n int) (int, bool) {
	i := sort.SearchInts(g.Sizes, n)
	if i == len(g.Sizes) {
		return n, false
	}
	return g.Sizes[i], true
}

// Activation holds how many copies of each temporary tensor live at the peak
// of a profiling step; see sim/memory for the formula.
type Activation struct {
	// HiddenCopies is in units of tokens x hidden, FFNCopies of tokens x
	// intermediate per rank, ExpertCopies of tokens x top-k x expert width per
	// rank, AttentionCopies of tokens x heads per rank x head width, in the
	// compute dtype.
	HiddenCopies, FFNCopies, ExpertCopies, AttentionCopies float64
	// ScatterCopies is in units of tokens x top-k x hidden.
	ScatterCopies float64
	// LogitCopies is in units of sequences x vocabulary of fp32.
	LogitCopies float64
	// CompressedCopies is in units of tokens x selected entries x entry width,
	// for layers that select among compressed entries: engines that gather the
	// selection before a prefill.
	CompressedCopies float64
}

// CacheEntry holds widths of cache entries whose layout an engine defines.
type CacheEntry struct {
	// SparseLatentFP8 is one latent entry of a sparse-attention layer stored in
	// fp8 (latent, scales and an unquantised rotary part); CompressedFP8 the
	// same for layers that keep one entry per group of tokens. 0 = plain
	// elements.
	SparseLatentFP8, CompressedFP8 units.Bytes
	// IndexScale is added to each fp8 selector key.
	IndexScale units.Bytes
	// CompressorState is what a compressing layer keeps per token while the
	// token is inside the window or the running step.
	CompressorState units.Bytes
}

// Overhead is device memory that is not weights, cache, activations or graphs.
type Overhead struct {
	// Context is the driver context, the libraries and the allocator's slack;
	// Collective the communicator buffers per peer GPU; Workspace fixed kernel
	// workspaces.
	Context, Collective, Workspace units.Bytes
}

// Bytes returns the overhead of one of gpus GPUs.
func (o Overhead) Bytes(gpus int) units.Bytes {
	return o.Context + o.Workspace + o.Collective*units.Bytes(max(0, gpus-1))
}

// HostCost is time the CPU adds; a zero is unknown, not free.
type HostCost struct {
	Step, Sequence, Request, Token units.Seconds
}

// formatRule says what an engine does with a stored format on some cards.
type formatRule struct {
	ISA     []string `yaml:"isa"`
	Vendor  string   `yaml:"vendor"`
	Element string   `yaml:"element"`
	Class   []string `yaml:"class"`
	Since   string   `yaml:"since"`
	// ResidentBits replaces the stored bits per element; 0 = kept as stored.
	ResidentBits float64 `yaml:"resident_bits"`
	Compute      string  `yaml:"compute"`
	// PadWidth and PadHidden round the width of an expert on one rank and the
	// width it reads up to a multiple, as fused kernels want it.
	PadWidth  int    `yaml:"pad_width"`
	PadHidden int    `yaml:"pad_hidden"`
	Source    string `yaml:"source"`

	element, compute models.DType
	day              Date
}

// Weight returns what a stored format becomes in memory on a card, in bits per
// element, and the type its products run in. Without a rule of the engine the
// format stays as stored and runs at its own type where the card has it, else
// at bf16 after dequantisation.
func (d *Defaults) Weight(f models.Format, class models.TensorClass, gpu *hardware.GPU) (bits float64, compute models.DType) {
	bits, compute = f.BitsPerElement(), f.Activation
	for i := range d.formats {
		r := &d.formats[i]
		if r.element != f.Element || !r.holds(gpu, class, d.Release.Date) {
			continue
		}
		if r.ResidentBits > 0 {
			bits = r.ResidentBits
		}
		if r.compute != models.DTypeUnknown {
			compute = r.compute
		}
	}
	if compute == models.DTypeUnknown || !gpu.Supports(compute) {
		compute = models.BF16
	}
	return bits, compute
}

// ExpertPadding returns the multiples an expert's width per rank and the width
// it reads are rounded up to on a card; 1 = none.
func (d *Defaults) ExpertPadding(f models.Format, gpu *hardware.GPU) (width, hidden int) {
	width, hidden = 1, 1
	for i := range d.formats {
		r := &d.formats[i]
		if r.element != f.Element || !r.holds(gpu, models.ClassRoutedExpert, d.Release.Date) {
			continue
		}
		if r.PadWidth > 0 {
			width = r.PadWidth
		}
		if r.PadHidden > 0 {
			hidden = r.PadHidden
		}
	}
	return width, hidden
}

func (r *formatRule) holds(gpu *hardware.GPU, class models.TensorClass, day Date) bool {
	if r.day > day || (r.Vendor != "" && r.Vendor != gpu.Vendor) {
		return false
	}
	if len(r.ISA) > 0 && !contains(r.ISA, gpu.ISA) {
		return false
	}
	return len(r.Class) == 0 || contains(r.Class, class.String())
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// Fraction returns the memory fraction the engine ends up with on a card: the
// stated one, or for a static pool the one its reserve leaves, rounded to three
// places as the engine does.
func (d *Defaults) Fraction(card units.Bytes, chunk, gpus, groups int, speculative, multimodal bool) float64 {
	f := d.MemoryFraction
	if f == 0 && card > 0 {
		reserve := d.Reserve.Bytes(card, chunk, d.Graphs.Largest(), gpus, groups, speculative)
		f = math.Round(float64((card-reserve)/card)*1000) / 1000
	}
	if multimodal && d.MultimodalFraction > 0 {
		f *= d.MultimodalFraction
	}
	return min(max(f, 0), 1)
}
