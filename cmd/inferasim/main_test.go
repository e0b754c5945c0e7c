package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"infera/internal/cli"
	"infera/sim/hardware/probe"
)

// outcome is what a command line left behind.
type outcome struct {
	code     int
	out, err string
}

// machine is a run of the program on a machine without GPUs.
type machine struct {
	env   map[string]string
	stdin string
	width int
}

func (m machine) run(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	state := cli.OS()
	state.Args, state.Env = args, m.env
	state.Stdin, state.Stdout, state.Stderr = strings.NewReader(m.stdin), &out, &errs
	state.StdoutTTY, state.StderrTTY, state.Notify = false, false, nil
	state.Width = cli.PipeWidth
	if m.width > 0 {
		state.Width = m.width
	}
	dir := state.Files.Dir
	state.Files.Dir = func(path string) fs.FS {
		if path == "/" {
			return fstest.MapFS{}
		}
		return dir(path)
	}
	a := newApp(state)
	a.tool = func(context.Context, string, ...string) ([]byte, error) { return nil, probe.ErrNotInstalled }
	code := a.execute(t.Context())
	return outcome{code, out.String(), errs.String()}
}

func run(t *testing.T, args ...string) outcome {
	t.Helper()
	return machine{}.run(t, args...)
}

// readme is the first command of the README.
func readme(more ...string) []string {
	return append([]string{
		"project", "--model", "gpt_oss_120B", "--gpu-arch", "mi355x", "--tp", "2", "--ep", "2",
		"--input-len", "1024", "--output-len", "1024", "--max-concurrency", "32", "--profiling-mode", "simulate",
	}, more...)
}

// object decodes the output as one JSON object.
func (o outcome) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(o.out), &v); err != nil {
		t.Fatalf("output is not JSON: %v\n%s\n%s", err, o.out, o.err)
	}
	return v
}

// at walks a dotted path of keys.
func at(t *testing.T, v any, path string) any {
	t.Helper()
	for _, key := range strings.Split(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("%s: %v is no object at %s", path, v, key)
		}
		if v, ok = m[key]; !ok {
			t.Fatalf("%s: no key %s", path, key)
		}
	}
	return v
}

func number(t *testing.T, v any, path string) float64 {
	t.Helper()
	n, ok := at(t, v, path).(float64)
	if !ok {
		t.Fatalf("%s = %v, want a number", path, at(t, v, path))
	}
	return n
}

// want fails unless the code matches and standard error has the texts on one
// line without a stack trace.
func (o outcome) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if o.code != code {
		t.Fatalf("exit code %d, want %d\nstdout: %.500s\nstderr: %s", o.code, code, o.out, o.err)
	}
	for _, text := range texts {
		if !strings.Contains(o.err, text) {
			t.Errorf("stderr %q lacks %q", o.err, text)
		}
	}
	if code != 0 && (strings.Count(o.err, "\n") != 1 || strings.Contains(o.err, "goroutine") || strings.Contains(o.err, "internal error")) {
		t.Errorf("stderr is not one clean line: %q", o.err)
	}
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tinyConfig is a complete config.json of a small made-up model: 16 query and 4
// key/value heads of 64, 8 layers, hidden 1024, feed-forward 4096.
const tinyConfig = `{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":1024,"intermediate_size":4096,
"num_hidden_layers":8,"num_attention_heads":16,"num_key_value_heads":4,"head_dim":64,"vocab_size":32000,
"max_position_embeddings":8192,"tie_word_embeddings":false,"torch_dtype":"bfloat16"}`
