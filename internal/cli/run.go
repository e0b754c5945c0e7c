package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Program is what distinguishes one command from another.
type Program struct {
	Name      string // "inferasim"
	Prefix    string // "INFERASIM_": every variable that begins with it must be known
	Variables []Variable

	// Classify gives a domain error its kind, "" when it has none to give; nil
	// is allowed.
	Classify func(error) Kind
}

// Run is one execution of a program: its outside world, its settings, its
// output. The constructors of commands take it.
type Run struct {
	State    *State
	Settings *Settings

	program Program
	output  Format
	config  string
	stdout  *pipe
}

// New prepares a run. Standard output is wrapped, so use the run's State and
// not the one passed in.
func New(state *State, program Program) *Run {
	s := *state
	out := &pipe{w: s.Stdout}
	s.Stdout = out
	return &Run{State: &s, Settings: newSettings(program.Prefix), program: program, output: FormatTable, stdout: out}
}

// Main executes root with the arguments of the state and returns the exit
// code. It never panics and never exits the process.
func (r *Run) Main(ctx context.Context, root *cobra.Command) (code int) {
	defer func() {
		if p := recover(); p != nil {
			code = r.finish(ctx, fmt.Errorf("internal error: %v (at %s); this is a bug, please report it with the command line", p, panicSite()))
		}
	}()
	if r.State.Notify != nil {
		var stop context.CancelFunc
		ctx, stop = r.State.Notify(ctx)
		defer stop()
		// Give the second signal its default effect: a command that does not
		// come to an end can still be stopped from the keyboard.
		context.AfterFunc(ctx, stop)
	}
	r.prepare(root)
	return r.finish(ctx, root.ExecuteContext(ctx))
}

// finish writes err to standard error, and as an object to standard output
// when JSON was asked for, and returns the exit code.
func (r *Run) finish(ctx context.Context, err error) int {
	if r.stdout.broken() {
		return ExitBrokenPipe // nobody reads any more: say nothing
	}
	if err == nil {
		if err = r.stdout.err; err == nil {
			return ExitOK
		}
		err = fmt.Errorf("write standard output: %w", err)
	}
	kind := classify(err, r.program.Classify)
	message := oneLine(err.Error())
	if ctx.Err() != nil && (kind == Failure || kind == Interrupted) {
		kind, message = Interrupted, "interrupted"
	}
	hint := oneLine(hintOf(err))
	line := message
	if hint != "" {
		line += "; " + hint
	}
	fmt.Fprintf(r.State.Stderr, "%s: %s\n", r.program.Name, line)
	var e *Error
	if reported := errors.As(err, &e) && e.Reported; !reported && r.wantsJSON() {
		// A write error has nowhere to be reported any more.
		_ = WriteJSON(r.State.Stdout, errorObject{"infera.error/v1", errorFields{kind, message, hint}})
	}
	return kind.ExitCode()
}

// wantsJSON tells whether errors are to be objects. When the command line
// could not be parsed the format is looked for in it, because the caller of
// "-o json --typo" expects an object all the same.
func (r *Run) wantsJSON() bool {
	format := string(r.output)
	if r.Settings.Origin("output") == FromDefault {
		if v := r.State.Env[r.program.Prefix+"OUTPUT"]; v != "" {
			format = v
		}
	}
	for i, arg := range r.State.Args {
		if arg == "--" {
			break
		}
		if v, ok := strings.CutPrefix(arg, "--output="); ok {
			format = v
		} else if arg == "-o" || arg == "--output" {
			if i+1 < len(r.State.Args) {
				format = r.State.Args[i+1]
			}
		} else if v, ok := strings.CutPrefix(arg, "-o"); ok {
			format = strings.TrimPrefix(v, "=")
		}
	}
	return strings.EqualFold(format, string(FormatJSON))
}

// panicSite names the line a panic came from: the first frame below the
// runtime's own that is not this package's recovery.
func panicSite() string {
	pc := make([]uintptr, 32)
	frames := runtime.CallersFrames(pc[:runtime.Callers(1, pc)])
	inPanic := false
	for {
		f, more := frames.Next()
		isRuntime := strings.HasPrefix(f.Function, "runtime.")
		if inPanic && !isRuntime {
			return fmt.Sprintf("%s:%d", f.Function, f.Line)
		}
		inPanic = inPanic || f.Function == "runtime.gopanic"
		if !more {
			return "an unknown place"
		}
	}
}

// pipe is standard output that remembers its first write error.
type pipe struct {
	w   io.Writer
	err error
}

func (p *pipe) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if err != nil && p.err == nil {
		p.err = err
	}
	return n, err
}

// broken tells whether the reader has gone away. The runtime ends a process
// that writes to a broken pipe on its standard output by SIGPIPE; this is for
// when the parent has that signal ignored.
func (p *pipe) broken() bool {
	return errors.Is(p.err, syscall.EPIPE) || errors.Is(p.err, io.ErrClosedPipe)
}

// WriteJSON writes v with its keys in the order of the struct, indented by two
// spaces, without HTML escaping. NaN and infinities are errors and nothing is
// then written.
func WriteJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}
