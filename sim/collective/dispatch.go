package collective

import (
	"math"

	"infera/internal/units"
	"infera/models"
)

// Exchange is the expert-parallel traffic of one MoE layer in one step.
type Exchange struct {
	// Ranks is the expert-parallel group; Experts (routed, of the layer) are
	// spread evenly over it. Experts 0 means many per rank.
	Ranks, Experts, TopK, Hidden int
	// TokensPerRank is how many tokens a rank brings: its own share when the
	// tokens are sharded (attention data-parallel), all of the step when they
	// are replicated (attention tensor-parallel over the same ranks).
	TokensPerRank float64
	Replicated    bool
	// Dispatch and Combine are the formats on the wire. An unset Dispatch is
	// bf16; an unset Combine too.
	Dispatch, Combine models.Format
	// PerExpert sends a token once per chosen expert instead of once per rank
	// that holds one of them (kernels without deduplication).
	PerExpert bool
}

// ExchangeEstimate is the price of the two exchanges around the experts.
type ExchangeEstimate struct {
	Dispatch, Combine Estimate
	// Copies is how many ranks, its own included, one token is sent to on
	// average.
	Copies float64
	// HiddenFraction is the share that runs behind expert computation.
	HiddenFraction float64
}

// Total returns the time of both exchanges.
func (e ExchangeEstimate) Total() units.Seconds { return e.Dispatch.Time + e.Combine.Time }

// Exposed returns the part of [ExchangeEstimate.Total] that the step waits for.
func (e ExchangeEstimate) Exposed() units.Seconds {
	return units.Seconds(1-e.HiddenFraction) * e.Total()
}

// Dispatch prices sending tokens to the ranks of their experts and bringing the
// results back.
//
// Sharded tokens take an all-to-all each way; a token goes once to every rank
// that holds one of its experts, and over the network once to every domain
// (MoRI-EP and DeepEP do both). Results are summed on the expert's rank before
// they return, so the way back carries as many copies. Replicated tokens are
// already everywhere: nothing is dispatched, and the results are summed by an
// all-reduce of the hidden states.
func (m *Model) Dispatch(x Exchange) ExchangeEstimate {
	e := ExchangeEstimate{HiddenFraction: m.opt.HiddenFraction}
	if x.Ranks < 2 || x.TopK < 1 || x.Hidden < 1 || !(x.TokensPerRank > 0) {
		return e
	}
	elements := x.TokensPerRank * float64(x.Hidden)
	if x.Replicated {
		e.Copies = 1
		e.Combine = m.AllReduce(x.Ranks, wireBytes(x.Combine, elements))
		return e
	}
	e.Copies = Copies(x.Ranks, x.Experts, x.TopK)
	if x.PerExpert {
		e.Copies = float64(x.TopK)
	}
	e.Dispatch = m.exchangeCopies(&x, e.Copies, wireBytes(x.Dispatch, elements))
	e.Combine = m.exchangeCopies(&x, e.Copies, wireBytes(x.Combine, elements))
	return e
}

// exchangeCopies prices an all-to-all of copies times b bytes per rank, in which
// only one copy per domain crosses the network.
func (m *Model) exchangeCopies(x *Exchange, copies float64, b units.Bytes) Estimate {
	full := m.AllToAll(x.Ranks, b*units.Bytes(copies))
	if !m.crosses(x.Ranks) || x.PerExpert || m.opt.A2AAlgorithm == "direct" || m.opt.A2AAlgorithm == "single_shot" {
		return full
	}
	s := m.split(x.Ranks)
	domains := Copies(s.domains, x.Experts, x.TopK)
	if domains >= copies {
		return full
	}
	// The rails carry one copy per domain, the links inside all copies.
	reduced := m.AllToAll(x.Ranks, b*units.Bytes(domains))
	in := m.exchangeInside(max(2, s.inside), float64(b)*copies)
	t := max(float64(reduced.Time), in.time)
	reduced.Time = units.Seconds(t)
	return reduced
}

// wireBytes is the size of n elements, bf16 when the format is unset.
func wireBytes(f models.Format, n float64) units.Bytes {
	if f.IsZero() {
		return units.Bytes(2 * n)
	}
	return f.Bytes(n)
}

// Copies returns the expected number of groups, out of groups equal parts of the
// experts, that hold at least one of the topK different experts of a token that
// chooses uniformly: groups * (1 - C(E-E/groups, k)/C(E, k)).
func Copies(groups, experts, topK int) float64 {
	g := float64(groups)
	if groups < 2 || topK < 1 {
		return min(1, g)
	}
	miss := 1.0 // probability that a given group holds none of them
	if per := float64(experts) / g; experts >= topK && per >= 1 {
		for i := range topK {
			e := float64(experts - i)
			miss *= max(0, (e-per)/e)
		}
	} else {
		miss = math.Pow(1-1/g, float64(topK))
	}
	return g * (1 - miss)
}
