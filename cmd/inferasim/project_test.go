package main

import (
	"encoding/csv"
	"strings"
	"testing"
	"unicode/utf8"

	"infera/internal/cli"
)

func TestProjectJSON(t *testing.T) {
	t.Parallel()
	o := run(t, readme("-o", "json", "--gpu-cost-per-hour", "2.5")...)
	o.want(t, 0)
	v := o.object(t)
	if at(t, v, "schema") != "inferasim.projection/v1" || at(t, v, "feasible") != true || at(t, v, "reason") != "" {
		t.Errorf("schema, feasible, reason = %v, %v, %v", v["schema"], v["feasible"], v["reason"])
	}
	for path, want := range map[string]any{
		"request.model": "gpt-oss-120b", "request.gpu_arch": "mi355x", "request.tp": 2.0, "request.input_len": 1024.0,
		"request.kv_cache_dtype": "bf16", "request.profiling_mode": "simulate", "request.arrival_model": "closed",
		"performance.gpus": 2.0, "performance.concurrency": 32.0, "fidelity.mode": "simulate", "fidelity.source": "analytic",
	} {
		if got := at(t, v, path); got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
	for _, band := range []string{"ttft_ms", "tpot_ms", "itl_ms", "e2e_ms", "decode_step_ms", "mixed_step_ms", "output_tok_s", "output_tok_s_per_gpu", "total_tok_s_per_gpu", "prefill_tok_s"} {
		p := "performance." + band
		low, value, high := number(t, v, p+".low"), number(t, v, p+".value"), number(t, v, p+".high")
		if !(0 < low && low <= value && value <= high) {
			t.Errorf("%s = %v [%v .. %v], want 0 < low <= value <= high", p, value, low, high)
		}
	}
	// Both lengths are 1024, so input + output tokens are twice the output:
	// per GPU of two, what the output is over all.
	if total, out := number(t, v, "performance.total_tok_s_per_gpu.value"), number(t, v, "performance.output_tok_s.value"); !near(total, out) {
		t.Errorf("total per GPU = %v, want the output rate %v", total, out)
	}
	// 2.5 $/h x 2 GPUs x 1e6 / (rate x 3600).
	if got, want := number(t, v, "cost.usd_per_m_output_tokens"), 2.5*2*1e6/(number(t, v, "performance.output_tok_s.value")*3600); !near(got, want) {
		t.Errorf("cost = %v, want %v", got, want)
	}
	var sum float64
	for _, o := range at(t, v, "performance.breakdown.decode").([]any) {
		op := o.(map[string]any)
		sum += op["time_ms"].(float64)
		if op["bound"] == "" || op["source"] == "" {
			t.Errorf("operation %v lacks bound or source", op["op"])
		}
	}
	if step := number(t, v, "performance.decode_step_ms.value"); sum < 0.9*step || sum > 1.1*step {
		t.Errorf("operations add up to %v ms of a step of %v ms", sum, step)
	}
	if len(at(t, v, "memory.terms").([]any)) == 0 || number(t, v, "memory.weights_bytes") < 30e9 {
		t.Errorf("memory = %v", v["memory"])
	}
}

func near(a, b float64) bool { return a > b*(1-1e-6) && a < b*(1+1e-6) }

func TestProjectIsRepeatable(t *testing.T) {
	t.Parallel()
	a, b := run(t, readme("-o", "json")...), run(t, readme("-o", "json")...)
	if a.out != b.out {
		t.Error("two runs of one command differ")
	}
}

func TestProjectTable(t *testing.T) {
	t.Parallel()
	for _, width := range []int{40, 60, 100, 160} {
		o := machine{width: width}.run(t, readme("--explain")...)
		o.want(t, 0)
		for _, text := range []string{"TTFT", "TPOT", "Interactivity", "Mixed-step fraction", "Communication", "Memory projection", "One decode step"} {
			if width >= 60 && !strings.Contains(o.out, text) {
				t.Errorf("width %d: output lacks %q", width, text)
			}
		}
		for _, line := range strings.Split(o.out, "\n") {
			if utf8.RuneCountInString(line) > max(width, 60) {
				t.Errorf("width %d: line of %d columns: %q", width, utf8.RuneCountInString(line), line)
			}
		}
	}
	o := run(t, readme("--inference-mode", "memory")...)
	if strings.Contains(o.out, "TPOT") || !strings.Contains(o.out, "Memory projection") {
		t.Errorf("--inference-mode memory prints\n%s", o.out)
	}
	o = run(t, readme("--inference-mode", "performance")...)
	if !strings.Contains(o.out, "TPOT") || strings.Contains(o.out, "Memory projection") {
		t.Errorf("--inference-mode performance prints\n%s", o.out)
	}
}

func TestProjectCSV(t *testing.T) {
	t.Parallel()
	o := run(t, readme("-o", "csv")...)
	o.want(t, 0)
	records, err := csv.NewReader(strings.NewReader(o.out)).ReadAll()
	if err != nil || len(records) != 2 || len(records[0]) != len(records[1]) {
		t.Fatalf("csv = %v records, %v", len(records), err)
	}
}

func TestInfeasible(t *testing.T) {
	t.Parallel()
	args := []string{"--model", "llama3.1_405B", "--gpu-arch", "mi300x", "--profiling-mode", "simulate"}
	for _, command := range []string{"project", "inference", "fit"} {
		o := run(t, append([]string{command, "-o", "json"}, args...)...)
		o.want(t, cli.ExitInfeasible, "weights")
		v := o.object(t) // one object only: the verdict
		if at(t, v, "feasible") != false || at(t, v, "reason") == "" || at(t, v, "memory.short_term") != "weights" {
			t.Errorf("%s: feasible, reason, short = %v, %v, %v", command, v["feasible"], v["reason"], at(t, v, "memory.short_term"))
		}
		if command != "fit" && at(t, v, "performance") != nil {
			t.Errorf("performance = %v, want null", v["performance"])
		}
		if len(at(t, v, "suggestions").([]any)) == 0 {
			t.Error("no suggestions")
		}
	}
	o := run(t, append([]string{"project"}, args...)...)
	o.want(t, cli.ExitInfeasible, "short of weights")
	if !strings.Contains(o.out, "Not feasible") {
		t.Errorf("table lacks the verdict:\n%s", o.out)
	}
}

func TestBenchmarkModeNeedsAnAnchor(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "benchmark", "both"} {
		args := []string{"project", "--model", "gpt_oss_120B", "--gpu-arch", "mi355x", "-o", "json"}
		if mode != "" {
			args = append(args, "--profiling-mode", mode)
		}
		o := run(t, args...)
		o.want(t, cli.ExitNoCalibration, "--load-benchmark", "--anchor-store", "--profiling-mode simulate")
		v := o.object(t)
		if at(t, v, "schema") != "infera.error/v1" || at(t, v, "error.kind") != "no_calibration" {
			t.Errorf("error object = %v", v)
		}
	}
	run(t, "validate", "--profiling-mode", "benchmark").want(t, cli.ExitNoCalibration, "--profiling-mode simulate")
}

func TestKnobs(t *testing.T) {
	t.Parallel()
	base := tpot(t, readme())
	for _, c := range []struct {
		args   []string
		slower bool
	}{
		{[]string{"--cudagraph-mode", "none"}, true},
		{[]string{"--attention-backend", "triton"}, true},
		{[]string{"--fused-kernels"}, false},
		{[]string{"--gemm-backend", "roofline"}, false},
		{[]string{"--decode-step-overhead-us", "500"}, true},
		{[]string{"--tp-allreduce-efficiency", "2"}, true},
		{[]string{"--kernel-launch-latency-us", "60"}, true},
		{[]string{"--decode-kernel-occupancy-us", "50"}, true},
		{[]string{"--decode-comm-overlap", "1"}, false},
		{[]string{"--no-sampling"}, false},
		{[]string{"--detokenize-overhead-us", "100"}, true},
		{[]string{"--act-quant-dtype", "mxfp4"}, false},
		{[]string{"--gpu-clock-mhz", "400"}, true},
	} {
		if got := tpot(t, readme(c.args...)); c.slower && got <= base || !c.slower && got > base {
			t.Errorf("%v: TPOT = %v ms from %v ms, want slower = %v", c.args, got, base, c.slower)
		}
	}
	// A mode that equals the engine's default changes nothing.
	if got := tpot(t, readme("--cudagraph-mode", "full", "--attention-backend", "aiter")); got != base {
		t.Errorf("the engine's defaults, stated, change TPOT from %v to %v", base, got)
	}
}

func tpot(t *testing.T, args []string) float64 {
	t.Helper()
	o := run(t, append(args, "-o", "json")...)
	o.want(t, 0)
	return number(t, o.object(t), "performance.tpot_ms.value")
}

func TestServingModels(t *testing.T) {
	t.Parallel()
	v := run(t, readme("-o", "json", "--serving-model", "static", "--inference-batch-size", "16")...).object(t)
	if at(t, v, "performance.serving_model") != "static" || number(t, v, "performance.concurrency") != 16 {
		t.Errorf("static: %v at %v", at(t, v, "performance.serving_model"), at(t, v, "performance.concurrency"))
	}
	v = run(t, readme("-o", "json", "--request-rate", "0.5")...).object(t)
	if at(t, v, "performance.arrival_model") != "poisson" || at(t, v, "performance.saturated") != false || number(t, v, "performance.max_request_rate") <= 0.5 {
		t.Errorf("open loop: %v", at(t, v, "performance"))
	}
	v = run(t, readme("-o", "json", "--request-rate", "1000")...).object(t)
	if at(t, v, "performance.saturated") != true {
		t.Error("1000 requests/s do not saturate two GPUs")
	}
	v = run(t, readme("-o", "json", "--disaggregate", "--prefill-replicas", "2", "--decode-tp", "4", "--transfer-backend", "nixl")...).object(t)
	// 2 prefill replicas of 2 GPUs and a decode replica of 4.
	if n := number(t, v, "performance.gpus"); n != 8 {
		t.Errorf("disaggregated on %v GPUs, want 8", n)
	}
	if number(t, v, "performance.disaggregation.kv_transfer_ms") <= 0 {
		t.Error("the cache transfer takes no time")
	}
}

func TestDebugBreakdownChangesNothing(t *testing.T) {
	t.Parallel()
	plain := run(t, readme("-o", "json")...)
	o := machine{env: map[string]string{"INFERASIM_DEBUG_BREAKDOWN": "1"}}.run(t, readme("-o", "json")...)
	if o.out != plain.out || !strings.Contains(o.err, "breakdown decode") {
		t.Errorf("same output: %v; stderr: %s", o.out == plain.out, o.err)
	}
}
