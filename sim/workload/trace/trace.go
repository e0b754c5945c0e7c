package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"infera/internal/units"
	"infera/sim/workload"
)

// ErrTrace is the kind of errors about traces that cannot be used.
var ErrTrace = errors.New("bad trace")

// Format is the form in which a trace is written.
type Format string

// The formats; the package comment says what each looks like.
const (
	Infera        Format = "infera"
	Mooncake      Format = "mooncake"
	Bailian       Format = "bailian"
	Azure         Format = "azure"
	BurstGPT      Format = "burstgpt"
	LLMServingSim Format = "llmservingsim"
	Workload      Format = "workload"
	ShareGPT      Format = "sharegpt"
	VLLM          Format = "vllm"
)

// Formats lists the formats.
func Formats() []Format {
	return []Format{Infera, Mooncake, Bailian, Azure, BurstGPT, LLMServingSim, Workload, ShareGPT, VLLM}
}

// Options says how a trace is read.
type Options struct {
	// Format is that of the file; "" = found out from its beginning.
	Format Format
	// BlockSize is how many tokens a hash id of a mooncake or bailian trace
	// stands for; 0 = what the format is published with.
	BlockSize int
}

// Warning is something to know about what was read.
type Warning struct{ Code, Text string }

// Trace is a recorded workload.
type Trace struct {
	Format Format
	// Requests are in order of arrival.
	Requests []workload.Request
	// BlockSize is how many tokens the blocks have that prompts are known by; 0
	// = nothing is known of what prompts share.
	BlockSize int
	// Classes names the classes of the requests; nil = there are none.
	Classes []string
	// Timed is false when the format has no arrivals: all requests are at 0.
	Timed bool
	// Absolute says that timestamps were dates. Start is what was subtracted
	// from them, since 1970-01-01 UTC for dates.
	Absolute bool
	Start    units.Time
	Warnings []Warning
}

// Read reads a trace. Errors about its content are of kind [ErrTrace] and name
// the line.
func Read(r io.Reader, o Options) (*Trace, error) {
	in, err := newInput(r)
	if err != nil {
		return nil, err
	}
	format := o.Format
	if format == "" {
		if format, err = detect(in); err != nil {
			return nil, err
		}
	}
	if o.BlockSize < 0 || o.BlockSize > workload.MaxTokens || o.BlockSize > 0 && format != Mooncake && format != Bailian {
		return nil, fmt.Errorf("%w: blocks of %d tokens, want a mooncake or bailian trace and 1 to %d", ErrTrace, o.BlockSize, workload.MaxTokens)
	}
	b := &builder{Trace: Trace{Format: format, BlockSize: o.BlockSize, Timed: true}}
	if err := b.read(in); err != nil {
		return nil, err
	}
	if len(b.Requests) == 0 {
		return nil, fmt.Errorf("%w: it holds no requests", ErrTrace)
	}
	b.finish()
	return &b.Trace, nil
}

func (b *builder) read(in *input) error {
	switch b.Format {
	case Infera:
		return b.infera(in)
	case Mooncake:
		return b.mooncake(in)
	case Bailian:
		return b.bailian(in)
	case Azure:
		return b.azure(in)
	case BurstGPT:
		return b.burstGPT(in)
	case LLMServingSim:
		return b.llmServingSim(in)
	case Workload:
		return b.workload(in)
	case ShareGPT:
		return b.shareGPT(in)
	case VLLM:
		return b.vllm(in)
	}
	return fmt.Errorf("%w: unknown format %q", ErrTrace, string(b.Format))
}

// lineError is an error about a line of a trace, of kind [ErrTrace].
func lineError(line int, format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %w", ErrTrace, line, fmt.Errorf(format, args...))
}

// builder is a trace under construction.
type builder struct {
	Trace
	clock clock
	// known maps the names of classes to their positions.
	known map[string]int
	// unused are names of columns that are not read.
	unused []string
}

func (b *builder) warn(code, format string, args ...any) {
	b.Warnings = append(b.Warnings, Warning{code, fmt.Sprintf(format, args...)})
}

// class returns the position of a class of a name, which may be "".
func (b *builder) class(name string) int {
	i, ok := b.known[name]
	if !ok {
		if b.known == nil {
			b.known = map[string]int{}
		}
		i = len(b.Classes)
		b.known[name], b.Classes = i, append(b.Classes, name)
	}
	return i
}

// add takes a request that was read from a line.
func (b *builder) add(line int, r workload.Request) error {
	if b.Timed {
		if err := b.clock.add(line, r.Arrival); err != nil {
			return err
		}
	}
	b.Requests = append(b.Requests, r)
	return nil
}

// finish puts the requests in order from 0.
func (b *builder) finish() {
	if c := &b.clock; c.unsorted > 0 {
		b.warn("unsorted", "%d timestamps are before the one above, first on line %d: sorted", c.unsorted, c.firstFall)
		slices.SortStableFunc(b.Requests, func(x, y workload.Request) int { return cmp.Compare(x.Arrival, y.Arrival) })
	}
	if b.Format != Infera {
		b.shift()
		if len(b.Classes) == 1 && b.Classes[0] == "" {
			b.Classes = nil
		}
	}
	if !slices.ContainsFunc(b.Requests, func(r workload.Request) bool { return r.Content != nil }) {
		if b.Format != Infera {
			b.BlockSize = 0
		}
		b.warn("no_content", "nothing is known of what prompts share: no prefix cache finds anything")
	}
	if !b.Timed {
		b.warn("no_arrivals", "the format has no arrivals: all requests come at 0")
	}
	if len(b.unused) > 0 {
		b.warn("not_read", "the format has no use for: %s", strings.Join(b.unused, ", "))
	}
}

// shift puts the first request at 0 and numbers all.
func (b *builder) shift() {
	b.Start = b.clock.earliest
	b.Absolute = b.Start >= epoch
	switch {
	case b.Absolute:
		b.warn("shifted", "timestamps are dates from %s: the first request is at 0", b.Started())
	case b.Start > 0:
		b.warn("shifted", "timestamps begin at %s s: the first request is at 0", decimal(b.Start, seconds))
	}
	for i := range b.Requests {
		b.Requests[i].ID = i
		b.Requests[i].Arrival -= b.Start
	}
}

// Started returns the date of the first request in UTC, "" when timestamps were
// no dates.
func (t *Trace) Started() string {
	if !t.Absolute {
		return ""
	}
	return time.Unix(0, int64(t.Start)).UTC().Format("2006-01-02T15:04:05.999999999Z")
}

// First keeps the first n requests.
func (t *Trace) First(n int) {
	t.Requests = t.Requests[:min(max(n, 0), len(t.Requests))]
}

// Stretch multiplies every arrival; prompts and what they share stay. A factor
// of 1/k makes the rate k times as high. The error is of kind [ErrTrace].
func (t *Trace) Stretch(factor float64) error {
	if !(factor > 0) {
		return fmt.Errorf("%w: time cannot be stretched by %v", ErrTrace, factor)
	}
	if factor == 1 {
		return nil
	}
	for i := range t.Requests {
		at := float64(t.Requests[i].Arrival) * factor
		if !(at < float64(latest)) {
			return fmt.Errorf("%w: stretched by %v, request %d arrives after more than 100 years", ErrTrace, factor, i)
		}
		t.Requests[i].Arrival = units.Time(at + 0.5)
	}
	return nil
}

// Pairs returns the lengths of the requests, for a workload that draws them.
func (t *Trace) Pairs() []workload.Pair {
	out := make([]workload.Pair, len(t.Requests))
	for i := range t.Requests {
		out[i] = workload.Pair{Input: t.Requests[i].Input, Output: t.Requests[i].Output}
	}
	return out
}
