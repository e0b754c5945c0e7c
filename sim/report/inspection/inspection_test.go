package inspection

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infera/internal/golden"
	"infera/sim/report"
	"infera/sim/report/page"
	"infera/sim/workload/trace"
)

// sample is a trace of a conversation, a request beside it and a warning.
func sample(t testing.TB) Trace {
	return of(t, `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 5, "input_length": 40, "output_length": 3, "type": "text", "turn": 1, "hash_ids": [1, 2, 3]}
{"chat_id": 2, "parent_chat_id": -1, "timestamp": 5.5, "input_length": 700, "output_length": 90, "type": "search"}
{"chat_id": 3, "parent_chat_id": 1, "timestamp": 25, "input_length": 60, "output_length": 4, "type": "text", "turn": 2, "hash_ids": [1, 2, 4, 5], "note": 0}`)
}

// bare is a trace of one request without an arrival.
func bare(t testing.TB) Trace {
	return of(t, `{"prompt": "Hello, how are you?", "output_tokens": 7}`)
}

func of(t testing.TB, text string) Trace {
	x, err := trace.Read(strings.NewReader(text), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Of(x, x.Statistics(), "some\x1b[1m trace.jsonl")
}

func TestGolden(t *testing.T) {
	for name, x := range map[string]Trace{"sample": sample(t), "bare": bare(t)} {
		for _, o := range []page.Options{{Width: 60}, {Width: 100, ASCII: true}} {
			text := golden.Render(t, func(w io.Writer) error { return x.WriteTable(w, o) })
			golden.CheckText(t, name, text, o.Width, o.ASCII)
			golden.Check(t, fmt.Sprintf("%s_%d", name, o.Width), text)
		}
		golden.Check(t, name+"_json", golden.Render(t, func(w io.Writer) error { return report.WriteJSON(w, x) }))
		golden.Check(t, name+"_csv", golden.Render(t, func(w io.Writer) error { return csv.NewWriter(w).WriteAll(x.Records()) }))
	}
}

// The keys that callers rely on come first, in their order, and are the same
// whatever the trace.
func TestContract(t *testing.T) {
	var all [][]string
	for _, x := range []Trace{sample(t), bare(t)} {
		var b bytes.Buffer
		if err := report.WriteJSON(&b, x); err != nil {
			t.Fatal(err)
		}
		all = append(all, golden.Children(golden.Keys(t, b.Bytes()), ""))
	}
	want := []string{"schema", "format", "requests", "span_s", "input_tokens", "output_tokens", "unlimited_cache_block_hit_rate", "block_size", "warnings"}
	if d := cmp.Diff(want, all[0][:len(want)]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(all[0], all[1]); d != "" {
		t.Errorf("keys differ between traces:\n%s", d)
	}
}
