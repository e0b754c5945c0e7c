package kernel

import (
	"math"

	"infera/models"
)

// tileShapes are the workgroup tiles (rows x columns) that the tuned libraries
// choose from. Small-row tiles serve decode.
var tileShapes = [...][2]float64{
	{16, 64}, {32, 64}, {64, 64}, {64, 128}, {128, 128}, {128, 256}, {256, 256},
}

const numTiles = len(tileShapes)

// stepWidth is the share of a tile (or wave) over which a started one comes to
// cost a full one. One more row than fits must not jump: callers pass expected
// counts, and libraries change the tile around the edge.
const stepWidth = 0.25

// stepUp is a continuous ceil: 1 up to y = 1, then each next whole step is
// reached after stepWidth of it. stepUp(y) >= max(1, y), non-decreasing.
func stepUp(y float64) float64 {
	if y <= 1 {
		return 1
	}
	if y > 1<<40 {
		return y
	}
	n := float64(int64(y))
	if f := (y - n) * (1 / stepWidth); f < 1 {
		return n + f
	}
	return n + 1
}

// larger and smaller are max and min without the care for NaN and signed zeros,
// which costs more than the rest of a price.
func larger(a, b float64) float64 {
	if a > b {
		return a
	}
	return b
}

func smaller(a, b float64) float64 {
	if a < b {
		return a
	}
	return b
}

type tile struct {
	invRows, invCols float64
	// cost is the matrix operations that one unit of K takes in this tile,
	// inflated by the achievable share of the peak.
	cost float64
	// perOutput is cost per output element, perColumn per output column: what a
	// product without any padding, and one of a single row of tiles, cost at
	// least.
	perOutput, perColumn float64
	// reduce is the seconds a compute unit takes to add one more partial tile.
	reduce float64
}

// matrix is a [MatrixCurve] made ready for one part.
type matrix struct {
	ramp      float64 // s
	perByte   float64 // s at the achievable bandwidth
	prologue  float64 // in units of K
	split     float64 // most workgroups that share one K
	invSplit  float64
	serial    float64 // s per K a workgroup takes at least
	wave      float64 // share of the wave quantisation that is felt
	overlap   float64 // share of the smaller of the two costs that is felt
	scatter   float64
	imbalance float64
	invCU     float64
	tiles     [numTiles + 1]tile // one more, so that an index of three bits needs no check
}

func newMatrix(c MatrixCurve, g part) matrix {
	m := matrix{
		ramp: c.RampMicroseconds * 1e-6, perByte: 1 / (g.bandwidth * c.Memory),
		prologue: c.Prologue, split: c.Split, serial: c.SerialNanoseconds * 1e-9,
		wave: c.Wave, overlap: c.Overlap, scatter: c.Scatter, imbalance: c.Imbalance,
		invCU: 1 / g.units,
	}
	for i, s := range tileShapes {
		a, b := s[0], s[1]
		// A tile reads a+b operand columns for a*b multiply-adds.
		share := c.Compute * (1 + c.Operand/256) / (1 + c.Operand*(a+b)/(2*a*b))
		m.tiles[i] = tile{1 / a, 1 / b, 2 * a * b / share, 2 / share, 2 * a / share, a * b * c.ReducePicoseconds * 1e-12}
	}
	m.invSplit = 1 / m.split
	return m
}

// trial is the order in which tiles are tried: those that usually win with about
// 16, 64 and many rows first. The order does not change the price, only how soon
// the others are out of the race.
var trial = [3][numTiles]uint8{
	{0, 1, 2, 3, 4, 5, 6},
	{2, 3, 1, 0, 4, 5, 6},
	{6, 5, 4, 3, 2, 1, 0},
}

func order(rows float64) *[numTiles]uint8 {
	switch {
	case rows <= 24:
		return &trial[0]
	case rows <= 160:
		return &trial[1]
	}
	return &trial[2]
}

// dense returns the seconds of the arithmetic of one product in the best tile,
// where perFLOP is the seconds one compute unit takes per operation at its
// data-sheet rate.
func (c *matrix) dense(rows, n, k, perFLOP float64) float64 {
	best := math.Inf(1)
	column := n * c.invCU * k * perFLOP
	output := rows * column
	part := (k*c.invSplit + c.prologue) * perFLOP
	for _, i := range order(rows) {
		t := &c.tiles[i&7]
		if output*t.perOutput >= best || column*t.perColumn >= best || part*t.cost >= best {
			continue // not even perfectly filled is it faster
		}
		x := stepUp(rows*t.invRows) * stepUp(n*t.invCols) * c.invCU // waves
		perK := t.cost * perFLOP
		v := c.prologue * perK
		if x < 1 {
			v += c.shared(k*larger(perK, c.serial), x, t.reduce*x)
		} else {
			w := x + c.wave*(stepUp(x)-x)
			v = v*w + k*larger(w*perK, c.serial)
		}
		if v < best {
			best = v
		}
	}
	return best
}

// shared returns the seconds of a tile whose K, worth all seconds in one
// workgroup, is shared by s of them, where x < 1 is the part that one tile each
// would fill and reduce what one more partial sum costs. all/s + reduce (s-1) is
// least at s = sqrt(all/reduce); s is at most 1/x, when all units are busy.
func (c *matrix) shared(all, x, reduce float64) float64 {
	s, inverse := c.split, c.invSplit
	if inverse < x {
		s, inverse = 1/x, x
	}
	switch {
	case all >= reduce*s*s:
		return all*inverse + reduce*(s-1)
	case all > reduce:
		return 2*math.Sqrt(all*reduce) - reduce
	}
	return all
}

// grouped is [matrix.dense] for groups products of mean rows each, whose row
// counts vary as independent routing makes them.
func (c *matrix) grouped(mean, groups, n, k, perFLOP float64) float64 {
	best := math.Inf(1)
	wide := groups * c.invCU
	column := n * wide * k * perFLOP
	output := mean * column
	part := (k*c.invSplit + c.prologue) * perFLOP
	for _, i := range order(mean) {
		t := &c.tiles[i&7]
		if output*t.perOutput >= best || column*t.perColumn >= best || part*t.cost >= best {
			continue
		}
		// The expected ceil of a random count around y is near y + 1/2 for
		// large y; a group known to be touched takes at least one tile.
		y := mean * t.invRows
		x := wide * (1 + y*y/(y+0.5)) * stepUp(n*t.invCols)
		perK := t.cost * perFLOP
		v := c.prologue * perK
		if x < 1 {
			v += k * larger(perK, c.serial) * larger(x, c.invSplit)
		} else {
			w := x + c.wave*(stepUp(x)-x)
			v = v*w + k*larger(w*perK, c.serial)
		}
		if v < best {
			best = v
		}
	}
	return best
}

// combine adds up a kernel: its ramp, the larger of memory and arithmetic, and
// the felt part of the smaller.
func combine(ramp, overlap, memory, arithmetic float64) float64 {
	if memory > arithmetic {
		return ramp + memory + overlap*arithmetic
	}
	return ramp + arithmetic + overlap*memory
}

// GEMM prices activations [rows, k] times weights [n, k] with the output in
// bf16. Weight bytes include scales; activations are read in the format's
// activation type.
func (m *Model) GEMM(rows float64, n, k int, w models.Format) Estimate {
	if !(rows > 0) || n <= 0 || k <= 0 {
		return Estimate{}
	}
	c := &m.matrix[m.gemms[formatKey(&w)]&rateMask]
	r := &m.rates[w.Activation&rateMask]
	nn, kk := float64(n), float64(k)
	bytes := nn*kk*w.BitsPerElement()*0.125 + rows*(kk*r.bytes+2*nn)
	memory := bytes * c.perByte
	arithmetic := c.dense(rows, nn, kk, r.perFLOP)
	t := combine(c.ramp, c.overlap, memory, arithmetic)
	return m.estimate(t, bytes, 2*rows*nn*kk, r.inverse, c.ramp, memory, arithmetic)
}

// GroupedGEMM prices one product per expert in one kernel: Rows activations in
// the activation type, outputs in bf16.
func (m *Model) GroupedGEMM(g Grouped) Estimate {
	if !(g.Rows > 0) || !(g.Active > 0) || g.N <= 0 || g.K <= 0 {
		return Estimate{}
	}
	c := &m.matrix[m.moes[formatKey(&g.Weights)]&rateMask]
	r := &m.rates[g.Weights.Activation&rateMask]
	n, k := float64(g.N), float64(g.K)
	bytes := g.Active*n*k*g.Weights.BitsPerElement()*0.125 + g.Rows*(k*r.bytes+2*n)
	memory := bytes * c.perByte
	// The ramp of the curve is of two stages.
	arithmetic := c.grouped(g.Rows/g.Active, g.Active, n, k, r.perFLOP) * c.imbalanced(g.Busiest)
	t := combine(c.ramp, c.overlap, memory, arithmetic)
	return m.estimate(t, bytes, 2*g.Rows*n*k, r.inverse, c.ramp, memory, arithmetic)
}

func (c *matrix) imbalanced(busiest float64) float64 {
	return 1 + c.imbalance*larger(0, busiest-1)
}

// FusedMoE prices both stages of the expert network: [Rows, Hidden] x
// [2 Intermediate, Hidden] with the activation, then [Rows, Intermediate] x
// [Hidden, Intermediate] with the weighted sum per token. Sorting tokens by
// expert and casting activations are not included.
func (m *Model) FusedMoE(f FusedMoE) Estimate {
	if !(f.Rows > 0) || !(f.Active > 0) || f.Hidden <= 0 || f.Intermediate <= 0 {
		return Estimate{}
	}
	c := &m.matrix[m.moes[formatKey(&f.Weights)]&rateMask]
	r := &m.rates[f.Weights.Activation&rateMask]
	h, i := float64(f.Hidden), float64(f.Intermediate)
	up := i
	if f.Gated {
		up = 2 * i
	}
	perWeight := f.Active * h * f.Weights.BitsPerElement() * 0.125
	tokens := smaller(f.Tokens, f.Rows)
	first := perWeight*up + tokens*h*r.bytes + f.Rows*i*r.bytes
	second := perWeight*i + f.Rows*i*r.bytes + tokens*h*2
	// Each routed row's output is written before the sum over experts; part of
	// that stays in the caches.
	scattered := (f.Rows - tokens) * h * 2 * c.scatter
	m1, m2 := first*c.perByte, (second+scattered)*c.perByte
	mean := f.Rows / f.Active
	uneven := c.imbalanced(f.Busiest)
	a1 := c.grouped(mean, f.Active, up, h, r.perFLOP) * uneven
	a2 := c.grouped(mean, f.Active, h, i, r.perFLOP) * uneven
	t := combine(c.ramp, c.overlap, m1, a1) + combine(c.ramp, c.overlap, m2, a2)
	return m.estimate(t, first+second, 2*f.Rows*h*(up+i), r.inverse, 2*c.ramp, m1+m2, a1+a2)
}
