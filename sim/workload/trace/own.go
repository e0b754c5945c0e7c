package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"infera/internal/units"
	"infera/sim/workload"
)

// Schema names the form in which traces are written without loss.
const Schema = "infera.trace/v1"

// Header is the first line of a trace of our own form. A line per request
// follows:
//
//	{"id":0,"arrival_ns":0,"input":700,"output":20,"content":[7,512,9,188]}
//
// content is pairs of identity and tokens; unshared, answer, session, turn, class
// and priority are left out when they are 0.
type Header struct {
	Schema string `json:"schema"`
	// Requests is how many lines follow; 0 = not known when it was written.
	Requests int `json:"requests,omitempty"`
	// BlockSize, Classes, Absolute and Start are those of the [Trace].
	BlockSize int        `json:"block_size,omitempty"`
	Classes   []string   `json:"classes,omitempty"`
	Absolute  bool       `json:"absolute,omitempty"`
	Start     units.Time `json:"start_ns,omitempty"`
	// Untimed says that there are no arrivals.
	Untimed bool `json:"untimed,omitempty"`
}

// infera reads our own form.
func (b *builder) infera(in *input) error {
	next := in.lines()
	h, err := header(next)
	if err != nil {
		return err
	}
	b.BlockSize, b.Classes, b.Absolute, b.Start, b.Timed = h.BlockSize, h.Classes, h.Absolute, h.Start, !h.Untimed
	t := objects(valid(next),
		required("id"), required("arrival_ns"), required("input"), required("output"),
		optional("content"), optional("answer"), optional("session"), optional("turn"), optional("class"), optional("priority"), optional("unshared"),
	)
	var flat []uint64
	err = b.each(t, func(r *row) error {
		if len(t.unused) > 0 {
			return lineError(r.line, "unknown key %s", clip(t.unused[0]))
		}
		var q workload.Request
		if q, flat, err = ownRequest(r, flat, len(h.Classes)); err != nil {
			return err
		}
		return b.add(r.line, q)
	})
	if err != nil {
		return err
	}
	if h.Requests > 0 && len(b.Requests) != h.Requests {
		return lineError(len(b.Requests)+1, "the file ends after %d of %d requests", len(b.Requests), h.Requests)
	}
	return nil
}

// header reads the first line.
func header(next func() ([]byte, int, error)) (*Header, error) {
	line, n, err := next()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: it is empty", ErrTrace)
	}
	if err != nil {
		return nil, err
	}
	if !json.Valid(line) {
		return nil, lineError(n, "%w", syntaxError(line))
	}
	var h Header
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return nil, lineError(n, "header: %w", err)
	}
	switch {
	case h.Schema != Schema:
		return nil, lineError(n, "schema %q, want %s", clip(h.Schema), Schema)
	case h.Requests < 0 || h.BlockSize < 0 || h.BlockSize > workload.MaxTokens || h.Start < 0 || h.Start > latest:
		return nil, lineError(n, "header: %d requests, blocks of %d tokens, start at %d ns", h.Requests, h.BlockSize, h.Start)
	}
	return &h, nil
}

// ownRequest reads one request; flat is scratch.
func ownRequest(r *row, flat []uint64, classes int) (workload.Request, []uint64, error) {
	q, err := r.lengths(2, 3)
	if err != nil {
		return q, flat, err
	}
	if q.Arrival, err = r.time(1, nanoseconds); err != nil {
		return q, flat, err
	}
	for _, whole := range []struct {
		column      int
		least, most int64
		to          *int
	}{
		{0, 0, math.MaxInt64, &q.ID}, {7, 0, math.MaxInt64, &q.Turn}, {8, 0, int64(max(0, classes-1)), &q.Class}, {9, math.MinInt64, math.MaxInt64, &q.Priority}, {10, 0, int64(q.Input), &q.Unshared},
	} {
		if !r.has(whole.column) {
			continue
		}
		n, err := r.whole(whole.column, whole.least, whole.most)
		if err != nil {
			return q, flat, err
		}
		*whole.to = int(n)
	}
	for _, id := range []struct {
		column int
		to     *uint64
	}{{5, &q.Answer}, {6, &q.Session}} {
		if !r.has(id.column) {
			continue
		}
		if *id.to, err = identity(r.cells[id.column]); err != nil {
			return q, flat, r.fail(id.column, errNotWhole)
		}
	}
	if flat, err = r.identities(4, flat); err != nil || len(flat) == 0 {
		return q, flat, err
	}
	if q.Content, err = pairs(flat, q.Input); err != nil {
		err = lineError(r.line, "content: %w", err)
	}
	return q, flat, err
}

var errNotWhole = errors.New("not a whole number")

// pairs makes segments of a list of identities and tokens.
func pairs(flat []uint64, input int) ([]workload.Segment, error) {
	if len(flat)%2 != 0 {
		return nil, errors.New("an identity without tokens")
	}
	content := make([]workload.Segment, len(flat)/2)
	left := uint64(input)
	for i := range content {
		tokens := flat[2*i+1]
		if tokens < 1 || tokens > left {
			return nil, fmt.Errorf("a segment of %d tokens where %d of the prompt are left", tokens, left)
		}
		left -= tokens
		content[i] = workload.Segment{ID: flat[2*i], Tokens: int(tokens)}
	}
	if left > 0 {
		return nil, fmt.Errorf("%d tokens less than the prompt", left)
	}
	return content, nil
}

// Writer writes requests in our own form, one by one.
type Writer struct {
	w    *bufio.Writer
	line []byte
}

// NewWriter writes the header and returns the writer of the requests; the
// header's schema is set.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Schema = Schema
	line, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("write trace: %w", err)
	}
	out := &Writer{w: bufio.NewWriterSize(w, 1<<16)}
	_, err = out.w.Write(append(line, '\n'))
	return out, err
}

// Write writes a request. An error is that of the writer below, and is returned
// by Flush too.
func (w *Writer) Write(r *workload.Request) error {
	b := w.line[:0]
	b = strconv.AppendInt(append(b, `{"id":`...), int64(r.ID), 10)
	b = strconv.AppendInt(append(b, `,"arrival_ns":`...), int64(r.Arrival), 10)
	b = strconv.AppendInt(append(b, `,"input":`...), int64(r.Input), 10)
	b = strconv.AppendInt(append(b, `,"output":`...), int64(r.Output), 10)
	for i, s := range r.Content {
		if i == 0 {
			b = append(b, `,"content":[`...)
		} else {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, s.ID, 10)
		b = strconv.AppendInt(append(b, ','), int64(s.Tokens), 10)
	}
	if len(r.Content) > 0 {
		b = append(b, ']')
	}
	if r.Answer != 0 {
		b = strconv.AppendUint(append(b, `,"answer":`...), r.Answer, 10)
	}
	if r.Session != 0 {
		b = strconv.AppendUint(append(b, `,"session":`...), r.Session, 10)
	}
	for _, f := range [...]struct {
		key   string
		value int
	}{{`,"unshared":`, r.Unshared}, {`,"turn":`, r.Turn}, {`,"class":`, r.Class}, {`,"priority":`, r.Priority}} {
		if f.value != 0 {
			b = strconv.AppendInt(append(b, f.key...), int64(f.value), 10)
		}
	}
	w.line = append(b, '}', '\n')
	_, err := w.w.Write(w.line)
	return err
}

// Flush writes what is still to be written.
func (w *Writer) Flush() error { return w.w.Flush() }

// WriteInfera writes a trace in our own form, which keeps everything.
func WriteInfera(w io.Writer, t *Trace) error {
	out, err := NewWriter(w, Header{
		Requests: len(t.Requests), BlockSize: t.BlockSize, Classes: t.Classes, Absolute: t.Absolute, Start: t.Start, Untimed: !t.Timed,
	})
	if err != nil {
		return err
	}
	for i := range t.Requests {
		if err := out.Write(&t.Requests[i]); err != nil {
			return err
		}
	}
	return out.Flush()
}
