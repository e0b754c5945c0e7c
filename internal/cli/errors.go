package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"infera/internal/strict"
	"infera/internal/units"
)

// Kind is what went wrong, as far as a caller of the command can act on it. It
// decides the exit code and is the "kind" of the error object.
type Kind string

// The kinds, and the exit code of each.
const (
	Failure       Kind = "failure"        // 1: everything that is none of the below
	BadInput      Kind = "bad_input"      // 2: a flag, variable, key or file that cannot be used
	NoCalibration Kind = "no_calibration" // 3: no measurement fits the request
	Infeasible    Kind = "infeasible"     // 4: it does not fit, or no candidate meets the SLO
	Interrupted   Kind = "interrupted"    // 130: SIGINT or SIGTERM
)

// Exit codes of both commands.
const (
	ExitOK            = 0
	ExitFailure       = 1
	ExitBadInput      = 2
	ExitNoCalibration = 3
	ExitInfeasible    = 4
	ExitInterrupted   = 130
	ExitBrokenPipe    = 141 // 128 + SIGPIPE, what a shell reports of any other tool
)

// ExitCode returns the exit code of k.
func (k Kind) ExitCode() int {
	switch k {
	case BadInput:
		return ExitBadInput
	case NoCalibration:
		return ExitNoCalibration
	case Infeasible:
		return ExitInfeasible
	case Interrupted:
		return ExitInterrupted
	default:
		return ExitFailure
	}
}

// Error is an error with a kind and a hint. Errors below cmd need not know it:
// a command wraps what it gets, or [Program.Classify] gives errors a kind.
type Error struct {
	Kind Kind
	Err  error
	Hint string // what to do about it, one sentence, or ""

	// Reported means that the command has already written a complete result
	// to standard output, so that no error object may follow it.
	Reported bool
}

// Error returns the text without the hint.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// Wrap gives err a kind; nil stays nil. A hint err already carries is kept.
func Wrap(kind Kind, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: kind, Err: err, Hint: hintOf(err)}
}

// Errorf builds an error of a kind; %w works as in [fmt.Errorf].
func Errorf(kind Kind, format string, args ...any) error {
	return Wrap(kind, fmt.Errorf(format, args...))
}

// WithHint adds a hint to err and keeps its kind; an empty hint changes nothing.
func WithHint(err error, hint string) error {
	if err == nil || hint == "" {
		return err
	}
	var e *Error
	if errors.As(err, &e) {
		return &Error{Kind: e.Kind, Err: err, Hint: hint, Reported: e.Reported}
	}
	return &Error{Kind: classify(err, nil), Err: err, Hint: hint}
}

// Reported says that the verdict err stands for (a recipe that does not fit,
// say) is already in the output the command wrote: the exit code and the line
// on standard error stay, the error object is left out.
func Reported(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: classify(err, nil), Err: err, Hint: hintOf(err), Reported: true}
}

func hintOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

// classify finds the kind of err: its own, then what domain says, then what
// the packages below this one report about files and quantities.
func classify(err error, domain func(error) Kind) Kind {
	var e *Error
	if errors.As(err, &e) && e.Kind != Failure && e.Kind != "" {
		return e.Kind
	}
	if domain != nil {
		if k := domain(err); k != "" {
			return k
		}
	}
	switch {
	case errors.Is(err, strict.ErrInvalid), errors.Is(err, units.ErrSyntax):
		return BadInput
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return Failure
}

// oneLine joins the lines of a message, of [errors.Join] say, with "; ".
func oneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}

// errorObject is the contract of -o json for every error of every command.
type errorObject struct {
	Schema string      `json:"schema"`
	Error  errorFields `json:"error"`
}

type errorFields struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}
