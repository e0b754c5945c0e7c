package cluster

import (
	"cmp"
	"math"
	"slices"

	"infera/sim/metrics"
)

// PoolRuns makes a result stand for several runs that differ in their seeds: its
// total holds the means over the runs, with intervals from how they differ, and
// says saturated when most of them are. The rest stays that of the result.
func PoolRuns(into *Result, runs []*Result) {
	n := float64(len(runs))
	t := into.Total
	mean := func(of func(*Stats) *float64) {
		sum := 0.0
		for _, r := range runs {
			sum += *of(&r.Total)
		}
		*of(&t) = sum / n
	}
	for _, of := range []func(*Stats) *float64{
		func(s *Stats) *float64 { return &s.OfferedRate }, func(s *Stats) *float64 { return &s.AchievedRate },
		func(s *Stats) *float64 { return &s.Utilization }, func(s *Stats) *float64 { return &s.OutputRate },
		func(s *Stats) *float64 { return &s.TotalRate }, func(s *Stats) *float64 { return &s.PerGPU },
		func(s *Stats) *float64 { return &s.Goodput }, func(s *Stats) *float64 { return &s.Attainment },
	} {
		mean(of)
	}
	for _, of := range []func(*Stats) *metrics.Summary{
		func(s *Stats) *metrics.Summary { return &s.TTFT }, func(s *Stats) *metrics.Summary { return &s.TTFTFromAdmission },
		func(s *Stats) *metrics.Summary { return &s.Queue }, func(s *Stats) *metrics.Summary { return &s.TPOT },
		func(s *Stats) *metrics.Summary { return &s.ITL }, func(s *Stats) *metrics.Summary { return &s.E2E },
	} {
		all := make([]metrics.Summary, len(runs))
		pooled := metrics.Summary{Min: math.Inf(1), Max: math.Inf(-1)}
		for i, r := range runs {
			all[i] = *of(&r.Total)
			pooled.Count += all[i].Count
			pooled.Min, pooled.Max = min(pooled.Min, all[i].Min), max(pooled.Max, all[i].Max)
			pooled.P50 += all[i].P50 / n
			pooled.P90 += all[i].P90 / n
			pooled.P95 += all[i].P95 / n
			pooled.P99 += all[i].P99 / n
			pooled.P999 += all[i].P999 / n
		}
		*of(&t) = metrics.Pool(all, pooled)
	}
	saturated := 0
	for _, r := range runs {
		if r.Total.Saturated {
			saturated++
		}
	}
	t.Saturated = 2*saturated > len(runs)
	into.Total, into.Seeds = t, len(runs)
}

// SetCurve adds a load sweep to a result, in order of rate.
func (r *Result) SetCurve(points []CurvePoint, knee float64) {
	slices.SortFunc(points, func(a, b CurvePoint) int { return cmp.Compare(a.Rate, b.Rate) })
	r.Curve, r.Knee = points, knee
}
