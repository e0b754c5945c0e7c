package simulation

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"

	"infera/internal/units"
)

// Step is one step of an engine.
type Step struct {
	// Instance is the engine, Index counts its steps from 0.
	Instance, Index int
	// Start and End are simulated time.
	Start, End units.Time
	// Prefills and Decodes are the requests of the step by what they do in it.
	Prefills, Decodes int
	// PromptTokens are the prompt tokens computed, QueryTokens all tokens.
	PromptTokens, QueryTokens int
	// KVTokens is the cache in use after the step, in tokens.
	KVTokens float64
	// Waiting is how many requests queue at the engine.
	Waiting int
}

func (s *Step) check() error {
	if s.Instance < 0 || s.Start < 0 || s.End < s.Start {
		return fmt.Errorf("step %d of instance %d runs from %d to %d ns", s.Index, s.Instance, s.Start, s.End)
	}
	return nil
}

// StepsJSONL writes a JSON object per step and line with the keys step,
// time_ms (when it ended), step_ms (how long it took), batch_size,
// num_prefill_reqs, num_decode_reqs, total_query_tokens, kv_tokens_in_use,
// instance, num_waiting_reqs and prompt_tokens. Times have 4 decimals. It stops
// at the first step that is impossible or that w does not take, and returns
// why; a producer that goes on calling is not listened to.
func StepsJSONL(w io.Writer, steps iter.Seq[Step]) error {
	out := bufio.NewWriter(w)
	var line []byte
	err := each(steps, func(s *Step) error {
		b := line[:0]
		b = integer(b, `{"step":`, s.Index)
		b = milliseconds(b, `,"time_ms":`, s.End)
		b = milliseconds(b, `,"step_ms":`, s.End-s.Start)
		b = integer(b, `,"batch_size":`, s.Prefills+s.Decodes)
		b = integer(b, `,"num_prefill_reqs":`, s.Prefills)
		b = integer(b, `,"num_decode_reqs":`, s.Decodes)
		b = integer(b, `,"total_query_tokens":`, s.QueryTokens)
		b = number(b, `,"kv_tokens_in_use":`, s.KVTokens)
		b = integer(b, `,"instance":`, s.Instance)
		b = integer(b, `,"num_waiting_reqs":`, s.Waiting)
		b = integer(b, `,"prompt_tokens":`, s.PromptTokens)
		line = append(b, '}', '\n')
		_, err := out.Write(line)
		return err
	})
	if err != nil {
		return fmt.Errorf("write steps: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write steps: %w", err)
	}
	return nil
}

// each hands the steps on until one fails, and returns why.
func each(steps iter.Seq[Step], write func(*Step) error) error {
	var failed error
	var s Step // outside, so that handing it on does not allocate
	steps(func(next Step) bool {
		if failed == nil {
			s = next
			if failed = s.check(); failed == nil {
				failed = write(&s)
			}
		}
		return failed == nil
	})
	return failed
}

// StepsTrace writes the steps as an array of trace events, the form that
// Perfetto and chrome://tracing read: a process per instance with a slice per
// step, named by what it does (prefill, decode, mixed), and counters of its
// running and waiting requests and of its cache. Times are in µs, to the
// nanosecond. A gap between steps and the end set the running requests to 0.
// The order of the steps of one instance must be that of time. It returns the
// errors of [StepsJSONL].
func StepsTrace(w io.Writer, steps iter.Seq[Step]) error {
	t := trace{out: bufio.NewWriter(w), ended: map[int]units.Time{}}
	if err := each(steps, t.step); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	if err := t.close(); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}

// trace writes trace events.
type trace struct {
	out *bufio.Writer
	buf []byte
	// ended is when the last step of an instance ended; seen keeps the order in
	// which instances appeared.
	ended map[int]units.Time
	seen  []int
}

func (t *trace) step(s *Step) error {
	b := t.buf[:0]
	switch ended, known := t.ended[s.Instance]; {
	case !known:
		if len(t.seen) == 0 {
			b = append(b, "[\n"...)
		} else {
			b = append(b, ",\n"...)
		}
		t.seen = append(t.seen, s.Instance)
		b = integer(b, `{"name":"process_name","ph":"M","pid":`, s.Instance)
		b = integer(b, `,"args":{"name":"instance `, s.Instance)
		b = append(b, `"}}`...)
	case s.Start < ended:
		return fmt.Errorf("step %d of instance %d starts at %d ns, before the one before it ends at %d ns", s.Index, s.Instance, s.Start, ended)
	case s.Start > ended:
		b = counter(b, "requests", s.Instance, ended)
		b = append(b, `{"running":0,"waiting":0}}`...)
	}
	t.ended[s.Instance] = s.End
	name := "decode"
	if s.Prefills > 0 {
		name = "prefill"
		if s.Decodes > 0 {
			name = "mixed"
		}
	}
	b = append(b, ",\n"+`{"name":"`...)
	b = append(b, name...)
	b = integer(b, `","ph":"X","pid":`, s.Instance)
	b = microseconds(b, `,"tid":0,"ts":`, s.Start)
	b = microseconds(b, `,"dur":`, s.End-s.Start)
	b = integer(b, `,"args":{"step":`, s.Index)
	b = integer(b, `,"prefills":`, s.Prefills)
	b = integer(b, `,"decodes":`, s.Decodes)
	b = integer(b, `,"prompt_tokens":`, s.PromptTokens)
	b = integer(b, `,"query_tokens":`, s.QueryTokens)
	b = append(b, '}', '}')
	b = counter(b, "requests", s.Instance, s.Start)
	b = integer(b, `{"running":`, s.Prefills+s.Decodes)
	b = integer(b, `,"waiting":`, s.Waiting)
	b = append(b, '}', '}')
	if !math.IsNaN(s.KVTokens) && !math.IsInf(s.KVTokens, 0) {
		b = counter(b, "KV tokens", s.Instance, s.End)
		b = append(number(b, `{"used":`, s.KVTokens), '}', '}')
	}
	t.buf = b
	_, err := t.out.Write(t.buf)
	return err
}

// close ends the counters and the array.
func (t *trace) close() error {
	b := t.buf[:0]
	if len(t.seen) == 0 {
		b = append(b, '[')
	}
	for _, instance := range t.seen {
		b = counter(b, "requests", instance, t.ended[instance])
		b = append(b, `{"running":0,"waiting":0}}`...)
	}
	if _, err := t.out.Write(append(b, "\n]\n"...)); err != nil {
		return err
	}
	return t.out.Flush()
}

// counter begins an event that sets a counter; its values follow.
func counter(b []byte, name string, instance int, at units.Time) []byte {
	b = append(b, ",\n"+`{"name":"`...)
	b = append(b, name...)
	b = integer(b, `","ph":"C","pid":`, instance)
	b = microseconds(b, `,"ts":`, at)
	return append(b, `,"args":`...)
}

func integer(b []byte, key string, v int) []byte {
	return strconv.AppendInt(append(b, key...), int64(v), 10)
}

// milliseconds appends a time with 4 decimals.
func milliseconds(b []byte, key string, t units.Time) []byte {
	return strconv.AppendFloat(append(b, key...), t.Milliseconds(), 'f', 4, 64)
}

// microseconds appends a time in whole nanoseconds; t is not negative.
func microseconds(b []byte, key string, t units.Time) []byte {
	b = strconv.AppendInt(append(b, key...), int64(t)/1000, 10)
	ns := int64(t) % 1000
	return append(b, '.', byte('0'+ns/100), byte('0'+ns/10%10), byte('0'+ns%10))
}

// number appends a finite number, else null.
func number(b []byte, key string, v float64) []byte {
	b = append(b, key...)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}
