package recorded

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"infera/configs"
	"infera/internal/measured"
	"infera/models"
	"infera/sim/hardware"
	"infera/sim/workload/trace"
)

// recordings are the public runs, with the hardware and the preset of each.
// Where the workload is known with its tokens, the prompts' contents are.
var recordings = []struct{ dir, gpu, model, workload string }{
	{"RTX4090__Llama-3.1-8B", "rtx4090", "llama-3.1-8b", "llmservingsim/sharegpt-llama-3.1-8b-300-sps10.jsonl"},
	{"RTXPRO6000__Llama-3.1-8B", "rtx-pro-6000", "llama-3.1-8b", "llmservingsim/sharegpt-llama-3.1-8b-300-sps10.jsonl"},
	{"RTXPRO6000__Qwen3-30B-A3B-Instruct-2507", "rtx-pro-6000", "qwen3-30b-a3b", ""},
	{"RTXPRO6000__Qwen3-32B", "rtx-pro-6000", "qwen3-32b", ""},
}

func open(t testing.TB, elements ...string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join(append([]string{measured.Dir(t)}, elements...)...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func readShared(t testing.TB, dir, workload string) *Run {
	t.Helper()
	r, err := Read(open(t, "vllm_runs", dir, "meta.json"), open(t, "vllm_runs", dir, "requests.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if workload == "" {
		return r
	}
	w, err := trace.Read(open(t, "traces", workload), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.SetContents(w.Requests); err != nil {
		t.Fatal(err)
	}
	return r
}

// A price fitted on the first 100 requests of a real run of vLLM 0.19 foretells
// the other 200: means of the time to the first token within 5 %, of the time
// per token within 3 %, and each request's time to the first token within 12 %
// in the median.
func TestRecordings(t *testing.T) {
	catalog, err := models.LoadCatalog(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := hardware.Load(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range recordings {
		t.Run(tt.dir, func(t *testing.T) {
			r := readShared(t, tt.dir, tt.workload)
			arch, err := catalog.Lookup(tt.model)
			if err != nil {
				t.Fatal(err)
			}
			gpu, err := parts.Lookup(tt.gpu)
			if err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			price, err := Fit(ctx, r, 100, Estimate(arch, gpu, &r.Engine))
			if err != nil {
				t.Fatal(err)
			}
			records, err := r.Replay(ctx, &price)
			if err != nil {
				t.Fatal(err)
			}
			fitted, s := r.Score(records, 0, 100), r.Score(records, 100, len(r.Requests))
			t.Logf("other 200: mean TTFT %+.1f %%, mean TPOT %+.2f %%, TTFT per request %.1f %%; first 100: %+.1f, %+.2f, %.1f",
				100*s.TTFT, 100*s.TPOT, 100*s.TTFTMedian, 100*fitted.TTFT, 100*fitted.TPOT, 100*fitted.TTFTMedian)
			for i, c := range price.Cost {
				t.Logf("%-13s %.4g s", Term(i), float64(c))
			}
			if math.Abs(s.TTFT) > 0.05 || math.Abs(s.TPOT) > 0.03 || s.TTFTMedian > 0.12 {
				t.Errorf("errors of %.1f %%, %.2f %% and %.1f %%", 100*s.TTFT, 100*s.TPOT, 100*s.TTFTMedian)
			}
		})
	}
}

func BenchmarkReplay(b *testing.B) {
	r := readShared(b, recordings[0].dir, recordings[0].workload)
	p := small
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Replay(context.Background(), &p); err != nil {
			b.Fatal(err)
		}
	}
}
