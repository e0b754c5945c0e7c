package kvcache

import "testing"

// 6 blocks of 4 tokens. A sequence of 11 tokens holds 3 blocks, 2 of them full,
// and is parked. Another takes 3 + n: first the 3 fresh ones, then the block that
// is not full, then the full ones, the last first.
func TestPark(t *testing.T) {
	for _, tt := range []struct {
		name          string
		prefix        bool
		other, tokens int // blocks that another sequence takes; computed tokens
		want          int // blocks taken back
	}{
		{"nothing taken", true, 0, 11, 2},
		{"fresh ones taken", true, 3, 11, 2},
		{"the last is not full", true, 4, 11, 2},
		{"one full one gone", true, 5, 11, 1},
		{"all gone", true, 6, 11, 0},
		{"nothing computed", true, 0, 3, 0},
		{"no prefix cache", false, 0, 11, 0},
	} {
		p, err := New(Options{BlockTokens: 4, Blocks: 6, Prefix: tt.prefix})
		if err != nil {
			t.Fatal(err)
		}
		var s, other Sequence
		p.Start(&s, nil, 0)
		if !p.Grow(&s, 11) {
			t.Fatal("no room")
		}
		p.Park(&s, tt.tokens)
		if s.Held() != 0 || p.Used() != 0 {
			t.Errorf("%s: %d blocks held, %d used", tt.name, s.Held(), p.Used())
		}
		p.Start(&other, nil, 0)
		if !p.Grow(&other, 4*tt.other) {
			t.Fatal("no room")
		}
		if got := p.Parked(&s, 0); got != tt.want {
			t.Errorf("%s: %d blocks to take back, want %d", tt.name, got, tt.want)
		}
		if p.Parked(&s, 1) != 0 {
			t.Errorf("%s: blocks to take back after a granule that was not before them", tt.name)
		}
		p.Start(&s, nil, 0)
		if s.Held() != tt.want || p.Used() != tt.other+tt.want {
			t.Errorf("%s: %d blocks taken back, %d used, want %d and %d", tt.name, s.Held(), p.Used(), tt.want, tt.other+tt.want)
		}
		p.Release(&s)
		p.Start(&s, nil, 0)
		if s.Held() != 0 {
			t.Errorf("%s: %d blocks of a sequence that was released", tt.name, s.Held())
		}
	}
}
