package kernel

import "infera/internal/units"

// pass is a [PassCurve] made ready for one part.
type pass struct {
	ramp, perByte, perFLOP, inverse, chunk float64
}

func newPass(c PassCurve, g part) pass {
	return pass{c.RampMicroseconds * 1e-6, 1 / (g.bandwidth * c.Memory), 1 / (g.bf16 * c.Compute), 1 / g.bf16, c.Chunk}
}

// Scan prices the core of one recurrent layer. A decode step reads and writes
// the state of every sequence; a prefill works in chunks, each a handful of
// small batched products: queries with keys and scores with values inside the
// chunk, queries with the state, keys with values into the state.
func (m *Model) Scan(s Scan) Estimate {
	if !(s.Sequences > 0) || !(s.Tokens > 0) {
		return Estimate{}
	}
	c := &m.pass[1]
	if s.Decode {
		c = &m.pass[0]
	}
	heads, kd, vd := float64(s.VHeads), float64(s.KDim), float64(s.VDim)
	tokens := s.Sequences * s.Tokens
	bytes := 2*s.Sequences*float64(s.StateBytes) + 2*tokens*(2*float64(s.KHeads)*kd+2*heads*vd)
	// Two multiply-adds per state element and token: into the state, out of it.
	flops := 4 * tokens * heads * kd * vd
	work := flops + 2*tokens*heads*c.chunk*(2*kd+2*vd)
	memory, arithmetic := bytes*c.perByte, work*c.perFLOP
	return m.estimate(c.ramp+larger(memory, arithmetic), bytes, flops, c.inverse, c.ramp, memory, arithmetic)
}

// Stream prices a pass that reads and writes memory: norm, activation, cast,
// permutation, embedding, sampling.
func (m *Model) Stream(read, write units.Bytes) Estimate {
	bytes := float64(read + write)
	if !(bytes > 0) {
		return Estimate{}
	}
	c := &m.pass[2]
	memory := bytes * c.perByte
	return m.estimate(c.ramp+memory, bytes, 0, c.inverse, c.ramp, memory, 0)
}
