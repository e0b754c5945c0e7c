package trace

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"strings"

	"infera/sim/workload"
)

// The formats that hold text. Tokens are estimated from its length: no
// tokenizer belongs to the file.

// bytesPerToken is what a token of English text or of code is long on average,
// by OpenAI's rule of thumb; of Chinese it is about one character, 3 bytes.
const bytesPerToken = 4

func estimate(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

func (b *builder) warnEstimated(of string) {
	b.warn("estimated_tokens", "tokens of %s are estimated at %d bytes of text each", of, bytesPerToken)
}

func hashText(text string) uint64 {
	h := fnv.New64a()
	// Writes to a hash do not fail.
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

// vllm reads the custom data sets of vLLM's benchmark client.
func (b *builder) vllm(in *input) error {
	b.BlockSize, b.Timed = textBlock, false
	t := in.objects(
		required("prompt"), optional("output_tokens", "expected_output_len", "output_len", "max_tokens"), optional("completion", "response"),
	)
	counted := 0
	err := b.each(t, func(r *row) error {
		prompt, err := r.text(0)
		if err != nil {
			return err
		}
		var q workload.Request
		switch {
		case r.has(1):
			counted++
			if q.Output, err = r.tokens(1); err != nil {
				return err
			}
		case r.has(2):
			answer, err := r.text(2)
			if err != nil {
				return err
			}
			q.Output = estimate(answer)
		default:
			return lineError(r.line, "no output_tokens or completion")
		}
		if q.Input = estimate(prompt); q.Input == 0 || q.Output == 0 {
			return lineError(r.line, "an empty prompt or answer")
		}
		q.Content = prefixBlocks(prompt)
		return b.add(r.line, q)
	})
	if counted == len(b.Requests) {
		b.warnEstimated("prompts")
	} else {
		b.warnEstimated("prompts and answers")
	}
	return err
}

// prefixBlocks hashes a text token by token, so that prompts that begin alike
// share blocks.
func prefixBlocks(text string) []workload.Segment {
	h := hashed{content: make([]workload.Segment, 0, (estimate(text)+textBlock-1)/textBlock)}
	for len(text) > 0 {
		n := min(bytesPerToken, len(text))
		token := uint64(n)
		for i := range n {
			token = token<<8 | uint64(text[i])
		}
		h.add(token)
		text = text[n:]
	}
	h.close()
	return h.content
}

// message is one of a conversation, in either of two spellings.
type message struct {
	From, Value   string
	Role, Content string
}

// shareGPT reads lists of conversations between people and assistants. Every
// message that the assistant answers is a turn of a session; its prompt is all
// that was said before.
func (b *builder) shareGPT(in *input) error {
	b.BlockSize, b.Timed = textBlock, false
	t := in.objects(required("conversations", "conversation", "messages"), optional("id"))
	var skipped struct{ conversations, messages int }
	session := uint64(0)
	err := b.each(t, func(r *row) error {
		var messages []message
		if err := json.Unmarshal(r.cells[0], &messages); err != nil {
			return lineError(r.line, "%s: %w", r.names[0], notMessages(err))
		}
		turns, unanswered := turnsOf(messages)
		skipped.messages += unanswered
		if len(turns) == 0 {
			skipped.conversations++
			return nil
		}
		session++
		for i := range turns {
			if turns[i].Input > workload.MaxTokens {
				return lineError(r.line, "a conversation of %d tokens", turns[i].Input)
			}
			if len(turns) > 1 {
				turns[i].Session, turns[i].Turn = session, i
			}
			if err := b.add(r.line, turns[i]); err != nil {
				return err
			}
		}
		return nil
	})
	b.warnEstimated("prompts and answers")
	if skipped.conversations > 0 {
		b.warn("no_answer", "%d conversations without an answered message: left out", skipped.conversations)
	}
	if skipped.messages > 0 {
		b.warn("no_answer", "%d messages at the end of a conversation, or empty, have no answer: left out", skipped.messages)
	}
	return err
}

func notMessages(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return errors.New("not a list of messages with from and value")
	}
	return err
}

// turnsOf returns the requests of a conversation and how many messages nobody
// answered. Messages of the same side that follow each other are one.
func turnsOf(messages []message) (turns []workload.Request, unanswered int) {
	var history []workload.Segment
	tokens, asked := 0, 0
	say := func(text string) workload.Segment {
		s := workload.Segment{ID: hashText(text), Tokens: estimate(text)}
		history = append(history, s)
		tokens += s.Tokens
		return s
	}
	for _, m := range messages {
		text := m.Value + m.Content
		if text == "" {
			unanswered++
			continue
		}
		if !assistant(m.From + m.Role) {
			asked++
			say(text)
			continue
		}
		if asked == 0 {
			say(text) // it goes on, or begins, and asks nobody
			continue
		}
		asked = 0
		q := workload.Request{Input: tokens, Content: history[:len(history):len(history)]}
		s := say(text)
		q.Output, q.Answer = s.Tokens, s.ID
		turns = append(turns, q)
	}
	if n := len(turns); n > 0 {
		turns[n-1].Answer = 0 // no turn holds it
	}
	return turns, unanswered + asked
}

// assistant reports whether a message was generated.
func assistant(role string) bool {
	switch strings.ToLower(role) {
	case "gpt", "assistant", "chatgpt", "bing", "bard", "model":
		return true
	}
	return false
}
