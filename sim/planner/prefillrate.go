package planner

import (
	"fmt"

	"infera/internal/units"
	"infera/sim/software"
	"infera/sim/step"
)

// PrefillRate is a measured cost of prompt tokens: between prompts of Low and of
// High tokens, each further token took PerToken. 0 = not measured.
type PrefillRate struct {
	PerToken  units.Seconds
	Low, High float64
}

// A measured rate further from the modelled one than this is taken for a
// mistake and followed to here only.
const (
	leastPrefillScale = 0.5
	mostPrefillScale  = 3
)

// priced returns the pricer at given efficiencies, those of prompts scaled to
// the request's measured rate.
func (p *Prepared) priced(e *software.Efficiency) *step.Analytic {
	if p.prefill == 0 {
		return p.pricer.SetEfficiency(e)
	}
	scaled := scalePrefill(*e, p.prefill)
	return p.pricer.SetEfficiency(&scaled)
}

// scalePrefill multiplies the kernels of prompts.
func scalePrefill(e software.Efficiency, factor float64) software.Efficiency {
	for _, family := range [][2]software.Coefficient{
		{software.GEMMPrefillBF16, software.GEMMPrefillINT4}, {software.MoEPrefillBF16, software.MoEPrefillINT4},
		{software.AttentionPrefillGQA, software.AttentionPrefillRecurrent},
	} {
		for c := family[0]; c <= family[1]; c++ {
			e.Values[c] *= factor
		}
	}
	return e
}

// matchPrefill finds the factor on the kernels of prompts that makes a token
// cost what was measured. What they have no part in, and lower bounds, may keep
// it from that; then a warning says how close it comes.
func (p *Prepared) matchPrefill(rate PrefillRate) {
	slope := func(factor float64) float64 {
		e := scalePrefill(p.on.efficiency, factor)
		a := p.pricer.SetEfficiency(&e)
		prompt := func(n float64) float64 {
			return float64(a.Price(step.Batch{Chunks: []step.Chunk{{Tokens: n, Final: 1}}}, nil).Latency)
		}
		return (prompt(rate.High) - prompt(rate.Low)) / (rate.High - rate.Low)
	}
	modelled := slope(1)
	want := modelled * min(mostPrefillScale, max(leastPrefillScale, float64(rate.PerToken)/modelled))
	low, high := 1.0/16, 16.0
	for range 40 {
		middle := (low + high) / 2
		if slope(middle) < want {
			low = middle
		} else {
			high = middle
		}
	}
	p.prefill = (low + high) / 2
	if got := slope(p.prefill); got < 0.95*float64(rate.PerToken) || got > 1.05*float64(rate.PerToken) {
		p.warnings = append(p.warnings, Warning{"prefill_rate", fmt.Sprintf(
			"a prompt token measured at %.3g us is priced at %.3g us (%.3g us without the measurement)", rate.PerToken.Microseconds(), got*1e6, modelled*1e6)})
	}
}
