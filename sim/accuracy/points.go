package accuracy

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// ErrBadTable is the kind of errors about unreadable tables.
var ErrBadTable = errors.New("bad table of measured points")

// Point is one measured serving point. Absent numbers are 0; times are in
// seconds, lengths in tokens, rates in tokens per second.
type Point struct {
	Line int // 1-based line of the table
	ID   string
	// Source names the publication; Quality is its class (A direct, B derived,
	// C suspect).
	Source, Quality string
	Date            string
	GPU             string
	GPUs            int
	Disaggregated   bool
	TP, EP, PP      int
	AttentionDP     bool
	Model, ModelRaw string
	WeightDType     string
	KVDType         string
	Engine, Version string
	Speculation     string
	Workload        string
	// InputLen and OutputLen are the nominal lengths; LengthScale is the mean
	// over the nominal length (0.9 for lengths drawn from [0.8 L, L]).
	InputLen, OutputLen, LengthScale float64
	Concurrency                      float64
	RequestRate                      float64 // 0 = as fast as the loop allows
	Requests                         int
	// PrefixHitRate is the share of prompt tokens that came from the cache,
	// when the source states it.
	PrefixHitRate float64
	// RankBatch is the batch of one attention-data-parallel rank, when stated.
	RankBatch float64

	// TTFT and TPOT prefer the mean over the median where both exist; the
	// flags say which one it is.
	TTFT, TPOT             float64
	TTFTMedian, TPOTMedian bool
	TotalPerGPU            float64 // input + output tokens per second and GPU
}

// Curve names the trade-off curve that a point lies on: the points of one GPU,
// model and lengths, whose order a planner goes by.
func (p *Point) Curve() string {
	return fmt.Sprintf("%s|%s|%g|%g", p.GPU, p.Model, p.InputLen, p.OutputLen)
}

// Key returns the value of a grouping column.
func (p *Point) Key(column string) (string, bool) {
	switch column {
	case "gpu":
		return p.GPU, true
	case "model":
		return p.Model, true
	case "engine":
		return p.Engine, true
	case "weight_dtype":
		return p.WeightDType, true
	case "source", "source_id":
		return p.Source, true
	case "quality":
		return p.Quality, true
	case "tp":
		return strconv.Itoa(p.TP), true
	case "ep":
		return strconv.Itoa(p.EP), true
	case "dp_attention":
		return strconv.FormatBool(p.AttentionDP), true
	case "isl":
		return trim(p.InputLen), true
	case "osl":
		return trim(p.OutputLen), true
	case "concurrency":
		return trim(p.Concurrency), true
	case "date":
		return p.Date, true
	case "workload":
		return p.Workload, true
	case "engine_version":
		return p.Version, true
	case "id", "row_id":
		return p.ID, true
	}
	return "", false
}

// Columns lists the columns that [Point.Key] knows.
func Columns() []string {
	return []string{
		"gpu", "model", "engine", "engine_version", "weight_dtype", "source", "quality", "tp", "ep",
		"dp_attention", "isl", "osl", "concurrency", "date", "workload", "id",
	}
}

func trim(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// required are the columns without which a table cannot be used.
var required = []string{"gpu", "model", "engine", "isl", "osl", "concurrency"}

// ReadCSV reads a table of measured points with a header line. Unknown columns
// are ignored; a malformed number or a missing required column is an error
// that names the line and the column.
func ReadCSV(r io.Reader) ([]Point, error) {
	cr := csv.NewReader(r)
	cr.ReuseRecord = true
	header, err := cr.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w: empty", ErrBadTable)
		}
		return nil, fmt.Errorf("%w: %w", ErrBadTable, err)
	}
	index := make(map[string]int, len(header))
	for i, h := range header {
		h = strings.TrimSpace(strings.TrimPrefix(h, "\ufeff"))
		if _, twice := index[h]; twice {
			return nil, fmt.Errorf("%w: column %q occurs twice", ErrBadTable, h)
		}
		index[h] = i
	}
	for _, c := range required {
		if _, ok := index[c]; !ok {
			return nil, fmt.Errorf("%w: no column %q (need %s)", ErrBadTable, c, strings.Join(required, ", "))
		}
	}
	var points []Point
	for {
		record, err := cr.Read()
		if errors.Is(err, io.EOF) {
			return points, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadTable, err)
		}
		line, _ := cr.FieldPos(0)
		row := row{line: line, index: index, record: record}
		p := row.point()
		if row.err != nil {
			return nil, row.err
		}
		points = append(points, p)
	}
}

type row struct {
	line   int
	index  map[string]int
	record []string
	err    error
}

func (r *row) text(column string) string {
	if i, ok := r.index[column]; ok && i < len(r.record) {
		return strings.Clone(strings.TrimSpace(r.record[i]))
	}
	return ""
}

func (r *row) number(column string) float64 {
	s := r.text(column)
	if s == "" {
		return 0
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || v > 1e15 {
		if r.err == nil {
			r.err = fmt.Errorf("%w: line %d: column %q: %q is not a usable number", ErrBadTable, r.line, column, s)
		}
		return 0
	}
	return v
}

// count reads a small whole number.
func (r *row) count(column string) int {
	v := r.number(column)
	if v > 1e6 {
		if r.err == nil {
			r.err = fmt.Errorf("%w: line %d: column %q: %v is too large", ErrBadTable, r.line, column, v)
		}
		return 0
	}
	return int(v)
}

func (r *row) flag(column string) bool {
	s := r.text(column)
	return s == "1" || strings.EqualFold(s, "true") || strings.EqualFold(s, "yes")
}

var (
	prefixNote = regexp.MustCompile(`gpu prefix hit rate=([0-9.]+)`)
	batchNote  = regexp.MustCompile(`per-rank batch=([0-9.]+)`)
	rangeNote  = regexp.MustCompile(`U\[(0?\.[0-9]+)L,\s*L\]`)
)

func note(re *regexp.Regexp, text string) float64 {
	if m := re.FindStringSubmatch(text); m != nil {
		if v, err := strconv.ParseFloat(strings.TrimRight(m[1], "."), 64); err == nil {
			return v
		}
	}
	return 0
}

func (r *row) point() Point {
	p := Point{
		Line: r.line, ID: r.text("row_id"), Source: r.text("source_id"), Quality: r.text("quality"),
		Date: r.text("date"), GPU: r.text("gpu"), GPUs: r.count("n_gpu"), Disaggregated: r.flag("disagg"),
		TP: r.count("tp"), EP: r.count("ep"), PP: r.count("pp"), AttentionDP: r.flag("dp_attention"),
		Model: r.text("model"), ModelRaw: r.text("model_raw"), WeightDType: r.text("weight_dtype"),
		KVDType: r.text("kv_dtype"), Engine: r.text("engine"), Version: r.text("engine_version"),
		Speculation: r.text("spec_decode"), Workload: r.text("workload"),
		InputLen: r.number("isl"), OutputLen: r.number("osl"), LengthScale: 1,
		Concurrency: r.number("concurrency"), Requests: r.count("num_requests"),
		TotalPerGPU: r.number("total_tok_s_per_gpu"),
	}
	if s := r.text("request_rate"); s != "" && s != "inf" && !strings.HasPrefix(s, "offline") {
		p.RequestRate = r.number("request_rate")
	}
	if low := note(rangeNote, p.Workload); low > 0 && low < 1 {
		p.LengthScale = (1 + low) / 2
	}
	notes := r.text("notes")
	p.PrefixHitRate = min(0.999, note(prefixNote, notes))
	p.RankBatch = note(batchNote, notes)
	p.TTFT, p.TTFTMedian = r.either("ttft_mean_ms", "ttft_median_ms")
	p.TPOT, p.TPOTMedian = r.either("tpot_mean_ms", "tpot_median_ms")
	return p
}

// either returns the first of two columns that is set, in seconds, and whether
// it was the second.
func (r *row) either(mean, median string) (float64, bool) {
	if v := r.number(mean); v > 0 {
		return v / 1e3, false
	}
	v := r.number(median)
	return v / 1e3, v > 0
}
