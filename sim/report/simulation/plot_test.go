package simulation

import (
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"infera/internal/golden"
	"infera/sim/report/page"
)

func drawn(t *testing.T, c plot, o page.Options) string {
	t.Helper()
	return string(golden.Render(t, func(w io.Writer) error {
		p := page.New(o)
		c.draw(p)
		return p.Flush(w)
	}))
}

// 41 columns are left of 44 beside "8 |": the line from 0 to 8 climbs through
// 16 eighths of two rows on them, and 5 of 10 is in the middle.
func TestPlot(t *testing.T) {
	c := plot{title: "Climb", points: []point{{10, 8}, {0, 0}, {5, math.NaN()}}, rows: 2, unit: "s", marks: []float64{5, 99}, mark: "here"}
	for _, x := range []struct {
		o    page.Options
		want string
	}{
		{page.Options{Width: 44, ASCII: true}, `Climb
8 |                        .....::::::::####
  | ........::::::::########################
0 +-----------------------------------------
                       ^ here
   0                                    10 s
`},
		{page.Options{Width: 44}, `Climb
8 │                      ▁▁▂▂▂▃▃▄▄▄▅▅▅▆▆▇▇▇█
  │ ▁▁▁▂▂▃▃▃▄▄▄▅▅▆▆▆▇▇██████████████████████
0 └─────────────────────────────────────────
                       ▲ here
   0                                    10 s
`},
	} {
		if d := cmp.Diff(x.want, drawn(t, c, x.o)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	for name, c := range map[string]plot{
		"empty": {}, "one point": {points: []point{{1, 1}}}, "one place": {points: []point{{1, 1}, {1, 2}}},
	} {
		if got := strings.TrimSpace(drawn(t, c, page.Options{})); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestColumns(t *testing.T) {
	for _, c := range []struct {
		name   string
		points []point
		n      int
		want   []float64
	}{
		// The middles of four columns over 0..8 are 1, 3, 5 and 7; the first and
		// the last hold a point.
		{"a line", []point{{0, 0}, {8, 8}}, 4, []float64{0, 3, 5, 8}},
		{"the largest wins", []point{{0, 1}, {0.5, 9}, {1, 2}, {4, 3}}, 2, []float64{9, 3}},
	} {
		if d := cmp.Diff(c.want, columns(c.points, c.n)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// No column leaves the range of the points, and the largest is drawn.
func TestColumnsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e6), 2, 50).Draw(t, "values")
		n := rapid.IntRange(1, 100).Draw(t, "columns")
		low, high := math.Inf(1), 0.0
		var points []point
		at := 0.0
		for _, v := range values {
			points = append(points, point{at, v})
			at += rapid.Float64Range(0.01, 10).Draw(t, "step")
			low, high = min(low, v), max(high, v)
		}
		top := 0.0
		for _, v := range columns(points, n) {
			if v < low-1e-6 || v > high+1e-6 {
				t.Fatalf("column %v outside %v..%v", v, low, high)
			}
			top = max(top, v)
		}
		if math.Abs(top-high) > 1e-6 {
			t.Fatalf("highest column %v, want %v", top, high)
		}
	})
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.25: "0.25", 12.5: "12.5", 940: "940", 1234: "1.23k", 35e6: "35M", 2e9: "2G", 100: "100"} {
		if got := short(v); got != want {
			t.Errorf("short(%v) = %q, want %q", v, got, want)
		}
	}
}
