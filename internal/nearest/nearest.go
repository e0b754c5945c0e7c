package nearest

import "strings"

// Name returns the entry of known closest to name by edit distance, ignoring
// case and treating '-', '_' and '.' alike. It returns "" when nothing is
// close enough to be a plausible slip.
func Name(name string, known []string) string {
	want := fold(name)
	best, bestDistance := "", max(2, len(want)/3)+1
	for _, k := range known {
		if d := distance(want, fold(k), bestDistance); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// Hint returns `did you mean "x"?` for the closest known name, or "".
func Hint(name string, known []string) string {
	if n := Name(name, known); n != "" {
		return `did you mean "` + n + `"?`
	}
	return ""
}

func fold(s string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(s))
}

// distance is the optimal-string-alignment edit distance (insertions,
// deletions, substitutions, swaps of neighbours); it stops early and returns
// limit when the distance cannot be below it.
func distance(a, b string, limit int) int {
	if diff := len(a) - len(b); diff >= limit || -diff >= limit {
		return limit
	}
	prev2 := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	cur := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		low := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
			low = min(low, cur[j])
		}
		if low >= limit {
			return limit
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return min(limit, prev[len(b)])
}
