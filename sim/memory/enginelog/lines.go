package enginelog

import "regexp"

const (
	num  = `(-?[0-9][0-9,]*(?:\.[0-9]+)?)`
	size = num + `\s*(GiB|GB|MiB|MB)\b`
)

// pattern is one known line: what to find and what to do with the groups.
type pattern struct {
	word string // a cheap test before the expression
	expr *regexp.Regexp
	take func(*Facts, []string) bool
}

// known lists the lines; it is built per log, because a process that reads
// none should not pay for the expressions.
func known() []pattern {
	return append(append(vllmLines(), profileLines()...), sglangLines()...)
}

// vllmLines are what vLLM, and ATOM after it, prints in any mode.
func vllmLines() []pattern {
	return []pattern{
		{"loading took", regexp.MustCompile(`(?i)loading (?:model weights )?took ` + size), func(f *Facts, m []string) bool {
			return most(&f.Weights, m[1], m[2])
		}},
		{"Available KV cache memory", regexp.MustCompile(`Available KV cache memory: ` + size), func(f *Facts, m []string) bool {
			return least(&f.PoolBytes, m[1], m[2])
		}},
		{"KV cache size:", regexp.MustCompile(`GPU KV cache size: ` + num + ` tokens`), func(f *Facts, m []string) bool {
			return fewest(&f.KVTokens, m[1])
		}},
		{"Maximum concurrency for", regexp.MustCompile(`Maximum concurrency for ` + num + ` tokens per request: ` + num + `x`), (*Facts).concurrency},
		{" blocks: ", regexp.MustCompile(`(?i)# ?(?:GPU|CUDA|ROCM) blocks: ` + num), func(f *Facts, m []string) bool {
			return fewest(&f.Blocks, m[1])
		}},
		{"To serve at least one request", regexp.MustCompile(`To serve at least one request with the models?'?s max seq len \(` + num + `\),? \(?` + size + ` KV cache is needed(?:.*?available KV cache memory \(` + size + `\)|.*?larger than the available(?: KV cache memory)?:? ` + size + `)?`), (*Facts).refused},
		{"stimated maximum model length", regexp.MustCompile(`stimated maximum model length is ` + num), func(f *Facts, m []string) bool {
			return fewest(&f.EstimatedContext, m[1])
		}},
		{"available Mamba cache blocks", regexp.MustCompile(`max_num_seqs \(` + num + `\) exceeds available Mamba cache blocks \(` + num + `\)`), (*Facts).mamba},
		{"V0 LLM engine", regexp.MustCompile(`LLM engine \(v?([0-9][0-9A-Za-z.+]*)\)`), (*Facts).version},
		{"V1 LLM engine", regexp.MustCompile(`LLM engine \(v?([0-9][0-9A-Za-z.+]*)\)`), (*Facts).version},
		{"vLLM API server version", regexp.MustCompile(`vLLM API server version v?([0-9][0-9A-Za-z.+]*)`), (*Facts).version},
	}
}

// profileLines break the non-cache memory down, in the words of several vLLM
// versions.
func profileLines() []pattern {
	return []pattern{
		{"model weights take", regexp.MustCompile(`model weights take ` + size), func(f *Facts, m []string) bool {
			return most(&f.Weights, m[1], m[2])
		}},
		{"non_torch_memory takes", regexp.MustCompile(`non_torch_memory takes ` + size), func(f *Facts, m []string) bool {
			return most(&f.NonTorch, m[1], m[2])
		}},
		{"activation peak memory takes", regexp.MustCompile(`activation peak memory takes ` + size), func(f *Facts, m []string) bool {
			return most(&f.Activation, m[1], m[2])
		}},
		{"reserved for KV Cache is", regexp.MustCompile(`reserved for KV Cache is ` + size), func(f *Facts, m []string) bool {
			return least(&f.PoolBytes, m[1], m[2])
		}},
		{"Graph captur", regexp.MustCompile(`Graph capturing finished in .*?, took ` + size), func(f *Facts, m []string) bool {
			return most(&f.Graphs, m[1], m[2])
		}},
		{"CUDA graph memory", regexp.MustCompile(`Estimated CUDA graph memory: ` + size), func(f *Facts, m []string) bool {
			return most(&f.Graphs, m[1], m[2])
		}},
		{"x gpu_memory_utilization", regexp.MustCompile(`total_gpu_memory \(` + size + `\) x gpu_memory_utilization \([0-9.]+\) = ` + size), (*Facts).budget},
		{"Initial free memory", regexp.MustCompile(`Initial free memory:? ` + size), func(f *Facts, m []string) bool {
			return least(&f.HBM, m[1], m[2])
		}},
		{"equested memory", regexp.MustCompile(`(?i)requested memory:? (?:[0-9.]+ \(util\), )?` + size), func(f *Facts, m []string) bool {
			return least(&f.Requested, m[1], m[2])
		}},
		{"Total non KV cache memory", regexp.MustCompile(`Total non KV cache memory: ` + size), func(f *Facts, m []string) bool {
			return most(&f.NonKV, m[1], m[2])
		}},
		{"torch peak memory increase", regexp.MustCompile(`torch peak memory increase: ` + size), func(f *Facts, m []string) bool {
			return most(&f.Activation, m[1], m[2])
		}},
		{"non-torch forward increase", regexp.MustCompile(`non-torch forward increase memory: ` + size), func(f *Facts, m []string) bool {
			return most(&f.NonTorch, m[1], m[2])
		}},
		{"weights memory:", regexp.MustCompile(`weights memory: ` + size), func(f *Facts, m []string) bool {
			return most(&f.Weights, m[1], m[2])
		}},
	}
}

// sglangLines are SGLang's.
func sglangLines() []pattern {
	return []pattern{
		{"Load weight end", regexp.MustCompile(`Load weight end.*?mem usage=` + size), func(f *Facts, m []string) bool {
			return most(&f.Weights, m[1], m[2])
		}},
		{"max_total_num_tokens", regexp.MustCompile(`max_total_num_tokens=` + num), func(f *Facts, m []string) bool {
			return fewest(&f.KVTokens, m[1])
		}},
		{"KV Cache is allocated", regexp.MustCompile(`KV Cache is allocated\..*?#tokens: ` + num + `, K size: ` + size + `, V size: ` + size), (*Facts).allocated},
		{"KV Cache is allocated", regexp.MustCompile(`KV Cache is allocated\..*?#tokens: ` + num + `, KV size: ` + size), func(f *Facts, m []string) bool {
			return fewest(&f.KVTokens, m[1]) && least(&f.KVAllocated, m[2], m[3])
		}},
		{"total_rest_memory", regexp.MustCompile(`total_rest_memory=` + num + `\s*(GiB|GB|MiB|MB)?`), (*Facts).rest},
		{"graph end", regexp.MustCompile(`Capture (?:cuda|hip|npu|decode cuda) graph end.*?mem usage=` + size), func(f *Facts, m []string) bool {
			return most(&f.Graphs, m[1], m[2])
		}},
		{"max_mamba_cache_size", regexp.MustCompile(`max_mamba_cache_size: ` + num), func(f *Facts, m []string) bool {
			return fewest(&f.StateSlots, m[1])
		}},
	}
}
