package trace

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// signs are keys that only one format has, in the order in which they are
// looked for.
func signs() []struct {
	format Format
	keys   []string
} {
	return []struct {
		format Format
		keys   []string
	}{
		{Infera, []string{"schema"}},
		{ShareGPT, []string{"conversations", "conversation", "messages"}},
		{Bailian, []string{"chat_id", "parent_chat_id"}},
		{LLMServingSim, []string{"input_toks", "output_toks", "arrival_time_ns"}},
		{VLLM, []string{"prompt"}},
		{Mooncake, []string{"hash_ids", "block_hashes", "blocks", "input_length", "output_length", "timestamp"}},
		{BurstGPT, []string{"request tokens", "response tokens"}},
		{Azure, []string{"contexttokens", "generatedtokens"}},
		{Workload, []string{"arrival", "arrival_ms", "time", "step", "isl", "osl", "input_len", "output_len", "prompt_len"}},
	}
}

// detect finds the format out from the first record or the header.
func detect(in *input) (Format, error) {
	text := skipSpace(in.start)
	if in.array() {
		text = skipSpace(text[1:])
		if len(text) > 0 && text[0] == ']' {
			return "", fmt.Errorf("%w: it holds no requests", ErrTrace)
		}
	}
	names := keys(text)
	json := len(names) > 0 || in.array() || bytes.HasPrefix(text, []byte("{"))
	if !json {
		line, _, _ := bytes.Cut(text, []byte("\n"))
		names = strings.Split(string(line[:min(len(line), 1000)]), ",")
	}
	for i, n := range names {
		names[i] = strings.ToLower(strings.Trim(n, "\" \t\r"))
	}
	for _, s := range signs() {
		csv := s.format == BurstGPT || s.format == Azure
		if csv && json || !json && !csv && s.format != Workload {
			continue
		}
		if slices.ContainsFunc(s.keys, func(k string) bool { return slices.Contains(names, k) }) {
			return s.format, nil
		}
	}
	start, _, _ := bytes.Cut(text, []byte("\n"))
	return "", fmt.Errorf("%w: line 1: it begins with %s, which is none of the formats %s; name one if it is", ErrTrace, clip(string(start)), listed(Formats()))
}

// listed joins names for a message.
func listed(formats []Format) string {
	var b strings.Builder
	for i, f := range formats {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(f))
	}
	return b.String()
}
