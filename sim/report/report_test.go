package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"infera/internal/golden"
	"infera/sim/report/page"
)

func TestProjectionGolden(t *testing.T) {
	cases := map[string]Projection{"projection": sample(), "infeasible": infeasible(), "disaggregated": disaggregated()}
	for name, p := range cases {
		for _, width := range []int{60, 80, 120} {
			o := page.Options{Width: width}
			golden.Check(t, fmt.Sprintf("%s_%d", name, width), golden.Render(t, func(w io.Writer) error { return p.WriteTable(w, o) }))
		}
		golden.Check(t, name+"_json", golden.Render(t, func(w io.Writer) error { return WriteJSON(w, p) }))
		golden.Check(t, name+"_csv", golden.Render(t, func(w io.Writer) error { return WriteCSV(w, p) }))
	}
}

func TestExplainGolden(t *testing.T) {
	p := sample()
	for _, width := range []int{60, 80, 120} {
		golden.Check(t, fmt.Sprintf("explain_%d", width), golden.Render(t, func(w io.Writer) error {
			return p.WriteExplain(w, page.Options{Width: width})
		}))
	}
	golden.Check(t, "explain_ascii", golden.Render(t, func(w io.Writer) error { return p.WriteExplain(w, page.Options{ASCII: true}) }))
	golden.Check(t, "explain_color", golden.Render(t, func(w io.Writer) error { return p.WriteExplain(w, page.Options{Color: true}) }))
}

func sampleFit() Fit {
	p := infeasible()
	return Fit{
		Request: p.Request, Reason: p.Reason, Memory: p.Memory, Model: p.Model, GPUs: 1, MaxContextAtOne: 18_432,
		MaxConcurrencyAtContext: 9, Suggestions: p.Suggestions,
		EngineLog: List[LogTerm]{{"weights", 33_285_996_544, 34_000_000_000, "the log counts the draft layers"}},
	}
}

func sampleValidation() Validation {
	key := func(gpu, model string) Fields { return Fields{{"gpu", gpu}, {"model", model}} }
	return Validation{
		Data: "configs/measured/serving.csv", Mode: "simulate",
		Rows: Rows{Read: 120, Scored: 100, Skipped: List[Skip]{{"speculative decoding not described", 12}, {"disaggregated row without a layout for each pool", 8}}},
		Groups: List[Group]{
			{key("MI300X", "llama-3.1-70b"), 60, Accuracy{9.87, 7.1, 21.4, -1.2, 0.987, 85, 60}, Accuracy{31.2, 25, 60.1, 4, 0.91, 81.5, 20}, Accuracy{10.2, 8, 22, 1.1, 0.99, 84, 60}},
			{key("H200", "gpt-oss-120b"), 40, Accuracy{14.2, 12, 30.9, 3.3, None(), 80, 40}, Accuracy{}, Accuracy{12.2, 9, 27, -2, 0.97, 82, 40}},
		},
		Overall: Group{nil, 100, Accuracy{11.6, 8.9, 25, 0.6, 0.98, 83, 100}, Accuracy{31.2, 25, 60.1, 4, 0.91, 81.5, 20}, Accuracy{11, 8.4, 24, 0, 0.985, 83.2, 100}},
	}
}

func TestOthersGolden(t *testing.T) {
	docs := map[string]Document{"fit": sampleFit(), "validation": sampleValidation()}
	for name, d := range docs {
		for _, width := range []int{60, 80, 120} {
			golden.Check(t, fmt.Sprintf("%s_%d", name, width), golden.Render(t, func(w io.Writer) error { return d.WriteTable(w, page.Options{Width: width}) }))
		}
		golden.Check(t, name+"_json", golden.Render(t, func(w io.Writer) error { return WriteJSON(w, d) }))
		golden.Check(t, name+"_csv", golden.Render(t, func(w io.Writer) error { return WriteCSV(w, d) }))
	}
}

// No line is wider than the page, no line ends in blanks, nothing prints as
// NaN or Inf, at any width from 50 columns.
func TestTablesStayInWidth(t *testing.T) {
	for width := 50; width <= 140; width += 9 {
		for _, ascii := range []bool{false, true} {
			o := page.Options{Width: width, ASCII: ascii}
			for name, write := range map[string]func(io.Writer) error{
				"projection":    func(w io.Writer) error { return sample().WriteTable(w, o) },
				"infeasible":    func(w io.Writer) error { return infeasible().WriteTable(w, o) },
				"disaggregated": func(w io.Writer) error { return disaggregated().WriteTable(w, o) },
				"explain":       func(w io.Writer) error { return sample().WriteExplain(w, o) },
				"fit":           func(w io.Writer) error { return sampleFit().WriteTable(w, o) },
			} {
				golden.CheckText(t, fmt.Sprintf("%s at %d", name, width), golden.Render(t, write), width, ascii)
			}
		}
	}
}

// TestContractKeys holds the keys of the published contracts, typed here by
// hand: each object begins with exactly these, in this order; more may follow.
func TestContractKeys(t *testing.T) {
	bandKeys := "value low high"
	opKeys := "op time_ms bytes flops bound source"
	accuracyKeys := "mape_pct median_ape_pct p90_ape_pct bias_pct spearman within_band_pct"
	type want struct{ prefix, keys string }
	cases := []struct {
		name string
		doc  any
		want []want
	}{
		{"projection", sample(), []want{
			{"", "schema request feasible reason memory model performance cost fidelity warnings"},
			{"memory.", "weights_bytes kv_bytes_per_token state_bytes_per_sequence activation_bytes graph_bytes overhead_bytes total_bytes hbm_bytes kv_capacity_tokens max_concurrency max_context_tokens terms"},
			{"memory.terms[].", "name bytes sharded_by source"},
			{"model.", "name params_total params_active"},
			{"performance.", "ttft_ms tpot_ms itl_ms e2e_ms decode_step_ms mixed_step_ms mixed_step_fraction tpot_pollution_pct output_tok_s output_tok_s_per_gpu total_tok_s_per_gpu prefill_tok_s interactivity_tok_s_user concurrency gpus breakdown communication_ms"},
			{"performance.ttft_ms.", bandKeys}, {"performance.tpot_ms.", bandKeys}, {"performance.itl_ms.", bandKeys}, {"performance.e2e_ms.", bandKeys},
			{"performance.decode_step_ms.", bandKeys}, {"performance.mixed_step_ms.", bandKeys}, {"performance.output_tok_s.", bandKeys},
			{"performance.output_tok_s_per_gpu.", bandKeys}, {"performance.total_tok_s_per_gpu.", bandKeys}, {"performance.prefill_tok_s.", bandKeys},
			{"performance.breakdown.", "decode prefill"}, {"performance.breakdown.decode[].", opKeys}, {"performance.breakdown.prefill[].", opKeys},
			{"performance.communication_ms.", "prefill decode"},
			{"performance.communication_ms.prefill.", "tp_ar ep_a2a pp_p2p"}, {"performance.communication_ms.decode.", "tp_ar ep_a2a pp_p2p"},
			{"cost.", "usd_per_m_output_tokens usd_per_m_total_tokens"},
			{"fidelity.", "mode source anchor"},
			{"fidelity.anchor.", "id path distance unverified extrapolated"},
			{"warnings[].", "code text"},
		}},
		{"validation", sampleValidation(), []want{
			{"", "schema rows groups overall"}, {"rows.", "read scored skipped"}, {"rows.skipped[].", "reason count"},
			{"groups[].", "key n tpot ttft total_tok_s_per_gpu"}, {"groups[].tpot.", accuracyKeys}, {"groups[].ttft.", accuracyKeys},
			{"groups[].total_tok_s_per_gpu.", accuracyKeys}, {"overall.", "key n tpot ttft total_tok_s_per_gpu"}, {"overall.tpot.", accuracyKeys},
		}},
		{"fit", sampleFit(), []want{{"", "schema request feasible reason memory model"}}},
		{"error", ErrorReport{}, []want{{"", "schema error"}, {"error.", "kind message hint"}}},
		{"line error", LineError{}, []want{{"", "id line error"}, {"error.", "kind message"}}},
	}
	for _, c := range cases {
		data, err := json.Marshal(c.doc)
		if err != nil {
			t.Fatal(err)
		}
		all := golden.Keys(t, data)
		for _, w := range c.want {
			got := strings.Join(golden.Children(all, w.prefix), " ")
			if got != w.keys && !strings.HasPrefix(got, w.keys+" ") {
				t.Errorf("%s: keys of %q:\n got %s\nwant %s ...", c.name, w.prefix, got, w.keys)
			}
		}
	}
}

func TestNullsInJSON(t *testing.T) {
	p := infeasible() // still holds a Performance: it must not be written
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"schema":"inferasim.projection/v1","request":{"model":"gpt_oss_120B"`, `"feasible":false`, `"performance":null`,
		`"cost":{"usd_per_m_output_tokens":null,"usd_per_m_total_tokens":null`, `"unverified":[]`,
	} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("no %s in %s", want, data)
		}
	}
	data, err = json.Marshal(Projection{Feasible: true, Performance: &Performance{TTFTMs: Band{None(), 0, 1}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"warnings":[]`, `"terms":[]`, `"decode":[]`, `"prefill":[]`, `"request":{}`, `"ttft_ms":{"value":null,"low":0,"high":1}`, `"request_rate":0,`, `"saturated":false`, `"disaggregation":null`} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("no %s in %s", want, data)
		}
	}
	data, err = json.Marshal(Validation{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"groups":[]`, `"skipped":[]`, `"overall":{"key":{},"n":0,"tpot":{"mape_pct":null`} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("no %s in %s", want, data)
		}
	}
}

// Every way to encode gives the same object.
func TestWriteJSONLine(t *testing.T) {
	for _, d := range []any{sample(), infeasible(), sampleFit(), sampleValidation(), ErrorReport{}} {
		want, err := Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		got := golden.Render(t, func(w io.Writer) error { return WriteJSONLine(w, d) })
		if string(got) != string(want)+"\n" {
			t.Errorf("%T:\n%s\n%s", d, got, want)
		}
		if p, ok := d.(Projection); ok {
			if byPointer := golden.Render(t, func(w io.Writer) error { return WriteJSONLine(w, &p) }); !bytes.Equal(byPointer, got) {
				t.Errorf("by pointer:\n%s\n%s", byPointer, got)
			}
		}
	}
}

// A projection survives JSON: what is decoded encodes to the same bytes.
func TestProjectionRoundTrip(t *testing.T) {
	for _, p := range []Projection{sample(), disaggregated(), infeasible()} {
		p.ID = json.RawMessage(`"a-1"`)
		first, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var q Projection
		if err := json.Unmarshal(first, &q); err != nil {
			t.Fatal(err)
		}
		second, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Errorf("round trip:\n%s\n%s", first, second)
		}
	}
}

func TestCSVShape(t *testing.T) {
	columns := ProjectionColumns()
	seen := map[string]bool{}
	for _, c := range columns {
		if seen[c] {
			t.Errorf("column %s twice", c)
		}
		seen[c] = true
	}
	for _, p := range []Projection{sample(), infeasible(), disaggregated(), {}} {
		if got := len(p.Record()); got != len(columns) {
			t.Errorf("record has %d cells, want %d", got, len(columns))
		}
	}
	docs := []Document{sample(), infeasible(), sampleFit(), sampleValidation(), Validation{}, Fit{}}
	for _, d := range docs {
		b := golden.Render(t, func(w io.Writer) error { return WriteCSV(w, d) })
		if _, err := csv.NewReader(bytes.NewReader(b)).ReadAll(); err != nil {
			t.Errorf("%T: %v", d, err)
		}
	}
	p := sample()
	p.ID = json.RawMessage(`17`)
	if got := p.Record()[0]; got != "17" {
		t.Errorf("id = %q, want 17", got)
	}
}

// Empty and hostile values print without panic and without control characters.
func TestHostileValues(t *testing.T) {
	p := sample()
	p.Model.Name = "evil\x1b[31m\r\nname"
	p.Features = List[string]{strings.Repeat("x", 500)}
	p.Performance.TTFTMs = Band{None(), None(), None()}
	p.Performance.OutputTokS = band(1e300, 0, 1e300)
	p.Performance.Breakdown.Decode[0].TimeMs = None()
	p.Performance.Breakdown.Decode[1].Name = strings.Repeat("long name ", 20)
	for _, width := range []int{0, 1, 60} {
		b := golden.Render(t, func(w io.Writer) error { return p.WriteTable(w, page.Options{Width: width}) })
		b = append(b, golden.Render(t, func(w io.Writer) error { return p.WriteExplain(w, page.Options{Width: width}) })...)
		if bytes.ContainsAny(b, "\x1b\r") || bytes.Contains(b, []byte("NaN")) {
			t.Errorf("width %d: unsafe text:\n%s", width, b)
		}
	}
	for _, d := range []Document{Projection{}, Projection{Feasible: true, Performance: &Performance{}}, Fit{}, Validation{}} {
		golden.Render(t, func(w io.Writer) error { return d.WriteTable(w, page.Options{}) })
	}
}

func TestNumberText(t *testing.T) {
	cases := map[Number]string{
		0: "0", Number(negativeZero()): "0", 1: "1", -2.5: "-2.5", 288e9: "288000000000", 1 << 53: "9007199254740992",
		0.1 + 0.2: "0.3", 1.0 / 3: "0.3333333333", 2e-9: "2e-09", 1e300: "1e+300",
	}
	for n, want := range cases {
		if got := n.Text(); got != want {
			t.Errorf("Number(%g).Text() = %s, want %s", float64(n), got, want)
		}
	}
	if got := None().Text(); got != "" {
		t.Errorf("None().Text() = %q, want empty", got)
	}
	if Maybe(1) == nil || Maybe(float64(None())) != nil {
		t.Error("Maybe: want a pointer for 1 and nil for NaN")
	}
}

func negativeZero() float64 { z := 0.0; return -z }

func TestFeatures(t *testing.T) {
	r := Request{
		{"chunked_prefill_size", 2048}, {"prefix_cache_hit_rate", 0.5}, {"speculative_num_tokens", 3}, {"speculative_acceptance_rate", 0.8},
		{"kv_cache_dtype", "fp8"}, {"sliding_window", 128}, {"sliding_window_layer_fraction", 0.5}, {"sampling_top_k", 50},
		{"act_quant_dtype", "mxfp4"}, {"kernel_launch_latency_us", 3.5}, {"enable_deepep", true}, {"sync_free_stage", 2}, {"cudagraph_mode", "full"},
		{"kv_cache_memory_fraction", 0.9}, {"kv_block_size", 16}, {"kv_offload_gb_per_gpu", 64}, {"max_num_batched_tokens", 8192},
		{"ep_load_balance", 1.2}, {"redundant_experts", 32}, {"attention_backend", "aiter"}, {"sparse_attention_topk", 2048},
		{"moe_expert_dtype", "mxfp4"}, {"fused_kernels", true}, {"speculative_draft_cost_factor", 0.1}, {"request_rate", 2.5},
		{"arrival_model", "poisson"}, {"quick_reduce", true}, {"fuse_rmsnorm_allreduce", true},
	}
	want := "chunked_prefill=2048 | prefix_cache_hit=0.50 | speculative(k=3, accept=0.80) | kv_dtype=fp8 | sliding_window=128(frac=0.5) | " +
		"sampling(top_k=50) | act_quant=mxfp4 | launch_floor=3.5us/kernel | deepep(sync_free=2) | cudagraph=full | kv_mem_frac=0.9 | kv_block=16 | " +
		"kv_offload=64GB/GPU | max_batched_tokens=8192 | ep_load_balance=1.2 | redundant_experts=32 | attn_backend=aiter | sparse_attn_topk=2048 | " +
		"moe_expert_dtype=mxfp4 | fused_kernels | draft_cost=0.1 | request_rate=2.5/s(poisson) | quick_reduce | fused_rmsnorm_ar"
	if got := strings.Join(Features(r), " | "); got != want {
		t.Errorf("Features:\n got %s\nwant %s", got, want)
	}
	neutral := Request{{"kv_cache_dtype", "auto"}, {"ep_load_balance", 1.0}, {"sampling_top_p", 1.0}, {"attention_backend", nil}, {"no_sampling", false}, {"sliding_window", 0}}
	if got := Features(neutral); len(got) != 0 {
		t.Errorf("Features of neutral values = %v, want none", got)
	}
}

func TestFields(t *testing.T) {
	var f Fields
	f.Set("b", 1)
	f.Set("a", "x<y")
	f.Set("b", None())
	f.Set("c", float64(None()))
	data, err := Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"b":null,"a":"x<y","c":null}`; string(data) != want {
		t.Errorf("Marshal = %s, want %s", data, want)
	}
	for _, bad := range []string{`[]`, `{`, `{"a":}`, `3`} {
		if err := json.Unmarshal([]byte(bad), &f); err == nil {
			t.Errorf("Unmarshal(%s): no error", bad)
		}
	}
}

func BenchmarkProjectionTable(b *testing.B) {
	p := sample()
	b.ReportAllocs()
	for b.Loop() {
		var out bytes.Buffer
		if err := p.WriteTable(&out, page.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProjectionJSONLine(b *testing.B) {
	p := sample()
	b.ReportAllocs()
	for b.Loop() {
		var out bytes.Buffer
		if err := WriteJSONLine(&out, p); err != nil {
			b.Fatal(err)
		}
	}
}
