package kvcache

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The store agrees with a list in order of use, the latest last.
func TestStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(0, 4).Draw(t, "capacity")
		s := NewStore(capacity)
		var list []Hash
		for range rapid.IntRange(0, 60).Draw(t, "operations") {
			h := Hash(rapid.IntRange(1, 8).Draw(t, "hash"))
			at := slices.Index(list, h)
			if rapid.Bool().Draw(t, "touch") {
				if got := s.Touch(h); got != (at >= 0) {
					t.Fatalf("Touch(%d) = %v with %v", h, got, list)
				}
				if at >= 0 {
					list = append(slices.Delete(list, at, at+1), h)
				}
				continue
			}
			out, gone := s.Put(h)
			var want Hash
			switch {
			case capacity == 0:
				want = h
			case at >= 0:
				list = append(slices.Delete(list, at, at+1), h)
			default:
				if list = append(list, h); len(list) > capacity {
					want, list = list[0], list[1:]
				}
			}
			if out != want || gone != (want != 0) || s.Len() != len(list) {
				t.Fatalf("Put(%d) = %d, %v with %d held, want %d with %v", h, out, gone, s.Len(), want, list)
			}
		}
		if s.Written()-s.Evictions() != int64(s.Len()) {
			t.Fatalf("%d written, %d evicted, %d held", s.Written(), s.Evictions(), s.Len())
		}
	})
}
