package memory

import (
	"errors"
	"fmt"

	"infera/internal/units"
	"infera/models"
	"infera/sim/hardware"
	"infera/sim/layout"
	"infera/sim/software"
)

// ErrRequest is the kind of error for a request that cannot be sized at all.
var ErrRequest = errors.New("invalid memory request")

// Request is one recipe to size. Zero values mean the engine's default unless
// a field says otherwise.
type Request struct {
	GPU    *hardware.GPU
	Layout layout.Layout
	Engine *software.Defaults

	// KVFormat is how the cache is stored; zero = as the checkpoint asks.
	KVFormat models.Format
	// MaxContext is the longest request the engine must be able to hold, in
	// tokens; 0 = InputLen + OutputLen, or the model's own limit when these are
	// unset too.
	MaxContext int
	// InputLen and OutputLen are the tokens of the request to plan for;
	// Concurrency is how many are to run at once (0 = not asked).
	InputLen, OutputLen, Concurrency int

	MaxBatchedTokens, MaxSequences, BlockTokens int
	MemoryFraction                              float64

	// SpeculativeTokens is how many tokens a drafter proposes; 0 = none. The
	// model's own drafter is loaded when it has one, unless DraftWeights gives
	// the size (whole, before sharding) of a separate one.
	SpeculativeTokens    int
	DraftWeights         units.Bytes
	DraftKVBytesPerToken units.Bytes // per rank

	// TextOnly leaves out the vision or audio tower.
	TextOnly bool
	// Eager turns captured graphs off; GraphBytes replaces their size.
	Eager      bool
	GraphBytes units.Bytes
	// ReservedBytes is further memory to keep free on each GPU.
	ReservedBytes units.Bytes
	// KVPoolTokens replaces the size of the pool by a count of tokens per
	// attention group, as an engine's log states it.
	KVPoolTokens int
	// OffloadBytes is host memory per GPU that extends the cache.
	OffloadBytes units.Bytes
	// WeightBytes replaces the weights of every rank, as an engine's log states
	// them.
	WeightBytes units.Bytes
}

// limits bound what a request may ask, so that sums stay exact.
const (
	maxTokens = 1 << 40
	maxRanks  = 1 << 20
)

// check refuses requests with no meaning.
func (r *Request) check() error {
	switch {
	case r.GPU == nil:
		return fmt.Errorf("%w: no GPU", ErrRequest)
	case r.Engine == nil:
		return fmt.Errorf("%w: no engine", ErrRequest)
	case !(r.GPU.UsableCapacity() > 0):
		return fmt.Errorf("%w: GPU %s has no memory size", ErrRequest, r.GPU.Name)
	}
	l := r.Layout
	for _, v := range [...]struct {
		name  string
		value int
	}{{"tp", l.TP}, {"pp", l.PP}, {"ep", l.EP}, {"attention_dp", l.AttentionDP}} {
		if v.value < 1 || v.value > maxRanks {
			return fmt.Errorf("%w: %s is %d, want 1 or more", ErrRequest, v.name, v.value)
		}
	}
	if l.AttentionDP > l.TP && l.AttentionDP > l.EP {
		return fmt.Errorf("%w: attention_dp %d exceeds tp %d", ErrRequest, l.AttentionDP, l.TP)
	}
	for _, v := range [...]struct {
		name  string
		value int
	}{
		{"max_context", r.MaxContext}, {"input_len", r.InputLen}, {"output_len", r.OutputLen},
		{"concurrency", r.Concurrency}, {"max_num_batched_tokens", r.MaxBatchedTokens},
		{"max_num_seqs", r.MaxSequences}, {"block_size", r.BlockTokens},
		{"speculative_tokens", r.SpeculativeTokens}, {"kv_pool_tokens", r.KVPoolTokens},
	} {
		if v.value < 0 || v.value > maxTokens {
			return fmt.Errorf("%w: %s is %d, want 0 to %d", ErrRequest, v.name, v.value, maxTokens)
		}
	}
	if !(r.MemoryFraction >= 0 && r.MemoryFraction <= 1) {
		return fmt.Errorf("%w: memory fraction is %v, want 0 to 1", ErrRequest, r.MemoryFraction)
	}
	for _, b := range [...]units.Bytes{r.DraftWeights, r.DraftKVBytesPerToken, r.GraphBytes, r.ReservedBytes, r.OffloadBytes, r.WeightBytes} {
		if !(b >= 0 && b < 1e18) {
			return fmt.Errorf("%w: a size is %v bytes, want 0 or more", ErrRequest, float64(b))
		}
	}
	return nil
}

// resolved is a request with every default filled in.
type resolved struct {
	*Request
	groups      int // attention groups
	attentionTP int
	denseTP     int // ranks that share dense weights, embedding and head
	expertRanks int // ranks that share the routed experts
	expertTP    int
	dcp         int

	card      units.Bytes
	batched   int  // tokens of one step at most
	sequences int  // sequences of one group at once; 0 = bounded by the pool
	longest   int  // tokens of the longest request
	planned   int  // tokens of the request to plan for
	windows   bool // the engine credits sliding windows for this model
	kv        models.Format
	kvBytes   float64 // per element
}

func (s *Sizer) resolve(r *Request) resolved {
	l, e := r.Layout, r.Engine
	q := resolved{Request: r, groups: max(1, l.AttentionDP), dcp: max(1, l.DecodeCP),
		expertRanks: max(l.TP, l.EP), expertTP: l.ExpertTP(), card: r.GPU.UsableCapacity()}
	q.attentionTP = l.AttentionTP()
	q.denseTP = q.attentionTP
	if e.DenseSharded {
		q.denseTP = l.TP
	}
	q.batched = or(r.MaxBatchedTokens, e.MaxBatchedTokens)
	if e.PrefillChunk > 0 && r.MaxBatchedTokens == 0 {
		q.batched = e.PrefillChunk
	}
	q.sequences = or(r.MaxSequences, e.MaxSequences)
	q.planned = r.InputLen + r.OutputLen
	q.longest = r.MaxContext
	if q.longest == 0 {
		q.longest = or(q.planned, s.arch.MaxContext)
	}
	if q.longest == 0 {
		q.longest = 1
	}
	if q.planned == 0 {
		q.planned = q.longest
	}
	q.kv = r.KVFormat
	if q.kv.IsZero() {
		q.kv = s.arch.KV()
	}
	q.windows = e.SlidingWindow && (e.SlidingWindowMixed || !s.mixedWindows)
	q.kvBytes = q.kv.BitsPerElement() / 8
	return q
}

// or returns a, or b when a is zero.
func or(a, b int) int {
	if a != 0 {
		return a
	}
	return b
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
