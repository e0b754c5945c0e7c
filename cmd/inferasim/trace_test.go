package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// threeRequests is a mooncake trace: the second prompt finds the first block of
// the first, the third finds both.
const threeRequests = `{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [10, 11]}
{"timestamp": 500, "input_length": 700, "output_length": 6, "hash_ids": [10, 12]}
{"timestamp": 2000, "input_length": 600, "output_length": 7, "hash_ids": [10, 11]}
`

func TestTraceInspect(t *testing.T) {
	t.Parallel()
	file := write(t, "trace.jsonl", threeRequests)
	o := run(t, "trace", "inspect", file, "-o", "json")
	o.want(t, 0)
	v := o.object(t)
	for path, want := range map[string]any{
		"schema": "inferasim.trace/v1", "format": "mooncake", "requests": 3.0, "span_s": 2.0, "block_size": 512.0,
		"unlimited_cache_block_hit_rate": 0.5, "input_tokens.max": 700.0, "output_tokens.p50": 6.0, "output_tokens.mean": 6.0,
	} {
		if got := at(t, v, path); got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
	if w, ok := at(t, v, "warnings").([]any); !ok || len(w) != 0 {
		t.Errorf("warnings %v", at(t, v, "warnings"))
	}
	if o := run(t, "trace", "inspect", file); !strings.Contains(o.out, "50.0 % of blocks found") || !strings.Contains(o.out, "512..1023") {
		t.Errorf("table:\n%s", o.out)
	}
	if o := run(t, "trace", "inspect", file, "-o", "csv"); strings.Count(o.out, "\n") != 2 || !strings.Contains(o.out, ",mooncake,3,2,") {
		t.Errorf("CSV:\n%s", o.out)
	}
	if o := (machine{stdin: "arrival,isl,osl\n0,1,1\n"}).run(t, "trace", "inspect", "-", "-o", "json"); at(t, o.object(t), "format") != "workload" {
		t.Errorf("standard input: %+v", o)
	}
}

func TestTraceBadInput(t *testing.T) {
	t.Parallel()
	file := write(t, "trace.jsonl", threeRequests+`{"timestamp": 3000, "input_length": 0, "output_length": 1}`)
	good := write(t, "good.jsonl", threeRequests)
	for _, c := range []struct {
		args  []string
		texts []string
	}{
		{[]string{"inspect", file}, []string{"trace.jsonl: bad trace: line 4: input_length 0"}},
		{[]string{"inspect", filepath.Join(t.TempDir(), "none.jsonl")}, []string{"none.jsonl"}},
		{[]string{"inspect", t.TempDir()}, []string{"directory"}},
		{[]string{"inspect"}, []string{"arg"}},
		{[]string{"inspect", good, "--format", "mooncak"}, []string{`did you mean "mooncake"`}},
		{[]string{"inspect", good, "--format", "azure"}, []string{"bad trace: line 1: bare"}},
		{[]string{"inspect", good, "--block-size", "16"}, []string{"line 1: 2 hash ids of 16 tokens"}},
		{[]string{"convert", good, "--to", "azure"}, []string{"--to"}},
		{[]string{"convert", good, "--rate-scale", "0"}, []string{"--rate-scale"}},
		{[]string{"convert", good, "--out", filepath.Join(t.TempDir(), "no", "such.jsonl")}, []string{"such.jsonl"}},
		{[]string{"generate", "--think-s", "1"}, []string{"--think-s has no effect", "--turns"}},
		{[]string{"generate", "--arrival", "gamma", "--burstiness", "0.0001"}, []string{"shape 0.0001"}},
		{[]string{"generate", "--lengths-from", "a.csv", "--input-len", "5"}, []string{"--input-len has no effect", "--lengths-from"}},
		{[]string{"generate", "--range-ratio", "0"}, []string{"--range-ratio"}},
		{[]string{"generate", "--turns", "2.5", "--fixed-turns"}, []string{"2.5 turns"}},
	} {
		run(t, append([]string{"trace"}, c.args...)...).want(t, 2, c.texts...)
	}
}

func TestTraceConvert(t *testing.T) {
	t.Parallel()
	file := write(t, "trace.jsonl", threeRequests)
	own := filepath.Join(t.TempDir(), "own.jsonl")
	o := run(t, "trace", "convert", file, "--out", own, "-o", "json")
	o.want(t, 0)
	if v := o.object(t); at(t, v, "requests") != 3.0 || at(t, v, "to") != "infera" || at(t, v, "schema") != "inferasim.trace_written/v1" {
		t.Errorf("%v", v)
	}
	// There and back: the same lines with ids from 0.
	back := run(t, "trace", "convert", own, "--to", "mooncake")
	back.want(t, 0)
	if want := strings.NewReplacer("10", "0", "11", "1", "12", "2").Replace(threeRequests); back.out != want {
		t.Errorf("there and back:\n%swant:\n%s", back.out, want)
	}
	// Our own form is kept byte for byte.
	first, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	if again := run(t, "trace", "convert", own, "--to", "infera"); again.out != string(first) {
		t.Errorf("again:\n%s\nfirst:\n%s", again.out, first)
	}
	// Four times the rate of half the time, of the first two requests.
	scaled := run(t, "trace", "convert", file, "--first", "2", "--rate-scale", "4", "--time-scale", "0.5", "--anonymise")
	scaled.want(t, 0)
	if lines := strings.Split(strings.TrimSpace(scaled.out), "\n"); len(lines) != 3 || !strings.Contains(lines[2], `"arrival_ns":62500000,`) || !strings.Contains(lines[2], `"content":[1,512,3,188]`) {
		t.Errorf("scaled:\n%s", scaled.out)
	}
}

func TestTraceGenerate(t *testing.T) {
	t.Parallel()
	args := []string{
		"trace", "generate", "--requests", "40", "--arrival", "gamma", "--burstiness", "0.5", "--rate", "5", "--input-len", "300", "--output-len", "20",
		"--range-ratio", "0.5", "--prefixes", "3", "--prefix-len", "64", "--prefix-zipf", "1", "--turns", "3", "--fixed-turns", "--think-s", "2", "--turn-len", "30",
	}
	file := filepath.Join(t.TempDir(), "made.jsonl")
	o := run(t, append(args, "--seed", "4", "--out", file, "-o", "json")...)
	o.want(t, 0)
	if n := number(t, o.object(t), "requests"); n != 120 {
		t.Errorf("%v requests of 40 conversations of 3 turns", n)
	}
	made, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if again := run(t, append(args, "--seed", "4")...); again.out != string(made) {
		t.Error("the same seed gives another workload")
	}
	if other := run(t, append(args, "--seed", "5")...); other.out == string(made) {
		t.Error("another seed gives the same workload")
	}
	v := run(t, "trace", "inspect", file, "-o", "json").object(t)
	if at(t, v, "requests") != 120.0 || at(t, v, "sessions.count") != 40.0 || at(t, v, "sessions.turns_max") != 3.0 {
		t.Errorf("sessions %v", at(t, v, "sessions"))
	}
	if rate := number(t, v, "unlimited_cache_block_hit_rate"); !(rate > 0.5 && rate < 1) {
		t.Errorf("a share of %v of blocks is found", rate)
	}
}

// Lengths are drawn from a recorded workload in pairs.
func TestTraceGenerateLengthsFrom(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "recorded.csv")
	if err := os.WriteFile(file, []byte("arrival,isl,osl\n0,1000,50\n0,200,10\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := run(t, "trace", "generate", "--requests", "100", "--lengths-from", file)
	o.want(t, 0)
	long, short := strings.Count(o.out, `"input":1000,"output":50`), strings.Count(o.out, `"input":200,"output":10`)
	if long+short != 100 || long < 30 || short < 30 {
		t.Errorf("%d long and %d short requests of 100", long, short)
	}
}

// Every format that the help lists is read, and every one that is read is
// listed.
func TestTraceHelp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ format, text string }{
		{"mooncake", threeRequests},
		{"bailian", `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 1.5, "input_length": 9, "output_length": 3, "type": "text", "turn": 1, "hash_ids": [4]}`},
		{"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"},
		{"burstgpt", "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n"},
		{"llmservingsim", `{"input_toks": 2, "output_toks": 1, "arrival_time_ns": 5, "input_tok_ids": [1, 2]}`},
		{"workload", "arrival,isl,osl\n0,1,1\n"},
		{"sharegpt", `[{"id": "a", "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}]`},
		{"vllm", `{"prompt": "abcd", "output_tokens": 9}`},
		{"infera", `{"schema":"infera.trace/v1"}` + "\n" + `{"id":0,"arrival_ns":5,"input":25,"output":5}`},
	} {
		o := run(t, "trace", "inspect", write(t, "file", c.text), "-o", "json")
		if o.want(t, 0); at(t, o.object(t), "format") != c.format {
			t.Errorf("%s was taken for %v", c.format, at(t, o.object(t), "format"))
		}
		if help := run(t, "trace", "inspect", "--help"); !strings.Contains(help.out, "\n  "+c.format+" ") {
			t.Errorf("the help does not list %s", c.format)
		}
	}
}

// A trace that goes to standard output stays alone there; warnings go to
// standard error.
func TestTraceToStandardOutput(t *testing.T) {
	t.Parallel()
	file := write(t, "trace.csv", "arrival,isl,osl\n5,1,1\n9,2,2\n")
	o := run(t, "trace", "convert", file)
	if o.code != 0 || strings.Count(o.out, "\n") != 3 || !strings.Contains(o.err, "shifted") {
		t.Errorf("%+v", o)
	}
	for i, line := range strings.Split(strings.TrimSpace(o.out), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("line %d is not JSON: %s", i+1, line)
		}
	}
	if o := run(t, "trace", "convert", file, "--out", filepath.Join(t.TempDir(), "x")); !strings.Contains(o.out, fmt.Sprintf("%d requests, infera", 2)) || !strings.Contains(o.out, "shifted") {
		t.Errorf("%+v", o)
	}
}
