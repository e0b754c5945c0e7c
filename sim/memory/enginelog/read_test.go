package enginelog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infera/internal/units"
)

func gib(x float64) *units.Bytes { b := units.Bytes(x) * units.GiB; return &b }
func n(x int) *int               { return &x }
func x(v float64) *float64       { return &v }

// The lines follow the engines' message texts; the figures are those of the
// public issues named.
func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     Facts
	}{
		{"vllm V1, H200 Llama-70B FP8 (llm-d-benchmark#345)", `
INFO 10-01 10:00:00 [gpu_model_runner.py:2007] Model loading took 67.7160 GiB and 41.2 seconds
INFO [gpu_worker.py:298] Available KV cache memory: 53.20 GiB
INFO [kv_cache_utils.py:1087] GPU KV cache size: 174,336 tokens
INFO [kv_cache_utils.py:1091] Maximum concurrency for 131,072 tokens per request: 1.33x
INFO [gpu_model_runner.py:2600] Graph capturing finished in 21 secs, took 0.77 GiB
`, Facts{Engine: "vllm", Weights: gib(67.7160), PoolBytes: gib(53.20), KVTokens: n(174336),
			Concurrency: x(1.33), MaxContext: n(131072), Graphs: gib(0.77), Lines: 5}},
		{"vllm debug line", "DEBUG requested memory: 125.83GiB\nDEBUG Memory profiling takes 9.1 seconds. Total non KV cache memory: 72.63GiB; torch peak memory increase: 4.84GiB; non-torch forward increase memory: 0.07GiB; weights memory: 67.72GiB.",
			Facts{Engine: "vllm", Requested: gib(125.83), NonKV: gib(72.63), Activation: gib(4.84), NonTorch: gib(0.07), Weights: gib(67.72), Lines: 2}},
		{"vllm V0, RTX 3090 Llama-8B (vllm#10517)", `
the current vLLM instance can use total_gpu_memory (23.69GiB) x gpu_memory_utilization (0.90) = 21.32GiB
model weights take 14.99GiB; non_torch_memory takes 0.12GiB; PyTorch activation peak memory takes 2.07GiB; the rest of the memory reserved for KV Cache is 3.81GiB.
INFO # GPU blocks: 1952, # CPU blocks: 2048
INFO Maximum concurrency for 20000 tokens per request: 1.56x
`, Facts{Engine: "vllm", HBM: gib(23.69), Requested: gib(21.32), Weights: gib(14.99), NonTorch: gib(0.12), Activation: gib(2.07),
			PoolBytes: gib(3.81), Blocks: n(1952), Concurrency: x(1.56), MaxContext: n(20000), Lines: 4}},
		{"two ranks: the least pool, the most weights (vllm#15928)", `
(Worker_TP0) INFO Model loading took 80.10 GiB
(Worker_TP1) INFO Model loading took 80.20 GiB
(Worker_TP0) INFO GPU KV cache size: 107,824 tokens
(Worker_TP1) INFO GPU KV cache size: 107,312 tokens
`, Facts{Engine: "vllm", Weights: gib(80.20), KVTokens: n(107312), Lines: 4}},
		{"refusal (vllm#53961)", "ValueError: To serve at least one request with the model's max seq len (1048576), 23.32 GiB KV cache is needed, which is larger than the available KV cache memory (13.41 GiB). Estimated maximum model length is 524288.",
			Facts{Engine: "vllm", MaxContext: n(1048576), Needed: gib(23.32), PoolBytes: gib(13.41), EstimatedContext: n(524288), Failed: true, Lines: 1}},
		{"older refusal", "ValueError: To serve at least one request with the models's max seq len (32768), (14.50 GiB KV cache is needed, which is larger than the available KV cache memory (6.20 GiB). Based on the available memory, the estimated maximum model length is 8192.",
			Facts{Engine: "vllm", MaxContext: n(32768), Needed: gib(14.5), PoolBytes: gib(6.2), EstimatedContext: n(8192), Failed: true, Lines: 1}},
		{"no pool (vllm#23278)", "INFO Available KV cache memory: -2.14 GiB\nValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
			Facts{Engine: "vllm", PoolBytes: gib(-2.14), Failed: true, Lines: 2}},
		{"mamba slots (kaito#2319)", "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (614). Please lower max_num_seqs.",
			Facts{MaxSequences: n(1024), StateSlots: n(614), Failed: true, Lines: 1}},
		{"sglang prints GiB as GB", `
[2025-11-04 05:27:13 DP0 TP0 EP0] Load weight end. type=DeepseekV3ForCausalLM, dtype=torch.bfloat16, avail mem=75.11 GB, mem usage=107.07 GB.
[2025-11-04 05:27:13 DP0 TP0 EP0] KV Cache is allocated. #tokens: 524288, KV size: 17.16 GB
[2025-11-04 05:27:33 TP0] Capture cuda graph end. Time elapsed: 8.04 s. mem usage=0.80 GB. avail mem=10.30 GB.
[2025-11-04 05:27:34 TP0] max_total_num_tokens=524288, chunked_prefill_size=16384, max_running_requests=2048
`, Facts{Engine: "sglang", Weights: gib(107.07), KVTokens: n(524288), KVAllocated: gib(17.16), Graphs: gib(0.80), Lines: 4}},
		{"sglang K and V", "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 350257, K size: 0.21 GB, V size: 0.21 GB",
			Facts{Engine: "sglang", KVTokens: n(350257), KVAllocated: gib(0.42), Lines: 1}},
		{"sglang negative rest (Infera kimi-k3)", "RuntimeError: Not enough memory. total_rest_memory=-60.99 GB",
			Facts{Engine: "sglang", Rest: gib(-60.99), Failed: true, Lines: 1}},
		{"version", "INFO V1 LLM engine (v0.19.0) with config: model='x'",
			Facts{Engine: "vllm", Version: "0.19.0", Lines: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Read(strings.NewReader(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.Comparer(near)); diff != "" {
				t.Errorf("Read() (-want +got):\n%s", diff)
			}
		})
	}
}

func near(a, b units.Bytes) bool { d := a - b; return d < 1 && d > -1 }

func TestReadNothing(t *testing.T) {
	for _, in := range []string{"", "hello\nworld\n", strings.Repeat("x", 3*maxLine)} {
		if _, err := Read(strings.NewReader(in)); !errors.Is(err, ErrNothing) {
			t.Errorf("Read(%.20q) = %v, want ErrNothing", in, err)
		}
	}
	long := strings.Repeat("y", 2*maxLine) + "\nAvailable KV cache memory: 1.00 GiB\n"
	if f, err := Read(strings.NewReader(long)); err != nil || f.PoolBytes == nil {
		t.Errorf("a long line hides the next: %v, %v", f, err)
	}
	if _, err := Read(broken{}); err == nil || errors.Is(err, ErrNothing) {
		t.Errorf("Read(broken) = %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, fmt.Errorf("disk on fire") }

func FuzzRead(f *testing.F) {
	f.Add("Model loading took 14.9888 GiB\nGPU KV cache size: 174,336 tokens\n")
	f.Add("total_rest_memory=-60.99 GB")
	f.Add("KV Cache is allocated. #tokens: 1, K size: 0.21 GB, V size: 0.21 GB")
	f.Add("To serve at least one request with the model's max seq len (1), (1 GiB KV cache is needed")
	f.Add("max_num_seqs (1024) exceeds available Mamba cache blocks (614)")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Read(strings.NewReader(s))
		if err != nil && !errors.Is(err, ErrNothing) {
			t.Fatal(err)
		}
		if (err == nil) != (got.Lines > 0) {
			t.Fatalf("lines %d, error %v", got.Lines, err)
		}
		if got.KVTokens != nil && *got.KVTokens < 0 {
			t.Fatalf("negative tokens %d", *got.KVTokens)
		}
	})
}
