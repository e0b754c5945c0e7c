package memory

import (
	"fmt"

	"infera/internal/units"
	"infera/models"
	"infera/sim/software"
)

// Sizer answers memory questions about one architecture. It is safe for use by
// several goroutines; the architecture must not change meanwhile.
type Sizer struct {
	arch              *models.Architecture
	layers            []layer
	draft             layer
	draftExtra        [models.NumTensorClasses]float64
	perLayerEmbedding float64
	latent            bool // some layer has latent attention
	multimodal        bool
	mixedWindows      bool // window layers store entries of another width than the rest
}

// New prepares an architecture. The error is of kind [ErrRequest].
func New(a *models.Architecture) (*Sizer, error) {
	switch {
	case a == nil:
		return nil, fmt.Errorf("%w: no architecture", ErrRequest)
	case len(a.Groups) == 0 || len(a.Groups) > maxGroups:
		return nil, fmt.Errorf("%w: %s has %d layer groups, want 1 to %d", ErrRequest, a.Name, len(a.Groups), maxGroups)
	case a.Hidden < 1 || a.Vocab < 1:
		return nil, fmt.Errorf("%w: %s has no hidden size or vocabulary", ErrRequest, a.Name)
	}
	for _, k := range a.Pattern {
		if int(k) >= len(a.Groups) {
			return nil, fmt.Errorf("%w: %s names layer group %d of %d", ErrRequest, a.Name, k, len(a.Groups))
		}
	}
	s := &Sizer{arch: a, layers: make([]layer, len(a.Groups)), multimodal: a.VisionParams > 0}
	for i, g := range a.Groups {
		s.layers[i] = layerOf(a, g)
		s.latent = s.latent || g.Attention.Kind == models.AttentionMLA
	}
	s.mixedWindows = mixedWindows(a)
	if a.Draft.Layers > 0 {
		s.draft = layerOf(a, a.Draft.Layer)
		per := a.GroupParams(a.Draft.Layer)
		for c, n := range a.DraftParams() {
			s.draftExtra[c] = float64(n - int64(a.Draft.Layers)*per[c])
		}
	}
	s.perLayerEmbedding = max(0, float64(a.EmbeddingParams()-int64(a.Rows())*int64(a.Hidden)))
	return s, nil
}

// mixedWindows reports whether window layers and full layers store entries of
// different widths, so that no common page size fits both.
func mixedWindows(a *models.Architecture) bool {
	full, window := 0.0, 0.0
	for _, g := range a.Groups {
		t := &g.Attention
		if t.Kind != models.AttentionGQA || t.KVShared || t.Sparse.Compress > 1 {
			continue
		}
		if n := g.KVElementsPerToken(); t.Window > 0 {
			window = max(window, n)
		} else {
			full = max(full, n)
		}
	}
	return full > 0 && window > 0 && full != window
}

// Term names a part of the memory of a GPU.
type Term string

// The terms, in report order.
const (
	TermWeights    Term = "weights"
	TermActivation Term = "activation"
	TermGraphs     Term = "graphs"
	TermOverhead   Term = "overhead"
	TermReserve    Term = "reserve"
	TermState      Term = "state"
	TermKV         Term = "kv_cache"
)

// Fit is the verdict for the binding rank, all sizes in bytes on that rank.
type Fit struct {
	// OK is set when the engine starts and can serve at least one request of
	// the longest context.
	OK bool
	// Short is the term that does not find room and By how much is missing;
	// "" when OK. When the cache finds no room because something else took it,
	// Cause names that.
	Short, Cause Term
	By           units.Bytes

	Weights, Activation, Graphs, Overhead, Reserve units.Bytes
	// Budget is what the engine may use, Pool what is left for cache and state.
	HBM, Budget, Pool units.Bytes
	// OneRequest is the cache of one request of the longest context.
	OneRequest units.Bytes

	// KVBytesPerToken is the cost of one more token of context where no window
	// binds; StateBytesPerSequence the recurrent state as allocated.
	KVBytesPerToken, StateBytesPerSequence units.Bytes
	// KVCapacityTokens is the pool in tokens, over all attention groups.
	KVCapacityTokens int
	// MaxConcurrency is how many requests of the planned length fit at once
	// (input + output), over all attention groups, with room for the prompt
	// tokens of one step (engines that reserve that room for every request
	// print less); MaxContextTokens the longest
	// single request.
	MaxConcurrency, MaxContextTokens int
	// BlockTokens is the allocation granule, grown to a state page if need be.
	BlockTokens int
	// Stage is the pipeline stage of the binding rank.
	Stage int
}

// Fit sizes a request. The error is of kind [ErrRequest]; a recipe that does
// not fit is not an error.
func (s *Sizer) Fit(r *Request) (Fit, error) {
	if err := r.check(); err != nil {
		return Fit{}, err
	}
	q := s.resolve(r)
	var worst Fit
	for i := range r.Layout.PP {
		st := s.stageOf(i, r.Layout.PP)
		f := s.stageFit(&q, &st)
		f.Stage = i
		if i == 0 || worse(&f, &worst) {
			worst = f
		}
	}
	return worst, nil
}

// worse reports whether a binds more than b.
func worse(a, b *Fit) bool {
	if a.OK != b.OK {
		return !a.OK
	}
	if !a.OK {
		return a.By > b.By
	}
	return a.KVCapacityTokens < b.KVCapacityTokens
}

// stageFit sizes one rank of one stage.
func (s *Sizer) stageFit(q *resolved, st *stage) Fit {
	w := s.stageWeights(q, st)
	c := s.stageCache(q, st)
	return s.verdict(q, st, &w, &c)
}

// verdict puts the terms together.
func (s *Sizer) verdict(q *resolved, st *stage, w *weights, c *cache) Fit {
	f := Fit{HBM: q.card, Weights: w.total, BlockTokens: c.block,
		KVBytesPerToken: units.Bytes(c.slope), StateBytesPerSequence: units.Bytes(c.state)}
	forward, sampler := s.activation(q, st)
	f.Activation = max(forward, sampler)
	f.Graphs = q.graphs(st.count)
	f.Overhead = q.Engine.Overhead.Bytes(q.Layout.GPUs())
	s.pool(q, &f)
	f.OneRequest = c.sequence(q.longest)
	pool := f.Pool + q.OffloadBytes
	if q.KVPoolTokens > 0 {
		pool = c.poolOf(q.KVPoolTokens, q.longest)
		f.Pool = pool
	}
	s.capacity(q, &f, c, pool)
	s.judge(q, &f, c, pool)
	return f
}

func (q *resolved) graphs(layers int) units.Bytes {
	switch {
	case q.Eager:
		return 0
	case q.GraphBytes > 0:
		return q.GraphBytes
	}
	return q.Engine.Graphs.Bytes(layers)
}

// poolOf returns the pool that holds a logged number of tokens.
func (c *cache) poolOf(tokens, longest int) units.Bytes {
	if c.uniform {
		return units.Bytes(float64(tokens) * c.slope)
	}
	return c.sequence(longest) * units.Bytes(float64(tokens)/float64(longest))
}

// pool divides the card by the engine's rule.
func (s *Sizer) pool(q *resolved, f *Fit) {
	e := q.Engine
	fraction := q.MemoryFraction
	multimodal := s.multimodal && !q.TextOnly
	if fraction == 0 {
		fraction = e.Fraction(q.card, q.batched, q.Layout.GPUs(), q.groups, q.SpeculativeTokens > 0, multimodal)
	} else if multimodal && e.MultimodalFraction > 0 {
		fraction *= e.MultimodalFraction
	}
	charged := units.Bytes(0)
	if e.Graphs.Charged {
		charged = f.Graphs
	}
	fixed := f.Weights + f.Activation + f.Overhead + q.ReservedBytes
	switch e.Pool {
	case software.PoolStatic:
		// The engine measures the card once its context and communicators stand.
		seen := q.card - e.Overhead.Context - e.Overhead.Collective*units.Bytes(max(0, q.Layout.GPUs()-1))
		f.Budget = seen * units.Bytes(fraction)
		f.Reserve = seen - f.Budget
		f.Pool = f.Budget - f.Weights - q.ReservedBytes
	case software.PoolFree:
		f.Budget = q.card
		free := q.card - fixed - f.Graphs
		f.Pool = free * units.Bytes(fraction)
		f.Reserve = max(0, free-f.Pool)
	default:
		f.Budget = q.card * units.Bytes(fraction)
		f.Reserve = q.card - f.Budget
		f.Pool = f.Budget - fixed - charged
		if e.Pool == software.PoolDemand {
			f.Pool -= f.Graphs
		}
	}
}

// capacity fills in what the pool holds.
func (s *Sizer) capacity(q *resolved, f *Fit, c *cache, pool units.Bytes) {
	if pool <= 0 {
		return
	}
	kv := *c
	sequences := q.sequences
	switch {
	case c.stateRaw == 0:
	case q.Engine.State == software.StatePool:
		// The state pool takes its share first and bounds the sequences.
		share := units.Bytes(q.Engine.StateShare / (1 + q.Engine.StateShare))
		slots := int(pool * share / units.Bytes(c.stateRaw))
		if q.MaxSequences > 0 {
			slots = min(slots, q.MaxSequences)
		}
		sequences = slots
		pool -= units.Bytes(float64(slots) * c.stateRaw)
		kv.state = 0
	case q.Engine.State == software.StateSlots:
		slots := max(1, sequences)
		pool -= units.Bytes(float64(slots) * c.stateRaw)
		kv.state = 0
	}
	f.KVCapacityTokens = kv.tokens(pool, q.longest) * q.groups
	limit := maxTokens
	if s.arch.MaxContext > 0 {
		limit = max(s.arch.MaxContext, q.longest)
	}
	f.MaxContextTokens = kv.longest(pool, limit)
	// Room for the prompt tokens of a step is needed once, not per request.
	passing := kv.passing()
	one := kv.sequence(q.planned) - passing
	pool -= passing
	n := 0
	switch {
	case pool < 0:
	case one <= 0:
		n = sequences
	default:
		n = int(min(float64(pool/one), maxTokens))
		if sequences > 0 {
			n = min(n, sequences)
		}
	}
	f.MaxConcurrency = n * q.groups
}

// judge decides, and names the term that is short.
func (s *Sizer) judge(q *resolved, f *Fit, c *cache, pool units.Bytes) {
	fail := func(t, cause Term, by units.Bytes) { f.OK, f.Short, f.Cause, f.By = false, t, cause, by }
	f.OK = true
	room := f.Budget - f.Weights
	static := q.Engine.Pool == software.PoolStatic
	outside := f.Activation + f.Graphs + q.Engine.Overhead.Workspace // of a static pool
	switch {
	case q.KVPoolTokens > 0:
		if f.OneRequest > pool {
			fail(TermKV, "", f.OneRequest-pool)
		}
	case room < 0:
		fail(TermWeights, "", -room)
	case static && outside > f.Reserve:
		fail(TermActivation, f.largest(), outside-f.Reserve)
	case f.Pool <= 0:
		fail(TermKV, f.largest(), -f.Pool+f.OneRequest)
	case f.MaxContextTokens == 0 && c.stateRaw > 0:
		slots := units.Bytes(max(1, q.sequences))
		fail(TermState, "", max(0, slots*units.Bytes(c.stateRaw)-pool)+f.OneRequest)
	case f.OneRequest > pool || f.MaxContextTokens < q.longest:
		fail(TermKV, f.largest(), max(0, f.OneRequest-pool))
	case !static && !q.Engine.Graphs.Charged && f.Graphs > f.Reserve:
		fail(TermGraphs, "", f.Graphs-f.Reserve)
	}
}

// largest names the biggest term besides the weights.
func (f *Fit) largest() Term {
	best, size := TermActivation, f.Activation
	if f.Graphs > size {
		best, size = TermGraphs, f.Graphs
	}
	if f.Overhead > size {
		best = TermOverhead
	}
	return best
}

// PoolTokens returns how many tokens a cache pool of the given size per rank
// holds on the binding rank of one attention group, in whole blocks. It is the
// engine's "GPU KV cache size" for a logged "Available KV cache memory".
func (s *Sizer) PoolTokens(r *Request, pool units.Bytes) (int, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	q := s.resolve(r)
	best := -1
	for i := range r.Layout.PP {
		st := s.stageOf(i, r.Layout.PP)
		c := s.stageCache(&q, &st)
		if n := c.tokens(pool, q.longest); best < 0 || n < best {
			best = n
		}
	}
	return max(0, best), nil
}

// SequenceBytes returns the cache and state of one sequence of n tokens on the
// rank that keeps the most.
func (s *Sizer) SequenceBytes(r *Request, n int) (units.Bytes, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	q := s.resolve(r)
	var most units.Bytes
	for i := range r.Layout.PP {
		st := s.stageOf(i, r.Layout.PP)
		c := s.stageCache(&q, &st)
		most = max(most, c.sequence(n))
	}
	return most, nil
}
