package trace

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infera/internal/units"
	"infera/sim/workload"
)

// fuzzFormat reads anything as a format: it fails with an error of our kind, or
// gives requests that a simulation can take and our own form keeps.
func fuzzFormat(f *testing.F, format Format, seeds ...string) {
	f.Helper()
	for _, s := range seeds {
		f.Add([]byte(s))
		f.Add([]byte(s[:len(s)/2]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := Read(bytes.NewReader(data), Options{Format: format})
		if err != nil {
			if !errors.Is(err, ErrTrace) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		checkTrace(t, x)
		back, err := Read(bytes.NewReader(written(t, x)), Options{})
		if err != nil {
			t.Fatalf("our own form is not read: %v", err)
		}
		if d := cmp.Diff(x.Requests, back.Requests); d != "" {
			t.Fatalf("our own form (-written +read):\n%s", d)
		}
		if rate := x.Statistics().Reuse.HitRate(); !(rate >= 0 && rate <= 1) {
			t.Fatalf("hit rate %v", rate)
		}
	})
}

func checkTrace(t *testing.T, x *Trace) {
	last := units.Time(0)
	for i := range x.Requests {
		r := &x.Requests[i]
		if r.Arrival < last || min(r.Input, r.Output) < 1 || max(r.Input, r.Output) > workload.MaxTokens || r.Class < 0 || r.Class > max(0, len(x.Classes)-1) {
			t.Fatalf("request %d: %+v after %d", i, r, last)
		}
		tokens := 0
		for _, s := range r.Content {
			if tokens += s.Tokens; s.Tokens < 1 {
				t.Fatalf("request %d: content %v", i, r.Content)
			}
		}
		if r.Content != nil && tokens != r.Input {
			t.Fatalf("request %d: content of %d tokens, prompt of %d", i, tokens, r.Input)
		}
		last = r.Arrival
	}
}

func FuzzMooncake(f *testing.F) {
	fuzzFormat(f, Mooncake, `{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}`,
		"\xef\xbb\xbf[{\"time\": 1.5e3, \"isl\": 3.0,\r\n\"osl\": 2, \"x\": {\"\\u0061\": [\"]\"]}}, {\"arrival\": 1, \"isl\": 4, \"osl\": 1, \"blocks\": null}]")
}

func FuzzBailian(f *testing.F) {
	fuzzFormat(f, Bailian, `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 17, "output_length": 3, "type": "text", "turn": 1, "hash_ids": [4, -5]}
{"chat_id": 2, "parent_chat_id": 1, "timestamp": 62.5, "input_length": 16, "output_length": 3, "turn": 2}`)
}

func FuzzAzure(f *testing.F) {
	fuzzFormat(f, Azure, "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2024-05-10T02:00:01+02:00,2399,6\n")
}

func FuzzBurstGPT(f *testing.F) {
	fuzzFormat(f, BurstGPT, "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n19440110.0,a,43,GPT-4,906,446,1352,\"Conversation\nlog\"\n5,,,,1,2,3,\n")
}

func FuzzLLMServingSim(f *testing.F) {
	fuzzFormat(f, LLMServingSim, `{"input_toks": 3, "output_toks": 1, "arrival_time_ns": 101537000, "input_tok_ids": [1, 2, 3], "output_tok_ids": [1]}`)
}

func FuzzWorkload(f *testing.F) {
	fuzzFormat(f, Workload, "Step,Input_Len,OSL\n0,1024,128\n12.25,7,8\n", `[{"arrival_ms": 1, "isl": 10, "osl": 2}]`)
}

func FuzzShareGPT(f *testing.F) {
	fuzzFormat(f, ShareGPT, `[{"id": "a", "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}, {"from": "human", "value": "c"}, {"role": "assistant", "content": "d"}]}]`)
}

func FuzzVLLM(f *testing.F) {
	fuzzFormat(f, VLLM, `{"prompt": "abcdefgh", "output_tokens": 9}
{"prompt": "abcd\n", "completion": "12345"}`)
}

func FuzzInfera(f *testing.F) {
	fuzzFormat(f, Infera, `{"schema":"infera.trace/v1","requests":2,"block_size":16,"classes":["a","b"],"absolute":true,"start_ns":1700000000000000000}
{"id":0,"arrival_ns":5,"input":25,"output":5,"content":[1,20,18446744073709551615,5],"answer":2,"session":1}
{"id":1,"arrival_ns":1,"input":10,"output":7,"turn":3,"class":1,"priority":-1}`)
}

// FuzzDetect finds the format out.
func FuzzDetect(f *testing.F) {
	fuzzFormat(f, "", `[{"timestamp": 0, "input_length": 600, "output_length": 5}]`, "arrival,isl,osl\n1,1,1", `{"prompt": "x", "output_tokens": 1}`,
		`{"schema":"infera.trace/v1"}`, "\"Timestamp\",Request tokens,Response tokens\n1,1,1\n")
}
