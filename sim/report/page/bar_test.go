package page

import (
	"math"
	"testing"
)

func TestBar(t *testing.T) {
	cases := []struct {
		at, length, total float64
		blocks, ascii     string
	}{
		{0, 1, 1, "████", "####"},
		{0, 5, 8, "██▌", "###"},   // 2.5 columns
		{4, 4, 8, "  ██", "  ##"}, // the second half
		{7, 1, 8, "   █", "   #"}, // starts in the column of 3.5
		{0, 1e-9, 1, "▏", "#"},    // too short to see, but there
		{9, 1, 8, "   █", "   #"}, // beyond the end: in the last column
		{0, 0, 1, "", ""}, {0, -1, 1, "", ""}, {-1, 1, 1, "", ""}, {0, 1, 0, "", ""},
		{math.NaN(), 1, 1, "", ""}, {0, math.NaN(), 1, "", ""}, {0, math.Inf(1), 1, "", ""}, {0, 1, math.NaN(), "", ""},
	}
	for _, c := range cases {
		for _, want := range []struct {
			ascii bool
			bar   string
		}{{false, c.blocks}, {true, c.ascii}} {
			if got := New(Options{ASCII: want.ascii}).Bar(c.at, c.length, c.total, 4); got != want.bar {
				t.Errorf("Bar(%g, %g, %g), ASCII %t = %q, want %q", c.at, c.length, c.total, want.ascii, got, want.bar)
			}
		}
	}
}
