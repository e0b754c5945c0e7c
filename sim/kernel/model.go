package kernel

import (
	"errors"
	"fmt"
	"math"

	"infera/internal/units"
	"infera/models"
	"infera/sim/hardware"
)

// rates of one operand type on the part.
type rates struct {
	bytes   float64 // per element
	perFLOP float64 // s per operation of one compute unit
	inverse float64 // s per operation of the part
}

// rateMask bounds the index into the rates without a check.
const rateMask = 15

// Model prices kernels on one part. It is immutable and safe for concurrent
// use; its methods do not allocate.
type Model struct {
	rates   [rateMask + 1]rates
	matrix  [rateMask + 1]matrix // by Family; the rest is unused
	prefill [2]prefill
	decode  [2]decode
	pass    [3]pass
	spread  [numFamilies]float64
	invBW   float64
	// gemms and moes are GEMMFamily and MoEFamily by formatKey: a look-up costs
	// less than the decision.
	gemms, moes [formatKeys]uint8
}

const formatKeys = (rateMask + 1) * (rateMask + 1) * 2

// formatKey packs what decides the family of a format.
func formatKey(w *models.Format) int {
	key := int(w.Activation&rateMask)<<5 | int(w.Element&rateMask)<<1
	if w.Group > 0 {
		key |= 1
	}
	return key
}

// part is what the curves are multiplied with.
type part struct {
	units, bandwidth, bf16 float64
}

// New binds curves to a part. The errors say which number of the part or which
// family of the curves is missing or out of range.
func New(gpu *hardware.GPU, curves *Curves) (*Model, error) {
	if gpu == nil || curves == nil {
		return nil, errors.New("kernel model: no GPU or no curves given")
	}
	if !(gpu.Bandwidth > 0) || !(gpu.Peaks.BF16 > 0) {
		return nil, fmt.Errorf("kernel model of %s: the profile states no HBM bandwidth or no bf16 peak", gpu.Name)
	}
	if err := curves.validate(); err != nil {
		return nil, err
	}
	// An announced part without a count takes that of the part it borrows from.
	count := gpu.ComputeUnits
	if count <= 0 {
		count = curves.ComputeUnits
	}
	g := part{float64(count), float64(gpu.Bandwidth), float64(gpu.Peaks.BF16)}
	m := &Model{invBW: 1 / g.bandwidth}
	for d := models.DTypeUnknown; d <= models.INT4; d++ {
		inverse := 1 / float64(gpu.Peak(d))
		if math.IsInf(inverse, 0) {
			inverse = 1 / g.bf16
		}
		m.rates[d] = rates{d.Bits() / 8, inverse * g.units, inverse}
	}
	for key := range formatKeys {
		w := models.Format{Activation: models.DType(key >> 5), Element: models.DType(key >> 1 & rateMask), Group: key & 1}
		m.gemms[key], m.moes[key] = uint8(GEMMFamily(w)), uint8(MoEFamily(w))
	}
	for i := range numMatrix {
		m.matrix[i] = newMatrix(curves.Matrix[familyNames[i]], g)
	}
	for i := range m.prefill {
		m.prefill[i] = newPrefill(curves.Prefill[familyNames[AttentionPrefillCore+Family(i)]], g)
	}
	for i := range m.decode {
		m.decode[i] = newDecode(curves.Decode[familyNames[AttentionDecodeCore+Family(i)]], g)
	}
	for i := range m.pass {
		m.pass[i] = newPass(curves.Pass[familyNames[RecurrentDecode+Family(i)]], g)
	}
	for f := range numFamilies {
		s := curves.Residual(f).Spread
		if curves.StandIn {
			s = math.Hypot(s, curves.StandInSpread)
		}
		m.spread[f] = s
	}
	return m, nil
}

// Spread returns the log-standard deviation of the calibration residuals of f,
// widened when the curves are of another part.
func (m *Model) Spread(f Family) float64 {
	if f < numFamilies {
		return m.spread[f]
	}
	return 0
}

// usefulShare is the share of useful operations below which arithmetic is latency:
// padded tiles of one row, a serial K loop.
const usefulShare = 0.1

// estimate closes an operation: the lower bound holds whatever the curves say.
func (m *Model) estimate(t, bytes, flops, perFLOP, ramp, memory, arithmetic float64) Estimate {
	lower := larger(bytes*m.invBW, flops*perFLOP)
	bound := BoundHBM
	switch {
	case ramp > memory && ramp > arithmetic:
		bound = BoundLaunch
	case arithmetic > memory && flops*perFLOP < usefulShare*arithmetic:
		bound = BoundLaunch
	case arithmetic > memory:
		bound = BoundCompute
	}
	return Estimate{
		Time: units.Seconds(larger(t, lower)), Lower: units.Seconds(lower),
		Bytes: units.Bytes(bytes), FLOPs: units.FLOPs(flops), Bound: bound,
	}
}

// Residual returns what the calibration of f left; without rows it was not
// fitted.
func (c *Curves) Residual(f Family) Residual {
	name := f.String()
	switch {
	case int(f) < numMatrix:
		return c.Matrix[name].Residual
	case f <= AttentionPrefillMLA:
		return c.Prefill[name].Residual
	case f <= AttentionDecodeMLA:
		return c.Decode[name].Residual
	}
	return c.Pass[name].Residual
}
