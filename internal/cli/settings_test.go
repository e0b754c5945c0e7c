package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// Every layer over every lower one: default < file < environment < flag.
func TestPrecedence(t *testing.T) {
	for mask := range 8 {
		file, env, flag := mask&1 != 0, mask&2 != 0, mask&4 != 0
		t.Run(fmt.Sprintf("file=%t,env=%t,flag=%t", file, env, flag), func(t *testing.T) {
			t.Parallel()
			f := &fake{args: []string{"project"}, env: map[string]string{}, files: fstest.MapFS{}}
			want, origin := 1, FromDefault
			if file {
				f.files["run.yaml"] = &fstest.MapFile{Data: []byte("tp: 2\n")}
				f.args = append(f.args, "--config", "run.yaml")
				want, origin = 2, FromFile
			}
			if env {
				f.env["DEMO_TP"] = "4"
				want, origin = 4, FromEnv
			}
			if flag {
				f.args = append(f.args, "--tp", "8")
				want, origin = 8, FromFlag
			}
			if code := f.main(t); code != 0 {
				t.Fatal(f.err.String())
			}
			if got := f.run.Settings.Origin("tp"); f.request.TP != want || got != origin {
				t.Errorf("tp = %d from %s, want %d from %s", f.request.TP, got, want, origin)
			}
		})
	}
}

func TestFileAndEnvironmentValues(t *testing.T) {
	f := &fake{
		args: []string{"project", "--gpu_arch", "mi300x"},
		env:  map[string]string{"DEMO_CONFIG": "run.yaml", "DEMO_GRAPHS": "on", "DEMO_THINK_MS": "12", "DEMO_GPU_ARCH": ""},
		files: fstest.MapFS{"run.yaml": {Data: []byte(
			"hbm_capacity_gb: 80GiB\nprefix-cache-hit-rate: 0.10\nengine: SGLang\ntag: [a, b]\niters: 5\n")}},
	}
	if code := f.main(t); code != 0 {
		t.Fatal(f.err.String())
	}
	r := f.request
	// 80 GiB is 80 * 2^30 bytes; a bare 12 of --think-ms is 12 ms.
	if *r.HBM != 80<<30 || r.Hit != 0.1 || r.Engine != "sglang" || !r.Graphs || r.Think != 0.012 || r.Arch != "mi300x" {
		t.Errorf("request = %+v", r)
	}
	if diff := cmp.Diff([]string{"a", "b"}, r.Tags); diff != "" {
		t.Error(diff)
	}
	s := f.run.Settings
	if n, ok := s.Int("DEMO_ITERS"); !ok || n != 5 || s.Origin("DEMO_ITERS") != FromFile {
		t.Errorf("DEMO_ITERS = %d, %t from %s", n, ok, s.Origin("DEMO_ITERS"))
	}
	if s.Bool("DEMO_DEBUG") || s.Text("DEMO_GPU_ARCH") != "mi300x" || s.Text("DEMO_BENCH_BACKEND") != "SGLang" {
		t.Errorf("texts: %q, %q", s.Text("DEMO_GPU_ARCH"), s.Text("DEMO_BENCH_BACKEND"))
	}
}

// A required flag may be given by any layer.
func TestRequiredFromEnvironment(t *testing.T) {
	f := &fake{args: []string{"simulate"}, env: map[string]string{"DEMO_TRACE": "x.csv"}}
	if code := f.main(t); code != 0 {
		t.Error(f.err.String())
	}
}

func TestBadSettings(t *testing.T) {
	for _, tt := range []struct {
		name, env, file, want string
	}{
		{"unknown variable", "DEMO_GPU_ARHC=x", "", `unknown environment variable DEMO_GPU_ARHC; did you mean "DEMO_GPU_ARCH"?`},
		{"implied name of a renamed variable", "DEMO_ENGINE=vllm", "", `unknown environment variable DEMO_ENGINE; --engine is read from DEMO_BENCH_BACKEND`},
		{"malformed flag variable", "DEMO_TP=many", "", `DEMO_TP: "many" is not a whole number; allowed: a whole number from 1 to 64`},
		{"malformed variable of another command", "DEMO_DES_SEED=x", "", `DEMO_DES_SEED: "x" is not a whole number`},
		{"malformed variable without a flag", "DEMO_ITERS=0", "", `DEMO_ITERS: 0 is out of range; allowed: a whole number from 1 to 1000`},
		{"malformed switch", "DEMO_DEBUG=maybe", "", `DEMO_DEBUG: "maybe" is not a switch; allowed: 1, 0, true, false, on, off`},
		{"malformed boolean flag", "DEMO_GRAPHS=maybe", "", `DEMO_GRAPHS: "maybe" is not a switch; allowed: 1, 0, true, false, on, off`},
		{"choice", "DEMO_BENCH_BACKEND=vlm", "", `DEMO_BENCH_BACKEND: "vlm" is not known; allowed: vllm, sglang, atom; did you mean "vllm"?`},
		{"unknown key", "", "tp: 1\n\ngpu_arhc: x\n", `run.yaml:3: unknown key "gpu_arhc"; did you mean "gpu_arch"?`},
		{"key of another command", "", "des_seed: 1\n", `run.yaml:1: key "des_seed" is not a setting of project; it belongs to simulate`},
		{"twice", "", "gpu-arch: x\ngpu_arch: y\n", `run.yaml:2: key "gpu_arch" is given twice, with - and with _`},
		{"no value", "", "gpu-arch:\n", `run.yaml:1: key "gpu-arch" has no value`},
		{"map", "", "gpu-arch: {a: b}\n", "run.yaml:1: cannot unmarshal !!map into string"},
		{"malformed value", "", "tp: 1\nengine: 3\n", `run.yaml:2: engine: "3" is not known; allowed: vllm, sglang, atom`},
		{"list for one value", "", "engine: [vllm]\n", `run.yaml:1: engine: a list is given where one value is wanted`},
		{"syntax", "", "tp: [\n", "run.yaml:1: did not find expected node content"},
		{"empty", "", "", "run.yaml: the file is empty"},
		{"upper case", "", "TP: 1\n", `run.yaml:1: unknown key "TP"; did you mean "tp"?`},
		{"config in config", "", "config: a\n", `run.yaml:1: key "config": a file cannot name another file`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{args: []string{"project"}, env: map[string]string{}}
			if name, value, ok := strings.Cut(tt.env, "="); ok {
				f.env[name] = value
			} else {
				f.files = fstest.MapFS{"run.yaml": {Data: []byte(tt.file)}}
				f.args = append(f.args, "--config=run.yaml")
			}
			code := f.main(t)
			if got := f.err.String(); code != ExitBadInput || got != "demo: "+tt.want+"\n" {
				t.Errorf("exit %d\n got %swant demo: %s", code, got, tt.want)
			}
		})
	}
}

// What Kubernetes injects for a Service named like the program is not ours.
func TestServiceLinks(t *testing.T) {
	env := map[string]string{
		"DEMO_SERVICE_HOST": "10.0.0.1", "DEMO_SERVICE_PORT": "80", "DEMO_SERVICE_PORT_HTTP": "80",
		"DEMO_PORT": "tcp://10.0.0.1:80", "DEMO_PORT_80_TCP": "tcp://10.0.0.1:80", "DEMO_PORT_80_TCP_ADDR": "10.0.0.1",
	}
	f := &fake{args: []string{"project"}, env: env}
	if code := f.main(t); code != 0 {
		t.Error(f.err.String())
	}
	env["DEMO_PORT_RANGE"] = "1-2"
	f = &fake{args: []string{"project"}, env: env}
	if code := f.main(t); code != ExitBadInput {
		t.Errorf("exit %d for an unknown variable beside service links", code)
	}
}

func TestEnvCommand(t *testing.T) {
	f := &fake{
		args:  []string{"env", "-o", "json", "--config", "run.yaml"},
		env:   map[string]string{"DEMO_GPU_ARCH": "mi355x", "DEMO_API_TOKEN": "hunter2", "OTHER_URL": "nats://me:pw@host:4222", "DEMO_DES_SEED": "7"},
		files: fstest.MapFS{"run.yaml": {Data: []byte("tp: 2\ndes-seed: 3\ntag: [a, b]\n")}},
	}
	if code := f.main(t); code != 0 {
		t.Fatal(f.err.String())
	}
	var got envReport
	if err := json.Unmarshal(f.out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != "infera.env/v1" {
		t.Errorf("schema %q", got.Schema)
	}
	byName := map[string]string{}
	for _, v := range got.Variables {
		byName[v.Name] = strings.Join([]string{v.Value, v.Default, string(v.Origin), v.Flag}, " ")
	}
	for name, want := range map[string]string{
		"DEMO_GPU_ARCH":      "mi355x  env --gpu-arch",
		"DEMO_BENCH_BACKEND": "vllm vllm default --engine",
		"DEMO_ITERS":         "64 64 default ",
		"DEMO_API_TOKEN":     "********  env ",
		"OTHER_URL":          "nats://me:xxxxx@host:4222  env ",
		"DEMO_TP":            "2 1 file --tp",
		"DEMO_TAG":           "a,b  file --tag",
		"DEMO_DES_SEED":      "7 0 env --des-seed",
		"DEMO_OUTPUT":        "json table flag --output",
		"DEMO_CONFIG":        "run.yaml  flag --config",
	} {
		if byName[name] != want {
			t.Errorf("%s = %q, want %q", name, byName[name], want)
		}
	}
	if _, ok := byName["DEMO_HELP"]; ok {
		t.Error("--help has a variable")
	}
}

// An environment that is refused is shown, then refused, in one object.
func TestEnvCommandRefuses(t *testing.T) {
	f := &fake{args: []string{"env", "-o", "json"}, env: map[string]string{"DEMO_NOTHING": "1"}}
	code := f.main(t)
	var got envReport
	if err := json.Unmarshal(f.out.Bytes(), &got); err != nil || code != ExitBadInput || len(got.Variables) == 0 {
		t.Errorf("exit %d, %v, %d variables", code, err, len(got.Variables))
	}
	if want := "demo: unknown environment variable DEMO_NOTHING"; !strings.HasPrefix(f.err.String(), want) {
		t.Errorf("stderr %q", f.err.String())
	}
}

func TestMasked(t *testing.T) {
	for name, secret := range map[string]bool{
		"HF_TOKEN": true, "X_API_KEY": true, "APIKEY": true, "DB_PASSWORD": true, "AWS_SECRET_ACCESS_KEY": true, "TOKEN_FILE": true,
		"MAX_NUM_BATCHED_TOKENS": false, "SAVED_KEYS_CAP": false, "ROUTER_TOKENIZER_PATH": false,
	} {
		if got := masked(name, "v") != "v"; got != secret {
			t.Errorf("masked(%s) = %t", name, got)
		}
	}
}

// A variable sets its own flag and the flag of its name.
func TestVariableOfTwoFlags(t *testing.T) {
	f := &fake{args: []string{"project"}, env: map[string]string{"DEMO_BENCH_ENGINE": "atom", "DEMO_PLAIN": "3"}}
	if code := f.main(t); code != 0 {
		t.Fatal(f.err.String())
	}
	s := f.run.Settings
	for _, flag := range []string{"serving", "bench-engine", "plain"} {
		if s.Origin(flag) != FromEnv {
			t.Errorf("--%s comes from %s", flag, s.Origin(flag))
		}
	}
	f = &fake{args: []string{"project"}, env: map[string]string{"DEMO_PLAIN": "x"}}
	if code := f.main(t); code != ExitBadInput || f.err.String() != "demo: DEMO_PLAIN: \"x\" is not a whole number\n" {
		t.Errorf("exit %d, %s", code, f.err.String())
	}
}
