package collective

import "infera/sim/hardware"

// Bandwidth returns the one-direction rate of one GPU towards the other ranks-1
// of its group, in bytes per second: on a mesh only the links to those peers.
func (w Wiring) bandwidth(ranks int) float64 {
	if w.Topology == hardware.Mesh && ranks > 1 && ranks < w.Domain {
		return float64(w.ScaleUp) * float64(ranks-1) / float64(w.Domain-1)
	}
	return float64(w.ScaleUp)
}

// wireShare returns the bytes that one rank must put on (or take from) the wire
// per byte of the message. The shares are those of the bandwidth-optimal
// algorithms (Chan et al., "Collective communication: theory, practice, and
// experience", 2007); a switch can reduce and multicast, so that an all-reduce
// needs only one pass there.
func (w Wiring) wireShare(op Operation, ranks int) float64 {
	g := float64(ranks)
	switch op {
	case AllReduce:
		if w.Topology == hardware.Switch {
			return min(1, 2*(g-1)/g)
		}
		return 2 * (g - 1) / g
	case SendReceive:
		return 1
	default:
		return (g - 1) / g
	}
}

// perByte returns the least time per byte of the message, in seconds.
func (w Wiring) perByte(op Operation, ranks int) float64 {
	if op == SendReceive {
		ranks = 2
	}
	return w.wireShare(op, ranks) / w.bandwidth(ranks)
}
