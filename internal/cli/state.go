package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

// State is all of the outside world a run may touch. The functions of cmd get
// their effects from it, so that a test can run a whole command in process and
// in parallel with others.
type State struct {
	Args []string          // the command line without the program's name
	Env  map[string]string // the environment

	Stdin          io.Reader
	Stdout, Stderr io.Writer
	StdoutTTY      bool // standard output is a terminal
	StderrTTY      bool // standard error is a terminal: progress may be drawn
	Width          int  // columns tables may use

	Now   func() time.Time
	Files Files

	// Notify returns a context that ends at the first SIGINT or SIGTERM.
	// After stop a second one ends the process. nil: no signals.
	Notify func(context.Context) (_ context.Context, stop context.CancelFunc)
}

// Files is the file access of a run; paths are those of the operating system.
type Files struct {
	ReadFile  func(path string) ([]byte, error)
	Open      func(path string) (fs.File, error)
	Stat      func(path string) (fs.FileInfo, error)
	Dir       func(path string) fs.FS // the tree below path
	Create    func(path string) (io.WriteCloser, error)
	WriteFile func(path string, data []byte) error
	MkdirAll  func(path string) error
}

// PipeWidth is the width of tables that do not go to a terminal: fixed, so that
// the output of a script does not depend on who runs it.
const PipeWidth = 100

// OS returns the state of the real process.
func OS() *State {
	env := map[string]string{}
	for _, kv := range os.Environ() {
		// Windows has entries such as "=C:=C:\"; they are not variables.
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			env[name] = value
		}
	}
	out, err := int(os.Stdout.Fd()), int(os.Stderr.Fd())
	s := &State{
		Args: os.Args[1:], Env: env,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdoutTTY: term.IsTerminal(out), StderrTTY: term.IsTerminal(err),
		Width: PipeWidth,
		Now:   time.Now,
		Files: osFiles(),
		Notify: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		},
	}
	if s.StdoutTTY {
		s.Width = terminalWidth(out)
	}
	return s
}

func osFiles() Files {
	return Files{
		ReadFile: os.ReadFile,
		Open:     func(path string) (fs.File, error) { return os.Open(path) },
		Stat:     os.Stat,
		Dir:      os.DirFS,
		Create:   func(path string) (io.WriteCloser, error) { return os.Create(path) },
		WriteFile: func(path string, data []byte) error {
			return os.WriteFile(path, data, 0o644)
		},
		MkdirAll: func(path string) error { return os.MkdirAll(path, 0o755) },
	}
}

// terminalWidth asks the terminal; one that does not know has 80 columns.
func terminalWidth(fd int) int {
	if w, _, err := term.GetSize(fd); err == nil && w > 0 {
		return w
	}
	return 80
}

// ReadInput reads a file the user named; "-" is standard input. A file that
// cannot be read is bad input.
func (s *State) ReadInput(path string) ([]byte, error) {
	if path == "-" {
		data, err := io.ReadAll(s.Stdin)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return data, nil
	}
	data, err := s.Files.ReadFile(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	return data, nil
}

// OpenInput opens a file the user named, to be read bit by bit; "-" is standard
// input. A file that cannot be opened is bad input.
func (s *State) OpenInput(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(s.Stdin), nil
	}
	f, err := s.Files.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	return f, nil
}
