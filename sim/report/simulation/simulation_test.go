package simulation

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infera/internal/golden"
	"infera/internal/units"
	"infera/sim/cluster"
	"infera/sim/report"
	"infera/sim/report/page"
)

func table(t *testing.T, r *cluster.Result, o page.Options) []byte {
	t.Helper()
	return golden.Render(t, func(w io.Writer) error { return Table(w, r, o) })
}

func results() map[string]*cluster.Result {
	return map[string]*cluster.Result{"full": sample(), "closed": closed(), "saturated": saturated()}
}

func TestGolden(t *testing.T) {
	for name, r := range results() {
		for _, width := range []int{80, 120} {
			golden.Check(t, fmt.Sprintf("%s_%d", name, width), table(t, r, page.Options{Width: width}))
		}
		golden.Check(t, name+"_csv", golden.Render(t, func(w io.Writer) error { return csv.NewWriter(w).WriteAll(CSV(r)) }))
	}
	golden.Check(t, "full_ascii", table(t, sample(), page.Options{Width: 60, ASCII: true}))
	golden.Check(t, "saturated_color", table(t, saturated(), page.Options{Color: true}))
	small := sample()
	small.Timeline, small.Curve, small.Histograms = small.Timeline[:2], small.Curve[:1], small.Histograms[:1]
	small.Histograms[0].Bins, small.Instances = small.Histograms[0].Bins[:3], small.Instances[:1]
	golden.Check(t, "full_json", golden.Render(t, func(w io.Writer) error { return report.WriteJSON(w, JSON(small)) }))
	golden.Check(t, "closed_json", golden.Render(t, func(w io.Writer) error { return report.WriteJSON(w, JSON(closed())) }))
}

func TestTablesStayInWidth(t *testing.T) {
	for width := 41; width <= 140; width += 9 {
		for _, ascii := range []bool{false, true} {
			for name, r := range results() {
				golden.CheckText(t, fmt.Sprintf("%s at %d", name, width), table(t, r, page.Options{Width: width, ASCII: ascii}), width, ascii)
			}
		}
	}
}

// The keys of the published contract, typed by hand: each object begins with
// these, in this order.
func TestContractKeys(t *testing.T) {
	data, err := json.Marshal(JSON(sample()))
	if err != nil {
		t.Fatal(err)
	}
	figures := "requests duration_s offered_req_s achieved_req_s saturated utilization ttft_ms ttft_from_admit_ms queue_ms tpot_ms itl_ms e2e_ms " +
		"output_tok_s total_tok_s goodput_req_s cache"
	summary := "mean p50 p90 p95 p99 p999 half_width_95"
	all := golden.Keys(t, data)
	for _, c := range []struct{ prefix, keys string }{
		{"", "schema " + figures + " instances batch warnings attainment total_tok_s_per_gpu model recipe workload arrival_model clients seed seeds " +
			"classes pools links tiers faults scaling timeline curve knee_req_s request_trace histograms"},
		{"requests.", "offered completed rejected unfinished scored"},
		{"ttft_ms.", summary}, {"ttft_from_admit_ms.", summary}, {"queue_ms.", summary}, {"tpot_ms.", summary}, {"itl_ms.", summary}, {"e2e_ms.", summary},
		{"cache.", "request_hit_rate block_hit_rate evictions tokens_cached"},
		{"instances[].", figures + " batch attainment total_tok_s_per_gpu index role name gpus"},
		{"batch.", "num_steps avg_batch_size max_batch_size avg_prefill_reqs avg_decode_reqs avg_query_tokens prefill_step_fraction kv_peak_tokens"},
		{"warnings[].", "code text"},
		{"pools[].", figures}, {"classes[].", figures}, {"curve[].", figures}, {"classes[].objective.", "ttft_ms tpot_ms e2e_ms"},
		{"timeline[].", "at_s running waiting kv_used instances arrival_req_s completed_req_s output_tok_s ttft_ms"},
		{"request_trace.", "id input_tokens output_tokens cached_tokens instance spans"}, {"request_trace.spans[].", "name start_ms end_ms note"},
		{"faults[].", "at_s kind target duration_s requests tokens"}, {"scaling[].", "at_s role from to reason"},
		{"histograms[].", "metric bins"}, {"histograms[].bins[].", "low_ms high_ms count"},
	} {
		got := strings.Join(golden.Children(all, c.prefix), " ")
		if got != c.keys && !strings.HasPrefix(got, c.keys+" ") {
			t.Errorf("keys of %q:\n got %s\nwant %s ...", c.prefix, got, c.keys)
		}
	}
}

// What is not there is null, [] or 0, never NaN.
func TestNullsInJSON(t *testing.T) {
	r := closed()
	r.Total.TTFT.Mean, r.Total.Batch.KVCapacity = math.Inf(1), 0
	data, err := json.Marshal(JSON(r))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"ttft_ms":{"mean":null,`, `"goodput_req_s":null`, `"attainment":null`, `"request_hit_rate":null`, `"kv_utilization":null`, `"warnings":[]`,
		`"classes":[]`, `"curve":[]`, `"knee_req_s":null`, `"request_trace":null`, `"half_width_95":null`,
	} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("no %s in %s", want, data)
		}
	}
	r.Curve, r.Knee = sweep(), 0
	if data, err = json.Marshal(JSON(r)); err != nil || !bytes.Contains(data, []byte(`"knee_req_s":0,`)) {
		t.Errorf("a sweep without a knee: %v, %s", err, data)
	}
}

// Seconds become ms and moments stay seconds: 0.25 s is 250 ms.
func TestUnits(t *testing.T) {
	x := JSON(sample())
	for _, c := range []struct {
		name string
		got  report.Number
		want float64
	}{
		{"TTFT p50", x.TTFTMs.P50, 250}, {"objective", x.Classes[0].Objective.TPOTMs, 20}, {"fault", x.Faults[0].AtS, 60},
		{"span", x.Trace.Spans[1].EndMs, 250}, {"link", x.Links[0].TimeMs.P50, 4}, {"block hits", x.Cache.BlockHitRate, 27_242.0 / 60_800},
		{"KV peak", x.Batch.KVUtilization, 91_000.0 / 131_072},
	} {
		if math.Abs(float64(c.got)-c.want) > 1e-9*c.want {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
	if x.Classes[0].Objective.E2EMs.Finite() {
		t.Error("an objective of 0 is none")
	}
}

func TestCSVShape(t *testing.T) {
	records := CSV(sample())
	scopes := map[string]int{}
	for _, r := range records {
		if len(r) != len(records[0]) {
			t.Errorf("%d cells, want %d", len(r), len(records[0]))
		}
		scopes[r[0]]++
	}
	if want := map[string]int{"scope": 1, "total": 1, "pool": 2, "class": 2, "instance": 6, "rate": 8}; !cmp.Equal(scopes, want) {
		t.Errorf("scopes = %v, want %v", scopes, want)
	}
	seen := map[string]bool{}
	for _, c := range records[0] {
		if seen[c] {
			t.Errorf("column %s twice", c)
		}
		seen[c] = true
	}
	if !cmp.Equal(CSV(closed())[0], records[0]) {
		t.Error("the header depends on the result")
	}
}

// fill sets every float to v and every string to s, so that no field is left
// out when a result is hostile.
func fill(x reflect.Value, v float64, s string) {
	switch x.Kind() {
	case reflect.Float64:
		x.SetFloat(v)
	case reflect.String:
		x.SetString(s)
	case reflect.Struct:
		for i := range x.NumField() {
			fill(x.Field(i), v, s)
		}
	case reflect.Slice:
		for i := range x.Len() {
			fill(x.Index(i), v, s)
		}
	case reflect.Pointer:
		if !x.IsNil() {
			fill(x.Elem(), v, s)
		}
	}
}

const hostileText = "evil\x1b[31m\r\n</script><b>'\"&"

func TestHostileValues(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e300, 0} {
		for _, r := range []*cluster.Result{sample(), saturated(), {}} {
			fill(reflect.ValueOf(r).Elem(), v, hostileText)
			for _, width := range []int{0, 1, 60} {
				text := table(t, r, page.Options{Width: width})
				if bytes.ContainsAny(text, "\x1b\r") || bytes.Contains(text, []byte("NaN")) || bytes.Contains(text, []byte("Inf")) {
					t.Errorf("%g, width %d: unsafe text:\n%s", v, width, text)
				}
			}
			data, err := json.Marshal(JSON(r))
			if err != nil || !json.Valid(data) {
				t.Errorf("%g: JSON %v", v, err)
			}
			for _, line := range CSV(r)[1:] {
				for _, c := range line {
					if strings.Contains(c, "NaN") || strings.Contains(c, "Inf") {
						t.Errorf("%g: CSV cell %q", v, c)
					}
				}
			}
			checkPage(t, html(t, r), r)
		}
	}
}

// More instances than a table lists are summarised: of 24 instances with 2 to
// 4.875 requests/s the output rates are 512, 880 in the middle and 1248.
func TestSpread(t *testing.T) {
	text := string(table(t, saturated(), page.Options{Width: 120}))
	for _, want := range []string{"512.0", "880.0", "1248.0", "min", "median", "max", "24"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "mi300x 3") {
		t.Errorf("24 instances are listed:\n%s", text)
	}
}

func TestSaturatedIsSaidFirst(t *testing.T) {
	lines := strings.Split(string(table(t, saturated(), page.Options{})), "\n")
	if lines[2] != "SATURATED: NOT AN OPERATING POINT" {
		t.Errorf("third line = %q", lines[2])
	}
	if text := string(table(t, closed(), page.Options{})); strings.Contains(text, "SATURATED") {
		t.Errorf("a sound result is called saturated:\n%s", text)
	}
}

func TestSize(t *testing.T) {
	for v, want := range map[units.Bytes]string{0: "0 B", 1023: "1023 B", 1536: "1.50 KiB", 31 * units.GiB: "31.00 GiB", units.Bytes(math.NaN()): "-"} {
		if got := size(report.Number(v)); got != want {
			t.Errorf("size(%v) = %q, want %q", float64(v), got, want)
		}
	}
}

func BenchmarkTable(b *testing.B) {
	r := sample()
	b.ReportAllocs()
	for b.Loop() {
		if err := Table(io.Discard, r, page.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHTML(b *testing.B) {
	r := sample()
	b.ReportAllocs()
	for b.Loop() {
		if err := HTML(io.Discard, r); err != nil {
			b.Fatal(err)
		}
	}
}
