package simulation

import (
	"slices"

	"infera/sim/metrics"
	"infera/sim/report"
	"infera/sim/report/page"
)

// block is a titled grid, shown as text and as HTML.
type block struct {
	title   string
	columns []page.Column
	cells   [][]string
}

// partColumn is one figure in the grids of instances, pools, classes and rates.
type partColumn struct {
	name string
	drop int // as in page.Column
	of   func(*Stats) report.Number
	text func(report.Number) string
}

// partColumns are the figures of a part of the fleet, in the order of a grid.
func partColumns() []partColumn {
	count, one, two := decimals(0), decimals(1), decimals(2)
	return []partColumn{
		{"done", 8, func(s *Stats) report.Number { return report.Number(s.Requests.Completed) }, count},
		{"util", 3, func(s *Stats) report.Number { return s.Utilization }, percent},
		{"TTFT p50", 9, func(s *Stats) report.Number { return s.TTFTMs.P50 }, two},
		{"TTFT p99", 0, func(s *Stats) report.Number { return s.TTFTMs.P99 }, two},
		{"TPOT p50", 10, func(s *Stats) report.Number { return s.TPOTMs.P50 }, two},
		{"TPOT p99", 0, func(s *Stats) report.Number { return s.TPOTMs.P99 }, two},
		{"E2E p50", 11, func(s *Stats) report.Number { return s.E2EMs.P50 }, two},
		{"output tok/s", 1, func(s *Stats) report.Number { return s.OutputTokS }, one},
		{"goodput/s", 12, func(s *Stats) report.Number { return s.GoodputReqS }, two},
		{"block hits", 13, func(s *Stats) report.Number { return s.Cache.BlockHitRate }, percent},
		{"KV peak", 14, func(s *Stats) report.Number { return s.Batch.KVUtilization }, percent},
		{"preempted", 15, func(s *Stats) report.Number { return report.Number(s.Batch.Preemptions) }, count},
	}
}

func decimals(n int) func(report.Number) string {
	return func(v report.Number) string { return page.Fixed(float64(v), n) }
}

func percent(v report.Number) string { return page.Share(float64(v), 1) }

// parts returns a grid with identity columns before the figures.
func parts(title string, identity []page.Column) block {
	b := block{title: title + " (latencies in ms)", columns: identity}
	for _, c := range partColumns() {
		b.columns = append(b.columns, page.Column{Name: c.name, Right: true, Drop: c.drop})
	}
	return b
}

// add appends the row of one part.
func (b *block) add(s *Stats, identity ...string) {
	for _, c := range partColumns() {
		identity = append(identity, c.text(c.of(s)))
	}
	b.cells = append(b.cells, identity)
}

// pools are the prefill and the decode side of a fleet.
func (r *Report) pools() block {
	b := parts("Pools", []page.Column{{Name: "role"}, {Name: "GPUs", Right: true, Drop: 7}})
	for i := range r.Pools {
		x := &r.Pools[i]
		b.add(&x.Stats, x.Role, page.Count(int64(x.GPUs)))
	}
	return b
}

// classes are the classes of requests with their share within objectives.
func (r *Report) classes() block {
	b := parts("Classes", []page.Column{{Name: "class", Flex: true}, {Name: "objectives", Flex: true, Drop: 6}, {Name: "within", Right: true}})
	for i := range r.Classes {
		x := &r.Classes[i]
		b.add(&x.Stats, x.Name, x.Objective.text(), percent(x.Attainment))
	}
	return b
}

// text lists the targets that are set.
func (o Objective) text() string {
	s := ""
	for _, t := range []struct {
		name  string
		value report.Number
	}{{"TTFT", o.TTFTMs}, {"TPOT", o.TPOTMs}, {"E2E", o.E2EMs}} {
		if !t.value.Finite() {
			continue
		}
		if s != "" {
			s += ", "
		}
		s += t.name + " " + t.value.Text() + " ms"
	}
	return page.OrDash(s)
}

// instances has a row per engine.
func (r *Report) instances() block {
	b := parts("Instances", []page.Column{
		{Name: "#", Right: true}, {Name: "role", Drop: 6}, {Name: "name", Flex: true, Drop: 4}, {Name: "GPUs", Right: true, Drop: 7},
	})
	for i := range r.Instances {
		x := &r.Instances[i]
		b.add(&x.Stats, page.Count(int64(x.Index)), x.Role, page.OrDash(x.Name), page.Count(int64(x.GPUs)))
	}
	return b
}

// spread has the least, the middle and the largest of every figure over the
// instances of each role, column by column.
func (r *Report) spread() block {
	b := parts("Instances, every column on its own", []page.Column{{Name: "role"}, {Name: "n", Right: true, Drop: 5}, {Name: ""}})
	var roles []string
	for _, x := range r.Instances {
		if !slices.Contains(roles, x.Role) {
			roles = append(roles, x.Role)
		}
	}
	for _, role := range roles {
		var members []*Stats
		for i := range r.Instances {
			if x := &r.Instances[i]; x.Role == role {
				members = append(members, &x.Stats)
			}
		}
		rows := [3][]string{}
		for i, name := range []string{"min", "median", "max"} {
			rows[i] = []string{role, page.Count(int64(len(members))), name}
		}
		for _, c := range partColumns() {
			for i, v := range threeOf(members, c.of) {
				rows[i] = append(rows[i], c.text(v))
			}
		}
		b.cells = append(b.cells, rows[:]...)
	}
	return b
}

// threeOf returns the least, the median and the largest of a figure; none when
// no part has it.
func threeOf(members []*Stats, of func(*Stats) report.Number) [3]report.Number {
	var v []float64
	for _, s := range members {
		if n := of(s); n.Finite() {
			v = append(v, float64(n))
		}
	}
	if len(v) == 0 {
		return [3]report.Number{report.None(), report.None(), report.None()}
	}
	slices.Sort(v)
	return [3]report.Number{report.Number(v[0]), report.Number(metrics.Quantile(v, 0.5)), report.Number(v[len(v)-1])}
}

// curve has a row per rate of the sweep.
func (r *Report) curve() block {
	b := parts("Load sweep", []page.Column{
		{Name: "req/s", Right: true}, {Name: "achieved", Right: true, Drop: 5}, {Name: "state", Drop: 2},
	})
	for i := range r.Curve {
		x := &r.Curve[i]
		state := ""
		switch {
		case x.Saturated:
			state = "saturated"
		case x.RateReqS == r.KneeReqS:
			state = "knee"
		}
		b.add(&x.Stats, page.Fixed(float64(x.RateReqS), 2), page.Fixed(float64(x.AchievedReqS), 2), state)
	}
	return b
}
