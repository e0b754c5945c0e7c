package software

import (
	"fmt"
	"strconv"
	"strings"

	"infera/internal/units"
)

// bytes reads a size with its unit; "" is 0.
func bytes(s string) (units.Bytes, error) {
	if s == "" {
		return 0, nil
	}
	return units.ParseBytes(s, 0)
}

func seconds(s string) (units.Seconds, error) {
	if s == "" {
		return 0, nil
	}
	return units.ParseSeconds(s, 0)
}

// apply copies the keys that are present into d.
func (s *settings) apply(d *Defaults) error {
	set(&d.Pool, s.Pool)
	set(&d.MemoryFraction, s.MemoryFraction)
	set(&d.MultimodalFraction, s.MultimodalFraction)
	set(&d.MaxBatchedTokens, s.MaxBatchedTokens)
	set(&d.PrefillChunk, s.PrefillChunk)
	set(&d.MaxSequences, s.MaxSequences)
	set(&d.ChunkedPrefill, s.ChunkedPrefill)
	set(&d.ExclusivePrefill, s.ExclusivePrefill)
	set(&d.PrefixCaching, s.PrefixCaching)
	set(&d.BlockTokens, s.BlockTokens)
	set(&d.BlockTokensMLA, s.BlockTokensMLA)
	set(&d.SlidingWindow, s.SlidingWindow)
	set(&d.SlidingWindowMixed, s.SlidingWindowMixed)
	set(&d.WindowBatched, s.WindowBatched)
	set(&d.DenseSharded, s.DenseSharded)
	set(&d.DraftEmbedding, s.DraftEmbedding)
	set(&d.State, s.State)
	set(&d.StateShare, s.StateShare)
	set(&d.Graphs.Mode, s.GraphMode)
	set(&d.Graphs.Charged, s.GraphCharged)
	if s.Scheduler != nil {
		d.Scheduler = Scheduler(*s.Scheduler)
		if c := d.Scheduler; !(c.AnswerShare >= 0 && c.AnswerShare <= 1 && c.LeastAnswerShare >= 0 && c.LeastAnswerShare <= c.AnswerShare) ||
			c.AnswerShareSteps < 0 || c.LongestAnswer < 0 || c.RetractSteps < 0 || c.PrefixOrderLimit < 0 {
			return fmt.Errorf("scheduler: %+v", c)
		}
	}
	if s.GraphSizes != nil {
		sizes, err := parseSizes(s.GraphSizes)
		if err != nil {
			return fmt.Errorf("graph_sizes: %w", err)
		}
		d.Graphs.Sizes = sizes
	}
	if s.Activation != nil {
		a := s.Activation
		d.Activation = Activation{HiddenCopies: a.Hidden, FFNCopies: a.FFN, ExpertCopies: a.Expert,
			ScatterCopies: a.Scatter, LogitCopies: a.Logit, CompressedCopies: a.Sparse, AttentionCopies: a.Attend}
	}
	if err := s.applySizes(d); err != nil {
		return err
	}
	return s.check(d)
}

func (s *settings) applySizes(d *Defaults) error {
	for _, f := range []struct {
		key  string
		from *string
		to   *units.Bytes
	}{
		{"graph_base", s.GraphBase, &d.Graphs.Base},
		{"graph_per_layer_size", s.GraphPerLayerSize, &d.Graphs.PerLayerSize},
		{"context", s.Context, &d.Overhead.Context},
		{"collective_per_peer", s.Collective, &d.Overhead.Collective},
		{"workspace", s.Workspace, &d.Overhead.Workspace},
	} {
		if f.from == nil {
			continue
		}
		b, err := bytes(*f.from)
		if err != nil {
			return fmt.Errorf("%s: %w", f.key, err)
		}
		*f.to = b
	}
	if s.Reserve != nil {
		r, err := s.Reserve.parse()
		if err != nil {
			return fmt.Errorf("reserve: %w", err)
		}
		d.Reserve = r
	}
	if s.Entry != nil {
		e, err := s.Entry.parse()
		if err != nil {
			return fmt.Errorf("cache_entry: %w", err)
		}
		d.Entry = e
	}
	if s.Host != nil {
		h, err := s.Host.parse()
		if err != nil {
			return fmt.Errorf("host: %w", err)
		}
		d.Host = h
	}
	return nil
}

func (r *reserveFile) parse() (StaticReserve, error) {
	out := StaticReserve{MinChunk: r.MinChunk}
	for _, f := range []struct {
		from string
		to   *units.Bytes
	}{
		{r.Constant, &out.Constant},
		{r.PerChunkToken, &out.PerChunkToken},
		{r.PerGraphBatch, &out.PerGraphBatch},
		{r.PerGPU, &out.PerGPU},
		{r.Floor, &out.Floor},
		{r.FloorAbove, &out.FloorAbove},
		{r.PerAttentionDPBatch, &out.PerAttentionDPBatch},
		{r.Speculative, &out.Speculative},
	} {
		b, err := bytes(f.from)
		if err != nil {
			return StaticReserve{}, err
		}
		*f.to = b
	}
	return out, nil
}

func (e *entryFile) parse() (CacheEntry, error) {
	var out CacheEntry
	for _, f := range []struct {
		from string
		to   *units.Bytes
	}{
		{e.SparseLatentFP8, &out.SparseLatentFP8},
		{e.CompressedFP8, &out.CompressedFP8},
		{e.IndexScale, &out.IndexScale},
		{e.CompressorState, &out.CompressorState},
	} {
		b, err := bytes(f.from)
		if err != nil {
			return CacheEntry{}, err
		}
		*f.to = b
	}
	return out, nil
}

func (h *hostFile) parse() (HostCost, error) {
	var out HostCost
	for _, f := range []struct {
		from string
		to   *units.Seconds
	}{{h.Step, &out.Step}, {h.Sequence, &out.Sequence}, {h.Request, &out.Request}, {h.Token, &out.Token}} {
		v, err := seconds(f.from)
		if err != nil {
			return HostCost{}, err
		}
		*f.to = v
	}
	return out, nil
}

// check refuses values no engine can mean.
func (s *settings) check(d *Defaults) error {
	switch d.Pool {
	case "", PoolTotal, PoolStatic, PoolFree, PoolDemand:
	default:
		return fmt.Errorf("unknown pool rule %q", d.Pool)
	}
	switch d.State {
	case "", StatePages, StatePool, StateSlots:
	default:
		return fmt.Errorf("unknown state rule %q", d.State)
	}
	if d.MemoryFraction < 0 || d.MemoryFraction > 1 || d.MultimodalFraction < 0 || d.MultimodalFraction > 1 {
		return fmt.Errorf("memory fractions must lie in 0..1")
	}
	if d.MaxBatchedTokens < 0 || d.PrefillChunk < 0 || d.MaxSequences < 0 || d.BlockTokens < 0 || d.BlockTokensMLA < 0 {
		return fmt.Errorf("token and sequence counts must not be negative")
	}
	return nil
}

// keys calls found for each key that is present.
func (s *settings) keys(found func(string)) {
	for _, k := range []struct {
		key string
		set bool
	}{
		{"pool", s.Pool != nil}, {"memory_fraction", s.MemoryFraction != nil},
		{"multimodal_fraction", s.MultimodalFraction != nil},
		{"max_batched_tokens", s.MaxBatchedTokens != nil}, {"prefill_chunk", s.PrefillChunk != nil},
		{"max_sequences", s.MaxSequences != nil}, {"chunked_prefill", s.ChunkedPrefill != nil},
		{"exclusive_prefill", s.ExclusivePrefill != nil},
		{"prefix_caching", s.PrefixCaching != nil}, {"block_tokens", s.BlockTokens != nil},
		{"block_tokens_mla", s.BlockTokensMLA != nil}, {"sliding_window", s.SlidingWindow != nil},
		{"sliding_window_mixed", s.SlidingWindowMixed != nil}, {"window_batched", s.WindowBatched != nil}, {"dense_sharded", s.DenseSharded != nil},
		{"draft_embedding", s.DraftEmbedding != nil},
		{"cache_entry", s.Entry != nil},
		{"state", s.State != nil}, {"state_share", s.StateShare != nil},
		{"graph_mode", s.GraphMode != nil}, {"graph_sizes", s.GraphSizes != nil},
		{"graph_charged", s.GraphCharged != nil}, {"graph_base", s.GraphBase != nil},
		{"graph_per_layer_size", s.GraphPerLayerSize != nil}, {"reserve", s.Reserve != nil},
		{"activation", s.Activation != nil}, {"context", s.Context != nil},
		{"collective_per_peer", s.Collective != nil}, {"workspace", s.Workspace != nil},
		{"host", s.Host != nil},
	} {
		if k.set {
			found(k.key)
		}
	}
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// maxSize bounds captured sizes, so that a slip in a file cannot fill memory.
const maxSize = 1 << 16

// parseSizes reads "8" and "8..512/8" entries into an ascending list.
func parseSizes(entries []string) ([]int, error) {
	var out []int
	for _, s := range entries {
		from, to, step, err := parseRange(s)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
		for n := from; n <= to; n += step {
			if len(out) > 0 && n <= out[len(out)-1] {
				return nil, fmt.Errorf("%q: sizes must ascend", s)
			}
			out = append(out, n)
		}
	}
	return out, nil
}

func parseRange(s string) (from, to, step int, err error) {
	bad := fmt.Errorf("want a size, or first..last/step")
	first, rest, isRange := strings.Cut(s, "..")
	if from, err = strconv.Atoi(first); err != nil || from < 1 || from > maxSize {
		return 0, 0, 0, bad
	}
	if !isRange {
		return from, from, 1, nil
	}
	last, by, found := strings.Cut(rest, "/")
	if to, err = strconv.Atoi(last); err != nil || to < from || to > maxSize || !found {
		return 0, 0, 0, bad
	}
	if step, err = strconv.Atoi(by); err != nil || step < 1 {
		return 0, 0, 0, bad
	}
	return from, to, step, nil
}
