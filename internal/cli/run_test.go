package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		args string
		code int
		want string // standard error
	}{
		{"project", 0, ""},
		{"", 0, ""},
		{"model", 0, ""},
		{"fail", 1, "demo: plain\n"},
		{"fail --how joined", 1, "demo: one; two\n"},
		{"fail --how nan -o json", 1, "demo: write JSON: json: unsupported value: NaN\n"},
		{"fail --how csv -o csv", 2, "demo: --output csv is not offered by this command; allowed: table, json\n"},
		{"fail --how calibration", 3, "demo: no measurement fits; use --profiling-mode simulate\n"},
		{"fail --how domain", 4, "demo: weights: short of memory\n"},
		{"fail --how reported -o json", 4, "demo: short of memory\n"},
		{"projct", 2, "demo: unknown command \"projct\" for \"demo\"; did you mean \"project\"?\n"},
		{"model lsit", 2, "demo: unknown command \"lsit\" for \"demo model\"; did you mean \"list\"?\n"},
		{"help projct", 2, "demo: unknown command \"projct\" for \"demo\"; did you mean \"project\"?\n"},
		{"model show", 2, "demo: accepts 1 arg(s), received 0\n"},
		{"project extra", 2, "demo: unexpected argument \"extra\": demo project takes flags only\n"},
		{"project --gpu-arhc x", 2, "demo: unknown flag --gpu-arhc for demo project; did you mean \"--gpu-arch\"?\n"},
		{"project --des-seed 1", 2, "demo: unknown flag --des-seed for demo project; it belongs to simulate\n"},
		{"project -x", 2, "demo: unknown flag -x for demo project\n"},
		{"project --tp", 2, "demo: --tp needs a value\n"},
		{"project --tp 0", 2, "demo: --tp: 0 is out of range; allowed: a whole number from 1 to 64\n"},
		{"project --tp=-1", 2, "demo: --tp: -1 is out of range; allowed: a whole number from 1 to 64\n"},
		{"project --tp 99999999999999999999", 2, "demo: --tp: 99999999999999999999 is out of range; allowed: a whole number from 1 to 64\n"},
		{"project --tp two", 2, "demo: --tp: \"two\" is not a whole number; allowed: a whole number from 1 to 64\n"},
		{"project --plain 1.5", 2, "demo: --plain: \"1.5\" is not a whole number\n"},
		{"project --prefix-cache-hit-rate NaN", 2, "demo: --prefix-cache-hit-rate: \"NaN\" is not a finite number; allowed: 0 to 1\n"},
		{"project --prefix-cache-hit-rate 1e999", 2, "demo: --prefix-cache-hit-rate: \"1e999\" is not a finite number; allowed: 0 to 1\n"},
		{"project --prefix-cache-hit-rate 1.5", 2, "demo: --prefix-cache-hit-rate: 1.5 is out of range; allowed: 0 to 1\n"},
		{"project --hbm-capacity-gb 0", 2, "demo: --hbm-capacity-gb: 0 is too small; allowed: at least 1 B\n"},
		{"project --hbm-capacity-gb 80GX", 2, "demo: --hbm-capacity-gb: \"80GX\" is not an amount of memory: unit \"GX\" is not one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB\n"},
		{"project --engine vlm", 2, "demo: --engine: \"vlm\" is not known; allowed: vllm, sglang, atom; did you mean \"vllm\"?\n"},
		{"project --config none.yaml", 2, "demo: read none.yaml: file does not exist\n"},
		{"simulate", 2, "demo: demo simulate needs --trace\n"},
		{"completion bsh", 2, "demo: \"bsh\" is not known; allowed: bash, zsh, fish, powershell; did you mean \"bash\"?\n"},
		{"project -o jsno", 2, "demo: --output: \"jsno\" is not known; allowed: table, json, csv; did you mean \"json\"?\n"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			f := &fake{args: strings.Fields(tt.args)}
			code := f.main(t)
			if code != tt.code || f.err.String() != tt.want {
				t.Errorf("exit %d, stderr %q; want %d, %q", code, f.err.String(), tt.code, tt.want)
			}
		})
	}
}

func TestErrorObject(t *testing.T) {
	for _, tt := range []struct {
		args string
		env  map[string]string
		want errorFields
	}{
		{"fail -o json", nil, errorFields{Failure, "plain", ""}},
		{"fail -ojson --how domain", nil, errorFields{Infeasible, "weights: short of memory", ""}},
		{"fail --output=json --how calibration", nil, errorFields{NoCalibration, "no measurement fits", "use --profiling-mode simulate"}},
		{"project -o json --bad", nil, errorFields{BadInput, "unknown flag --bad for demo project", `did you mean "--tag"?`}},
		{"project --bad -o json", nil, errorFields{BadInput, "unknown flag --bad for demo project", `did you mean "--tag"?`}},
		{"nothing", map[string]string{"DEMO_OUTPUT": "json"}, errorFields{BadInput, `unknown command "nothing" for "demo"`, "known: completion, env, fail, man, model, project, simulate, version"}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			f := &fake{args: strings.Fields(tt.args), env: tt.env}
			code := f.main(t)
			var got errorObject
			if err := json.Unmarshal(f.out.Bytes(), &got); err != nil {
				t.Fatalf("standard output is not one object: %v: %s", err, f.out.String())
			}
			want := errorObject{"infera.error/v1", tt.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			if code != tt.want.Kind.ExitCode() || strings.Count(f.err.String(), "\n") != 1 {
				t.Errorf("exit %d, stderr %q", code, f.err.String())
			}
		})
	}
}

// A verdict that is already in the output is not followed by a second object.
func TestReported(t *testing.T) {
	f := &fake{args: []string{"fail", "--how", "reported", "-o", "json"}}
	if code := f.main(t); code != ExitInfeasible || f.out.String() != "{\n  \"feasible\": false\n}\n" {
		t.Errorf("exit %d, stdout %s", code, f.out.String())
	}
}

func TestPanic(t *testing.T) {
	f := &fake{args: []string{"fail", "--how", "panic"}}
	code := f.main(t)
	text := f.err.String()
	if code != ExitFailure || strings.Count(text, "\n") != 1 || strings.Contains(text, "goroutine") ||
		!strings.HasPrefix(text, "demo: internal error: runtime error: index out of range [5] with length 0 (at infera/internal/cli.(*fake).failing") {
		t.Errorf("exit %d, stderr %q", code, text)
	}
}

func TestInterrupt(t *testing.T) {
	f := &fake{args: []string{"fail", "--how", "wait", "-o", "json"}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.ctx = ctx
	if code := f.main(t); code != ExitInterrupted || f.err.String() != "demo: interrupted\n" || !strings.Contains(f.out.String(), `"kind": "interrupted"`) {
		t.Errorf("exit %d, stderr %q, stdout %q", code, f.err.String(), f.out.String())
	}
}

// The first signal of a real process ends the context of the command.
func TestSignal(t *testing.T) {
	state := OS()
	ctx, stop := state.Notify(t.Context())
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGTERM); err != nil {
		t.Skipf("this system cannot signal itself: %v", err)
	}
	<-ctx.Done()
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestBrokenPipe(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int
		want string
	}{
		{&os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}, ExitBrokenPipe, ""},
		{io.ErrClosedPipe, ExitBrokenPipe, ""},
		{errors.New("no space left on device"), ExitFailure, "demo: no space left on device\n"},
	} {
		for _, args := range []string{"project", "project -o json"} {
			f := &fake{args: strings.Fields(args), stdout: failingWriter{tt.err}}
			if code := f.main(t); code != tt.code || f.err.String() != tt.want {
				t.Errorf("%s with %v: exit %d, stderr %q", args, tt.err, code, f.err.String())
			}
		}
	}
	// Help is written by cobra, which ignores the error.
	f := &fake{args: []string{"--help"}, stdout: failingWriter{errors.New("no space left on device")}}
	if code := f.main(t); code != ExitFailure || f.err.String() != "demo: write standard output: no space left on device\n" {
		t.Errorf("help: exit %d, stderr %q", code, f.err.String())
	}
}

func TestWriteJSON(t *testing.T) {
	var b strings.Builder
	if err := WriteJSON(&b, struct {
		B string `json:"b"`
		A int    `json:"a"`
	}{"<&>", 1}); err != nil || b.String() != "{\n  \"b\": \"<&>\",\n  \"a\": 1\n}\n" {
		t.Errorf("WriteJSON: %v, %q", err, b.String())
	}
}

func TestReadInput(t *testing.T) {
	f := &fake{args: []string{"version"}, files: fstest.MapFS{"a.txt": {Data: []byte("x")}}}
	f.main(t)
	if data, err := f.run.State.ReadInput("a.txt"); err != nil || string(data) != "x" {
		t.Errorf("ReadInput = %q, %v", data, err)
	}
	if _, err := f.run.State.ReadInput("b.txt"); classify(err, nil) != BadInput {
		t.Errorf("ReadInput of a missing file: %v", err)
	}
	if data, err := f.run.State.ReadInput("-"); err != nil || len(data) != 0 {
		t.Errorf("ReadInput of standard input = %q, %v", data, err)
	}
	for name, want := range map[string]string{"a.txt": "x", "-": ""} {
		in, err := f.run.State.OpenInput(name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil || string(data) != want {
			t.Errorf("OpenInput(%q) = %q, %v", name, data, err)
		}
		if err := in.Close(); err != nil {
			t.Errorf("closing %q: %v", name, err)
		}
	}
	if _, err := f.run.State.OpenInput("b.txt"); classify(err, nil) != BadInput {
		t.Errorf("OpenInput of a missing file: %v", err)
	}
}

// What a run costs before and after its own work.
func BenchmarkMain(b *testing.B) {
	env := map[string]string{"DEMO_TP": "4", "HOME": "/root", "PATH": "/bin"}
	for b.Loop() {
		f := &fake{args: []string{"project", "--gpu-arch", "mi300x", "-o", "json"}, env: env, ctx: b.Context()}
		if code := f.main(b); code != 0 {
			b.Fatal(f.err.String())
		}
	}
}
