package calibrate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"infera/internal/units"
)

// Row is one measured collective.
type Row struct {
	GPU, Operation, Implementation string
	Ranks                          int
	Message                        units.Bytes
	Time                           units.Seconds
	Source                         string
}

// ErrRow is the kind of the errors about the content of a table of rows.
var ErrRow = errors.New("invalid row")

// elementBytes is the width of the element types benchmark tables name.
var elementBytes = map[string]float64{
	"float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2, "int8": 1, "fp8": 1,
}

// Read reads a table of rows with a header line. Two forms are known by their
// columns: (gpu, world, op, impl, bytes, time_us) and the one of NVIDIA's
// aiconfigurator (num_gpus, message_size in elements, latency in milliseconds, a
// dtype column).
func Read(r io.Reader) ([]Row, error) {
	records := csv.NewReader(r)
	header, err := records.Read()
	if err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrRow, err)
	}
	column := func(names ...string) int {
		for _, n := range names {
			if i := slices.Index(header, n); i >= 0 {
				return i
			}
		}
		return -1
	}
	c := columns{
		gpu: column("gpu", "device"), op: column("op", "op_name"), impl: column("impl", "kernel_source"),
		ranks: column("world", "num_gpus"), bytes: column("bytes"), elements: column("message_size"),
		dtype: column("allreduce_dtype", "nccl_dtype"), us: column("time_us"), ms: column("latency"), source: column("source"),
	}
	own := c.bytes >= 0 && c.us >= 0
	if c.gpu < 0 || c.op < 0 || c.impl < 0 || c.ranks < 0 || !own && (c.elements < 0 || c.dtype < 0 || c.ms < 0) {
		return nil, fmt.Errorf("%w: header %q has neither known form", ErrRow, strings.Join(header, ","))
	}
	var rows []Row
	for {
		fields, err := records.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRow, err)
		}
		row, err := c.row(fields)
		if err != nil {
			line, _ := records.FieldPos(0)
			return nil, fmt.Errorf("%w: line %d: %w", ErrRow, line, err)
		}
		rows = append(rows, row)
	}
}

// columns are the positions of the fields; -1 = absent.
type columns struct{ gpu, op, impl, ranks, bytes, elements, dtype, us, ms, source int }

func (c columns) row(f []string) (Row, error) {
	row := Row{GPU: f[c.gpu], Operation: f[c.op], Implementation: f[c.impl]}
	if c.source >= 0 {
		row.Source = f[c.source]
	}
	n, err := strconv.Atoi(f[c.ranks])
	if err != nil || n < 2 {
		return row, fmt.Errorf("%q ranks; want 2 or more", f[c.ranks])
	}
	row.Ranks = n
	size, unit := c.bytes, 1.0
	if size < 0 {
		size = c.elements
		if unit = elementBytes[f[c.dtype]]; unit == 0 {
			return row, fmt.Errorf("unknown element type %q", f[c.dtype])
		}
	}
	time, scale := c.us, 1e-6
	if time < 0 {
		time, scale = c.ms, 1e-3
	}
	b, err := positive(f[size])
	if err != nil {
		return row, err
	}
	t, err := positive(f[time])
	if err != nil {
		return row, err
	}
	row.Message, row.Time = units.Bytes(b*unit), units.Seconds(t*scale)
	return row, nil
}

func positive(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || v <= 0 || v > 1e18 {
		return 0, fmt.Errorf("%q is not a positive number", s)
	}
	return v, nil
}
