package calibrate

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"infera/sim/kernel"
)

// knob is one number of a curve in the coordinate that the simplex moves: the
// logarithm, or the logit between the bounds of a share.
type knob struct {
	key      string
	lo, hi   float64 // hi = 0: any positive number
	value    *float64
	writable func()
}

func (k knob) get() float64 {
	v := *k.value
	if k.hi == 0 {
		return math.Log(math.Max(v-k.lo, 1e-3))
	}
	p := math.Min(math.Max((v-k.lo)/(k.hi-k.lo), 1e-3), 1-1e-3)
	return math.Log(p / (1 - p))
}

func (k knob) set(x float64) {
	if k.hi == 0 {
		*k.value = k.lo + math.Exp(math.Min(x, 12))
	} else {
		*k.value = k.lo + (k.hi-k.lo)/(1+math.Exp(-x))
	}
	k.writable()
}

// knobsOf lists the numbers of a curve that a fit may move. Each works on its own
// copy of the curve, which it stores back into curves.
func knobsOf(curves *kernel.Curves, family kernel.Family, free []string) []knob {
	name := family.String()
	var list []knob
	if c, ok := curves.Matrix[name]; ok {
		store := func() { curves.Matrix[name] = c }
		moe := family >= kernel.MoEBF16
		list = []knob{
			{"ramp_us", 0, 0, &c.RampMicroseconds, store},
			{"memory", 0, 0.92, &c.Memory, store},
			{"compute", 0, 0.95, &c.Compute, store},
			{"operand", 0, 0, &c.Operand, store},
			{"prologue", 0, 0, &c.Prologue, store},
			{"split", 1, 0, &c.Split, store},
			{"serial_ns", 0, 0, &c.SerialNanoseconds, store},
			{"wave", 0, 1, &c.Wave, store},
			{"overlap", 0, 1, &c.Overlap, store},
		}
		if moe {
			list = append(list, knob{"scatter", 0, 2, &c.Scatter, store})
		} else {
			list = append(list, knob{"reduce_ps", 0, 0, &c.ReducePicoseconds, store})
		}
	}
	if c, ok := curves.Prefill[name]; ok {
		store := func() { curves.Prefill[name] = c }
		list = []knob{
			{"ramp_us", 0, 0, &c.RampMicroseconds, store},
			{"memory", 0, 0.95, &c.Memory, store},
			{"compute", 0, 0.98, &c.Compute, store},
			{"softmax", 0, 0, &c.Softmax, store},
			{"tail", 0, 1, &c.Tail, store},
			{"prologue", 0, 0, &c.Prologue, store},
			{"overlap", 0, 1, &c.Overlap, store},
			{"cached", 1, 0, &c.Cached, store},
			{"narrow", 0.5, 2, &c.Narrow, store},
			{"narrow_ramp_us", 0, 0, &c.NarrowRampMicroseconds, store},
		}
	}
	if c, ok := curves.Decode[name]; ok {
		store := func() { curves.Decode[name] = c }
		list = []knob{
			{"ramp_us", 0, 0, &c.RampMicroseconds, store},
			{"memory", 0, 0.97, &c.Memory, store},
			{"cast_ps", 0, 0, &c.CastPicoseconds, store},
			{"narrow_ramp_us", 0, 0, &c.NarrowRampMicroseconds, store},
			{"compute", 0, 0.98, &c.Compute, store},
			{"item_ns", 0, 0, &c.ItemNanoseconds, store},
			{"serial_ns", 0, 0, &c.SerialNanoseconds, store},
			{"split", 1, 0, &c.Split, store},
			{"overlap", 0, 1, &c.Overlap, store},
		}
	}
	if free != nil {
		list = slices.DeleteFunc(list, func(k knob) bool { return !slices.Contains(free, k.key) })
	}
	return list
}

// clone copies the curves so deep that a fit can write to them.
func clone(c *kernel.Curves) *kernel.Curves {
	d := *c
	d.Matrix, d.Prefill, d.Decode, d.Pass = maps.Clone(c.Matrix), maps.Clone(c.Prefill), maps.Clone(c.Decode), maps.Clone(c.Pass)
	return &d
}

// digits rounds to three significant digits: what is shipped is what was judged.
func digits(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		return v
	}
	return r
}

func round(c *kernel.Curves, family kernel.Family) *kernel.Curves {
	for _, k := range knobsOf(c, family, nil) {
		*k.value = digits(*k.value)
		k.writable()
	}
	return c
}

func setResidual(c *kernel.Curves, family kernel.Family, r kernel.Residual) {
	name := family.String()
	if v, ok := c.Matrix[name]; ok {
		v.Residual = r
		c.Matrix[name] = v
	}
	if v, ok := c.Prefill[name]; ok {
		v.Residual = r
		c.Prefill[name] = v
	}
	if v, ok := c.Decode[name]; ok {
		v.Residual = r
		c.Decode[name] = v
	}
}
