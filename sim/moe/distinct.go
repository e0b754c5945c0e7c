package moe

import "math"

// Distinct returns the expected number of different experts that tokens tokens
// touch when each independently chooses topK of experts experts uniformly:
// E * (1 - (1-k/E)^T). Below one token it is k*T: that share of steps has one.
func Distinct(experts, topK int, tokens float64) float64 {
	e, k := float64(experts), float64(min(topK, experts))
	switch {
	case experts < 1 || topK < 1 || !(tokens > 0):
		return 0
	case tokens <= 1:
		return k * tokens
	case k >= e:
		return e
	}
	return -e * math.Expm1(tokens*math.Log1p(-k/e))
}

// DistinctZipf is [Distinct] for a router whose expert popularity falls as the
// rank to the power -s: with p_i the normalised popularities, the sum over
// experts of 1 - (1-p_i)^(T*k), kept between k (a token chooses without
// replacement) and k*T. s = 0 is the uniform router. It costs one power per
// expert; [New] tabulates it.
func DistinctZipf(experts, topK int, tokens, s float64) float64 {
	if !(s > 0) || experts <= 1 || topK >= experts {
		return Distinct(experts, topK, tokens)
	}
	if topK < 1 || !(tokens > 0) {
		return 0
	}
	h := harmonic(experts, s)
	picks := tokens * float64(topK)
	var sum float64
	for i := range experts {
		p := math.Pow(float64(i+1), -s) / h
		sum -= math.Expm1(picks * math.Log1p(-p))
	}
	return bound(sum, experts, topK, tokens)
}

// bound keeps a distinct count within what choosing topK different experts per
// token allows.
func bound(distinct float64, experts, topK int, tokens float64) float64 {
	e, k := float64(experts), float64(min(topK, experts))
	return min(max(distinct, k*min(1, tokens)), min(e, k*tokens))
}

// harmonic is the generalised harmonic number H_n(s), the sum of i^-s.
func harmonic(n int, s float64) float64 {
	var h float64
	for i := n; i >= 1; i-- { // small terms first
		h += math.Pow(float64(i), -s)
	}
	return h
}

// PopularityImbalance returns the load of the most popular expert over the mean
// for a Zipf router: E / H_E(s). It is 1 for s <= 0.
func PopularityImbalance(experts int, s float64) float64 {
	if !(s > 0) || experts <= 1 {
		return 1
	}
	return float64(experts) / harmonic(experts, s)
}

// Imbalance returns the factor by which the busiest rank exceeds the mean when
// the load balance of the recipe (busiest over mean without replicas) is
// balance: redundant replicas shrink the excess, 1 + (balance-1)*E/(E+r). A
// balance of 1 or less means 1.
func Imbalance(balance float64, experts, redundant int) float64 {
	if !(balance > 1) {
		return 1
	}
	e, r := float64(max(experts, 1)), float64(max(redundant, 0))
	return 1 + (balance-1)*e/(e+r)
}

// GroupedEfficiency returns the share of memory bandwidth that a grouped matrix
// product with few rows reaches when groups experts are active: plateau *
// (1 - exp(-groups/scale)). Measured on MI355X at one row per expert: plateau
// 0.78, scale 4 (14 to 25 % at one expert, 74 to 82 % from 16 on).
func GroupedEfficiency(groups, plateau, scale float64) float64 {
	if !(groups > 0) || !(scale > 0) {
		return 0
	}
	return -plateau * math.Expm1(-groups/scale)
}
