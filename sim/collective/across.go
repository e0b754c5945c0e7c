package collective

import "math"

// split is a group laid over several scale-up domains.
type split struct {
	domains int
	inside  int     // ranks per domain, of the fullest
	rail    float64 // raw NIC bytes per second that each GPU has
}

func (m *Model) split(ranks int) split {
	n := (ranks + m.wiring.Domain - 1) / m.wiring.Domain
	s := split{domains: n, inside: (ranks + n - 1) / n}
	s.rail = float64(m.fabric.NIC) * float64(max(1, m.fabric.NICs)) / float64(m.wiring.Domain)
	return s
}

// railShare returns the bytes that one GPU sends through its rail per byte of
// the message: each GPU of a domain carries 1/inside of the message.
func (s split) railShare(op Operation, ranks int) float64 {
	n, per := float64(s.domains), float64(s.inside)
	switch op {
	case AllReduce:
		return 2 * (n - 1) / n / per
	case AllToAll:
		return max(0, float64(ranks)-per) / float64(ranks)
	default:
		return (n - 1) / n / per
	}
}

// across prices a group beyond one domain: a phase inside every domain and one
// over the rails. Their fixed times add; of their transfers the shorter hides
// behind the longer by the table's overlap.
func (m *Model) across(op Operation, ranks int, b float64) point {
	s := m.split(ranks)
	net := &m.table.Network
	rounds := math.Ceil(math.Log2(float64(s.domains)))
	rail := b * s.railShare(op, ranks) / (s.rail * m.fabric.NICEfficiency)
	latency := float64(m.fabric.NICLatency)

	in := m.phaseInside(op, &s, ranks, b)
	fixed := in.floor + rounds*(float64(net.CollectiveFloor)+latency)
	switch {
	case op == AllReduce:
		fixed += rounds * latency // there and back
	case op == AllToAll:
		fixed = in.floor + rounds*float64(net.ExchangeFloor) + latency
		if m.opt.A2AAlgorithm == "direct" || m.opt.A2AAlgorithm == "single_shot" {
			fixed += float64(net.PeerCost) * float64(ranks-s.inside)
		}
	}
	if op == AllReduce && m.opt.AllReduceFloor != nil {
		fixed += max(0, float64(*m.opt.AllReduceFloor)-in.floor)
	}
	transfer := in.time - in.floor
	p := point{
		name:   "hierarchical over the rails",
		spread: in.spread + net.Spread,
	}
	p.time = fixed + max(transfer, rail) + (1-net.Overlap)*min(transfer, rail)
	return p
}

// phaseInside is the work inside one domain: reduce-scatter before and
// all-gather after the rails for an all-reduce, one of them for the others, and
// the exchange with the neighbours (which also forwards what came over the
// rails, unless every rank sends directly) for an all-to-all.
func (m *Model) phaseInside(op Operation, s *split, ranks int, b float64) point {
	if s.inside < 2 {
		// A domain of one GPU has no phase of its own; the library call stays.
		p := m.transfer.at(2, 0)
		return p
	}
	switch op {
	case AllReduce:
		p, q := m.scatter.at(s.inside, b), m.gather.at(s.inside, b)
		p.time += q.time
		p.floor += q.floor
		p.spread = max(p.spread, q.spread)
		return p
	case AllGather:
		return m.gather.at(s.inside, b)
	case ReduceScatter:
		return m.scatter.at(s.inside, b)
	default:
		if m.opt.A2AAlgorithm == "direct" || m.opt.A2AAlgorithm == "single_shot" {
			b *= float64(s.inside) / float64(ranks)
		}
		return m.exchangeInside(s.inside, b)
	}
}

// lowerAcross returns the least time of a group beyond one domain and the bytes
// one rank sends over links and rail together.
func (m *Model) lowerAcross(op Operation, ranks int, b float64) (lower, wire float64) {
	s := m.split(ranks)
	rail := b * s.railShare(op, ranks)
	if s.inside > 1 {
		local := b
		if op == AllToAll {
			local *= float64(s.inside) / float64(ranks)
		}
		lower = local * m.wiring.perByte(op, s.inside)
		wire = local * m.wiring.wireShare(op, s.inside)
	}
	return max(lower, rail/s.rail), wire + rail
}
