package trace

import (
	"bufio"
	"io"
	"strconv"

	"infera/sim/workload"
)

// WriteMooncake writes a trace as JSON lines with hash ids of 512-token blocks,
// numbered in order of appearance. What the form has no place for is returned as
// warnings.
func WriteMooncake(w io.Writer, t *Trace) ([]Warning, error) {
	out := bufio.NewWriterSize(w, 1<<16)
	numbers := map[uint64]int{}
	c := chain{size: mooncakeBlock}
	next, line := 0, []byte(nil)
	var lost struct{ sessions, answers, classes, priorities bool }
	for i := range t.Requests {
		r := &t.Requests[i]
		lost.sessions = lost.sessions || r.Session != 0
		lost.answers = lost.answers || r.Answer != 0
		lost.classes = lost.classes || r.Class != 0
		lost.priorities = lost.priorities || r.Priority != 0
		b := appendDecimal(append(line[:0], `{"timestamp": `...), r.Arrival, milliseconds)
		b = strconv.AppendInt(append(b, `, "input_length": `...), int64(r.Input), 10)
		b = strconv.AppendInt(append(b, `, "output_length": `...), int64(r.Output), 10)
		b = append(b, `, "hash_ids": [`...)
		c.of(r)
		for k := range (r.Input + mooncakeBlock - 1) / mooncakeBlock {
			if k > 0 {
				b = append(b, ", "...)
			}
			id := next
			if r.Content != nil {
				known := false
				if id, known = numbers[c.hashes[k]]; !known {
					id = next
					numbers[c.hashes[k]] = id
				}
			}
			if id == next {
				next++
			}
			b = strconv.AppendInt(b, int64(id), 10)
		}
		line = append(b, "]}\n"...)
		if _, err := out.Write(line); err != nil {
			return nil, err
		}
	}
	var warnings []Warning
	for _, l := range []struct {
		lost bool
		what string
	}{
		{lost.sessions, "sessions and turns"}, {lost.answers, "which answers later prompts hold"}, {lost.classes, "classes"}, {lost.priorities, "priorities"},
		{t.Absolute, "the date of the start"}, {!t.Timed, "that there are no arrivals: they are written as 0"},
	} {
		if l.lost {
			warnings = append(warnings, Warning{"lost", "the mooncake form has no place for " + l.what})
		}
	}
	return warnings, out.Flush()
}

// of hashes the blocks of a prompt.
func (c *chain) of(r *workload.Request) {
	c.reset()
	for _, s := range r.Content {
		c.add(s)
	}
	c.close()
}

// Anonymise replaces the identities of content and sessions and the names of
// classes by numbers in order of appearance, from 1. Times, lengths and what
// prompts share stay as they are.
func (t *Trace) Anonymise() {
	content, sessions := numbering{}, numbering{}
	for i := range t.Requests {
		r := &t.Requests[i]
		if r.Content != nil {
			// Turns may share memory.
			renamed := make([]workload.Segment, len(r.Content))
			for k, s := range r.Content {
				renamed[k] = workload.Segment{ID: content.of(s.ID), Tokens: s.Tokens}
			}
			r.Content = renamed
		}
		if r.Answer != 0 {
			r.Answer = content.of(r.Answer)
		}
		if r.Session != 0 {
			r.Session = sessions.of(r.Session)
		}
	}
	for i := range t.Classes {
		t.Classes[i] = "class " + strconv.Itoa(i+1)
	}
}

// numbering numbers identities in order of appearance, from 1.
type numbering map[uint64]uint64

func (n numbering) of(id uint64) uint64 {
	number, ok := n[id]
	if !ok {
		number = uint64(len(n)) + 1
		n[id] = number
	}
	return number
}
