package moe

import (
	"errors"
	"fmt"
	"math"
)

// Options describe how tokens spread over experts. The zero value is a uniform,
// uncorrected, balanced router without replicas, with imbalance inside the
// roofline per view.
type Options struct {
	// Skew is the Zipf exponent of expert popularity, 0 = uniform
	// (INFERASIM_ZIPF_S, --moe-routing-skew).
	Skew float64
	// Coverage corrects the distinct count by measurement.
	Coverage Coverage
	// Balance is the load of the busiest rank over the mean that the recipe
	// states; 0 and 1 mean no systematic imbalance.
	Balance float64
	// Redundant is the number of redundant expert replicas (EPLB).
	Redundant int
	// OuterMultiplier charges the imbalance as a factor on the whole expert time
	// instead of on the rows of the busiest rank (INFERASIM_MOE_IMB_ROOFLINE=0).
	OuterMultiplier bool
	// SharedView gives a benchmarked view and its target the same imbalance
	// (INFERASIM_ORIGAMI_IMB_PERVIEW=0) instead of one each; see
	// [Routing.ViewImbalance].
	SharedView bool
}

// Routing is the router of one kind of MoE layer. Build it with [New].
type Routing struct {
	Options
	Experts, TopK int

	imbalance float64
	// logMiss is ln(1-topK/experts): a token misses a given expert.
	logMiss float64
	// knots tabulate the skewed distinct count at powers of 2^(1/knotsPerOctave).
	knots []float64
	// variance of one expert's popularity, for the load of a rank.
	variance float64
	top      float64 // popularity of the most popular expert
}

// The skewed distinct count is tabulated from 1 to 2^octaves tokens.
const (
	knotsPerOctave = 8
	octaves        = 17
)

const maxExperts = 1 << 16

// New returns the routing of a layer with experts experts of which every token
// takes topK. It fails on counts and shares out of range.
func New(experts, topK int, opt Options) (*Routing, error) {
	switch {
	case experts < 1 || experts > maxExperts:
		return nil, fmt.Errorf("moe routing: %d experts; want 1 to %d", experts, maxExperts)
	case topK < 1 || topK > experts:
		return nil, fmt.Errorf("moe routing: top-%d of %d experts; want 1 to %d", topK, experts, experts)
	case !(opt.Skew >= 0 && opt.Skew <= 10):
		return nil, fmt.Errorf("moe routing: skew %g; want a Zipf exponent of 0 to 10", opt.Skew)
	case !(opt.Balance >= 0 && opt.Balance <= float64(maxExperts)):
		return nil, fmt.Errorf("moe routing: load balance %g; want the busiest rank over the mean, 1 or more", opt.Balance)
	case opt.Redundant < 0 || opt.Redundant > maxExperts:
		return nil, errors.New("moe routing: redundant experts must be 0 or more")
	}
	r := &Routing{Options: opt, Experts: experts, TopK: topK, top: 1 / float64(experts)}
	r.logMiss = math.Log1p(-float64(topK) / float64(experts))
	r.imbalance = Imbalance(opt.Balance, experts, opt.Redundant)
	if opt.Skew > 0 && topK < experts {
		r.tabulate()
	}
	return r, nil
}

func (r *Routing) tabulate() {
	h, mean := harmonic(r.Experts, r.Skew), 1/float64(r.Experts)
	for i := range r.Experts {
		d := math.Pow(float64(i+1), -r.Skew)/h - mean
		r.variance += d * d * mean
	}
	r.top = 1 / h
	r.knots = make([]float64, octaves*knotsPerOctave+1)
	for i := range r.knots {
		r.knots[i] = DistinctZipf(r.Experts, r.TopK, math.Exp2(float64(i)/knotsPerOctave), r.Skew)
	}
}

// Active returns the expected number of different experts that tokens tokens
// touch over all ranks, coverage included.
func (r *Routing) Active(tokens float64) float64 {
	d := r.distinct(tokens)
	if r.Coverage.IsZero() {
		return d
	}
	return bound(d*r.Coverage.At(tokens), r.Experts, r.TopK, tokens)
}

func (r *Routing) distinct(tokens float64) float64 {
	if !(tokens > 1) {
		return Distinct(r.Experts, r.TopK, tokens)
	}
	if r.knots == nil {
		return -float64(r.Experts) * math.Expm1(tokens*r.logMiss)
	}
	x := math.Log2(tokens) * knotsPerOctave
	i := int(x)
	if i >= len(r.knots)-1 {
		return r.knots[len(r.knots)-1]
	}
	w := x - float64(i)
	return r.knots[i]*(1-w) + r.knots[i+1]*w
}

// ActiveOnRank returns the expected number of expert slots that are touched on
// one of ranks expert-parallel ranks, each of which holds an equal part of the
// experts and of the replicas. tokens counts the tokens of the whole group.
func (r *Routing) ActiveOnRank(tokens float64, ranks int) float64 {
	g := float64(max(1, min(ranks, r.Experts)))
	a := r.Active(tokens) / g
	if r.Redundant == 0 || ranks < 2 {
		return a
	}
	return min(a*r.replicaGrowth(tokens), (float64(r.Experts+r.Redundant))/g)
}

// replicaGrowth is how many more slots than experts are touched: a replicated
// expert splits its tokens over its copies, each of which is touched less often.
func (r *Routing) replicaGrowth(tokens float64) float64 {
	e, k, n := float64(r.Experts), float64(r.TopK), float64(r.Redundant)
	base := Distinct(r.Experts, r.TopK, tokens)
	if base <= 0 {
		return 1
	}
	hit := func(p float64) float64 { // P(touched) by a token choosing it with p
		if p >= 1 {
			return min(1, tokens)
		}
		if tokens <= 1 {
			return p * tokens
		}
		return -math.Expm1(tokens * math.Log1p(-p))
	}
	p := k / e
	if n <= e {
		return ((e-n)*hit(p) + 2*n*hit(p/2)) / base
	}
	copies := (e + n) / e
	return e * copies * hit(p/copies) / base
}

// RowsPerRank returns the mean number of token rows per rank.
func (r *Routing) RowsPerRank(tokens float64, ranks int) float64 {
	if !(tokens > 0) {
		return 0
	}
	return tokens * float64(r.TopK) / float64(max(1, ranks))
}

// RowsBusiestRank returns the expected number of token rows on the busiest of
// ranks ranks: the mean, plus the fluctuation of random routing and of popular
// experts placed at random, but at least the mean times the recipe's imbalance
// (unless that is charged as an outer multiplier). No rank gets more rows than
// its experts times the tokens.
//
// The expected maximum of g multinomial counts with mean m is close to
// m + z*sqrt(m) + (z*z-1)/6, z the expected maximum of g standard normals: the
// negative correlation of the counts cancels the factor (1-1/g) of their
// variance, and the last term is the skew of a Poisson count (Cornish and
// Fisher, 1938). Choosing without replacement scales the variance by
// (E-k)/(E-1).
func (r *Routing) RowsBusiestRank(tokens float64, ranks int) float64 {
	mean := r.RowsPerRank(tokens, ranks)
	if ranks < 2 || mean <= 0 {
		return mean
	}
	e, g := float64(r.Experts), float64(ranks)
	spread := mean * r.withoutReplacement()
	if r.variance > 0 && e > g {
		// A rank holds E/g experts drawn without replacement from all.
		shrink := e / (e + float64(r.Redundant))
		share := e / g * r.variance * (e - e/g) / (e - 1) * shrink * shrink
		picks := tokens * float64(r.TopK)
		spread += picks * picks * share
	}
	rows := busiest(mean, spread, r.withoutReplacement(), ranks)
	if !r.OuterMultiplier {
		rows = max(rows, mean*r.imbalance)
	}
	most := tokens * min(float64(r.TopK), max(1, e/g))
	return max(mean, min(rows, most))
}

// RowsBusiestExpert returns the expected number of rows of the busiest expert.
// The rows per touched expert are tokens*topK/Active on average.
func (r *Routing) RowsBusiestExpert(tokens float64) float64 {
	if !(tokens > 0) {
		return 0
	}
	if r.Experts == r.TopK {
		return tokens
	}
	mean := tokens * float64(r.TopK) / float64(r.Experts)
	rows := busiest(mean, mean*r.withoutReplacement(), r.withoutReplacement(), r.Experts)
	rows = max(rows, tokens*min(1, float64(r.TopK)*r.top))
	return min(max(rows, mean, min(1, tokens)), tokens)
}

func (r *Routing) withoutReplacement() float64 {
	if r.Experts < 2 {
		return 0
	}
	return float64(r.Experts-r.TopK) / float64(r.Experts-1)
}

// busiest returns the expected maximum of n counts with the given mean and
// variance; skew scales the third-moment term.
func busiest(mean, variance, skew float64, n int) float64 {
	z := expectedMaximum(n)
	return mean + z*math.Sqrt(variance) + skew*(z*z-1)/6
}

// expectedMaximum approximates the expected maximum of n standard normals by
// Blom's plotting position (1958).
func expectedMaximum(n int) float64 {
	if n < 2 {
		return 0
	}
	p := (float64(n) - 0.375) / (float64(n) + 0.25)
	return math.Sqrt2 * math.Erfinv(2*p-1)
}

// Imbalance returns the recipe's imbalance after replicas for an
// expert-parallel group of ranks; 1 for a group of one.
func (r *Routing) Imbalance(ranks int) float64 {
	if ranks < 2 {
		return 1
	}
	return r.imbalance
}

// Multiplier returns the factor on the whole expert time: the imbalance when it
// is charged outside the roofline, else 1.
func (r *Routing) Multiplier(ranks int) float64 {
	if r.OuterMultiplier {
		return r.Imbalance(ranks)
	}
	return 1
}

// ViewImbalance returns the imbalance of one view of a measured run: that of the
// view's own group, or with SharedView that of the target's for both, so that it
// cancels in their ratio.
func (r *Routing) ViewImbalance(viewRanks, targetRanks int) float64 {
	if r.SharedView {
		return r.Imbalance(targetRanks)
	}
	return r.Imbalance(viewRanks)
}
