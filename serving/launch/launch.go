package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"infera/serving/launch/shell"
)

// ErrBadCommand is the kind of every error of this package.
var ErrBadCommand = errors.New("launch command")

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBadCommand, fmt.Sprintf(format, args...))
}

// Engine is the name of an inference engine, as flags and files spell it.
type Engine string

// The engines whose command lines are understood.
const (
	VLLM   Engine = "vllm"
	SGLang Engine = "sglang"
	ATOM   Engine = "atom"
)

// Source says where on the line an argument stands.
type Source string

// The places of an argument.
const (
	SourceFlag       Source = "flag"       // an option of the engine
	SourcePositional Source = "positional" // a bare word of the engine's command
	SourceEnv        Source = "env"        // an environment variable set on the line
	SourceWrapper    Source = "wrapper"    // a word of what starts the engine: nohup, numactl, docker run, another command
	SourceShell      Source = "shell"      // a redirection
)

// Status says what became of an argument.
type Status string

// The fates of an argument.
const (
	Used        Status = "used"         // sets the field of the plan to the value as given
	Translated  Status = "translated"   // sets the field of the plan to something derived from the value
	NotModelled Status = "not_modelled" // sets nothing
)

// Argument is one argument of the line and what became of it.
type Argument struct {
	// Name is the flag, variable or word as it was written, without its value.
	Name string `json:"name"`
	// Value is the value as it was written, after the shell's quote removal.
	// Secrets (API keys, tokens) are replaced by "***".
	Value  string `json:"value,omitempty"`
	Source Source `json:"source"`
	Status Status `json:"status"`
	// Field names the fields of the plan that the argument sets, comma-separated
	// when it sets several; see [Fields].
	Field string `json:"field,omitempty"`
	// Material is true for an argument that can change speed or memory.
	Material bool `json:"material"`
	// Note says how the value was read, or why it was not.
	Note string `json:"note,omitempty"`

	flag string // the known flag's first name, for the last-one-wins rule
}

// Command is a launch command that was understood.
type Command struct {
	Engine    Engine
	Settings  Settings
	Arguments []Argument
}

// maxLine is the longest line in bytes: what Linux passes to a program as one
// argument (MAX_ARG_STRLEN).
const maxLine = 128 << 10

// Parse reads the command line of one inference engine. Every error is an
// [ErrBadCommand]: a line that a shell would refuse, no engine or two engines on
// it, a value that the engine would refuse, or a variable that is not expanded
// in a value that matters.
func Parse(line string) (*Command, error) {
	if len(line) > maxLine {
		return nil, bad("the line has %d bytes; at most %d are read", len(line), maxLine)
	}
	statements, err := shell.Split(line)
	if err != nil {
		return nil, bad("%s", err)
	}
	found, err := locate(statements, 0)
	if err != nil {
		return nil, err
	}
	p := newParser(found.engine)
	p.args = append(p.args, found.wrapper...)
	if err := p.environment(found.env); err != nil {
		return nil, err
	}
	if err := p.words(found.words); err != nil {
		return nil, err
	}
	p.args = append(p.args, found.shell...)
	if err := p.finish(); err != nil {
		return nil, err
	}
	return &Command{Engine: found.engine, Settings: p.s, Arguments: p.args}, nil
}

// Limit marks as not modelled every argument none of whose fields is in fields,
// so that the report of a caller that consumes only a part of [Settings] stays
// true.
func (c *Command) Limit(fields ...string) {
	for i := range c.Arguments {
		a := &c.Arguments[i]
		if a.Field == "" || a.Status == NotModelled {
			continue
		}
		var keep []string
		for _, f := range strings.Split(a.Field, ",") {
			if slices.Contains(fields, f) {
				keep = append(keep, f)
			}
		}
		if len(keep) == 0 {
			a.Status = NotModelled
			a.Note = join("understood as "+a.Field+", which this projection does not take", a.Note)
		}
		a.Field = strings.Join(keep, ",")
	}
}

// Ignored returns the arguments that can change speed or memory and set nothing.
func (c *Command) Ignored() []Argument {
	var out []Argument
	for _, a := range c.Arguments {
		if a.Material && a.Status == NotModelled {
			out = append(out, a)
		}
	}
	return out
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
