package trace

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"infera/internal/measured"
)

// The public traces are read whole, and hold what their publishers or a direct
// count over the files say.
func TestPublicTraces(t *testing.T) {
	dir := filepath.Join(measured.Dir(t), "traces")
	for _, tt := range []struct {
		file     string
		format   Format
		requests int
		span     float64 // s
		hits     float64 // of blocks, in per cent
		absolute bool
		warnings []string
	}{
		{"mooncake/conversation_trace.jsonl", Mooncake, 12_031, 3537, 36.6, false, nil},
		{"mooncake/synthetic_trace.jsonl", Mooncake, 3_993, 1022, 64.0, false, nil},
		{"azure/AzureLLMInferenceTrace_code.csv", Azure, 8_819, 3436, 0, true, []string{"shifted", "no_content"}},
		{"azure/AzureLLMInferenceTrace_conv.csv", Azure, 19_366, 3502, 0, true, []string{"shifted", "no_content"}},
		{"llmservingsim/sharegpt-llama-3.1-8b-300-sps10.jsonl", LLMServingSim, 300, 29, -1, false, []string{"shifted"}},
		{"llmservingsim/workload_me2_01_mixed.jsonl", LLMServingSim, 608, 60.9, 0, false, []string{"shifted", "no_content"}},
		{"llmservingsim/example_trace.jsonl", LLMServingSim, 10, -1, -1, false, []string{"shifted"}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			f, err := os.Open(filepath.Join(dir, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			x, err := Read(f, Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := x.Statistics()
			if x.Format != tt.format || s.Requests != tt.requests || x.Absolute != tt.absolute {
				t.Errorf("format %s, %d requests, absolute %v", x.Format, s.Requests, x.Absolute)
			}
			if span := float64(s.Span.Seconds()); tt.span >= 0 && math.Abs(span-tt.span) > 1 {
				t.Errorf("span %v s, want %v", span, tt.span)
			}
			if hits := 100 * s.Reuse.HitRate(); tt.hits >= 0 && math.Abs(hits-tt.hits) > 0.05 {
				t.Errorf("%v %% of blocks found, want %v", hits, tt.hits)
			}
			if got := codes(x.Warnings); !equal(got, tt.warnings) {
				t.Errorf("warnings %v, want %v", x.Warnings, tt.warnings)
			}
			t.Logf("%+v", s.Reuse)
		})
	}
}

func BenchmarkReadMooncake(b *testing.B) {
	data, err := os.ReadFile(filepath.Join(measured.Dir(b), "traces", "mooncake", "conversation_trace.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	benchmarkRead(b, data)
}
