package trace

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// peeked is how much of a file the format is found out from.
	peeked = 64 << 10
	// longest is the longest record, in bytes: a prompt of four million token
	// ids. What is longer is no record but a file of something else.
	longest = 32 << 20
)

// input is the text of a trace without a byte order mark.
type input struct {
	*bufio.Reader
	// array says that the text is a JSON array rather than lines.
	array bool
	// names are the keys of the first JSON object or, when there is none, the
	// header of CSV, in small letters; start is the beginning of the text, for
	// messages.
	names []string
	json  bool
	start string
}

func newInput(r io.Reader) (*input, error) {
	in := &input{Reader: bufio.NewReaderSize(r, peeked)}
	if start, err := in.Peek(3); err == nil && string(start) == "\xef\xbb\xbf" {
		// What was peeked can be discarded.
		_, _ = in.Discard(3)
	}
	text, err := in.Peek(peeked)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	if text = skipSpace(text); len(text) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrTrace)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	in.start = clip(string(line))
	if text[0] == '[' {
		in.array, text = true, skipSpace(text[1:])
		if len(text) > 0 && text[0] == ']' {
			return nil, fmt.Errorf("%w: it holds no requests", ErrTrace)
		}
	}
	if in.json = in.array || text[0] == '{'; in.json {
		in.names = keys(text)
	} else {
		in.names = strings.Split(string(line), ",")
	}
	for i, n := range in.names {
		in.names[i] = strings.ToLower(strings.Trim(n, "\" \t\r"))
	}
	return in, nil
}

// lines returns a function that yields the lines that are not blank, without
// their ends, with their numbers from 1, then io.EOF. A line is valid until the
// next call.
func (in *input) lines() func() ([]byte, int, error) {
	n := 0
	var long []byte
	return func() ([]byte, int, error) {
		for {
			n++
			long = long[:0]
			line, err := in.ReadSlice('\n')
			for errors.Is(err, bufio.ErrBufferFull) {
				if long = append(long, line...); len(long) > longest {
					return nil, n, lineError(n, "longer than %d MiB", longest>>20)
				}
				line, err = in.ReadSlice('\n')
			}
			if len(long) > 0 {
				long = append(long, line...)
				line = long
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, n, fmt.Errorf("read trace: line %d: %w", n, err)
			}
			if line = bytes.TrimSpace(line); len(line) > 0 {
				return line, n, nil
			}
			if err != nil {
				return nil, n, io.EOF
			}
		}
	}
}

// values returns a function that yields the values of a JSON array or of lines
// of JSON, with the line on which each begins, then io.EOF. A value is valid
// JSON until the next call.
func (in *input) values() func() ([]byte, int, error) {
	if in.array {
		return in.elements()
	}
	return valid(in.lines())
}

// valid refuses lines that are not JSON.
func valid(next func() ([]byte, int, error)) func() ([]byte, int, error) {
	return func() ([]byte, int, error) {
		line, n, err := next()
		if err == nil && !json.Valid(line) {
			err = lineError(n, "%w", syntaxError(line))
		}
		return line, n, err
	}
}

// syntaxError says what is wrong with JSON that is not valid.
func syntaxError(text []byte) error {
	var raw json.RawMessage
	err := json.NewDecoder(bytes.NewReader(text)).Decode(&raw)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON is cut off")
	case err == nil:
		return errors.New("not JSON: something follows the value")
	}
	return fmt.Errorf("not JSON: %w", err)
}

// elements yields the values of an array.
func (in *input) elements() func() ([]byte, int, error) {
	tape := &tape{r: in}
	d := json.NewDecoder(tape)
	opened := false
	fail := func(err error) ([]byte, int, error) {
		line := tape.line(d.InputOffset())
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, line, lineError(line, "the JSON array is cut off")
		case errors.Is(err, errLong):
			return nil, line, lineError(line, "a value longer than %d MiB", longest>>20)
		case tape.failed != nil:
			return nil, line, fmt.Errorf("read trace: line %d: %w", line, tape.failed)
		}
		return nil, line, lineError(line, "not JSON: %w", err)
	}
	return func() ([]byte, int, error) {
		if !opened {
			opened = true
			if _, err := d.Token(); err != nil {
				return fail(err)
			}
		}
		if d.More() {
			var raw json.RawMessage
			if err := d.Decode(&raw); err != nil {
				return fail(err)
			}
			return raw, tape.line(d.InputOffset() - int64(len(raw))), nil
		}
		if _, err := d.Token(); err != nil {
			return fail(err)
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			line := tape.line(d.InputOffset())
			return nil, line, lineError(line, "something follows the JSON array")
		}
		return nil, 0, io.EOF
	}
}

var errLong = errors.New("too long")

// tape is a reader that remembers where the lines of what it has read are, from
// the last question on.
type tape struct {
	r       io.Reader
	failed  error
	read    int64
	asked   int64
	lines   int     // ends of lines before the last question
	lineEnd []int64 // those after, and some before
	next    int     // the first after, in lineEnd
}

func (t *tape) Read(p []byte) (int, error) {
	if t.read-t.asked > longest {
		return 0, errLong
	}
	if t.next > len(t.lineEnd)/2 {
		t.lineEnd = append(t.lineEnd[:0], t.lineEnd[t.next:]...)
		t.next = 0
	}
	n, err := t.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			t.lineEnd = append(t.lineEnd, t.read+int64(i))
		}
	}
	t.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		t.failed = err
	}
	return n, err
}

// line returns the number of the line that an offset is on; offsets do not fall.
func (t *tape) line(offset int64) int {
	for ; t.next < len(t.lineEnd) && t.lineEnd[t.next] < offset; t.next++ {
		t.lines++
	}
	t.asked = offset
	return t.lines + 1
}

// limited is a reader that fails on lines that are none.
type limited struct {
	r    io.Reader
	line int
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if i := bytes.LastIndexByte(p[:n], '\n'); i >= 0 {
		l.line = n - 1 - i
	} else if l.line += n; l.line > longest {
		return 0, errLong
	}
	return n, err
}

// csvLines returns a reader of records of CSV.
func (in *input) csvLines() *csv.Reader {
	r := csv.NewReader(&limited{r: in})
	r.ReuseRecord = true
	return r
}

// csvError is the error of reading a record.
func csvError(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return lineError(parse.Line, "%w", parse.Err)
	}
	if errors.Is(err, errLong) {
		return fmt.Errorf("%w: a line longer than %d MiB", ErrTrace, longest>>20)
	}
	return fmt.Errorf("read trace: %w", err)
}
