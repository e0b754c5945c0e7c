package memory

import (
	"fmt"
	"strings"

	"infera/internal/units"
	"infera/models"
	"infera/sim/software"
)

// Line is one row of the table of terms: what one GPU of the binding rank
// holds.
type Line struct {
	Name  string // "weights.attention", "activation", "kv_cache", ...
	Bytes units.Bytes
	// ShardedBy says over how many ranks the whole was divided: "tp 8", "ep 4
	// x tp 2", "replicated".
	ShardedBy string
	// Source says where the number comes from.
	Source string
}

// Rank says which rank binds.
type Rank struct {
	Stage, Stages   int
	AttentionGroups int
	Layers          int
}

// Report is the verdict with every term.
type Report struct {
	Fit
	Terms []Line
	// Context and Planned are the longest request and the request planned for,
	// in tokens.
	Context, Planned int
	// Total is weights, activation, graphs, overhead, reserved bytes and the
	// cache of the requested concurrency (at least one longest request).
	Total units.Bytes
	// Concurrency is what was asked; Admitted how many of them run at once, the
	// others wait.
	Concurrency, Admitted int
	MaxBatchedTokens      int
	MaxSequences          int
	Rank                  Rank
	// Reason is one sentence; "" when it fits.
	Reason string
	// Suggestions are single changes, each checked to make it fit.
	Suggestions []string
}

// Report sizes a request in full. The error is of kind [ErrRequest].
func (s *Sizer) Report(r *Request) (*Report, error) {
	f, err := s.Fit(r)
	if err != nil {
		return nil, err
	}
	q := s.resolve(r)
	st := s.stageOf(f.Stage, r.Layout.PP)
	w := s.stageWeights(&q, &st)
	c := s.stageCache(&q, &st)
	rep := &Report{Fit: f, Context: q.longest, Planned: q.planned, Concurrency: r.Concurrency,
		MaxBatchedTokens: q.batched, MaxSequences: q.sequences,
		Rank: Rank{Stage: f.Stage, Stages: r.Layout.PP, AttentionGroups: q.groups, Layers: st.count}}
	rep.Admitted = min(max(r.Concurrency, 0), f.MaxConcurrency)
	perGroup := max(1, ceilDiv(max(r.Concurrency, 1), q.groups))
	cacheBytes := max(f.OneRequest, units.Bytes(perGroup)*c.sequence(q.planned))
	if f.OK {
		cacheBytes = min(cacheBytes, max(f.OneRequest, f.Pool))
	}
	rep.Total = f.Weights + f.Activation + f.Graphs + f.Overhead + r.ReservedBytes + cacheBytes
	rep.Terms = s.lines(&q, &st, &w, &c, &f)
	rep.Reason = s.reason(&q, &f, &c)
	if !f.OK {
		rep.Suggestions = s.suggest(r, &q)
	}
	return rep, nil
}

// Size prepares an architecture and reports on one request; for many requests
// on one architecture keep a [Sizer].
func Size(a *models.Architecture, r *Request) (*Report, error) {
	s, err := New(a)
	if err != nil {
		return nil, err
	}
	return s.Report(r)
}

// lines lists the terms in report order, without empty ones.
func (s *Sizer) lines(q *resolved, st *stage, w *weights, c *cache, f *Fit) []Line {
	out := make([]Line, 0, 24)
	if q.WeightBytes > 0 {
		out = append(out, Line{"weights", w.total, "", "as stated"})
	}
	for class, b := range w.class {
		if b > 0 {
			k := models.TensorClass(class)
			out = append(out, Line{"weights." + k.String(), b, q.shard(k), s.formatSource(q, k)})
		}
	}
	add := func(name string, b units.Bytes, by, source string) {
		if b > 0 {
			out = append(out, Line{name, b, by, source})
		}
	}
	e := q.Engine
	add("weights.absorbed", w.absorbed, ranks("tp", q.attentionTP), "second copy of the latent up-projection in "+s.arch.Compute.String())
	add("activation", f.Activation, "", e.Source("activation"))
	add("graphs", f.Graphs, "", e.Source("graph_base"))
	add("overhead", f.Overhead, "", e.Source("context"))
	add("reserved", q.ReservedBytes, "", "as asked")
	for i := range c.groups[:c.n] {
		g := &c.groups[i]
		n := q.longest
		if g.window > 0 {
			n = min(n, g.window)
		}
		b := units.Bytes(float64(ceilDiv(n, g.block)*g.block)*g.perToken + g.perSequence)
		add(fmt.Sprintf("kv_cache.group_%d", i), b, fmt.Sprintf("%g layers, per request of %d tokens", g.layers, q.longest),
			"blocks of "+fmt.Sprint(g.block)+" tokens; "+e.Source("block_tokens"))
	}
	add("state", units.Bytes(c.state), ranks("tp", q.attentionTP), "per sequence; "+e.Source("state"))
	add("reserve", f.Reserve, "", s.fractionSource(q))
	return out
}

func (s *Sizer) fractionSource(q *resolved) string {
	if q.MemoryFraction > 0 {
		return "as asked"
	}
	if v := q.Engine.Source("memory_fraction"); v != "" {
		return v
	}
	return q.Engine.Source("pool")
}

func (s *Sizer) formatSource(q *resolved, c models.TensorClass) string {
	f := s.arch.Formats[c]
	bits, _ := q.Engine.Weight(f, c, q.GPU)
	text := s.arch.Source
	if text == "" {
		text = s.arch.Name
	}
	if stored := f.BitsPerElement(); bits != stored {
		return fmt.Sprintf("%s, %.4g bits as stored, %.4g on %s; %s", f.Name, stored, bits, q.GPU.ISA, text)
	}
	return fmt.Sprintf("%s, %.4g bits; %s", f.Name, bits, text)
}

// shard says how a tensor class is divided.
func (q *resolved) shard(c models.TensorClass) string {
	switch c {
	case models.ClassRouter, models.ClassIndexer, models.ClassNorm:
		return "replicated"
	case models.ClassAttention, models.ClassRecurrent, models.ClassVision:
		return ranks("tp", q.attentionTP)
	case models.ClassRoutedExpert:
		if q.Layout.EP > 1 {
			return fmt.Sprintf("ep %d x tp %d", q.Layout.EP, q.expertTP)
		}
		return ranks("tp", q.expertRanks)
	case models.ClassEmbedding:
		return ranks("tp", q.embeddingTP())
	}
	return ranks("tp", q.denseTP)
}

func ranks(name string, n int) string {
	if n == 1 {
		return "replicated"
	}
	return fmt.Sprintf("%s %d", name, n)
}

// reason says in one sentence why it does not fit.
func (s *Sizer) reason(q *resolved, f *Fit, c *cache) string {
	if f.OK {
		return ""
	}
	var b strings.Builder
	gib := func(v units.Bytes) string { return fmt.Sprintf("%.2f GiB", v.GiB()) }
	switch f.Short {
	case TermWeights:
		fmt.Fprintf(&b, "weights need %s per GPU, the engine may use %s of %s", gib(f.Weights), gib(f.Budget), gib(f.HBM))
	case TermActivation:
		fmt.Fprintf(&b, "activations and graphs need %s outside the static pool, the memory fraction leaves %s",
			gib(f.Activation+f.Graphs+q.Engine.Overhead.Workspace), gib(f.Reserve))
	case TermGraphs:
		fmt.Fprintf(&b, "captured graphs need %s, the memory fraction leaves %s for them", gib(f.Graphs), gib(f.Reserve))
	case TermState:
		fmt.Fprintf(&b, "the recurrent state of %d sequences needs %s, %s is left", max(1, q.sequences),
			gib(units.Bytes(float64(max(1, q.sequences))*c.stateRaw)), gib(max(0, f.Pool)))
	default:
		fmt.Fprintf(&b, "the KV cache of one request of %d tokens needs %s, %s is left", q.longest, gib(f.OneRequest), gib(f.Pool))
	}
	if f.Short != TermWeights && f.Short != TermGraphs && q.Engine.Pool == software.PoolTotal && q.KVPoolTokens == 0 {
		fmt.Fprintf(&b, " (budget %s - weights %s - activation %s", gib(f.Budget), gib(f.Weights), gib(f.Activation))
		if q.Engine.Graphs.Charged {
			fmt.Fprintf(&b, " - graphs %s", gib(f.Graphs))
		}
		fmt.Fprintf(&b, " - overhead %s)", gib(f.Overhead+q.ReservedBytes))
	}
	fmt.Fprintf(&b, "; short of %s by %s", f.Short, gib(f.By))
	return b.String()
}
