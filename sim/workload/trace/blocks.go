package trace

import (
	"infera/sim/workload"
)

// The formats that know prompts by hash ids, and those that know lengths only.

const (
	mooncakeBlock = 512
	bailianBlock  = 16
)

// mooncake reads the traces of the Mooncake project (github.com/kvcache-ai/Mooncake).
func (b *builder) mooncake(in *input) error {
	if b.BlockSize == 0 {
		b.BlockSize = mooncakeBlock
	}
	t := in.objects(
		required("timestamp", "arrival", "arrival_ms", "time"),
		required("input_length", "isl", "input_len", "prompt_len"),
		required("output_length", "osl", "output_len"),
		optional("hash_ids", "block_hashes", "blocks"),
	)
	var ids []uint64
	return b.each(t, func(r *row) error {
		q, err := r.hashed(milliseconds, &ids, b.BlockSize)
		if err != nil {
			return err
		}
		return b.add(r.line, q)
	})
}

// hashed reads what rows with hash ids begin with: arrival, lengths and ids, in
// columns 0 to 3. ids is scratch.
func (r *row) hashed(u unit, ids *[]uint64, size int) (workload.Request, error) {
	q, err := r.lengths(1, 2)
	if err != nil {
		return q, err
	}
	if q.Arrival, err = r.time(0, u); err != nil {
		return q, err
	}
	*ids, q.Content, err = r.blocks(3, *ids, q.Input, size)
	return q, err
}

// blocks reads hash ids, into the slice given, and makes segments of them.
func (r *row) blocks(column int, ids []uint64, input, size int) ([]uint64, []workload.Segment, error) {
	ids, err := r.identities(column, ids)
	if err != nil {
		return ids, nil, err
	}
	content, err := blocksOf(ids, input, size)
	if err != nil {
		return ids, nil, lineError(r.line, "%w", err)
	}
	return ids, content, nil
}

// identities reads a list of whole numbers into the slice given.
func (r *row) identities(column int, ids []uint64) ([]uint64, error) {
	ids = ids[:0]
	if !r.has(column) {
		return ids, nil
	}
	err := numbers(r.cells[column], func(text []byte) error {
		id, err := identity(text)
		ids = append(ids, id)
		return err
	})
	if err != nil {
		return ids, r.fail(column, err)
	}
	return ids, nil
}

// bailian reads the traces of Alibaba's Bailian service
// (github.com/alibaba-edu/qwen-bailian-usagetraces-anon). A chat is one request;
// chats with the same first ancestor are a session.
func (b *builder) bailian(in *input) error {
	if b.BlockSize == 0 {
		b.BlockSize = bailianBlock
	}
	t := in.objects(
		required("timestamp"), required("input_length"), required("output_length"), optional("hash_ids"),
		required("chat_id"), optional("parent_chat_id"), optional("turn"), optional("type"),
	)
	var ids []uint64
	s := chats{session: map[uint64]uint64{}}
	err := b.each(t, func(r *row) error {
		q, err := r.hashed(seconds, &ids, b.BlockSize)
		if err != nil {
			return err
		}
		if err := s.place(r, &q); err != nil {
			return err
		}
		if r.has(7) {
			kind, err := r.text(7)
			if err != nil {
				return err
			}
			q.Class = b.class(kind)
		} else {
			q.Class = b.class("")
		}
		return b.add(r.line, q)
	})
	if s.orphans > 0 {
		b.warn("no_parent", "%d turns follow a chat that is not above them: each begins a session", s.orphans)
	}
	return err
}

// chats finds the sessions of a bailian trace.
type chats struct {
	session map[uint64]uint64 // of each chat
	last    uint64
	orphans int
}

// place sets the session and turn of a request.
func (s *chats) place(r *row, q *workload.Request) error {
	chat, err := identity(r.cells[4])
	if err != nil {
		return r.fail(4, err)
	}
	if r.has(5) && string(r.cells[5]) != "-1" {
		parent, err := identity(r.cells[5])
		if err != nil {
			return r.fail(5, err)
		}
		if q.Session = s.session[parent]; q.Session == 0 {
			s.orphans++
		}
	}
	if q.Session == 0 {
		s.last++
		q.Session = s.last
	}
	s.session[chat] = q.Session
	if r.has(6) {
		turn, err := r.whole(6, 1, workload.MaxTokens)
		if err != nil {
			return err
		}
		q.Turn = int(turn) - 1
	}
	return nil
}

// llmServingSim reads the workloads of LLMServingSim
// (github.com/casys-kaist/LLMServingSim).
func (b *builder) llmServingSim(in *input) error {
	b.BlockSize = textBlock
	t := in.objects(
		required("arrival_time_ns"), required("input_toks"), required("output_toks"),
		optional("input_tok_ids"), optional("output_tok_ids"),
	)
	var ids []uint64
	return b.each(t, func(r *row) error {
		q, err := r.lengths(1, 2)
		if err != nil {
			return err
		}
		if q.Arrival, err = r.time(0, nanoseconds); err != nil {
			return err
		}
		for i, n := range []int{q.Output, q.Input} {
			column := 4 - i
			if ids, err = r.identities(column, ids); err != nil {
				return err
			}
			if r.has(column) && len(ids) != n {
				return lineError(r.line, "%d %s for %d tokens", len(ids), r.names[column], n)
			}
		}
		if len(ids) > 0 {
			h := hashed{content: make([]workload.Segment, 0, (len(ids)+textBlock-1)/textBlock)}
			for _, id := range ids {
				h.add(id)
			}
			h.close()
			q.Content = h.content
		}
		return b.add(r.line, q)
	})
}

// azure reads the LLM inference traces of 2023 and 2024
// (github.com/Azure/AzurePublicDataset).
func (b *builder) azure(in *input) error {
	t, err := in.csv(required("timestamp"), required("contexttokens"), required("generatedtokens"))
	if err != nil {
		return err
	}
	return b.each(t, func(r *row) error {
		q, err := r.lengths(1, 2)
		if err != nil {
			return err
		}
		if q.Arrival, err = date(string(r.cells[0])); err != nil {
			return lineError(r.line, "timestamp %w", err)
		}
		return b.add(r.line, q)
	})
}

// burstGPT reads the traces of BurstGPT (github.com/HPMLL/BurstGPT). The class
// of a request is its model and kind of log.
func (b *builder) burstGPT(in *input) error {
	t, err := in.csv(
		required("timestamp"), required("request tokens"), required("response tokens"),
		optional("session id"), optional("model"), optional("log type"), optional("total tokens"),
	)
	if err != nil {
		return err
	}
	sessions, turns, sums := map[string]uint64{}, []int{0}, 0
	err = b.each(t, func(r *row) error {
		if string(r.cells[2]) == "0" {
			return lineError(r.line, "response tokens 0: a request that failed; use the file without failures")
		}
		q, err := r.lengths(1, 2)
		if err != nil {
			return err
		}
		if q.Arrival, err = r.time(0, seconds); err != nil {
			return err
		}
		if r.has(3) {
			s, ok := sessions[string(r.cells[3])]
			if !ok {
				s = uint64(len(turns))
				sessions[string(r.cells[3])], turns = s, append(turns, 0)
			}
			q.Session, q.Turn = s, turns[s]
			turns[s]++
		}
		if r.has(6) {
			if sum, err := wholeNumber(r.cells[6]); err != nil || sum != int64(q.Input+q.Output) {
				sums++
			}
		}
		q.Class = b.class(joined(string(r.cells[4]), string(r.cells[5])))
		return b.add(r.line, q)
	})
	if sums > 0 {
		b.warn("sums", "total tokens are not the sum of request and response tokens in %d rows: not used", sums)
	}
	return err
}

// joined puts two words together, of which either may be missing.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

// workload reads tables of arrivals and lengths: CSV or JSON.
func (b *builder) workload(in *input) error {
	columns := []column{
		required("arrival", "arrival_ms", "time", "step"),
		required("isl", "input_len", "prompt_len"),
		required("osl", "output_len"),
	}
	var t *table
	if in.json {
		t = in.objects(columns...)
	} else {
		var err error
		if t, err = in.csv(columns...); err != nil {
			return err
		}
	}
	return b.each(t, func(r *row) error {
		q, err := r.lengths(1, 2)
		if err != nil {
			return err
		}
		if q.Arrival, err = r.time(0, milliseconds); err != nil {
			return err
		}
		return b.add(r.line, q)
	})
}
