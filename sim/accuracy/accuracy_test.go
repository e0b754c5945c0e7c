package accuracy

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infera/configs"
)

const header = "row_id,gpu,model,engine,isl,osl,concurrency,tp,ttft_mean_ms,ttft_median_ms,tpot_mean_ms,tpot_median_ms,total_tok_s_per_gpu,workload,notes,request_rate\n"

func TestReadCSV(t *testing.T) {
	table := "\ufeff" + header +
		"a,MI300X,m,vllm,1024,256,8,8,50,40,,12,1000,\"random, lengths U[0.8L,L]\",gpu prefix hit rate=0.25; per-rank batch=16.,inf\n" +
		"b, MI355X ,m,sglang 0.5,8192,1024,64,4,,,,,,,,2.5\n"
	got, err := ReadCSV(strings.NewReader(table))
	if err != nil {
		t.Fatal(err)
	}
	want := []Point{
		{
			Line: 2, ID: "a", GPU: "MI300X", Model: "m", Engine: "vllm", TP: 8, Workload: "random, lengths U[0.8L,L]",
			InputLen: 1024, OutputLen: 256, LengthScale: 0.9, Concurrency: 8, PrefixHitRate: 0.25, RankBatch: 16,
			TTFT: 0.050, TPOT: 0.012, TPOTMedian: true, TotalPerGPU: 1000,
		},
		{
			Line: 3, ID: "b", GPU: "MI355X", Model: "m", Engine: "sglang 0.5", TP: 4, InputLen: 8192, OutputLen: 1024,
			LengthScale: 1, Concurrency: 64, RequestRate: 2.5,
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("points (-want +got):\n%s", d)
	}
}

func TestReadCSVErrors(t *testing.T) {
	row := func(isl string) string { return header + "a,g,m,e," + isl + ",1,1,1,,,,,,,,\n" }
	for _, c := range []struct{ name, table, want string }{
		{"empty", "", "empty"},
		{"missing column", "gpu,model,engine,isl,osl\n", `no column "concurrency"`},
		{"duplicate column", strings.Replace(header, "row_id", "gpu", 1), `column "gpu" occurs twice`},
		{"text", header + "a,g,m,e,1,1,1,1,,,,,,,,\n" + "b,g,m,e,1k,1,1,1,,,,,,,,\n", `line 3: column "isl": "1k"`},
		{"NaN", row("NaN"), `line 2: column "isl": "NaN"`},
		{"infinite", row("+Inf"), `line 2: column "isl": "+Inf"`},
		{"negative", row("-1"), `line 2: column "isl": "-1"`},
		{"huge", row("1e300"), `line 2: column "isl": "1e300"`},
		{"too many GPUs", header + "a,g,m,e,1,1,1,1e9,,,,,,,,\n", `line 2: column "tp"`},
		{"short row", header + "a,g\n", "line 2"},
		{"open quote", header + "a,\"g,m,e,1,1,1,1,,,,,,,,\n", "line"},
	} {
		points, err := ReadCSV(strings.NewReader(c.table))
		if !errors.Is(err, ErrBadTable) || !strings.Contains(err.Error(), c.want) || points != nil {
			t.Errorf("%s: %d points, error %v; want ErrBadTable with %q", c.name, len(points), err, c.want)
		}
	}
	if points, err := ReadCSV(strings.NewReader(header)); err != nil || len(points) != 0 {
		t.Errorf("a header alone: %v, %v; want no points and no error", points, err)
	}
}

// TestShippedPoints reads the table in the binary: every row names what a
// prediction needs.
func TestShippedPoints(t *testing.T) {
	f, err := configs.FS.Open("measured/serving.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	points, err := ReadCSV(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(points) < 1000 {
		t.Fatalf("%d points", len(points))
	}
	ids := map[string]bool{}
	for i := range points {
		p := &points[i]
		if p.ID == "" || ids[p.ID] || p.Source == "" || p.GPU == "" || p.Model == "" || p.Engine == "" {
			t.Errorf("line %d: id %q (again: %v), source %q, %s %s %s", p.Line, p.ID, ids[p.ID], p.Source, p.GPU, p.Model, p.Engine)
		}
		ids[p.ID] = true
		if p.InputLen <= 0 || p.Concurrency <= 0 && p.RequestRate <= 0 || p.TTFT <= 0 && p.TPOT <= 0 && p.TotalPerGPU <= 0 {
			t.Errorf("line %d: nothing to predict: %+v", p.Line, p)
		}
	}
}

func TestKey(t *testing.T) {
	p := Point{
		ID: "a", Source: "s", Quality: "A", Date: "2026-01-01", GPU: "g", TP: 8, EP: 2, AttentionDP: true, Model: "m", WeightDType: "fp8",
		Engine: "e", Version: "1", Workload: "w", InputLen: 1024, OutputLen: 0.5, Concurrency: 1e6,
	}
	var got []string
	for _, c := range Columns() {
		v, ok := p.Key(c)
		if !ok {
			t.Errorf("column %s is listed and not known", c)
		}
		got = append(got, v)
	}
	want := []string{"g", "m", "e", "1", "fp8", "s", "A", "8", "2", "true", "1024", "0.5", "1e+06", "2026-01-01", "w", "a"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("values of %v (-want +got):\n%s", Columns(), d)
	}
	if _, ok := p.Key("gpus"); ok {
		t.Error("an unknown column has a value")
	}
}

// TestSummarize: errors of -10, +20, +30 and -50 % of 100. The median is half
// way from 20 to 30; the 90th percentile 0.7 of the way from the third to the
// fourth of 10, 20, 30, 50.
func TestSummarize(t *testing.T) {
	pair := func(predicted, low, high float64) Pair {
		return Pair{Measured: 100, Predicted: predicted, Low: low, High: high}
	}
	got := Summarize([]Pair{pair(90, 80, 100), pair(120, 101, 140), pair(130, 90, 150), pair(50, 30, 70)})
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"MAPE", got.MAPE, (10 + 20 + 30 + 50) / 4.0},
		{"median", got.Median, 25},
		{"P90", got.P90, 30 + 0.7*20},
		{"bias", got.Bias, (-10 + 20 + 30 - 50) / 4.0},
		{"within band", got.WithinBand, 50}, // the ends count
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
	if got.N != 4 || !math.IsNaN(got.Spearman) {
		t.Errorf("N %d, Spearman %v; want 4 and none without curves", got.N, got.Spearman)
	}
	one := Summarize([]Pair{pair(110, 0, 0)})
	if math.Abs(one.Median-10) > 1e-9 || math.Abs(one.P90-10) > 1e-9 {
		t.Errorf("one pair: %+v", one)
	}
	none := Summarize(nil)
	if none.N != 0 || !math.IsNaN(none.MAPE) || !math.IsNaN(none.Median) || !math.IsNaN(none.WithinBand) {
		t.Errorf("no pairs: %+v, want not-a-number", none)
	}
}

// TestCurves: a rank correlation per curve, weighed by points; short curves
// and pairs without one are left out.
func TestCurves(t *testing.T) {
	var pairs []Pair
	add := func(curve string, n int, predicted func(i int) float64) {
		for i := range n {
			pairs = append(pairs, Pair{Measured: float64(i + 1), Predicted: predicted(i), Curve: curve})
		}
	}
	add("up", 24, func(i int) float64 { return float64(i * i) })
	add("down", 8, func(i int) float64 { return float64(-i) })
	add("short", MinCurve-1, func(i int) float64 { return float64(-i) })
	add("", 50, func(i int) float64 { return float64(-i) })
	add("flat", 20, func(int) float64 { return 1 }) // no ranks to compare
	if got, want := Summarize(pairs).Spearman, (24.0-8)/32; math.Abs(got-want) > 1e-12 {
		t.Errorf("Spearman = %v, want %v", got, want)
	}
}

func TestSpearman(t *testing.T) {
	for _, c := range []struct {
		name string
		x, y []float64
		want float64
	}{
		{"same order", []float64{1, 2, 3, 10}, []float64{5, 6, 7, 8}, 1},
		{"reversed", []float64{1, 2, 3}, []float64{3, 2, 1}, -1},
		// Ranks 1 2 3 4 5 and 2 1 4 3 5: 1 - 6 x 4 / (5 x 24).
		{"two swaps", []float64{1, 2, 3, 4, 5}, []float64{20, 10, 40, 30, 50}, 0.8},
		// Ranks 1, 2.5, 2.5, 4 and 1 2 3 4: 4.5 / sqrt(4.5 x 5).
		{"a tie", []float64{1, 2, 2, 3}, []float64{1, 2, 3, 4}, 4.5 / math.Sqrt(4.5*5)},
		{"constant", []float64{1, 1, 1}, []float64{1, 2, 3}, math.NaN()},
		{"one", []float64{1}, []float64{1}, math.NaN()},
		{"unequal", []float64{1, 2}, []float64{1}, math.NaN()},
	} {
		got := Spearman(c.x, c.y)
		if math.IsNaN(got) != math.IsNaN(c.want) || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add([]byte(header + "a,g,m,e,1,1,1,1,,,,,,,,\n"))
	f.Add([]byte("\ufeffgpu,model,engine,isl,osl,concurrency\nMI300X,m,vllm,1024,1e3,0x10\n"))
	f.Add([]byte("gpu,model,engine,isl,osl,concurrency\n\"a\nb\",m,e,1,,\n"))
	f.Add([]byte("gpu,model,engine,isl,osl,concurrency,notes\n,,,,,,gpu prefix hit rate=...\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		points, err := ReadCSV(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, ErrBadTable) {
				t.Errorf("error %v is not of kind ErrBadTable", err)
			}
			return
		}
		last := 1
		for _, p := range points {
			if p.Line <= last {
				t.Errorf("line %d follows line %d", p.Line, last)
			}
			last = p.Line
			for _, v := range []float64{p.InputLen, p.OutputLen, p.Concurrency, p.RequestRate, p.TTFT, p.TPOT, p.TotalPerGPU, p.PrefixHitRate, p.RankBatch, p.LengthScale} {
				if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
					t.Errorf("line %d: %+v has a number out of range", p.Line, p)
				}
			}
		}
	})
}
