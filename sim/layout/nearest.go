package layout

import (
	"math"
	"slices"

	"infera/models"
)

// Nearest returns the legal layout closest to l; a legal l is returned as it
// is. Closeness is the sum over the knobs of |ln(new/old)|, growth counted
// twice because it needs GPUs that may not be there; an EP that has to change
// preferably becomes the whole stage, which every engine accepts.
func Nearest(a *models.Architecture, l Layout) Layout {
	if legal(a, l) {
		return l
	}
	want := clamp(a, l)
	contexts := contextSizes(want.DecodeCP)
	best, bestCost := Layout{TP: 1, PP: want.PP, EP: 1, AttentionDP: 1}, math.Inf(1)
	for _, tp := range byCost(want.TP, candidates(2*want.TP, nil)) {
		if ratio(want.TP, tp) >= bestCost {
			break
		}
		for _, dp := range byCost(want.AttentionDP, candidates(tp, func(n int) bool { return tp%n == 0 })) {
			base := ratio(want.TP, tp) + ratio(want.AttentionDP, dp)
			if base >= bestCost {
				break
			}
			try := Layout{TP: tp, PP: want.PP, EP: 1, AttentionDP: dp}
			if !legalBesideExperts(a, try) {
				continue
			}
			if found, cost, ok := nearestExperts(a, want, try, contexts, bestCost-base); ok {
				best, bestCost = found, base+cost
			}
		}
	}
	return best
}

// nearestExperts completes try with EP, redundancy and decode CP at the lowest
// cost below limit.
func nearestExperts(a *models.Architecture, want, try Layout, contexts []int, limit float64) (best Layout, bestCost float64, ok bool) {
	bestCost = limit
	eps := candidates(2*max(want.EP, try.TP), func(n int) bool { return try.TP%n == 0 || n%try.TP == 0 })
	for _, ep := range eps {
		cost := epCost(want.EP, ep, try.TP)
		if cost >= bestCost {
			continue
		}
		try.EP = ep
		for _, extra := range redundancy(a, ep, want.RedundantExperts) {
			try.RedundantExperts = extra
			withExtra := cost
			if extra != want.RedundantExperts {
				withExtra += 0.5 + math.Abs(float64(extra-want.RedundantExperts))/256
			}
			for _, cp := range contexts {
				try.DecodeCP = cp
				if c := withExtra + ratio(max(1, want.DecodeCP), max(1, cp)); c < bestCost && legal(a, try) {
					best, bestCost, ok = try, c, true
				}
			}
		}
	}
	return best, bestCost, ok
}

// clamp brings every size into its range; PP is settled by it.
func clamp(a *models.Architecture, l Layout) Layout {
	in := func(n, low, top int) int { return min(max(n, low), top) }
	l.PP = in(l.PP, 1, min(maxStages, max(1, a.Layers())))
	// Beyond 256 ranks no model has heads or columns left to split, and beyond
	// 1024 none has experts.
	room := max(1, maxGPUs/l.PP)
	l.TP, l.EP = in(l.TP, 1, min(256, room)), in(l.EP, 1, min(1024, room))
	l.AttentionDP = in(l.AttentionDP, 1, l.TP)
	l.DecodeCP = in(l.DecodeCP, 0, l.TP)
	l.RedundantExperts = in(l.RedundantExperts, 0, maxRanks)
	return l
}

// ratio is the cost of changing a knob from want to got.
func ratio(want, got int) float64 {
	c := math.Log(float64(got) / float64(want))
	if c > 0 {
		return 2 * c
	}
	return -c
}

func epCost(want, got, tp int) float64 {
	switch {
	case got == want:
		return 0
	case got == tp:
		return 0.5
	case got > tp:
		return 0.5 + ratio(want, got) + ratio(tp, got) // takes more GPUs
	default:
		return 0.5 + math.Abs(math.Log(float64(got)/float64(want)))
	}
}

// candidates returns 1..top filtered by ok (nil = all), ascending.
func candidates(top int, ok func(int) bool) []int {
	var ns []int
	for n := 1; n <= top; n++ {
		if ok == nil || ok(n) {
			ns = append(ns, n)
		}
	}
	return ns
}

func byCost(want int, ns []int) []int {
	slices.SortStableFunc(ns, func(x, y int) int {
		switch cx, cy := ratio(want, x), ratio(want, y); {
		case cx < cy:
			return -1
		case cx > cy:
			return 1
		default:
			return 0
		}
	})
	return ns
}

// redundancy returns the wished number of redundant experts, none, and the
// numbers around the wish that fill EP ranks evenly.
func redundancy(a *models.Architecture, ep, want int) []int {
	extras := []int{want}
	for _, g := range a.Groups {
		if g.FFN.Experts == 0 {
			continue
		}
		up := ceilDiv(g.FFN.Experts+want, ep)*ep - g.FFN.Experts
		extras = append(extras, up, max(0, up-ep))
		break
	}
	extras = append(extras, 0)
	slices.Sort(extras[1:])
	return slices.Compact(extras)
}

// contextSizes returns the divisors of the wished decode CP, largest first,
// and the wish itself in front.
func contextSizes(want int) []int {
	sizes := []int{want}
	for n := want - 1; n >= 1; n-- {
		if want%n == 0 {
			sizes = append(sizes, n)
		}
	}
	return sizes
}
