package main

import (
	"fmt"
	"maps"
	"slices"

	"infera/sim/accuracy"
	"infera/sim/planner"
	"infera/sim/report"
)

// tally collects scored points by group.
type tally struct {
	columns []string
	read    int
	scored  int
	skipped map[string]int
	doubts  map[string]int
	overall pairs
	groups  map[string]*pairs
}

// pairs are the points of one group, by quantity.
type pairs struct {
	key               report.Fields
	n                 int
	tpot, ttft, total []accuracy.Pair
}

func newTally(columns []string) *tally {
	return &tally{columns: columns, skipped: map[string]int{}, doubts: map[string]int{}, groups: map[string]*pairs{}}
}

func (t *tally) add(p *accuracy.Point, s planner.Scored, err error) {
	t.read++
	if err != nil {
		t.skipped[err.Error()]++
		return
	}
	t.scored++
	if s.Doubt != "" {
		t.doubts[s.Doubt]++
	}
	t.overall.add(s)
	if len(t.columns) == 0 {
		return
	}
	var key report.Fields
	for _, c := range t.columns {
		v, _ := p.Key(c)
		key.Set(c, v)
	}
	id := fmt.Sprint(key)
	g := t.groups[id]
	if g == nil {
		g = &pairs{key: key}
		t.groups[id] = g
	}
	g.add(s)
}

func (g *pairs) add(s planner.Scored) {
	g.n++
	for _, q := range []struct {
		to   *[]accuracy.Pair
		pair accuracy.Pair
	}{{&g.tpot, s.TPOT}, {&g.ttft, s.TTFT}, {&g.total, s.TotalPerGPU}} {
		if q.pair.Measured > 0 {
			*q.to = append(*q.to, q.pair)
		}
	}
}

func (g *pairs) report() report.Group {
	return report.Group{Key: g.key, N: g.n, TPOT: scoreOf(g.tpot), TTFT: scoreOf(g.ttft), TotalTokSPerGPU: scoreOf(g.total)}
}

func scoreOf(p []accuracy.Pair) report.Accuracy {
	s := accuracy.Summarize(p)
	return report.Accuracy{
		MAPEPct: report.Number(s.MAPE), MedianAPEPct: report.Number(s.Median), P90APEPct: report.Number(s.P90),
		BiasPct: report.Number(s.Bias), Spearman: report.Number(s.Spearman), WithinBandPct: report.Number(s.WithinBand), N: s.N,
	}
}

// report sums up: groups by key, reasons by count.
func (t *tally) report() report.Validation {
	out := report.Validation{Rows: report.Rows{Read: t.read, Scored: t.scored}, Overall: t.overall.report()}
	for _, r := range byCount(t.skipped) {
		out.Rows.Skipped = append(out.Rows.Skipped, report.Skip{Reason: r, Count: t.skipped[r]})
	}
	for _, r := range byCount(t.doubts) {
		out.Warnings = append(out.Warnings, report.Warning{Code: "scored_in_doubt", Text: fmt.Sprintf("%d rows: %s; they ran, so they are scored", t.doubts[r], r)})
	}
	for _, id := range slices.Sorted(maps.Keys(t.groups)) {
		out.Groups = append(out.Groups, t.groups[id].report())
	}
	return out
}

// byCount lists the keys of counts, most frequent first.
func byCount(counts map[string]int) []string {
	keys := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(keys, func(a, b string) int { return counts[b] - counts[a] })
	return keys
}
