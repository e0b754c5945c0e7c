package calibrate_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"infera/internal/measured"
	"infera/sim/kernel"
	"infera/sim/kernel/calibrate"
)

// shared opens a table of the shared/data folder beside the repository and skips
// the test when there is none.
func shared(t *testing.T, name string) io.Reader {
	t.Helper()
	file, err := os.Open(filepath.Join(measured.Dir(t), name))
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { file.Close() })
	if !strings.HasSuffix(name, ".gz") {
		return file
	}
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// The shipped curves reach the residuals they state, and those stay within the
// figures below (median absolute relative error).
func TestShippedCurvesReachTheirResiduals(t *testing.T) {
	if testing.Short() {
		t.Skip("prices 50,000 rows")
	}
	t.Parallel()
	gemm, err := calibrate.ReadGEMM(shared(t, "micro/aiter_tuned_gemm.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	moe, err := calibrate.ReadFusedMoE(shared(t, "micro/aiter_tuned_fused_moe.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ gpu, part string }{{"mi300x", "gfx942/304"}, {"mi308x", "gfx942/80"}, {"mi355x", "gfx950/256"}} {
		check(t, c.gpu, c.part, append(gemm, moe...), 0.1)
	}
}

func TestShippedAttentionReachesItsResiduals(t *testing.T) {
	if testing.Short() {
		t.Skip("prices 60,000 rows")
	}
	t.Parallel()
	decode, err := calibrate.ReadDecodeAttention(shared(t, "micro/nvidia_h200_sxm_generation_attention_perf.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, "h200", "NVIDIA H200", decode, 0.15)
	prefill, err := calibrate.ReadPrefillAttention(shared(t, "micro/nvidia_h200_sxm_context_attention_perf.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, "h200", "NVIDIA H200", prefill, 0.17)
}

func check(t *testing.T, gpuName, partName string, rows []calibrate.Row, most float64) {
	t.Helper()
	gpu := part(t, gpuName)
	c := curves(t, gpu)
	for _, f := range kernel.Families() {
		stated := c.Residual(f)
		if stated.Rows == 0 {
			continue
		}
		usable, err := calibrate.Usable(gpu, c, rows, partName, f)
		if err != nil {
			t.Fatal(err)
		}
		if len(usable) == 0 {
			continue // of another table
		}
		got, err := calibrate.Judge(gpu, c, usable)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s %s: %+v", partName, f, got)
		if got.Median > stated.Median*1.1+0.005 || got.Median > most || got.HeldOutMedian > 2*most {
			t.Errorf("%s %s: %+v, stated %+v, at most %g", partName, f, got, stated, most)
		}
	}
}
