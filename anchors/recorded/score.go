package recorded

import (
	"infera/sim/accuracy"
	"infera/sim/metrics"
)

// Score says how far a replay is from what was measured, as shares of the
// measured values.
type Score struct {
	// TTFT and TPOT are the signed errors of the mean time to the first token
	// and of the mean time per output token after it; requests with one token
	// have no TPOT.
	TTFT, TPOT float64
	// TTFTMedian is the median over the requests of the absolute error of each
	// one's time to the first token.
	TTFTMedian float64
}

// Score compares the records of a replay with the run, from one request to
// before another.
func (r *Run) Score(records []metrics.Record, from, to int) Score {
	var ttft, tpot [2]float64 // measured, simulated
	var pairs []accuracy.Pair
	for i := from; i < to; i++ {
		q, a := &r.Requests[i], &records[i]
		measured, simulated := float64((q.First - q.Arrival).Seconds()), float64((a.First - a.Arrival).Seconds())
		ttft[0] += measured
		ttft[1] += simulated
		pairs = append(pairs, accuracy.Pair{Measured: measured, Predicted: simulated})
		if tokens := float64(q.Output - 1); tokens > 0 {
			tpot[0] += float64((q.Last - q.First).Seconds()) / tokens
			tpot[1] += float64((a.Last - a.First).Seconds()) / tokens
		}
	}
	return Score{TTFT: ttft[1]/ttft[0] - 1, TPOT: tpot[1]/tpot[0] - 1, TTFTMedian: accuracy.Summarize(pairs).Median / 100}
}
