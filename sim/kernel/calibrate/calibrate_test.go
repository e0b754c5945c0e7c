package calibrate_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infera/configs"
	"infera/models"
	"infera/sim/hardware"
	"infera/sim/kernel"
	"infera/sim/kernel/calibrate"
)

func part(t testing.TB, name string) *hardware.GPU {
	t.Helper()
	catalog, err := hardware.Load(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := catalog.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return gpu
}

func curves(t testing.TB, gpu *hardware.GPU) *kernel.Curves {
	t.Helper()
	c, err := kernel.LoadCurves(configs.FS, gpu)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const gemmHeader = "gfx,cu_num,part,kernel_family,batch,M,N,K,dtype,time_us,below_peak\n"

// A table written with a known curve gives that curve's times back.
func TestFitFindsAKnownCurve(t *testing.T) {
	t.Parallel()
	gpu := part(t, "mi355x")
	truth := curves(t, gpu)
	m, err := kernel.New(gpu, truth)
	if err != nil {
		t.Fatal(err)
	}
	bf16 := models.Format{Name: "bf16", Element: models.BF16, Activation: models.BF16}
	var table strings.Builder
	table.WriteString(gemmHeader)
	for _, rows := range []int{1, 4, 16, 64, 256, 1024, 8192} {
		for _, n := range []int{512, 2048, 5120, 8192, 28672} {
			for _, k := range []int{1024, 4096, 8192} {
				fmt.Fprintf(&table, "gfx950,256,MI355X,bf16,1,%d,%d,%d,bfloat16,%g,1\n", rows, n, k, m.GEMM(float64(rows), n, k, bf16).Time.Microseconds())
			}
		}
	}
	rows, err := calibrate.ReadGEMM(strings.NewReader(table.String()))
	if err != nil {
		t.Fatal(err)
	}
	// Start from other numbers.
	start := curves(t, gpu)
	c := start.Matrix["gemm_bf16"]
	c.Memory, c.Compute, c.RampMicroseconds, c.Overlap = 0.6, 0.4, 6, 0.1
	start.Matrix["gemm_bf16"] = c
	fitted, err := calibrate.Fit(gpu, start, kernel.GEMMBF16, rows, calibrate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := fitted.Residual(kernel.GEMMBF16)
	if r.Median > 0.04 || r.HeldOutMedian > 0.06 || r.Rows+r.HeldOut != len(rows) {
		t.Errorf("residual %+v of %d rows", r, len(rows))
	}
	if start.Matrix["gemm_bf16"].Memory != 0.6 {
		t.Error("the fit changed its start")
	}

	again, summaries, err := calibrate.Refit(gpu, fitted, "gfx950/256", rows, calibrate.Options{Families: []kernel.Family{kernel.GEMMBF16, kernel.GEMMFP8}})
	if err != nil {
		t.Fatal(err)
	}
	if len(summaries) == 0 || summaries[0].Family != kernel.GEMMBF16 || again.Residual(kernel.GEMMBF16).Median > r.Median+0.005 {
		t.Errorf("a second fit leaves %+v after %+v; %+v", again.Residual(kernel.GEMMBF16), r, summaries)
	}
	if d := cmp.Diff(fitted.Matrix["gemm_fp8"], again.Matrix["gemm_fp8"]); d != "" {
		t.Errorf("a family without rows changed: %s", d)
	}
}

func TestFitIsDeterministic(t *testing.T) {
	t.Parallel()
	gpu := part(t, "mi355x")
	var table strings.Builder
	table.WriteString(gemmHeader)
	for i := range 40 {
		fmt.Fprintf(&table, "gfx950,256,MI355X,bf16,1,%d,%d,4096,bfloat16,%d,1\n", 1+i%8, 1024*(1+i%5), 10+i)
	}
	fit := func() *kernel.Curves {
		rows, err := calibrate.ReadGEMM(strings.NewReader(table.String()))
		if err != nil {
			t.Fatal(err)
		}
		c, err := calibrate.Fit(gpu, curves(t, gpu), kernel.GEMMBF16, rows, calibrate.Options{Evaluations: 100, Free: []string{"ramp_us", "memory"}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if d := cmp.Diff(fit(), fit()); d != "" {
		t.Error(d)
	}
}

func TestReadGEMM(t *testing.T) {
	t.Parallel()
	table := gemmHeader + `gfx950,256,x,bf16,1,1,512,1024,bfloat16,5,1
gfx950,256,x,bf16,1,1,512,1024,bfloat16,4,1
gfx950,256,x,bf16,1,1,512,1024,bfloat16,1,0
gfx950,256,x,bf16,8,1,512,1024,bfloat16,9,1
gfx950,256,x,bf16,1,2,512,1024,bfloat16,inf,1
gfx950,256,x,a8w8_blockscale_bpreshuffle,1,1,512,1024,,3,1
gfx950,256,x,a8w8,1,1,512,1024,int8,3,1
gfx950,256,x,a4w4_blockscale,1,1,512,1024,,3,1
gfx942,80,x,a8w8_bpreshuffle,1,1,512,1024,float8_e4m3fnuz,3,1
gfx942,80,x,fft,1,1,512,1024,,3,1
`
	rows, err := calibrate.ReadGEMM(strings.NewReader(table))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%s %s %.0f", r.Part, r.Family, r.Seconds*1e6))
	}
	// The faster of two tunings stays; impossible, batched, unmeasured and unknown
	// rows go.
	want := []string{"gfx950/256 gemm_bf16 4", "gfx950/256 gemm_fp8_block 3", "gfx950/256 gemm_int8 3", "gfx950/256 gemm_mxfp4 3", "gfx942/80 gemm_fp8 3"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestReadFusedMoE(t *testing.T) {
	t.Parallel()
	table := "gfx,cu_num,tokens,model_dim,inter_dim_per_rank,experts,topk,dtype_a,dtype_w,quant,total_us\n" +
		`gfx942,304,2048,4096,384,128,8,bfloat16,bfloat16,No,700.5
gfx942,304,4096,4096,384,128,8,bfloat16,bfloat16,No,700.5
gfx950,256,16,7168,256,256,8,float8_e4m3fn,float4_e2m1fn_x2,per_1x32,50
gfx950,256,16,7168,256,256,8,float4_e2m1fn_x2,float4_e2m1fn_x2,per_1x32,51
gfx950,256,16,7168,256,256,8,bfloat16,float4_e2m1fn_x2,per_1x32,52
gfx950,256,16,7168,256,256,8,bfloat16,int4,per_1x32,53
gfx950,256,16,7168,256,256,8,float8_e4m3fn,float8_e4m3fn,per_1x128,54
gfx950,256,16,7168,256,256,8,float8_e4m3fn,float8_e4m3fn,per_Token,55
`
	rows, err := calibrate.ReadFusedMoE(strings.NewReader(table))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%s %s %g", r.Part, r.Family, r.Size))
	}
	want := []string{
		"gfx942/304 moe_bf16 2048", "gfx950/256 moe_fp4_fp8 16", "gfx950/256 moe_mxfp4 16", "gfx950/256 moe_fp4_weight 16",
		"gfx950/256 moe_int4 16", "gfx950/256 moe_fp8_block 16", "gfx950/256 moe_fp8 16",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestBadTables(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(io.Reader) ([]calibrate.Row, error){
		"gemm": calibrate.ReadGEMM, "moe": calibrate.ReadFusedMoE, "decode": calibrate.ReadDecodeAttention, "prefill": calibrate.ReadPrefillAttention,
	} {
		for _, text := range []string{"", "a,b\n1,2\n", "\"", gemmHeader + "gfx950,256,x,bf16,1,one,512,1024,bfloat16,5,1\n", gemmHeader + "1,2\n"} {
			if _, err := read(strings.NewReader(text)); !errors.Is(err, calibrate.ErrTable) {
				t.Errorf("%s of %q: %v", name, text, err)
			}
		}
	}
}

func TestFewRowsAreAnError(t *testing.T) {
	t.Parallel()
	gpu := part(t, "mi355x")
	if _, err := calibrate.Fit(gpu, curves(t, gpu), kernel.GEMMBF16, nil, calibrate.Options{}); !errors.Is(err, calibrate.ErrFewRows) {
		t.Error(err)
	}
}

func TestWriteRoundTrips(t *testing.T) {
	t.Parallel()
	all, err := kernel.Load(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		var b bytes.Buffer
		if err := calibrate.Write(&b, c, "two\nlines"); err != nil {
			t.Fatal(err)
		}
		again, err := kernel.Decode(c.Name, b.Bytes())
		if err != nil {
			t.Fatalf("%s: %v\n%s", c.Name, err, b.String())
		}
		if d := cmp.Diff(c, again); d != "" {
			t.Errorf("%s: %s", c.Name, d)
		}
	}
}

func FuzzReadGEMM(f *testing.F) {
	f.Add(gemmHeader + "gfx950,256,x,bf16,1,1,512,1024,bfloat16,5,1\n")
	f.Add(gemmHeader + "gfx950,256,x,a4w4,1,1e300,5e-9,-1,,inf,\n")
	gpu := part(f, "mi355x")
	m, err := kernel.New(gpu, curves(f, gpu))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := calibrate.ReadGEMM(strings.NewReader(text))
		if err != nil {
			return
		}
		for i := range rows {
			if e := rows[i].Price(m); e.Time < e.Lower {
				t.Errorf("time %g below %g", e.Time, e.Lower)
			}
		}
	})
}
