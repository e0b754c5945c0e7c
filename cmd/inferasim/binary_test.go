package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"infera/internal/cli"
)

// build compiles the program as users get it.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program")
	}
	path := filepath.Join(t.TempDir(), "inferasim")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

func TestBinary(t *testing.T) {
	t.Parallel()
	program := build(t)
	clean := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		return cmd
	}
	t.Run("README", func(t *testing.T) {
		start := time.Now()
		out, err := clean(readme()...).Output()
		if err != nil || !bytes.Contains(out, []byte("TPOT")) {
			t.Fatalf("%v\n%s", err, out)
		}
		// The aim is 60 ms on an idle machine; this only catches a blunder.
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("took %v", d)
		}
	})
	t.Run("broken pipe", func(t *testing.T) {
		cmd := clean("model", "list", "-o", "json")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		// The end of the pipe may be noticed before or after the last write.
		_ = cmd.Wait()
		if errs.Len() > 0 {
			t.Errorf("stderr = %q, want silence", errs.String())
		}
	})
	t.Run("interrupt", func(t *testing.T) {
		cmd := clean("validate", "--profiling-mode", "simulate", "--data", points(t, 200_000))
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond) // let it come to the scoring
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		if code := exitCode(err); code != cli.ExitInterrupted || !strings.Contains(errs.String(), "interrupted") {
			t.Errorf("exit code %d, stderr %q, want %d and one word", code, errs.String(), cli.ExitInterrupted)
		}
	})
}

// points writes a table of n equal measured points.
func points(t *testing.T, n int) string {
	t.Helper()
	const row = "r,A,2026-05-01,MI355X,2,0,2,gpt-oss-120b,fp4,vllm,none,1024,1024,8,4,40,200\n"
	return write(t, "points.csv",
		"row_id,quality,date,gpu,n_gpu,disagg,tp,model,weight_dtype,engine,spec_decode,isl,osl,concurrency,tpot_mean_ms,ttft_mean_ms,total_tok_s_per_gpu\n"+strings.Repeat(row, n))
}
