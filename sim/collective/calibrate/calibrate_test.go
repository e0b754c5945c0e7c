package calibrate

import (
	"compress/gzip"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"infera/internal/measured"
	"infera/internal/units"
	"infera/sim/collective"
	"infera/sim/hardware"
)

func TestReadForms(t *testing.T) {
	t.Parallel()
	// The same message: 1024 elements of two bytes, 0.0042 ms.
	own := "gpu,world,op,impl,bytes,time_us,source\nMI300X,8,all_reduce,rccl,2048,4.2,here\n"
	other := "device,op_name,kernel_source,nccl_dtype,num_gpus,message_size,latency\nMI300X,all_reduce,rccl,half,8,1024,0.0042\n"
	for _, in := range []string{own, other} {
		rows, err := Read(strings.NewReader(in))
		if err != nil || len(rows) != 1 {
			t.Fatalf("Read(%q): %d rows, %v", in, len(rows), err)
		}
		r := rows[0]
		if r.GPU != "MI300X" || r.Operation != "all_reduce" || r.Ranks != 8 || r.Message != 2048 || math.Abs(r.Time.Microseconds()-4.2) > 1e-9 {
			t.Errorf("Read(%q) = %+v", in, r)
		}
	}
	for _, in := range []string{
		"", "a,b\n1,2\n", strings.Replace(own, "2048", "-1", 1), strings.Replace(own, "4.2", "NaN", 1),
		strings.Replace(own, ",8,", ",1,", 1), strings.Replace(other, "half", "quarter", 1), own + "x\n",
	} {
		if _, err := Read(strings.NewReader(in)); !errors.Is(err, ErrRow) {
			t.Errorf("Read(%q): %v, want ErrRow", in, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("gpu,world,op,impl,bytes,time_us\nx,8,all_reduce,rccl,2048,4.2\n")
	f.Add("device,op_name,kernel_source,nccl_dtype,num_gpus,message_size,latency\nx,y,z,half,8,1024,1\n")
	f.Fuzz(func(t *testing.T, in string) {
		rows, err := Read(strings.NewReader(in))
		if err != nil {
			return
		}
		for _, r := range rows {
			if r.Ranks < 2 || !(r.Message > 0) || !(r.Time > 0) {
				t.Fatalf("row %+v", r)
			}
		}
	})
}

// TestFitRecovers fits rows made from a known envelope.
func TestFitRecovers(t *testing.T) {
	t.Parallel()
	// 5 us + b/40 GB/s, then 9 us + b/100 GB/s; they cross at 267 kB.
	var rows []Row
	for b := 1024.0; b < 1e7; b *= 2 {
		us := min(5+b/40e3, 9+b/100e3)
		rows = append(rows, Row{Ranks: 8, Message: units.Bytes(b), Time: units.Seconds(us * 1e-6)})
	}
	r, err := Fit(rows, 4)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Fit.Lines) != 2 || r.Worst > 1e-6 {
		t.Fatalf("%d lines, worst %g; want the two lines exactly", len(r.Fit.Lines), r.Worst)
	}
	if got := r.Fit.Lines[1]; math.Abs(got.Floor.Microseconds()-9) > 1e-6 || math.Abs(1e-9/got.PerByte-100) > 1e-6 {
		t.Errorf("second line %+v", got)
	}
	if _, err := Fit(rows[:1], 2); err == nil {
		t.Error("one row: no error")
	}
}

func readShared(t *testing.T, name string) []Row {
	t.Helper()
	f, err := os.Open(filepath.Join(measured.Dir(t), "micro", name))
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := Read(in)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestShippedTables prices the measured messages with the shipped tables and
// holds the relative error.
func TestShippedTables(t *testing.T) {
	t.Parallel()
	tests := []struct {
		file, isa, gpu, impl, op string
		opt                      collective.Options
		smallest, largest        units.Bytes
		spread, bias             float64 // of ln(measured/modelled)
		scaleUp                  units.BytesPerSecond
	}{
		{file: "allreduce_amd.csv", isa: "gfx942", gpu: "MI300X", impl: "vllm custom all-reduce", op: "all_reduce", largest: 8 << 20, spread: 0.07, scaleUp: 448e9},
		{file: "allreduce_amd.csv", isa: "gfx942", gpu: "MI300X", impl: "custom all-reduce (baseline)", op: "all_reduce", largest: 8 << 20, spread: 0.08, scaleUp: 448e9},
		{file: "allreduce_amd.csv", isa: "gfx942", gpu: "MI300X", impl: "RCCL 2.22.3 graph (-G 1)", op: "all_reduce", smallest: 16 << 20, spread: 0.03, scaleUp: 448e9},
		{file: "allreduce_amd.csv", isa: "gfx950", gpu: "MI355X", impl: "vllm custom all-reduce (before)", op: "all_reduce", spread: 0.13, bias: 0.2, scaleUp: 537.6e9},
		{file: "allreduce_amd.csv", isa: "gfx950", gpu: "MI355X", impl: "vllm custom all-reduce", op: "all_reduce", spread: 0.16, bias: 0.2, scaleUp: 537.6e9},
		{file: "nvidia_h200_sxm_custom_allreduce_perf.csv.gz", isa: "sm_90", gpu: "NVIDIA H200", impl: "vLLM_custom_graph", op: "all_reduce", spread: 0.07, scaleUp: 450e9},
		{file: "nvidia_h100_sxm_custom_allreduce_perf.csv.gz", isa: "sm_90", gpu: "NVIDIA H100 80GB HBM3", impl: "vLLM_custom_graph", op: "all_reduce", spread: 0.08, scaleUp: 450e9},
		{file: "nvidia_h200_sxm_custom_allreduce_perf.csv.gz", isa: "sm_90", gpu: "NVIDIA H200", impl: "vLLM_custom_eager", op: "all_reduce", opt: collective.Options{Eager: true}, spread: 0.25, bias: 0.12, scaleUp: 450e9},
		{file: "nvidia_b200_sxm_custom_allreduce_perf.csv.gz", isa: "sm_100", gpu: "NVIDIA B200", impl: "vLLM_custom_graph", op: "all_reduce", spread: 0.14, scaleUp: 900e9},
		{file: "nvidia_h200_sxm_nccl_perf.csv.gz", isa: "sm_90", gpu: "NVIDIA H200", impl: "NCCL", op: "all_gather", spread: 0.07, scaleUp: 450e9},
		{file: "nvidia_h200_sxm_nccl_perf.csv.gz", isa: "sm_90", gpu: "NVIDIA H200", impl: "NCCL", op: "reduce_scatter", spread: 0.07, scaleUp: 450e9},
		{file: "nvidia_h200_sxm_nccl_perf.csv.gz", isa: "sm_90", gpu: "NVIDIA H200", impl: "NCCL", op: "alltoall", spread: 0.1, scaleUp: 450e9},
	}
	for _, tt := range tests {
		rows := readShared(t, tt.file)
		m := model(t, tt.isa, tt.scaleUp, tt.opt)
		var n, sum, square, below float64
		for _, r := range rows {
			if r.GPU != tt.gpu || r.Implementation != tt.impl || r.Operation != tt.op || r.Message < tt.smallest || tt.largest > 0 && r.Message > tt.largest {
				continue
			}
			e := price(m, r)
			d := math.Log(float64(r.Time) / float64(e.Time))
			n, sum, square = n+1, sum+d, square+d*d
			if r.Time < e.Lower {
				below++
			}
		}
		if n == 0 {
			t.Errorf("%s %s %s: no rows", tt.gpu, tt.impl, tt.op)
			continue
		}
		bias := sum / n
		spread := math.Sqrt(max(0, square/n-bias*bias))
		t.Logf("%-22s %-32s %-14s %3.0f rows: bias %+.3f, spread %.3f", tt.gpu, tt.impl, tt.op, n, bias, spread)
		if limit := max(tt.bias, 0.06); math.Abs(bias) > limit || spread > tt.spread {
			t.Errorf("%s %s %s: bias %+.3f, spread %.3f; want within %.2f and %.2f", tt.gpu, tt.impl, tt.op, bias, spread, limit, tt.spread)
		}
		if below > 0 {
			t.Errorf("%s %s %s: %.0f measured times below the lower bound", tt.gpu, tt.impl, tt.op, below)
		}
	}
}

func model(t *testing.T, isa string, scaleUp units.BytesPerSecond, opt collective.Options) *collective.Model {
	t.Helper()
	gpu := &hardware.GPU{Name: isa, ISA: isa, ScaleUp: scaleUp}
	table, err := collective.LoadTable(os.DirFS("../../../configs"), gpu)
	if err != nil {
		t.Fatal(err)
	}
	m, err := collective.New(gpu, &hardware.Fabric{Name: "test", Topology: table.Measured.Topology, DomainSize: 8, LinkEfficiency: 0.75}, table, opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func price(m *collective.Model, r Row) collective.Estimate {
	switch r.Operation {
	case "all_gather":
		return m.AllGather(r.Ranks, r.Message)
	case "reduce_scatter":
		return m.ReduceScatter(r.Ranks, r.Message)
	case "alltoall":
		return m.AllToAll(r.Ranks, r.Message)
	}
	return m.AllReduce(r.Ranks, r.Message)
}
