package trace

import (
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
	for _, s := range signs() {
		csv := s.format == BurstGPT || s.format == Azure
		if csv && in.json || !csv && !in.json && s.format != Workload {
			continue
		}
		if slices.ContainsFunc(s.keys, func(k string) bool { return slices.Contains(in.names, k) }) {
			return s.format, nil
		}
	}
	return "", fmt.Errorf("%w: line 1: it begins with %s, which is none of the formats %s; name one if it is", ErrTrace, in.start, listed(Formats()))
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
