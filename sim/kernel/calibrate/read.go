package calibrate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"strconv"
	"strings"

	"infera/models"
	"infera/sim/kernel"
)

// ErrTable is the kind of the errors of tables that cannot be read.
var ErrTable = errors.New("unreadable table")

// Row is one measured kernel.
type Row struct {
	// Part names where it ran, as the table does: "gfx950/256" (instruction set
	// and compute units), "NVIDIA H200".
	Part   string
	Family kernel.Family
	// Seconds is the measured time of the kernel.
	Seconds float64
	// Size orders rows for the weights and the summary: activation rows of a
	// product, cached or new tokens of an attention.
	Size float64
	// HeldOut marks the shapes that no fit sees.
	HeldOut bool

	key   string
	price func(*kernel.Model) kernel.Estimate
}

// Price returns what the model says of the row.
func (r *Row) Price(m *kernel.Model) kernel.Estimate { return r.price(m) }

// table is a CSV whose columns are found by name.
type table struct {
	r       *csv.Reader
	columns map[string]int
	record  []string
	line    int
	err     error
}

func open(r io.Reader, need ...string) (*table, error) {
	t := &table{r: csv.NewReader(r), columns: map[string]int{}, line: 1}
	t.r.ReuseRecord = true
	header, err := t.r.Read()
	if err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrTable, err)
	}
	for i, name := range header {
		t.columns[name] = i
	}
	for _, name := range need {
		if _, ok := t.columns[name]; !ok {
			return nil, fmt.Errorf("%w: no column %q", ErrTable, name)
		}
	}
	return t, nil
}

func (t *table) next() bool {
	if t.err != nil {
		return false
	}
	record, err := t.r.Read()
	if err != nil {
		if !errors.Is(err, io.EOF) {
			t.err = fmt.Errorf("%w: %w", ErrTable, err)
		}
		return false
	}
	t.record, t.line = record, t.line+1
	return true
}

func (t *table) text(name string) string {
	if i, ok := t.columns[name]; ok {
		return strings.Clone(t.record[i])
	}
	return ""
}

func (t *table) number(name string) float64 {
	s := t.record[t.columns[name]]
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) {
		if t.err == nil {
			t.err = fmt.Errorf("%w: line %d: %s %q is not a number", ErrTable, t.line, name, s)
		}
		return 0
	}
	return v
}

// seconds reads a time; one that the tuner never measured (infinite) is 0.
func (t *table) seconds(name string, unit float64) float64 {
	if v := t.number(name); v > 0 && !math.IsInf(v, 0) {
		return v * unit
	}
	return 0
}

// heldOut picks every fifth shape.
func heldOut(shape string) bool {
	h := fnv.New32a()
	io.WriteString(h, shape) // a hash.Hash never returns an error
	return h.Sum32()%5 == 0
}

// best keeps the fastest of the rows of one key: tables hold several tunings and
// kernels of one shape, and an engine takes the best. The order of first
// appearance stays.
func best(rows []Row) []Row {
	index := map[string]int{}
	kept := rows[:0]
	for _, r := range rows {
		k := r.Part + "|" + r.Family.String() + "|" + r.key
		if i, ok := index[k]; ok {
			if r.Seconds < kept[i].Seconds {
				kept[i] = r
			}
			continue
		}
		index[k] = len(kept)
		kept = append(kept, r)
	}
	return kept
}

// Formats of the tables' kernel families. A block scale is one fp32 per 128 x 128
// weights, an MX scale one byte per 32.
var (
	bf16     = models.Format{Name: "bf16", Element: models.BF16, Activation: models.BF16}
	fp8      = models.Format{Name: "fp8", Element: models.FP8, Activation: models.FP8}
	fp8Block = models.Format{Name: "fp8_block", Element: models.FP8, Group: 128 * 128, ScaleBits: 32, Activation: models.FP8}
	mxfp8    = models.Format{Name: "mxfp8", Element: models.FP8, Group: 32, ScaleBits: 8, Activation: models.FP8}
	int8     = models.Format{Name: "int8", Element: models.INT8, Activation: models.INT8}
	mxfp4    = models.Format{Name: "mxfp4", Element: models.FP4, Group: 32, ScaleBits: 8, Activation: models.FP4}
	fp4fp8   = models.Format{Name: "fp4_fp8", Element: models.FP4, Group: 32, ScaleBits: 8, Activation: models.FP8}
	fp4bf16  = models.Format{Name: "fp4_bf16", Element: models.FP4, Group: 32, ScaleBits: 8, Activation: models.BF16}
	int4     = models.Format{Name: "int4", Element: models.INT4, Group: 32, ScaleBits: 16, Activation: models.BF16}
)

// ReadGEMM reads a table of tuned dense products: columns gfx, cu_num,
// kernel_family, batch, M, N, K, dtype, time_us and, optionally, below_peak (0 =
// an impossible time). Batched products are skipped.
func ReadGEMM(r io.Reader) ([]Row, error) {
	t, err := open(r, "gfx", "cu_num", "kernel_family", "batch", "M", "N", "K", "dtype", "time_us")
	if err != nil {
		return nil, err
	}
	var rows []Row
	for t.next() {
		if t.text("below_peak") == "0" || t.number("batch") != 1 {
			continue
		}
		format, ok := gemmFormat(t.text("kernel_family"), t.text("dtype"))
		seconds := t.seconds("time_us", 1e-6)
		if !ok || !(seconds > 0) {
			continue
		}
		m, n, k := t.number("M"), int(t.number("N")), int(t.number("K"))
		rows = append(rows, Row{
			Part: t.text("gfx") + "/" + t.text("cu_num"), Family: kernel.GEMMFamily(format), Seconds: seconds,
			Size: m, HeldOut: heldOut(fmt.Sprint(n, "/", k)), key: fmt.Sprint(m, "/", n, "/", k),
			price: func(model *kernel.Model) kernel.Estimate { return model.GEMM(m, n, k, format) },
		})
	}
	return best(rows), t.err
}

func gemmFormat(family, dtype string) (models.Format, bool) {
	switch {
	case dtype == "int8":
		return int8, true
	case family == "bf16":
		return bf16, true
	case strings.HasPrefix(family, "a8w8_blockscale"):
		return fp8Block, true
	case strings.HasPrefix(family, "a8w8"):
		return fp8, true
	case strings.HasPrefix(family, "a4w4"):
		return mxfp4, true
	}
	return models.Format{}, false
}

// ReadFusedMoE reads a table of tuned fused expert networks: columns gfx, cu_num,
// tokens, model_dim, inter_dim_per_rank, experts, topk, dtype_a, dtype_w, quant,
// total_us. The tuner routes independently, so tokens touch
// experts (1 - (1 - topk/experts)^tokens) experts. A time repeated to the last
// digit at another token count of the same shape is a copy, not a measurement;
// only the least count keeps it.
func ReadFusedMoE(r io.Reader) ([]Row, error) {
	t, err := open(r, "gfx", "cu_num", "tokens", "model_dim", "inter_dim_per_rank", "experts", "topk", "dtype_a", "dtype_w", "quant", "total_us")
	if err != nil {
		return nil, err
	}
	var rows []Row
	least := map[string]float64{}
	var copies []string
	for t.next() {
		format, ok := moeFormat(t.text("dtype_a"), t.text("dtype_w"), t.text("quant"))
		seconds := t.seconds("total_us", 1e-6)
		if !ok || !(seconds > 0) {
			continue
		}
		tokens, experts, topk := t.number("tokens"), t.number("experts"), t.number("topk")
		f := kernel.FusedMoE{
			Tokens: tokens, Rows: tokens * topk, Active: experts * (1 - math.Pow(1-topk/experts, tokens)), Busiest: 1,
			Hidden: int(t.number("model_dim")), Intermediate: int(t.number("inter_dim_per_rank")), Gated: true, Weights: format,
		}
		shape := fmt.Sprint(f.Hidden, "/", f.Intermediate, "/", experts, "/", topk)
		part := t.text("gfx") + "/" + t.text("cu_num")
		repeat := fmt.Sprint(part, shape, format.Name, t.text("total_us"))
		if n, ok := least[repeat]; !ok || tokens < n {
			least[repeat] = tokens
		}
		copies = append(copies, repeat)
		rows = append(rows, Row{
			Part: part, Family: kernel.MoEFamily(format), Seconds: seconds, Size: tokens,
			HeldOut: heldOut(shape), key: fmt.Sprint(tokens, "/", shape, "/", format.Name),
			price: func(model *kernel.Model) kernel.Estimate { return model.FusedMoE(f) },
		})
	}
	kept := rows[:0]
	for i, row := range rows {
		if row.Size == least[copies[i]] {
			kept = append(kept, row)
		}
	}
	return best(kept), t.err
}

func moeFormat(activation, weight, quant string) (models.Format, bool) {
	a, w := strings.SplitN(activation, "_", 2)[0], strings.SplitN(weight, "_", 2)[0]
	switch {
	case w == "bfloat16":
		return bf16, true
	case w == "int8":
		return int8, true
	case w == "int4":
		return int4, true
	case w == "float8" && quant == "per_1x128":
		return fp8Block, true
	case w == "float8" && quant == "per_1x32":
		return mxfp8, true
	case w == "float8":
		return fp8, true
	case w == "float4" && a == "float4":
		return mxfp4, true
	case w == "float4" && a == "float8":
		return fp4fp8, true
	case w == "float4":
		return fp4bf16, true
	}
	return models.Format{}, false
}
