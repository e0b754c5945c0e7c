package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infera/internal/units"
)

// fake is a run whose outside world is in memory.
type fake struct {
	args   []string
	env    map[string]string
	files  fstest.MapFS
	width  int
	tty    bool
	stdout io.Writer // nil: collected
	ctx    context.Context

	out, err bytes.Buffer
	written  map[string][]byte
	request  request
	run      *Run
}

// request is what the test commands fill.
type request struct {
	TP     int
	Arch   string
	HBM    *units.Bytes
	Hit    float64
	Engine string
	Graphs bool
	Tags   []string
	Think  units.Seconds
}

var errShort = errors.New("short of memory")

func (f *fake) main(t testing.TB) int {
	t.Helper()
	if f.width == 0 {
		f.width = PipeWidth
	}
	f.written = map[string][]byte{}
	var out io.Writer = &f.out
	if f.stdout != nil {
		out = f.stdout
	}
	state := &State{
		Args: f.args, Env: f.env, Stdin: bytes.NewReader(nil), Stdout: out, Stderr: &f.err,
		StderrTTY: f.tty, Width: f.width,
		Now: func() time.Time { return time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC) },
		Files: Files{
			ReadFile:  f.files.ReadFile,
			Open:      func(path string) (fs.File, error) { return f.files.Open(path) },
			Stat:      f.files.Stat,
			WriteFile: func(path string, data []byte) error { f.written[path] = data; return nil },
			MkdirAll:  func(string) error { return nil },
		},
	}
	ctx := f.ctx
	if ctx == nil {
		ctx = t.Context()
	}
	f.run = New(state, Program{
		Name: "demo", Prefix: "DEMO_",
		Variables: []Variable{
			{Group: "Main", Name: "DEMO_GPU_ARCH", Flag: "gpu-arch", Help: "hardware profile"},
			{Group: "Main", Name: "DEMO_BENCH_BACKEND", Flag: "engine", Default: "vllm", Help: "engine"},
			{Group: "Main", Name: "DEMO_ITERS", Default: "64", Check: Checked(Int(new(int), 1, 1000)), Help: "iterations"},
			{Group: "Main", Name: "DEMO_BENCH_ENGINE", Flag: "serving", Help: "engine of a harvest"},
			{Group: "Main", Name: "DEMO_PLAIN", Help: "finds the flag of its name"},
			{Group: "Main", Name: "DEMO_DEBUG", Check: Boolean, Help: "print more"},
			{Group: "Main", Name: "DEMO_API_TOKEN", Help: "secret"},
			{Group: "Main", Name: "OTHER_URL", Help: "of another program"},
		},
		Classify: func(err error) Kind {
			if errors.Is(err, errShort) {
				return Infeasible
			}
			return ""
		},
	})
	return f.run.Main(ctx, f.root())
}

func (f *fake) root() *cobra.Command {
	root := &cobra.Command{Use: "demo", Short: "Test program"}
	project := &cobra.Command{Use: "project", RunE: func(*cobra.Command, []string) error {
		return f.run.Emit(Report{
			JSON: f.request,
			Text: func(w io.Writer, _ int) error { _, err := fmt.Fprintf(w, "tp %d\n", f.request.TP); return err },
		})
	}}
	f.requestFlags(project.Flags())
	group := &cobra.Command{Use: "model", Short: "Models"}
	group.AddCommand(
		&cobra.Command{Use: "list", RunE: func(*cobra.Command, []string) error { return nil }},
		&cobra.Command{Use: "show NAME", Args: cobra.ExactArgs(1), RunE: func(*cobra.Command, []string) error { return nil }},
	)
	simulate := &cobra.Command{Use: "simulate", RunE: func(*cobra.Command, []string) error { return nil }}
	simulate.Flags().Int("des-seed", 0, "seed")
	simulate.Flags().String("trace", "", "trace file")
	_ = simulate.MarkFlagRequired("trace")
	root.AddCommand(project, group, simulate, f.failing(),
		f.run.EnvCommand(), f.run.CompletionCommand(), f.run.ManCommand(), f.run.VersionCommand())
	return root
}

func (f *fake) requestFlags(fs *pflag.FlagSet) {
	r := &f.request
	r.TP, r.Engine = 1, "vllm"
	fs.Var(Int(&r.TP, 1, 64), "tp", "tensor parallel")
	fs.StringVar(&r.Arch, "gpu-arch", "", "hardware profile")
	fs.Var(Optional(&r.HBM, func(p *units.Bytes) pflag.Value { return Bytes(p, units.GB, 1) }), "hbm-capacity-gb", "memory of one GPU")
	fs.Var(Float(&r.Hit, 0, 1), "prefix-cache-hit-rate", "share of prompt tokens found")
	fs.Var(Choice(&r.Engine, "vllm", "sglang", "atom"), "engine", "engine")
	fs.BoolVar(&r.Graphs, "graphs", false, "capture graphs")
	fs.StringSliceVar(&r.Tags, "tag", nil, "labels")
	fs.Var(Duration(&r.Think, 1e-3, 0), "think-ms", "think time")
	fs.String("bench-engine", "", "second flag of a variable")
	fs.String("serving", "", "first flag of it")
	fs.Int("plain", 0, "pflag's own int")
}

// failing ends in the way --how says.
func (f *fake) failing() *cobra.Command {
	var how string
	cmd := &cobra.Command{Use: "fail", RunE: func(cmd *cobra.Command, _ []string) error {
		switch how {
		case "domain":
			return fmt.Errorf("weights: %w", errShort)
		case "calibration":
			return WithHint(Errorf(NoCalibration, "no measurement fits"), "use --profiling-mode simulate")
		case "reported":
			if err := WriteJSON(f.run.State.Stdout, struct {
				Feasible bool `json:"feasible"`
			}{}); err != nil {
				return err
			}
			return Reported(errShort)
		case "joined":
			return errors.Join(errors.New("one"), errors.New("two"))
		case "nan":
			return f.run.Emit(Report{JSON: math.NaN(), Text: nil})
		case "csv":
			return f.run.Emit(Report{})
		case "panic":
			_ = f.request.Tags[len(how)]
		case "wait":
			<-cmd.Context().Done()
			return cmd.Context().Err()
		}
		return errors.New("plain")
	}}
	cmd.Flags().StringVar(&how, "how", "", "")
	return cmd
}
