package collective

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"infera/internal/units"
	"infera/sim/hardware"
)

// Options are the knobs of a [Model]. The zero value takes everything from the
// table.
type Options struct {
	// Algorithm of all-reduces: auto (or ""), ring, one_shot, two_shot,
	// hierarchical. A forced algorithm never beats auto.
	Algorithm string
	// A2AAlgorithm of all-to-alls that cross domains: auto (or ""), direct,
	// single_shot, hierarchical.
	A2AAlgorithm string
	// AllReduceFloor and AllToAllFloor replace the measured fixed time of a
	// call (INFERASIM_INFER_AR_FLOOR_US, INFERASIM_INFER_A2A_FLOOR_US).
	AllReduceFloor, AllToAllFloor *units.Seconds
	// CustomAllReduceMax is the largest message the engine gives to its own
	// all-reduce (INFERASIM_CUSTOM_AR_MAX_MB); AllToAllMeasuredMax the largest
	// that the measured all-to-all is used for (INFERASIM_A2A_MEASURED_MAX_MB).
	CustomAllReduceMax, AllToAllMeasuredMax *units.Bytes
	// QuickReduce lets quantised all-reduces be used where they are faster, with
	// QuickReduceFormat (fp16, int8, int6, int4; "" = int4) on the wire.
	QuickReduce       bool
	QuickReduceFormat string
	// FusedNorm prices the all-reduce kernel that also does the residual add and
	// the norm. The factor stands for the norm it saves: leave the norm in the
	// list of operations.
	FusedNorm bool
	// AllReduceEfficiency and AllToAllEfficiency divide the time: 0.8 means 80 %
	// of the modelled speed. 0 means 1.
	AllReduceEfficiency, AllToAllEfficiency float64
	// Eager prices calls outside a captured graph.
	Eager bool
	// HiddenFraction is the share of dispatch and combine that runs behind
	// expert computation, in [0, 1]; see [Model.Dispatch].
	HiddenFraction float64
}

// Estimate is the price of one collective.
type Estimate struct {
	Time units.Seconds
	// Lower is the time of the bytes on the wire at the full rate of the links.
	Lower units.Seconds
	// Bytes is what one rank sends.
	Bytes units.Bytes
	// Measured reports that this implementation was measured on this part with
	// this group size and a message of about this size.
	Measured bool
	// Spread is the relative uncertainty of Time: the standard deviation of
	// ln(measured/fitted), widened outside the measured range.
	Spread         float64
	Implementation string
}

// Model prices collectives on one fabric. It is immutable: its methods do not
// allocate and may be called from several goroutines.
type Model struct {
	table  *Table
	wiring Wiring
	fabric hardware.Fabric
	opt    Options

	custom, quick, reduce      curve // all-reduce; im == nil when absent
	gather, scatter            curve
	expert, exchange, transfer curve
	customMax, exchangeMax     float64
	spread                     float64
}

var (
	algorithms    = []string{"auto", "ring", "one_shot", "two_shot", "hierarchical"}
	a2aAlgorithms = []string{"auto", "direct", "single_shot", "hierarchical"}
)

// defaultQuantisation is the format vLLM and SGLang users pick for quick-reduce
// when they want its speed.
const defaultQuantisation = "int4"

// New returns the model of gpu in fabric. It fails on an unknown algorithm or
// quantisation, on values that are not numbers in their range, and on a fabric
// without links.
func New(gpu *hardware.GPU, fabric *hardware.Fabric, table *Table, opt Options) (*Model, error) {
	if gpu == nil || fabric == nil || table == nil {
		return nil, errors.New("collective model: a GPU, a fabric and a table are all needed")
	}
	m := &Model{table: table, fabric: *fabric, opt: opt}
	m.wiring = Wiring{Topology: fabric.Topology, Domain: max(1, fabric.DomainSize), ScaleUp: fabric.ScaleUp}
	if m.wiring.ScaleUp <= 0 {
		m.wiring.ScaleUp = gpu.ScaleUp
	}
	if err := m.checkFabric(); err != nil {
		return nil, fmt.Errorf("collective model of %s in fabric %s: %w", gpu.Name, fabric.Name, err)
	}
	if err := opt.check(table); err != nil {
		return nil, fmt.Errorf("collective options: %w", err)
	}
	m.customMax, m.exchangeMax = float64(table.CustomMax), float64(table.ExchangeMax)
	if opt.CustomAllReduceMax != nil {
		m.customMax = float64(*opt.CustomAllReduceMax)
	}
	if opt.AllToAllMeasuredMax != nil {
		m.exchangeMax = float64(*opt.AllToAllMeasuredMax)
	}
	m.bind()
	return m, nil
}

func (m *Model) checkFabric() error {
	f := &m.fabric
	if m.wiring.Domain > 1 {
		if m.wiring.ScaleUp <= 0 || !within(0, 1e16, float64(m.wiring.ScaleUp)) {
			return errors.New("no scale-up bandwidth")
		}
		if f.LinkEfficiency <= 0 || !within(0, 1, f.LinkEfficiency) {
			return fmt.Errorf("link efficiency is %g; want a share in (0, 1]", f.LinkEfficiency)
		}
	} else if m.wiring.ScaleUp <= 0 {
		m.wiring.ScaleUp = f.NIC // never used inside a domain of one
	}
	if f.NICs > 0 && (f.NIC <= 0 || f.NICEfficiency <= 0 || !within(0, 1, f.NICEfficiency) || !within(0, 1e16, float64(f.NIC))) {
		return errors.New("the NICs need a bandwidth and an efficiency in (0, 1]")
	}
	if !within(0, 1, float64(f.NICLatency), float64(f.HopLatency)) {
		return errors.New("latencies must be between 0 and 1 s")
	}
	return nil
}

func (o *Options) check(t *Table) error {
	if o.Algorithm != "" && !slices.Contains(algorithms, o.Algorithm) {
		return unknown("all-reduce algorithm", o.Algorithm, algorithms)
	}
	if o.A2AAlgorithm != "" && !slices.Contains(a2aAlgorithms, o.A2AAlgorithm) {
		return unknown("all-to-all algorithm", o.A2AAlgorithm, a2aAlgorithms)
	}
	if q := o.QuickReduceFormat; q != "" && !slices.Contains(t.quantisations(), q) {
		return unknown("quick-reduce format", q, t.quantisations())
	}
	if o.QuickReduce && len(t.quantisations()) == 0 {
		return fmt.Errorf("quick-reduce is not available on %s", t.Name)
	}
	if !within(0, 100, o.AllReduceEfficiency, o.AllToAllEfficiency) {
		return errors.New("efficiencies must be 0 (default) or more")
	}
	if !within(0, 1, o.HiddenFraction) {
		return fmt.Errorf("hidden fraction is %g; want a share in [0, 1]", o.HiddenFraction)
	}
	for _, f := range []*units.Seconds{o.AllReduceFloor, o.AllToAllFloor} {
		if f != nil && !within(0, 1, float64(*f)) {
			return fmt.Errorf("floor is %g s; want 0 to 1 s", float64(*f))
		}
	}
	for _, b := range []*units.Bytes{o.CustomAllReduceMax, o.AllToAllMeasuredMax} {
		if b != nil && !within(0, 1e15, float64(*b)) {
			return fmt.Errorf("size limit is %g bytes; want 0 or more", float64(*b))
		}
	}
	return nil
}

// bind resolves the implementations once, so that pricing only evaluates them.
func (m *Model) bind() {
	curveOf := func(op Operation, family Family, quantisation string, floor *units.Seconds) curve {
		c := curve{
			im: m.table.find(op, family, quantisation), from: m.table.Measured, to: m.wiring,
			derived: m.table.DerivedFrom != "", eager: m.opt.Eager, fixed: -1,
		}
		if floor != nil {
			c.fixed = float64(*floor)
		}
		return c
	}
	ar, a2a := m.opt.AllReduceFloor, m.opt.AllToAllFloor
	m.custom = curveOf(AllReduce, Custom, "", ar)
	m.reduce = curveOf(AllReduce, Library, "", ar)
	m.gather = curveOf(AllGather, Library, "", nil)
	m.scatter = curveOf(ReduceScatter, Library, "", nil)
	m.expert = curveOf(AllToAll, Expert, "", a2a)
	m.exchange = curveOf(AllToAll, Library, "", a2a)
	m.transfer = curveOf(SendReceive, Library, "", nil)
	if m.opt.QuickReduce {
		q := m.opt.QuickReduceFormat
		if q == "" {
			q = defaultQuantisation
		}
		m.quick = curveOf(AllReduce, QuickReduce, q, ar)
	}
	first := &m.reduce
	if m.custom.im != nil {
		first = &m.custom
	}
	for _, f := range first.im.Fits {
		m.spread = max(m.spread, f.Spread)
	}
	if first.derived {
		m.spread += derivedSpread
	}
}

// Spread returns the relative spread of the everyday all-reduce of this model:
// the widest residual over the measured group sizes, widened when the table
// comes from a relative. An Estimate carries its own.
func (m *Model) Spread() float64 { return m.spread }

// AllReduce prices summing a message over ranks GPUs, each of which holds the
// whole message before and after.
func (m *Model) AllReduce(ranks int, message units.Bytes) Estimate {
	b, ok := m.trivial(ranks, message)
	if !ok {
		return Estimate{}
	}
	var p point
	share := 1.0
	if m.crosses(ranks) {
		p = m.across(AllReduce, ranks, b)
	} else {
		p, share = m.allReduceInside(ranks, b)
	}
	if m.opt.FusedNorm {
		p.time *= m.table.FusedNorm
	}
	return m.estimate(AllReduce, ranks, b*share, p, m.opt.AllReduceEfficiency)
}

// allReduceInside also returns the share of the message's bytes that travels.
func (m *Model) allReduceInside(ranks int, b float64) (point, float64) {
	share := 1.0
	var p point
	switch {
	case m.custom.im == nil || m.customMax <= 0:
		p = m.reduce.at(ranks, b)
	case b <= m.customMax:
		p = m.custom.at(ranks, b)
	default:
		p = approach(m.custom.at(ranks, m.customMax), m.reduce.at(ranks, b), m.customMax, b)
	}
	if m.quick.im != nil {
		if q := m.quick.at(ranks, b); q.time < p.time {
			p, share = q, m.quick.im.WireShare
		}
	}
	if forced, ok := m.forced(ranks, b); ok && forced.time > p.time {
		return forced, 1
	}
	return p, share
}

// forced returns the price of the algorithm the options name.
func (m *Model) forced(ranks int, b float64) (point, bool) {
	g, rate := float64(ranks), m.wiring.bandwidth(ranks)*m.fabric.LinkEfficiency
	own := &m.custom
	if own.im == nil {
		own = &m.reduce
	}
	var p point
	switch m.opt.Algorithm {
	case "ring":
		return m.reduce.at(ranks, b), true
	case "one_shot": // each rank reads the whole message of every peer
		p = own.at(ranks, 0)
		p.time += b * (g - 1) / rate
		p.name = "one-shot, from the links"
	case "two_shot": // reduce-scatter, then all-gather
		p = own.at(ranks, 0)
		p.time += float64(m.fabric.HopLatency) + 2*b*(g-1)/g/rate
		p.name = "two-shot, from the links"
	case "hierarchical": // inside one domain the same as reduce-scatter and all-gather
		p = m.scatter.at(ranks, b)
		q := m.gather.at(ranks, b)
		p.time += q.time
		p.name = "reduce-scatter and all-gather"
	default:
		return point{}, false
	}
	p.measured = false
	p.spread += betweenSpread
	return p, true
}

// AllGather prices collecting equal parts from ranks GPUs on each of them;
// message is the gathered size.
func (m *Model) AllGather(ranks int, message units.Bytes) Estimate {
	return m.plain(AllGather, &m.gather, ranks, message)
}

// ReduceScatter prices summing a message over ranks GPUs, each of which keeps
// one part of 1/ranks.
func (m *Model) ReduceScatter(ranks int, message units.Bytes) Estimate {
	return m.plain(ReduceScatter, &m.scatter, ranks, message)
}

func (m *Model) plain(op Operation, c *curve, ranks int, message units.Bytes) Estimate {
	b, ok := m.trivial(ranks, message)
	if !ok {
		return Estimate{}
	}
	if m.crosses(ranks) {
		return m.estimate(op, ranks, b, m.across(op, ranks, b), m.opt.AllReduceEfficiency)
	}
	return m.estimate(op, ranks, b, c.at(ranks, b), m.opt.AllReduceEfficiency)
}

// AllToAll prices an exchange in which each of ranks GPUs sends perRank bytes in
// total, an equal part to every rank including itself (that part stays).
func (m *Model) AllToAll(ranks int, perRank units.Bytes) Estimate {
	b, ok := m.trivial(ranks, perRank)
	if !ok {
		return Estimate{}
	}
	if m.crosses(ranks) {
		return m.estimate(AllToAll, ranks, b, m.across(AllToAll, ranks, b), m.opt.AllToAllEfficiency)
	}
	return m.estimate(AllToAll, ranks, b, m.exchangeInside(ranks, b), m.opt.AllToAllEfficiency)
}

func (m *Model) exchangeInside(ranks int, b float64) point {
	switch {
	case m.expert.im == nil || m.exchangeMax <= 0:
		return m.exchange.at(ranks, b)
	case b <= m.exchangeMax:
		return m.expert.at(ranks, b)
	}
	return approach(m.expert.at(ranks, m.exchangeMax), m.exchange.at(ranks, b), m.exchangeMax, b)
}

// PointToPoint prices sending a message from one GPU to another, of the same
// domain or of another over one NIC.
func (m *Model) PointToPoint(message units.Bytes, crossDomain bool) Estimate {
	b, ok := m.trivial(2, message)
	if !ok {
		return Estimate{}
	}
	if !crossDomain && m.wiring.Domain > 1 {
		return m.estimate(SendReceive, 2, b, m.transfer.at(2, b), 0)
	}
	p := m.transfer.at(2, 0)
	raw := b / float64(m.fabric.NIC)
	p.time += float64(m.fabric.NICLatency) + raw/m.fabric.NICEfficiency
	return Estimate{
		Time: seconds(p.time), Lower: seconds(raw), Bytes: message,
		Spread: p.spread + m.table.Network.Spread, Implementation: "one NIC",
	}
}

// trivial returns the message as a number, and false when it costs nothing.
func (m *Model) trivial(ranks int, message units.Bytes) (float64, bool) {
	b := float64(message)
	return min(b, math.MaxFloat64/1e30), ranks > 1 && b > 0
}

func (m *Model) crosses(ranks int) bool { return ranks > m.wiring.Domain }

// estimate closes a price: efficiency, and the lower bound of the links.
func (m *Model) estimate(op Operation, ranks int, b float64, p point, efficiency float64) Estimate {
	if efficiency > 0 {
		p.time /= efficiency
	}
	var lower, wire float64
	if m.crosses(ranks) {
		lower, wire = m.lowerAcross(op, ranks, b)
	} else {
		lower, wire = b*m.wiring.perByte(op, ranks), b*m.wiring.wireShare(op, ranks)
	}
	return Estimate{
		Time: seconds(max(p.time, lower)), Lower: seconds(lower), Bytes: units.Bytes(wire),
		Measured: p.measured, Spread: p.spread, Implementation: p.name,
	}
}
