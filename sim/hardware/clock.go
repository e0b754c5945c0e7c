package hardware

import (
	"fmt"

	"infera/internal/units"
)

// WithClock returns a copy of g whose arithmetic peaks are those at the engine
// clock c. Memory and links keep their rates: they have clocks of their own. A
// clock outside (0, 10 GHz], or a profile without a clock, is an error.
func (g *GPU) WithClock(c units.Hertz) (*GPU, error) {
	if !(c > 0 && c <= 10e9) {
		return nil, fmt.Errorf("%w: clock %g Hz of %s is not between 0 and 10 GHz", ErrInvalid, float64(c), g.Name)
	}
	if !(g.Clock > 0) {
		return nil, fmt.Errorf("%w: the profile of %s states no clock to scale from", ErrIncomplete, g.Name)
	}
	out := *g
	scale := units.FLOPsPerSecond(c / g.Clock)
	out.Clock = c
	p := &out.Peaks
	for _, rate := range []*units.FLOPsPerSecond{&p.FP32, &p.BF16, &p.FP16, &p.FP8, &p.FP6, &p.FP4, &p.INT8, &out.VectorFP32} {
		*rate *= scale
	}
	return &out, nil
}
