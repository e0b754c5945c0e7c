package recorded

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/kvcache"
	"infera/sim/workload"
)

const (
	// longest bounds a file about an engine and a line about a request, in
	// bytes; latest a time, in seconds.
	longest = 1 << 20
	latest  = 1e11
	// blockTokens is vLLM's block size where a run does not say another.
	blockTokens = 16
	// mostRanks and mostBlocks bound what a run may say of its engine.
	mostRanks, mostBlocks = 1 << 16, 1 << 31
)

// Read reads a run of vLLM: a JSON object about the engine, and a line of JSON
// per request. Settings that change the schedule and are not simulated are
// refused; the many that do not are not looked at. Errors about the content are
// of kind [ErrRun] and name the line.
func Read(about, requests io.Reader) (*Run, error) {
	m, err := readMeta(about)
	if err != nil {
		return nil, err
	}
	r := &Run{}
	if r.Engine, err = m.engine(); err != nil {
		return nil, fmt.Errorf("%w: engine: %w", ErrRun, err)
	}
	if r.Requests, err = readRequests(requests); err != nil {
		return nil, err
	}
	if m.Requests != len(r.Requests) {
		return nil, fmt.Errorf("%w: %d requests, the engine's file says %d", ErrRun, len(r.Requests), m.Requests)
	}
	return r, nil
}

// meta is the part of the file about the engine that matters here.
type meta struct {
	Schema   int    `json:"schema_version"`
	Model    string `json:"model"`
	Version  string `json:"vllm_version"`
	Requests int    `json:"num_requests"`
	Args     struct {
		TensorParallel int  `json:"tensor_parallel_size"`
		DataParallel   int  `json:"data_parallel_size"`
		ExpertParallel bool `json:"enable_expert_parallel"`
		MaxSeqs        int  `json:"max_num_seqs"`
		MaxTokens      int  `json:"max_num_batched_tokens"`
		MaxLen         int  `json:"max_model_len"`
	} `json:"engine_kwargs"`
	Cache *struct {
		Blocks      int   `json:"num_gpu_blocks"`
		BlockTokens int   `json:"block_size"`
		Prefix      *bool `json:"enable_prefix_caching"`
	} `json:"kv_cache"`
	Resolved *struct {
		Parallel struct {
			Pipeline int `json:"pipeline_parallel_size"`
		} `json:"parallel_config"`
		Scheduler struct {
			Async       *bool  `json:"async_scheduling"`
			Chunked     *bool  `json:"enable_chunked_prefill"`
			LongPrefill int    `json:"long_prefill_token_threshold"`
			Policy      string `json:"policy"`
			ReserveFull *bool  `json:"scheduler_reserve_full_isl"`
		} `json:"scheduler_config"`
		Speculative json.RawMessage `json:"speculative_config"`
	} `json:"resolved_config"`
}

func readMeta(r io.Reader) (*meta, error) {
	text, err := io.ReadAll(io.LimitReader(r, longest+1))
	if err != nil {
		return nil, fmt.Errorf("read run: engine: %w", err)
	}
	if len(text) > longest {
		return nil, fmt.Errorf("%w: engine: longer than %d KiB", ErrRun, longest>>10)
	}
	var m meta
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%w: engine: line %d: %w", ErrRun, 1+bytes.Count(text[:offset(err, len(text))], []byte("\n")), err)
	}
	return &m, nil
}

// offset returns how far into a text of n bytes an error of package json is.
func offset(err error, n int) int {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return min(n, int(syntax.Offset))
	case errors.As(err, &kind):
		return min(n, int(kind.Offset))
	}
	return 0
}

// engine checks what the file says and translates it.
func (m *meta) engine() (Engine, error) {
	a := &m.Args
	if m.Schema != 1 {
		return Engine{}, fmt.Errorf("schema_version is %d, want 1", m.Schema)
	}
	for _, n := range []struct {
		name            string
		v, least, limit int
	}{
		{"tensor_parallel_size", a.TensorParallel, 1, mostRanks}, {"data_parallel_size", a.DataParallel, 1, mostRanks},
		{"max_num_seqs", a.MaxSeqs, 1, workload.MaxTokens}, {"max_num_batched_tokens", a.MaxTokens, 1, workload.MaxTokens},
		{"max_model_len", a.MaxLen, 0, workload.MaxTokens}, {"num_requests", m.Requests, 1, math.MaxInt32},
	} {
		if n.v < n.least || n.v > n.limit {
			return Engine{}, fmt.Errorf("%s is %d, want %d to %d", n.name, n.v, n.least, n.limit)
		}
	}
	e := Engine{
		Model: m.Model, Version: m.Version, TensorParallel: a.TensorParallel, DataParallel: a.DataParallel, ExpertParallel: a.ExpertParallel,
		Scheduler: engine.Options{
			MaxSequences: a.MaxSeqs * a.DataParallel, MaxBatchedTokens: a.MaxTokens * a.DataParallel, PrefillChunk: a.MaxTokens, MaxContext: a.MaxLen,
			// The default of the releases that write such runs.
			AsyncScheduling: true,
		},
		Pool: kvcache.Options{BlockTokens: blockTokens, Prefix: true},
	}
	return e, errors.Join(m.cache(&e.Pool), m.resolved(&e.Scheduler))
}

func (m *meta) cache(o *kvcache.Options) error {
	c := m.Cache
	if c == nil {
		return nil
	}
	if c.Blocks < 2 || c.Blocks > mostBlocks || c.BlockTokens < 1 || c.BlockTokens > workload.MaxTokens {
		return fmt.Errorf("num_gpu_blocks is %d and block_size %d", c.Blocks, c.BlockTokens)
	}
	// vLLM keeps one block of each pool as the placeholder of none.
	o.Blocks, o.BlockTokens = (c.Blocks-1)*m.Args.DataParallel, c.BlockTokens
	if c.Prefix != nil {
		o.Prefix = *c.Prefix
	}
	return nil
}

func (m *meta) resolved(o *engine.Options) error {
	if m.Resolved == nil {
		return nil
	}
	s := &m.Resolved.Scheduler
	off := func(b *bool) bool { return b != nil && !*b }
	switch spec := m.Resolved.Speculative; {
	case s.Policy != "" && s.Policy != "fcfs":
		return fmt.Errorf("policy is %q, want fcfs", s.Policy)
	case off(s.Chunked) || off(s.ReserveFull):
		return errors.New("prompts are not cut, or are admitted when their first piece fits")
	case m.Resolved.Parallel.Pipeline > 1:
		return fmt.Errorf("pipeline_parallel_size is %d, want 1", m.Resolved.Parallel.Pipeline)
	case len(spec) > 0 && string(spec) != "null":
		return errors.New("the engine speculates")
	case s.LongPrefill < 0:
		return fmt.Errorf("long_prefill_token_threshold is %d", s.LongPrefill)
	case s.LongPrefill > 0:
		o.PrefillChunk = min(o.PrefillChunk, s.LongPrefill)
	}
	o.AsyncScheduling = !off(s.Async)
	return nil
}

// row is a line about a request. The client's clock gives the arrival, the
// engine's all other times, in seconds from moments of their own.
type row struct {
	Name      *string  `json:"request_id"`
	Input     *int     `json:"input_toks"`
	Output    *int     `json:"output_toks"`
	Arrival   *float64 `json:"arrival_time"`
	Queued    *float64 `json:"queued_ts"`
	Scheduled *float64 `json:"scheduled_ts"`
	First     *float64 `json:"first_token_ts"`
	Last      *float64 `json:"last_token_ts"`

	line int
}

func readRequests(r io.Reader) ([]Request, error) {
	var rows []row
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longest)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		x, err := readRow(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%w: requests: line %d: %w", ErrRun, n, err)
		}
		x.line = n
		rows = append(rows, x)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%w: requests: line %d: longer than %d KiB", ErrRun, n+1, longest>>10)
	case err != nil:
		return nil, fmt.Errorf("read run: requests: line %d: %w", n+1, err)
	case len(rows) == 0:
		return nil, fmt.Errorf("%w: requests: none", ErrRun)
	}
	return together(rows)
}

func readRow(line []byte) (row, error) {
	var x row
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		return x, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return x, errors.New("something follows the object")
	}
	if x.Name == nil || x.Input == nil || x.Output == nil {
		return x, errors.New("no request_id, input_toks or output_toks")
	}
	if *x.Input < 1 || *x.Input > workload.MaxTokens || *x.Output < 1 || *x.Output > workload.MaxTokens {
		return x, fmt.Errorf("%d + %d tokens, want 1 to %d each", *x.Input, *x.Output, workload.MaxTokens)
	}
	for _, t := range []*float64{x.Arrival, x.Queued, x.Scheduled, x.First, x.Last} {
		if t == nil || !(*t >= 0 && *t <= latest) {
			return x, fmt.Errorf("a time is missing, or not 0 to %g s", latest)
		}
	}
	if !(*x.Queued <= *x.Scheduled && *x.Scheduled <= *x.First && *x.First <= *x.Last) {
		return x, errors.New("times are not in the order queued, scheduled, first token, last token")
	}
	return x, nil
}

// together puts the two clocks together, the first arrival at 0: the request
// that got from the client to the scheduler fastest is taken to have needed no
// time, as neither clock says more.
func together(rows []row) ([]Request, error) {
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(*a.Arrival, *b.Arrival) })
	start, apart := *rows[0].Arrival, math.Inf(1)
	for i := range rows {
		apart = min(apart, *rows[i].Queued-*rows[i].Arrival)
	}
	time := func(t *float64, from float64) units.Time { return units.Nanoseconds(units.Seconds(*t - from)) }
	out := make([]Request, len(rows))
	for i := range rows {
		x := &rows[i]
		out[i] = Request{
			Request: workload.Request{ID: i, Arrival: time(x.Arrival, start), Input: *x.Input, Output: *x.Output}, Name: *x.Name,
			Queued: time(x.Queued, start+apart), Scheduled: time(x.Scheduled, start+apart),
			First: time(x.First, start+apart), Last: time(x.Last, start+apart),
		}
		if q := &out[i]; q.First <= q.Arrival || q.Output > 1 && q.Last <= q.First {
			return nil, fmt.Errorf("%w: requests: line %d: a latency below a nanosecond", ErrRun, x.line)
		}
	}
	return out, nil
}
