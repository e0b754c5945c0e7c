package probe

import (
	"context"
	"sync"
	"time"

	"infera/internal/units"
)

const (
	// phase is how long each of the two measurements runs.
	phase = 200 * time.Millisecond
	// wordsPerThread is the array a thread reads, 64 MiB: beyond the share of
	// the last-level cache that a thread has. The threads together stay below
	// 1 GiB.
	wordsPerThread = 8 << 20
	wordsTogether  = 128 << 20
)

// longest bounds a whole measurement.
const longest = time.Second

// NewMeter returns the real [Meter], which takes the time from now. It keeps n
// threads busy for about half a second, at most one, and uses up to 1 GiB of
// memory. It stops early with the context's error.
func NewMeter(now func() time.Time) Meter {
	return func(ctx context.Context, n int) (Measurement, error) {
		n = max(1, n)
		t := timer{now: now, end: now().Add(longest)}
		words := min(wordsPerThread, wordsTogether/n)
		arrays := make([][]uint64, n)
		together(n, func(i int) float64 {
			arrays[i] = make([]uint64, words)
			for j := range arrays[i] {
				arrays[i][j] = uint64(j)
			}
			return 0
		})
		bytes := together(n, func(i int) float64 {
			return t.rate(ctx, func() float64 { return read(arrays[i]) })
		})
		flops := together(n, func(int) float64 { return t.rate(ctx, multiplyAdd) })
		return Measurement{Bandwidth: units.BytesPerSecond(bytes), Scalar: units.FLOPsPerSecond(flops)}, ctx.Err()
	}
}

// together runs work on n threads at once and adds up the results.
func together(n int, work func(i int) float64) float64 {
	results := make([]float64, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { results[i] = work(i) })
	}
	wg.Wait()
	var sum float64
	for _, r := range results {
		sum += r
	}
	return sum
}

type timer struct {
	now func() time.Time
	end time.Time
}

// rate repeats work, which returns an amount, for a phase and at least once,
// and returns the amount per second.
func (t timer) rate(ctx context.Context, work func() float64) float64 {
	start := t.now()
	var amount float64
	for {
		amount += work()
		at := t.now()
		if elapsed := at.Sub(start); elapsed >= phase || at.After(t.end) || ctx.Err() != nil {
			return amount / max(elapsed, 1).Seconds()
		}
	}
}

// keep uses a value, so that the compiler does not drop the loop that made it.
//
//go:noinline
func keep[T any](T) {}

// read sums the array with four chains, so that loads and not adds decide, and
// returns the bytes read.
func read(a []uint64) float64 {
	var s0, s1, s2, s3 uint64
	i := 0
	for ; i+8 <= len(a); i += 8 {
		b := a[i : i+8 : i+8]
		s0 += b[0] + b[4]
		s1 += b[1] + b[5]
		s2 += b[2] + b[6]
		s3 += b[3] + b[7]
	}
	keep(s0 + s1 + s2 + s3)
	return float64(8 * i)
}

// multiplyAdd runs eight independent chains of multiply and add and returns
// the operations done. The values stay near 1.
func multiplyAdd() float64 {
	const rounds = 1 << 14
	a0, a1, a2, a3, a4, a5, a6, a7 := 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7
	const m, c = 0.999, 0.001
	for range rounds {
		a0 = float64(a0*m) + c
		a1 = float64(a1*m) + c
		a2 = float64(a2*m) + c
		a3 = float64(a3*m) + c
		a4 = float64(a4*m) + c
		a5 = float64(a5*m) + c
		a6 = float64(a6*m) + c
		a7 = float64(a7*m) + c
	}
	keep(a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7)
	return 16 * rounds
}
