package enginelog

import (
	"math"
	"strings"
	"testing"

	"infera/internal/units"
	"infera/sim/memory"
)

// A report that is 1 GiB light on weights and 0.5 GiB heavy on activation must
// explain a pool that is half a GiB too large, with nothing left over.
func TestAttribute(t *testing.T) {
	log := `INFO Model loading took 67.72 GiB
DEBUG requested memory: 125.83GiB
DEBUG Total non KV cache memory: 72.63GiB; torch peak memory increase: 4.84GiB; non-torch forward increase memory: 0.07GiB; weights memory: 67.72GiB.
INFO Available KV cache memory: 53.20 GiB
INFO GPU KV cache size: 174,336 tokens
INFO Maximum concurrency for 131,072 tokens per request: 1.33x
`
	facts, err := Read(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	g := units.GiB
	r := &memory.Report{Context: 131072, Fit: memory.Fit{Budget: 125.83 * g, Weights: 66.72 * g, Activation: 5.34 * g, Overhead: 0.07 * g,
		Pool: 53.70 * g, OneRequest: 40 * g, KVCapacityTokens: 175968, KVBytesPerToken: 327680}}
	diffs := map[string]Difference{}
	for _, d := range Attribute(r, facts) {
		diffs[d.Term] = d
	}
	for term, want := range map[string]float64{"budget": 0, "weights": 1, "activation": -0.5, "overhead": 0} {
		if got := diffs[term].Explains.GiB(); math.Abs(got-want) > 1e-6 {
			t.Errorf("%s explains %.3f GiB, want %.3f", term, got, want)
		}
	}
	if d, found := diffs["residual"]; found {
		t.Errorf("a residual of %.3f GiB is left", d.Explains.GiB())
	}
	if p := diffs["kv_tokens"].Percent(); math.Abs(p-0.936) > 0.01 {
		t.Errorf("kv_tokens off by %.3f %%, want 0.936", p)
	}
	if got := diffs["concurrency"].Ours; math.Abs(got-1.3425) > 1e-4 {
		t.Errorf("concurrency = %v, want 1.3425", got)
	}
	r.Pool += 2 * g
	found := false
	for _, d := range Attribute(r, facts) {
		if d.Term == "residual" {
			found = true
			if math.Abs(d.Explains.GiB()-2) > 1e-6 {
				t.Errorf("residual %.3f GiB, want 2", d.Explains.GiB())
			}
		}
	}
	if !found {
		t.Error("no residual for a pool that nothing explains")
	}
}

func TestAttributeRefusal(t *testing.T) {
	facts, err := Read(strings.NewReader("ValueError: To serve at least one request with the model's max seq len (1048576), 23.32 GiB KV cache is needed, which is larger than the available KV cache memory (13.41 GiB)."))
	if err != nil {
		t.Fatal(err)
	}
	r := &memory.Report{Context: 1 << 20, Fit: memory.Fit{Pool: 7.41 * units.GiB, OneRequest: 23.75 * units.GiB}}
	var terms []string
	for _, d := range Attribute(r, facts) {
		terms = append(terms, d.Term)
	}
	if got := strings.Join(terms, " "); got != "pool residual one_request" {
		t.Errorf("terms = %s", got)
	}
}
