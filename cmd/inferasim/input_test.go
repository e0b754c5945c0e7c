package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"infera/internal/cli"
)

func TestBadInput(t *testing.T) {
	t.Parallel()
	base := []string{"project", "--model", "gpt_oss_120B", "--gpu-arch", "mi355x", "--profiling-mode", "simulate"}
	with := func(more ...string) []string { return append(append([]string(nil), base...), more...) }
	yaml := write(t, "hw.yaml", "base: mi300x\nclok_mhz: 1\n")
	broken := write(t, "broken.yaml", "a: [1\n")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{with("--model", "gpt_oss_120C"), []string{"unknown model", `did you mean "gpt-oss-120b"?`}},
		{with("--model", "no/such-model"), []string{"unknown model", "no file or directory"}},
		{with("--model", "./nowhere/config.json"), []string{"no such file"}},
		{with("--model", ""), []string{"no model given"}},
		{with("--gpu-arch", "mi365x"), []string{"unknown GPU", "mi355x"}},
		{with("--gpu-arch", ""), []string{"--gpu-arch"}},
		{with("--weight-dtype", "fp9"), []string{"--weight-dtype", "unknown format"}},
		{with("--kv-cache-dtype", "q8"), []string{"--kv-cache-dtype", "unknown format"}},
		{with("--act-quant-dtype", "fp3"), []string{"--act-quant-dtype", "allowed"}},
		{with("--engine", "vlm"), []string{"unknown engine", `"vllm"`}},
		{with("--engine-version", "banana"), []string{"banana"}},
		{with("--attention-backend", "aitr"), []string{`did you mean "aiter"?`}},
		{with("--inptu-len", "4"), []string{"unknown flag", "--input-len"}},
		{with("--tp", "0"), []string{"--tp", "out of range"}},
		{with("--tp", "-2"), []string{"--tp"}},
		{with("--tp", "3"), []string{"64 query heads", "nearest legal layout is --tp 2"}},
		{with("--tp", "4", "--ep", "3"), []string{"nearest legal layout"}},
		{with("--tp", "4096", "--pp", "4096"), []string{"nearest legal layout"}},
		{with("--tp", "4", "--attention-dp-size", "3"), []string{"nearest legal layout"}},
		{with("--input-len", "nan"), []string{"--input-len"}},
		{with("--input-len", "1e99"), []string{"--input-len"}},
		{with("--input-len", "99999999999999999999"), []string{"--input-len"}},
		{with("--prefix-cache-hit-rate", "NaN"), []string{"--prefix-cache-hit-rate"}},
		{with("--prefix-cache-hit-rate", "1.5"), []string{"--prefix-cache-hit-rate"}},
		{with("--gpu-clock-mhz", "inf"), []string{"--gpu-clock-mhz"}},
		{with("--hbm-capacity-gb", "-1"), []string{"--hbm-capacity-gb"}},
		{with("--hbm-capacity-gb", "12 parsecs"), []string{"--hbm-capacity-gb"}},
		{with("--max-context-len", "100", "--input-len", "200"), []string{"--max-context-len"}},
		{with("--decode-tp", "2"), []string{"--decode-tp", "needs --disaggregate"}},
		{with("--speculative-acceptance-rate", "0.5"), []string{"needs --speculative-num-tokens"}},
		{with("--arrival-model", "poisson"), []string{"--arrival-model"}},
		{with("--request-rate", "1", "--arrival-model", "closed"), []string{"--arrival-model"}},
		{with("--serving-model", "static", "--request-rate", "1"), []string{"--serving-model"}},
		{with("--inference-batch-size", "8"), []string{"--serving-model static"}},
		{with("--model", "llama-3.1-8b", "--redundant-experts", "8"), []string{"no routed experts"}},
		{with("--anchor-store", "x"), []string{"simulate uses no measurement"}},
		{with("--gpu-arch", "h100", "--attention-backend", "ck"), []string{"not modelled"}},
		{with("--hardware", yaml), []string{"unknown key", `"clock_mhz"`}},
		{with("--hardware", broken), []string{"broken.yaml"}},
		{with("--hardware", filepath.Join(t.TempDir(), "none.yaml")), []string{"none.yaml"}},
		{with("--moe-router-coverage", broken), []string{"--moe-router-coverage"}},
		{with("--launch", "vllm serve 'x"), []string{"--launch"}},
		{with("--launch", "vllm serve x --tensor-parallel-size zwei"), []string{"zwei"}},
		{with("--profiling-mode", "simulated"), []string{`did you mean "simulate"?`}},
		{with("--profiling-mode", "benchmark", "--load-benchmark", "none.json"), []string{"none.json"}},
		{with("surplus"), []string{"unexpected argument"}},
		{[]string{"projct"}, []string{`unknown command`, "project"}},
		{[]string{"model", "lsit"}, []string{"list"}},
		{[]string{"model", "show", "gpt_oss_12B"}, []string{"unknown model"}},
		{[]string{"hardware", "show", "mi9"}, []string{"unknown GPU"}},
		{[]string{"validate", "--profiling-mode", "simulate", "--data", "none.csv"}, []string{"none.csv"}},
		{[]string{"validate", "--profiling-mode", "simulate", "--where", "gpus=MI300X"}, []string{"unknown column", "did you mean"}},
		{[]string{"validate", "--profiling-mode", "simulate", "--where", "gpu"}, []string{"column=value"}},
		{[]string{"validate", "--profiling-mode", "simulate", "--group-by", "engin"}, []string{"unknown column"}},
	} {
		t.Run(strings.Join(c.args[min(len(c.args), 1):], " "), func(t *testing.T) {
			t.Parallel()
			run(t, c.args...).want(t, cli.ExitBadInput, c.want...)
		})
	}
}

func TestBadInputIsAnObjectUnderJSON(t *testing.T) {
	t.Parallel()
	o := run(t, "project", "--model", "gpt_oss_120B", "--gpu-arch", "mi355x", "--tp", "3", "-o", "json")
	o.want(t, cli.ExitBadInput)
	v := o.object(t)
	if at(t, v, "error.kind") != "bad_input" || at(t, v, "error.hint") == "" {
		t.Errorf("error object = %v", v)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"INFERASIM_GPU_ARCHH": "mi300x", "INFERASIM_TP": "two", "INFERASIM_INFER_AR_FLOOR_US": "-1",
		"INFERASIM_MOE_SIM_KERNEL": "triton", "INFERASIM_MOE_IMB_ROOFLINE": "perhaps", "INFERASIM_DEBUG_BREAKDOWN": "3",
	} {
		machine{env: map[string]string{name: value}}.run(t, readme()...).want(t, cli.ExitBadInput, name)
	}
	base := tpot(t, readme())
	for _, c := range []struct {
		name, value string
		slower      bool
	}{
		{"INFERASIM_INFER_AR_FLOOR_US", "100", true},
		{"INFERASIM_GPU_CLOCK_MHZ", "300", true},
		{"INFERASIM_GEMM_BACKEND", "roofline", false},
		{"INFERASIM_STREAM_INTERVAL", "1", false},
	} {
		o := machine{env: map[string]string{c.name: c.value}}.run(t, readme("-o", "json")...)
		o.want(t, 0)
		if got := number(t, o.object(t), "performance.tpot_ms.value"); c.slower && got <= base || !c.slower && got > base {
			t.Errorf("%s=%s: TPOT %v ms from %v ms, want slower = %v", c.name, c.value, got, base, c.slower)
		}
	}
	o := machine{env: map[string]string{"INFERASIM_MODEL": "llama-3.1-8b", "INFERASIM_GPU_ARCH": "mi300x", "INFERASIM_MOE_SIM_KERNEL": "turbo"}}.
		run(t, "project", "--profiling-mode", "simulate", "-o", "json")
	o.want(t, 0)
	if at(t, o.object(t), "request.model") != "llama-3.1-8b" {
		t.Error("INFERASIM_MODEL is not read")
	}
}

func TestRoot(t *testing.T) {
	t.Parallel()
	path := write(t, "config.json", tinyConfig)
	o := machine{env: map[string]string{"INFERASIM_ROOT": filepath.Dir(path)}}.
		run(t, "fit", "--model", "./config.json", "--gpu-arch", "mi300x", "-o", "json")
	o.want(t, 0)
	// 8 layers of attention (2 x 1024 x 1024 + 2 x 1024 x 256 = 2,621,440) and
	// feed-forward (3 x 1024 x 4096 = 12,582,912) weights with two norms of 1024
	// (2,048), two matrices of 32,000 x 1024 and the last norm:
	// 8 x 15,206,400 + 65,536,000 + 1,024 = 187,188,224.
	if n := number(t, o.object(t), "model.params_total"); n != 187188224 {
		t.Errorf("params_total = %.0f, want 187188224", n)
	}
}

func TestBadModelConfigs(t *testing.T) {
	t.Parallel()
	ignore := strings.Repeat(`"model.layers.0.mlp.experts.17.down_proj.weight",`, 60000)
	ignore = ignore[:len(ignore)-1]
	quantised := strings.TrimSuffix(tinyConfig, "}") + `,"quantization_config":{"quant_method":"compressed-tensors","ignore":[` + ignore + `]}}`
	for name, text := range map[string]string{
		"empty": "", "null": "null", "array": "[]", "truncated": tinyConfig[:len(tinyConfig)/2],
		"no dimensions": `{"model_type":"llama"}`,
		"zero heads":    strings.Replace(tinyConfig, `"num_attention_heads":16`, `"num_attention_heads":0`, 1),
		"negative":      strings.Replace(tinyConfig, `"hidden_size":1024`, `"hidden_size":-1`, 1),
		"huge":          strings.Replace(tinyConfig, `"hidden_size":1024`, `"hidden_size":1e300`, 1),
		"text":          strings.Replace(tinyConfig, `"hidden_size":1024`, `"hidden_size":"wide"`, 1),
		"nan":           strings.Replace(tinyConfig, `"hidden_size":1024`, `"hidden_size":NaN`, 1),
		"deep":          strings.Repeat("[", 200000),
		"binary":        "\x00\xff\xfe{",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, "config.json", text)
			run(t, "fit", "--model", path, "--gpu-arch", "mi300x").want(t, cli.ExitBadInput)
			run(t, "model", "import", path).want(t, cli.ExitBadInput)
		})
	}
	t.Run("a list of 3 MB", func(t *testing.T) {
		path := write(t, "config.json", quantised)
		start := time.Now()
		if o := run(t, "model", "import", path); o.code != 0 && o.code != cli.ExitBadInput {
			t.Errorf("exit code %d: %s", o.code, o.err)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("%d bytes took %v, want less than a second", len(quantised), d)
		}
	})
}

func TestLaunch(t *testing.T) {
	t.Parallel()
	line := `VLLM_ROCM_USE_AITER=1 vllm serve openai/gpt-oss-120b -tp 8 --max-model-len 16k --port 8000 --kv-cache-dtype fp8 --max-num-seqs 64`
	args := []string{"project", "--launch", line, "--gpu-arch", "mi355x", "--profiling-mode", "simulate", "-o", "json"}
	o := run(t, append(args, "--tp", "4")...)
	o.want(t, 0)
	v := o.object(t)
	for path, want := range map[string]any{
		"request.model": "gpt-oss-120b", "request.tp": 4.0, "request.engine": "vllm", "request.kv_cache_dtype": "fp8",
		"request.max_context_len": 16000.0, "request.max_num_seqs": 64.0,
	} {
		if got := at(t, v, path); got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
	fate := map[string]string{}
	for _, a := range at(t, v, "launch").([]any) {
		m := a.(map[string]any)
		fate[strings.Fields(m["argument"].(string))[0]] = m["status"].(string)
	}
	for name, want := range map[string]string{"-tp": "overridden", "--max-model-len": "used", "--port": "not_modelled", "--kv-cache-dtype": "used"} {
		if fate[name] != want {
			t.Errorf("%s is %q, want %q (all: %v)", name, fate[name], want, fate)
		}
	}
	// A variable ranks below the command line that --launch stands on.
	o = machine{env: map[string]string{"INFERASIM_TP": "2"}}.run(t, args...)
	o.want(t, 0)
	if tp := number(t, o.object(t), "request.tp"); tp != 8 {
		t.Errorf("tp = %v, want the launch command's 8", tp)
	}
}

func TestSmallFiles(t *testing.T) {
	t.Parallel()
	hw := write(t, "hw.yaml", "base: mi300x\nname: mi300x-big\nmemory: {capacity_gib: 384, usable_gib: 384}\n")
	o := run(t, "fit", "--model", "llama-3.1-70b", "--hardware", hw, "-o", "json")
	o.want(t, 0)
	if b := number(t, o.object(t), "memory.hbm_bytes"); b != 384*(1<<30) {
		t.Errorf("hbm_bytes = %v, want 384 GiB", b)
	}
	o = run(t, "fit", "--model", "llama-3.1-70b", "--gpu-arch", "mi300x", "--hbm-capacity-gb", "256GiB", "-o", "json")
	if b := number(t, o.object(t), "memory.hbm_bytes"); b != 256*(1<<30) {
		t.Errorf("hbm_bytes = %v, want 256 GiB", b)
	}
	o = run(t, "fit", "--model", "llama-3.1-70b", "--gpu-arch", "mi300x", "--hbm-capacity-gb", "256", "-o", "json")
	if b := number(t, o.object(t), "memory.hbm_bytes"); b != 256e9 {
		t.Errorf("hbm_bytes = %v, want 256 GB", b)
	}
	coverage := write(t, "coverage.json", `{"8": 0.8, "64": 0.7}`)
	if a, b := tpot(t, readme("--moe-router-coverage", coverage)), tpot(t, readme()); a >= b {
		t.Errorf("fewer distinct experts: TPOT %v ms, want less than %v ms", a, b)
	}
	config := write(t, "run.yaml", "model: gpt_oss_120B\ngpu_arch: mi355x\ntp: 2\nprofiling_mode: simulate\n")
	o = run(t, "project", "--config", config, "--tp", "4", "-o", "json")
	o.want(t, 0)
	if tp := number(t, o.object(t), "request.tp"); tp != 4 {
		t.Errorf("tp = %v, want the flag's 4", tp)
	}
}

func TestFitPlansTheContextAskedFor(t *testing.T) {
	t.Parallel()
	path := write(t, "config.json", tinyConfig)
	o := run(t, "fit", "--model", path, "--gpu-arch", "mi300x", "--max-context-len", "4096", "-o", "json")
	o.want(t, 0)
	v := o.object(t)
	if n := number(t, v, "memory.context_tokens"); n != 4096 {
		t.Errorf("planned for %v tokens, want 4096", n)
	}
	// 8 layers x 4 heads x 64 x (K and V) x 2 bytes.
	if n := number(t, v, "memory.kv_bytes_per_token"); n != 8*4*64*2*2 {
		t.Errorf("kv_bytes_per_token = %v, want %d", n, 8*4*64*2*2)
	}
	o = run(t, "fit", "--model", path, "--gpu-arch", "mi300x", "--request-rate", "3")
	if !strings.Contains(o.out, "without effect on memory: --request-rate") {
		t.Errorf("an idle flag passes in silence:\n%s", o.out)
	}
}

func TestEngineLog(t *testing.T) {
	t.Parallel()
	log := write(t, "start.log", "INFO Model loading took 33.10 GiB and 20.1 seconds\nINFO Available KV cache memory: 210.50 GiB\nINFO GPU KV cache size: 5,900,000 tokens\n")
	o := run(t, "fit", "--model", "gpt_oss_120B", "--gpu-arch", "mi355x", "--tp", "2", "--engine-log", log, "-o", "json")
	o.want(t, 0)
	terms := at(t, o.object(t), "engine_log").([]any)
	if len(terms) < 3 {
		t.Errorf("engine_log has %d terms: %v", len(terms), terms)
	}
	if err := os.WriteFile(log, []byte("nothing here"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "fit", "--model", "gpt_oss_120B", "--gpu-arch", "mi355x", "--engine-log", log).want(t, cli.ExitBadInput, "engine log")
}

func TestModelAndHardware(t *testing.T) {
	t.Parallel()
	v := run(t, "model", "show", "openai/gpt-oss-120b", "-o", "json").object(t)
	if at(t, v, "schema") != "inferasim.model/v1" || at(t, v, "model.layers") != 36.0 {
		t.Errorf("model show = %v", v)
	}
	path := write(t, "config.json", tinyConfig)
	save := filepath.Join(t.TempDir(), "tiny.yaml")
	imported := run(t, "model", "import", path, "--save", save, "-o", "json").object(t)
	saved := run(t, "model", "show", save, "-o", "json").object(t)
	for _, key := range []string{"model.params_total", "model.kv_bytes_per_token", "model.layers"} {
		if a, b := at(t, imported, key), at(t, saved, key); a != b {
			t.Errorf("%s: imported %v, saved and shown %v", key, a, b)
		}
	}
	for _, args := range [][]string{{"model", "list"}, {"hardware", "list"}, {"hardware", "show", "mi355x"}, {"hardware", "show", "cpu"}, {"env"}, {"version"}, {"man", "project"}, {"completion", "bash"}} {
		o := run(t, args...)
		o.want(t, 0)
		if o.out == "" {
			t.Errorf("%v prints nothing", args)
		}
	}
	if n := strings.Count(run(t, "model", "list", "-o", "csv").out, "\n"); n < 61 {
		t.Errorf("%d lines of presets, want at least 60 and a header", n)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	fmt.Fprintln(&b, "row_id,quality,date,gpu,n_gpu,disagg,tp,model,weight_dtype,engine,spec_decode,isl,osl,concurrency,tpot_mean_ms,ttft_mean_ms,total_tok_s_per_gpu")
	for i, c := range []int{1, 2, 4, 8, 16, 32, 64, 128} {
		fmt.Fprintf(&b, "r%d,A,2026-05-01,MI355X,2,0,2,gpt-oss-120b,fp4,vllm,none,1024,1024,%d,%d,%d,%d\n", i, c, 4+i, 40+i, 200*(i+1))
	}
	fmt.Fprintln(&b, "r8,A,2026-05-01,MI355X,2,1,2,gpt-oss-120b,fp4,vllm,none,1024,1024,4,4,40,200")
	fmt.Fprintln(&b, "r9,A,2026-05-01,MI355X,2,0,2,no-such-model,fp4,vllm,none,1024,1024,4,4,40,200")
	data := write(t, "points.csv", b.String())
	args := []string{"validate", "--profiling-mode", "simulate", "--data", data, "-o", "json"}
	o := run(t, append(args, "--group-by", "gpu,engine")...)
	o.want(t, 0)
	v := o.object(t)
	if at(t, v, "schema") != "inferasim.validation/v1" || number(t, v, "rows.read") != 10 || number(t, v, "rows.scored") != 8 {
		t.Fatalf("rows = %v", at(t, v, "rows"))
	}
	if n := len(at(t, v, "rows.skipped").([]any)); n != 2 {
		t.Errorf("%d reasons, want 2: %v", n, at(t, v, "rows.skipped"))
	}
	groups := at(t, v, "groups").([]any)
	if len(groups) != 1 || at(t, groups[0], "key.gpu") != "MI355X" || at(t, groups[0], "key.engine") != "vllm" {
		t.Errorf("groups = %v", groups)
	}
	// TPOT grows with concurrency in both the table and the model.
	if rho := number(t, v, "overall.tpot.spearman"); rho < 0.9 {
		t.Errorf("spearman = %v, want nearly 1", rho)
	}
	o = run(t, append(args, "--where", "model=no-such-model|other")...)
	o.want(t, 0)
	if v := o.object(t); number(t, v, "rows.read") != 1 || number(t, v, "rows.scored") != 0 || at(t, v, "overall.tpot.mape_pct") != nil {
		t.Errorf("one unknown row: %v", v)
	}
}
