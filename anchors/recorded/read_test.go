package recorded

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/kvcache"
	"infera/sim/workload"
)

const about = `{
  "schema_version": 1, "model": "m", "vllm_version": "0.19.0", "num_requests": 2, "tick_seconds": 1.0,
  "engine_kwargs": {"tensor_parallel_size": 1, "data_parallel_size": 2, "enable_expert_parallel": true,
    "max_num_seqs": 128, "max_num_batched_tokens": 2048, "max_model_len": null},
  "kv_cache": {"num_gpu_blocks": 101, "block_size": 32, "enable_prefix_caching": false},
  "resolved_config": {"scheduler_config": {"async_scheduling": false, "long_prefill_token_threshold": 512, "policy": "fcfs",
    "enable_chunked_prefill": true, "scheduler_reserve_full_isl": true}, "speculative_config": null}
}`

const lines = `{"request_id": "b", "input_toks": 20, "output_toks": 3, "arrival_time": 1000.5, "queued_ts": 7.75, "scheduled_ts": 8, "first_token_ts": 8.5, "last_token_ts": 9}

{"request_id": "a", "input_toks": 10, "output_toks": 1, "arrival_time": 1000.25, "queued_ts": 7.375, "scheduled_ts": 7.375, "first_token_ts": 7.5, "last_token_ts": 7.5}
`

// The second request arrives first, at 0. From its arrival to the scheduler it
// took 7.375 - 1000.25 s on the two clocks, the other 7.75 - 1000.5, an eighth of
// a second more: the engine's clock stood at 7.375 s when the first arrived.
func TestRead(t *testing.T) {
	got, err := Read(strings.NewReader(about), strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	s := func(seconds float64) units.Time { return units.Nanoseconds(units.Seconds(seconds)) }
	want := &Run{
		Engine: Engine{
			Model: "m", Version: "0.19.0", TensorParallel: 1, DataParallel: 2, ExpertParallel: true,
			// Two ranks with 100 usable blocks, 128 sequences and 2,048 tokens each.
			Scheduler: engine.Options{MaxSequences: 256, MaxBatchedTokens: 4096, PrefillChunk: 512},
			Pool:      kvcache.Options{BlockTokens: 32, Blocks: 200},
		},
		Requests: []Request{
			{workload.Request{ID: 0, Input: 10, Output: 1}, "a", 0, 0, s(0.125), s(0.125)},
			{workload.Request{ID: 1, Arrival: s(0.25), Input: 20, Output: 3}, "b", s(0.375), s(0.625), s(1.125), s(1.625)},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("run (-want +got):\n%s", d)
	}
}

// What a run does not say is vLLM's default.
func TestReadDefaults(t *testing.T) {
	got, err := Read(strings.NewReader(`{"schema_version": 1, "num_requests": 2, "engine_kwargs": {"tensor_parallel_size": 2, "data_parallel_size": 1,
		"max_num_seqs": 8, "max_num_batched_tokens": 512, "max_model_len": 4096}}`), strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	want := Engine{
		TensorParallel: 2, DataParallel: 1,
		Scheduler: engine.Options{MaxSequences: 8, MaxBatchedTokens: 512, PrefillChunk: 512, MaxContext: 4096, AsyncScheduling: true},
		Pool:      kvcache.Options{BlockTokens: 16, Prefix: true},
	}
	if d := cmp.Diff(want, got.Engine); d != "" {
		t.Errorf("engine (-want +got):\n%s", d)
	}
}

func TestReadErrors(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"no engine", about, "", "engine: line 1"},
		{"cut off", `"speculative_config": null}`, "", "engine: line"},
		{"text for a number", `"max_num_seqs": 128`, `"max_num_seqs": "many"`, "engine: line 4"},
		{"schema", `"schema_version": 1`, `"schema_version": 2`, "schema_version is 2"},
		{"no sequences", `"max_num_seqs": 128`, `"max_num_seqs": 0`, "max_num_seqs is 0"},
		{"ranks", `"data_parallel_size": 2`, `"data_parallel_size": 1000000`, "data_parallel_size is 1000000"},
		{"blocks", `"num_gpu_blocks": 101`, `"num_gpu_blocks": 1`, "num_gpu_blocks is 1"},
		{"policy", `"policy": "fcfs"`, `"policy": "priority"`, `policy is "priority"`},
		{"uncut prompts", `"enable_chunked_prefill": true`, `"enable_chunked_prefill": false`, "not cut"},
		{"speculation", `"speculative_config": null`, `"speculative_config": {"k": 1}`, "speculates"},
		{"pipeline", `"speculative_config": null`, `"parallel_config": {"pipeline_parallel_size": 2}`, "pipeline_parallel_size is 2"},
		{"threshold", `threshold": 512`, `threshold": -1`, "threshold is -1"},
		{"count", `"num_requests": 2`, `"num_requests": 3`, "2 requests, the engine's file says 3"},
		{"no requests", lines, "\n", "requests: none"},
		{"not JSON", `{"request_id": "a"`, `"request_id": "a"`, "requests: line 3"},
		{"two objects", `"last_token_ts": 9}`, `"last_token_ts": 9} {}`, "requests: line 1: something follows"},
		{"unknown key", `"request_id": "a"`, `"request": "a"`, "requests: line 3"},
		{"no name", `"request_id": "a", `, ``, "requests: line 3: no request_id"},
		{"no time", `"queued_ts": 7.75, `, ``, "requests: line 1: a time is missing"},
		{"no tokens", `"output_toks": 1,`, `"output_toks": 0,`, "requests: line 3: 10 + 0 tokens"},
		{"too many tokens", `"input_toks": 10,`, `"input_toks": 9999999999,`, "requests: line 3: 9999999999 + 1 tokens"},
		{"negative time", `"arrival_time": 1000.5`, `"arrival_time": -1`, "requests: line 1: a time"},
		{"huge time", `"arrival_time": 1000.5`, `"arrival_time": 1e300`, "requests: line 1: a time"},
		{"order", `"scheduled_ts": 8,`, `"scheduled_ts": 8.75,`, "requests: line 1: times are not in the order"},
		{"no time between tokens", `"last_token_ts": 9}`, `"last_token_ts": 8.5}`, "requests: line 1: a latency"},
		{"long line", `"a"`, `"` + strings.Repeat("a", 1<<20) + `"`, "requests: line 3: longer"},
	} {
		a, l := strings.Replace(about, c.from, c.to, 1), strings.Replace(lines, c.from, c.to, 1)
		r, err := Read(strings.NewReader(a), strings.NewReader(l))
		if r != nil || !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %.300v; want %q", c.name, err, c.want)
		}
	}
}

func TestSetContents(t *testing.T) {
	r, err := Read(strings.NewReader(about), strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	shared, own := workload.Segment{ID: 1, Tokens: 8}, workload.Segment{ID: 2, Tokens: 12}
	w := []workload.Request{
		{Input: 10, Output: 1, Content: []workload.Segment{shared, {ID: 3, Tokens: 2}}},
		{Input: 20, Output: 3, Content: []workload.Segment{shared, own}},
	}
	if err := r.SetContents(w); err != nil {
		t.Fatal(err)
	}
	if got := r.Requests[1]; got.Unshared != 12 || len(got.Content) != 2 || got.Arrival == 0 {
		t.Errorf("request %+v", got)
	}
	w[1].Output = 4
	if err := r.SetContents(w); !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), "request b has 20 + 3 tokens, 20 + 4") {
		t.Errorf("other lengths: %v", err)
	}
	if err := r.SetContents(w[:1]); !errors.Is(err, ErrRun) {
		t.Errorf("too few: %v", err)
	}
}

// Whatever is read is an error of its kind, or a run that can be scored.
func FuzzRead(f *testing.F) {
	f.Add(about, lines)
	f.Add(`{"schema_version": 1}`, "{}")
	f.Fuzz(func(t *testing.T, a, l string) {
		r, err := Read(strings.NewReader(a), strings.NewReader(l))
		if err != nil {
			if !errors.Is(err, ErrRun) {
				t.Fatal(err)
			}
			return
		}
		for i := range r.Requests {
			q := &r.Requests[i]
			if q.Arrival < 0 || q.First <= q.Arrival || q.Last < q.First || i > 0 && q.Arrival < r.Requests[i-1].Arrival {
				t.Fatalf("request %+v", q)
			}
		}
	})
}
