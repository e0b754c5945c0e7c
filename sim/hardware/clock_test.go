package hardware

import (
	"errors"
	"math"
	"testing"

	"infera/internal/units"
)

func TestWithClock(t *testing.T) {
	g := &GPU{Name: "x", Clock: 2e9, Bandwidth: 5e12, Peaks: Rates{BF16: 1e15, FP8: 2e15}}
	half, err := g.WithClock(1e9)
	if err != nil {
		t.Fatal(err)
	}
	// Half the clock is half the arithmetic and the same memory.
	if half.Peaks.BF16 != 5e14 || half.Peaks.FP8 != 1e15 || half.Bandwidth != 5e12 || half.Clock != 1e9 {
		t.Errorf("WithClock(1 GHz) = %+v", half)
	}
	if g.Clock != 2e9 || g.Peaks.BF16 != 1e15 {
		t.Errorf("WithClock changed its receiver: %+v", g)
	}
	for _, c := range []units.Hertz{0, -1, 2e10, units.Hertz(math.NaN())} {
		if _, err := g.WithClock(c); !errors.Is(err, ErrInvalid) {
			t.Errorf("WithClock(%v) = %v, want ErrInvalid", c, err)
		}
	}
	if _, err := (&GPU{}).WithClock(1e9); !errors.Is(err, ErrIncomplete) {
		t.Errorf("WithClock of a profile without a clock = %v, want ErrIncomplete", err)
	}
}
