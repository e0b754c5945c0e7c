package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"infera/internal/measured"
	"infera/sim/workload"
	"infera/sim/workload/trace"
)

// conversation returns the requests of Mooncake's conversation trace.
func conversation(t testing.TB) []workload.Request {
	t.Helper()
	file, err := os.Open(filepath.Join(measured.Dir(t), "traces", "mooncake", "conversation_trace.jsonl"))
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	all, err := trace.Read(file, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	workload.MarkUnshared(all.Requests)
	return all.Requests
}

func mooncakeFleet(policy string, requests []workload.Request) Config {
	s := spec(79_000)
	s.Pool.ContentTokens = 512
	// A prompt token costs as much as on a large GPU.
	s.Prices = NewPrices(linear{fixed: 4e-3, sequence: 10e-6, kv: 30e-9, prompt: 25e-6}, 1)
	return Config{Source: workload.Replay(requests), Fleet: fleetOf(s, 8), Routing: Routing{Policy: policy, OverlapWeight: 1}}
}

// The more a policy knows of caches, the more it finds in them. Without any
// limit to the cache 36.6 % of the blocks would be found.
func TestMooncakeHits(t *testing.T) {
	requests := conversation(t)
	last := 0.366
	for _, policy := range []string{"kv-aware", "prefix-hash", "round-robin"} {
		r := run(t, mooncakeFleet(policy, requests))
		hits := float64(r.Total.Cache.BlockHits) / float64(r.Total.Cache.Blocks)
		t.Logf("%s: %.1f %% of blocks found, TTFT %.0f ms, utilisation %.0f %%", policy, 100*hits, 1e3*r.Total.TTFT.Mean, 100*r.Total.Utilization)
		if hits >= last {
			t.Errorf("%s finds %.3f of the blocks, more than what knows more: %.3f", policy, hits, last)
		}
		last = hits
	}
}

func BenchmarkMooncakeKVAware(b *testing.B) {
	requests := conversation(b)
	b.ReportAllocs()
	for b.Loop() {
		run(b, mooncakeFleet("kv-aware", requests))
	}
}
