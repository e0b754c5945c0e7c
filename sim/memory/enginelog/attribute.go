package enginelog

import (
	"fmt"
	"math"

	"infera/internal/units"
	"infera/sim/memory"
)

// Difference sets one term of a report against what the engine logged.
type Difference struct {
	// Term is the part of the report: weights, activation, graphs, overhead,
	// pool, kv_bytes_per_token, kv_tokens, concurrency, one_request.
	Term string
	// Unit is "bytes", "tokens" or "requests".
	Unit         string
	Ours, Logged float64
	// Explains is how many bytes of the difference in the pool this term
	// accounts for; positive where we left more for the pool than the engine.
	Explains units.Bytes
	Note     string
}

// Percent returns (ours - logged) / logged in percent; infinite when logged is
// zero and ours is not.
func (d Difference) Percent() float64 {
	if d.Logged == d.Ours {
		return 0
	}
	return 100 * (d.Ours - d.Logged) / math.Abs(d.Logged)
}

// Attribute compares a report with a log, term by term, in report order: first
// the terms that take memory, then what is left, and last the residual of the
// pool that no logged term explains.
func Attribute(r *memory.Report, f Facts) []Difference {
	var out []Difference
	var explained units.Bytes
	take := func(term string, ours units.Bytes, logged *units.Bytes, note string) {
		if logged == nil {
			return
		}
		d := Difference{Term: term, Unit: "bytes", Ours: float64(ours), Logged: float64(*logged),
			Explains: *logged - ours, Note: note}
		explained += d.Explains
		out = append(out, d)
	}
	if f.Requested != nil {
		d := Difference{Term: "budget", Unit: "bytes", Ours: float64(r.Budget), Logged: float64(*f.Requested),
			Explains: r.Budget - *f.Requested, Note: "memory fraction x card"}
		explained += d.Explains
		out = append(out, d)
	}
	take("weights", r.Weights, f.Weights, "")
	take("activation", r.Activation, f.Activation, "peak of the profiling step")
	take("overhead", r.Overhead, f.NonTorch, "outside torch")
	if f.Graphs != nil {
		out = append(out, Difference{Term: "graphs", Unit: "bytes", Ours: float64(r.Graphs), Logged: float64(*f.Graphs),
			Note: "measured at capture"})
	}
	if f.NonKV != nil && f.Activation == nil && f.NonTorch == nil {
		rest := *f.NonKV
		ours := r.Activation + r.Overhead
		if f.Weights != nil {
			rest -= *f.Weights
		} else {
			ours += r.Weights
		}
		take("activation+overhead", ours, &rest, "all that is neither weights nor cache")
	}
	out = pool(out, r, f, explained)
	return counts(out, r, f)
}

// pool compares the memory left and names the residual.
func pool(out []Difference, r *memory.Report, f Facts, explained units.Bytes) []Difference {
	logged := f.PoolBytes
	if logged == nil {
		logged = f.KVAllocated
	}
	if logged == nil {
		logged = f.Rest
	}
	if logged == nil {
		return out
	}
	out = append(out, Difference{Term: "pool", Unit: "bytes", Ours: float64(r.Pool), Logged: float64(*logged)})
	residual := r.Pool - *logged - explained
	if math.Abs(float64(residual)) < float64(10*units.MiB) { // log lines round to 0.01 GiB
		return out
	}
	note := "not in any logged term"
	if f.Weights == nil {
		note += "; the log does not state the weights"
	}
	return append(out, Difference{Term: "residual", Unit: "bytes", Ours: float64(residual), Explains: residual, Note: note})
}

// counts compares tokens, requests and the refusal.
func counts(out []Difference, r *memory.Report, f Facts) []Difference {
	groups := max(1, r.Rank.AttentionGroups)
	if f.KVTokens != nil {
		out = append(out, Difference{Term: "kv_tokens", Unit: "tokens", Ours: float64(r.KVCapacityTokens / groups), Logged: float64(*f.KVTokens),
			Note: "per attention group"})
		if alloc := f.KVAllocated; alloc != nil && *f.KVTokens > 0 {
			out = append(out, Difference{Term: "kv_bytes_per_token", Unit: "bytes", Ours: float64(r.KVBytesPerToken),
				Logged: float64(*alloc) / float64(*f.KVTokens)})
		}
	}
	if f.Concurrency != nil && r.OneRequest > 0 {
		note := ""
		if f.MaxContext != nil && *f.MaxContext != r.Context {
			note = fmt.Sprintf("logged for %d tokens, ours for %d", *f.MaxContext, r.Context)
		}
		out = append(out, Difference{Term: "concurrency", Unit: "requests", Ours: float64(r.Pool / r.OneRequest), Logged: *f.Concurrency, Note: note})
	}
	if f.Needed != nil {
		out = append(out, Difference{Term: "one_request", Unit: "bytes", Ours: float64(r.OneRequest), Logged: float64(*f.Needed),
			Note: "cache of one request of the longest context"})
	}
	if f.EstimatedContext != nil {
		out = append(out, Difference{Term: "max_context", Unit: "tokens", Ours: float64(r.MaxContextTokens), Logged: float64(*f.EstimatedContext)})
	}
	return out
}
