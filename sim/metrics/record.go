package metrics

import (
	"math"

	"infera/internal/units"
)

// Record is a request that was answered.
type Record struct {
	ID                             int32
	Instance, Class                int16
	Input, Output, Cached          int32
	Arrival, Admitted, First, Last units.Time
}

// Scoring says which requests count and what belongs to their latency.
type Scoring struct {
	// WarmUpShare of the earliest completions are left out, and WarmUpRequests
	// by order of issue (no more than half); both only if 8 remain.
	WarmUpShare    float64
	WarmUpRequests int
	// DetectWarmUp leaves out the completions before the steady state, as
	// WarmUp finds it in the time to first token, instead.
	DetectWarmUp bool
	// Tokenize is added per prompt token to the time to first token, and
	// Detokenize per token to what comes after it.
	Tokenize, Detokenize units.Seconds
}

// fewest is how many records must remain for a warm-up to be left out.
const fewest = 8

// Scored returns the records that count, in order of completion.
func (s *Scoring) Scored(all []Record) []Record {
	drop := 0
	if s.DetectWarmUp {
		v := make([]float64, len(all))
		for i := range all {
			v[i] = float64(all[i].First - all[i].Arrival)
		}
		drop = WarmUp(v)
	} else {
		if s.WarmUpShare > 0 { // false for NaN
			drop = int(float64(len(all)) * min(0.9, s.WarmUpShare))
		}
	}
	kept := all
	if len(all)-drop >= fewest {
		kept = all[drop:]
	}
	if s.WarmUpRequests <= 0 {
		return kept
	}
	// The opening burst of a closed loop may end late: only the order of issue
	// tells it.
	first := int32(min(s.WarmUpRequests, len(all)/2))
	late := make([]Record, 0, len(kept))
	for _, r := range kept {
		if r.ID >= first {
			late = append(late, r)
		}
	}
	if len(late) < fewest {
		return kept
	}
	return late
}

// Latency are the distributions of a set of requests, in seconds.
type Latency struct {
	TTFT, TTFTFromAdmission, Queue, TPOT, E2E Summary
	// Within is the share of the requests that met the objective, NaN without
	// one.
	Within float64
}

// Latencies returns the distributions of records.
func (s *Scoring) Latencies(records []Record, o Objective) Latency {
	return s.LatenciesOf(records, func(int16) Objective { return o })
}

// LatenciesOf is Latencies with an objective for each class.
func (s *Scoring) LatenciesOf(records []Record, objective func(class int16) Objective) Latency {
	n := len(records)
	buffer := make([]float64, 0, n)
	collect := func(of func(*Record) float64) Summary {
		buffer = buffer[:0]
		for i := range records {
			if v := of(&records[i]); !math.IsNaN(v) {
				buffer = append(buffer, v)
			}
		}
		return Summarize(buffer)
	}
	l := Latency{
		TTFT:              collect(s.TTFT),
		TTFTFromAdmission: collect(func(r *Record) float64 { return s.TTFT(r) - Queue(r) }),
		Queue:             collect(Queue),
		TPOT:              collect(s.TPOT),
		E2E:               collect(s.E2E),
		Within:            math.NaN(),
	}
	met, asked := 0, 0
	for i := range records {
		r := &records[i]
		o := objective(r.Class)
		if !o.Set() {
			continue
		}
		asked++
		if s.meets(r, o) {
			met++
		}
	}
	if asked > 0 {
		l.Within = float64(met) / float64(asked)
	}
	return l
}

func (s *Scoring) meets(r *Record, o Objective) bool {
	over := func(v, limit float64) bool { return limit > 0 && v > limit }
	return !over(s.TTFT(r), o.TTFT) && !over(s.TPOT(r), o.TPOT) && !over(s.E2E(r), o.E2E)
}

// Queue returns how long a request waited to be admitted, in seconds.
func Queue(r *Record) float64 { return float64((r.Admitted - r.Arrival).Seconds()) }

// TTFT returns the time to first token of a request in seconds.
func (s *Scoring) TTFT(r *Record) float64 {
	return float64((r.First - r.Arrival).Seconds()) + float64(s.Tokenize)*float64(r.Input)
}

// TPOT returns the mean time between tokens of a request in seconds, NaN for an
// answer of one token.
func (s *Scoring) TPOT(r *Record) float64 {
	if r.Output < 2 {
		return math.NaN()
	}
	return float64((r.Last-r.First).Seconds())/float64(r.Output-1) + float64(s.Detokenize)
}

// E2E returns the time from arrival to the last token in seconds.
func (s *Scoring) E2E(r *Record) float64 {
	return float64((r.Last - r.Arrival).Seconds()) + float64(s.Tokenize)*float64(r.Input) + float64(s.Detokenize)*float64(r.Output)
}
