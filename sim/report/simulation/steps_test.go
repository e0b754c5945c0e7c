package simulation

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infera/internal/golden"
	"infera/internal/units"
)

func sampleSteps() []Step {
	return []Step{
		{Instance: 0, Index: 0, Start: 0, End: 31_250_049, Prefills: 2, PromptTokens: 2048, QueryTokens: 2048, KVTokens: 2048, Waiting: 3},
		{Instance: 1, Index: 0, Start: 1_000, End: 20_000_000, Prefills: 1, PromptTokens: 512, QueryTokens: 512, KVTokens: 512},
		{Instance: 0, Index: 1, Start: 31_250_049, End: 40_250_050, Prefills: 1, Decodes: 2, PromptTokens: 100, QueryTokens: 102, KVTokens: 2150.5},
		{Instance: 1, Index: 1, Start: 50_000_000, End: 58_000_000, Decodes: 1, QueryTokens: 1, KVTokens: math.NaN()},
	}
}

func TestStepsGolden(t *testing.T) {
	steps := slices.Values(sampleSteps())
	golden.Check(t, "steps_jsonl", golden.Render(t, func(w io.Writer) error { return StepsJSONL(w, steps) }))
	golden.Check(t, "steps_trace", golden.Render(t, func(w io.Writer) error { return StepsTrace(w, steps) }))
}

// The first line by hand: 31.250049 ms to 4 decimals, both requests prefill.
func TestStepsJSONLLine(t *testing.T) {
	got := golden.Render(t, func(w io.Writer) error { return StepsJSONL(w, slices.Values(sampleSteps()[:1])) })
	want := `{"step":0,"time_ms":31.2500,"step_ms":31.2500,"batch_size":2,"num_prefill_reqs":2,"num_decode_reqs":0,` +
		`"total_query_tokens":2048,"kv_tokens_in_use":2048,"instance":0,"num_waiting_reqs":3,"prompt_tokens":2048}` + "\n"
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Every event has a phase, slices do not overlap, and the last word on running
// requests is 0.
func TestStepsTraceEvents(t *testing.T) {
	data := golden.Render(t, func(w io.Writer) error { return StepsTrace(w, slices.Values(sampleSteps())) })
	var events []struct {
		Name, Ph string
		Pid      int
		Ts, Dur  float64
		Args     map[string]any
	}
	if err := json.Unmarshal(data, &events); err != nil {
		t.Fatal(err)
	}
	phases := map[string]int{}
	running := map[int]any{}
	end := map[int]float64{}
	for _, e := range events {
		phases[e.Ph]++
		switch {
		case e.Ph == "X":
			if e.Ts < end[e.Pid] {
				t.Errorf("slice at %v begins before %v", e.Ts, end[e.Pid])
			}
			end[e.Pid] = e.Ts + e.Dur
		case e.Ph == "C" && e.Name == "requests":
			running[e.Pid] = e.Args["running"]
		}
	}
	// Two processes; four steps; two counters per step but for the one without a
	// number of tokens, one for the gap of instance 1 and one at the end of each
	// instance.
	if want := map[string]int{"M": 2, "X": 4, "C": 4*2 - 1 + 1 + 2}; !cmp.Equal(phases, want) {
		t.Errorf("phases = %v, want %v", phases, want)
	}
	if want := map[int]any{0: 0.0, 1: 0.0}; !cmp.Equal(running, want) {
		t.Errorf("running at the end = %v, want %v", running, want)
	}
	if events[1].Name != "prefill" || events[1].Dur != 31250.049 {
		t.Errorf("first slice = %+v", events[1])
	}
}

func TestNoSteps(t *testing.T) {
	none := slices.Values([]Step(nil))
	if got := golden.Render(t, func(w io.Writer) error { return StepsJSONL(w, none) }); len(got) != 0 {
		t.Errorf("JSONL of nothing = %q", got)
	}
	if got := golden.Render(t, func(w io.Writer) error { return StepsTrace(w, none) }); !json.Valid(got) {
		t.Errorf("trace of nothing = %q", got)
	}
}

// full fails after some bytes, as a full disk does.
type full struct{ left int }

var errFull = errors.New("full")

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestStepErrors(t *testing.T) {
	overlap := []Step{{Start: 0, End: 10}, {Index: 1, Start: 5, End: 20}}
	for _, c := range []struct {
		name  string
		steps []Step
		want  string
		trace bool // only the trace minds
	}{
		{"backwards", []Step{{Index: 3, Start: 10, End: 9}}, "step 3 of instance 0 runs from 10 to 9 ns", false},
		{"before time", []Step{{Start: -1}}, "runs from -1 to 0 ns", false},
		{"no instance", []Step{{Instance: -2}}, "instance -2", false},
		{"overlap", overlap, "starts at 5 ns, before the one before it ends at 10 ns", true},
	} {
		for i, write := range []func(io.Writer) error{
			func(w io.Writer) error { return StepsTrace(w, slices.Values(c.steps)) },
			func(w io.Writer) error { return StepsJSONL(w, slices.Values(c.steps)) },
		} {
			if err := write(io.Discard); i == 0 || !c.trace {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: error %v, want %q", c.name, err, c.want)
				}
			} else if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	// A producer that does not stop is not listened to.
	calls := 0
	endless := func(yield func(Step) bool) {
		for i := range 10_000 {
			yield(Step{Index: i, Start: units.Time(i), End: units.Time(i + 1)})
			calls++
		}
	}
	for _, write := range []func(io.Writer) error{
		func(w io.Writer) error { return StepsTrace(w, endless) },
		func(w io.Writer) error { return StepsJSONL(w, endless) },
	} {
		if err := write(&full{10_000}); !errors.Is(err, errFull) {
			t.Errorf("error %v, want %v", err, errFull)
		}
	}
	if calls != 20_000 {
		t.Errorf("%d calls, want 20000", calls)
	}
}

func benchmarkSteps(b *testing.B, write func(io.Writer, func(func(Step) bool)) error) {
	const n = 10_000
	var out bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		err := write(&out, func(yield func(Step) bool) {
			for i := range n {
				at := units.Time(i/64) * 9_123_456
				yield(Step{Instance: i % 64, Index: i / 64, Start: at, End: at + 9_123_456, Decodes: 32, QueryTokens: 32, KVTokens: float64(40_000 + i)})
			}
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/step")
}

func BenchmarkStepsJSONL(b *testing.B) {
	benchmarkSteps(b, func(w io.Writer, steps func(func(Step) bool)) error { return StepsJSONL(w, steps) })
}

func BenchmarkStepsTrace(b *testing.B) {
	benchmarkSteps(b, func(w io.Writer, steps func(func(Step) bool)) error { return StepsTrace(w, steps) })
}
