package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// small is a short simulation of Llama-3.1-8B on one MI300X.
func small(more ...string) []string {
	return append([]string{
		"simulate", "--model", "llama3.1_8B", "--gpu-arch", "mi300x", "--profiling-mode", "simulate",
		"--input-len", "256", "--output-len", "32", "--des-num-requests", "60",
	}, more...)
}

func TestSimulateJSON(t *testing.T) {
	t.Parallel()
	o := run(t, small("--request-rate", "10", "--slo-ttft-ms", "1000", "-o", "json")...)
	o.want(t, 0)
	v := o.object(t)
	for path, want := range map[string]any{
		"schema": "inferasim.simulation/v1", "requests.offered": 60.0, "requests.completed": 60.0, "requests.rejected": 0.0,
		"saturated": false, "arrival_model": "poisson", "attainment": 1.0,
	} {
		if got := at(t, v, path); got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
	ttft, admitted, e2e := number(t, v, "ttft_ms.mean"), number(t, v, "ttft_from_admit_ms.mean"), number(t, v, "e2e_ms.mean")
	if !(0 < admitted && admitted < ttft && ttft < e2e) {
		t.Errorf("TTFT from admission %v, TTFT %v, end to end %v", admitted, ttft, e2e)
	}
	// TTFT, then 31 gaps of the mean time per token.
	if sum := ttft + 31*number(t, v, "tpot_ms.mean"); sum < 0.999*e2e || sum > 1.001*e2e {
		t.Errorf("TTFT and 31 tokens are %v ms, end to end %v", sum, e2e)
	}
	if again := run(t, small("--request-rate", "10", "--slo-ttft-ms", "1000", "-o", "json")...); again.out != o.out {
		t.Error("two runs of one command differ")
	}
}

func TestSimulateWays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		text string
	}{
		{"closed loop", []string{"--max-concurrency", "8"}, "8 clients"},
		{"bounded", []string{"--request-rate", "20", "--max-concurrency", "2"}, "at most 2"},
		{"cost", []string{"--request-rate", "20", "--gpu-cost-per-hour", "2"}, "$/M tokens"},
		{"fleet", []string{"--request-rate", "40", "--replicas", "4", "--des-routing", "kv", "--des-num-prefixes", "5", "--des-signal-staleness-ms", "50"}, "Instances"},
		{"pools", []string{"--request-rate", "20", "--disaggregate", "--prefill-replicas", "2", "--decode-replicas", "1", "--des-local-prefill-tokens", "64"}, "prefill"},
		{"pools of two kinds", []string{"--request-rate", "20", "--disaggregate", "--des-prefill-gpu-arch", "mi355x", "--des-prefill-engine", "atom"}, "mi355x"},
		{"sessions and tiers", []string{"--request-rate", "5", "--des-session-turns", "3", "--des-session-think-s", "1", "--des-tier", "dram:64GiB:50", "--des-kv-blocks", "60"}, "dram"},
		{"sglang", []string{"--request-rate", "20", "--engine", "sglang", "--des-longest-prefix", "--des-num-prefixes", "3"}, "sglang"},
		{"speculation", []string{"--request-rate", "20", "--speculative-num-tokens", "3", "--speculative-acceptance-rate", "0.7", "--speculative-draft-cost-factor", "0.05"}, "TPOT"},
		{"classes", []string{"--request-rate", "20", "--des-class", "chat:3:priority=0:ttft_ms=500", "--des-class", "batch:1:priority=1:output=64"}, "batch"},
		{"fault", []string{"--request-rate", "20", "--replicas", "2", "--des-fault", "crash@1+1:1"}, "crash"},
		{"autoscaler", []string{"--request-rate", "60", "--des-num-requests", "2000", "--des-autoscale", "queue", "--des-autoscale-interval-s", "2", "--des-cold-start-s", "3"}, "Scaling"},
		{"seeds", []string{"--request-rate", "20", "--des-seeds", "3"}, "3 runs pooled"},
		{"waterfall", []string{"--request-rate", "20", "--explain-request", "7"}, "Request 7"},
		{"sweep", []string{"--request-rate", "20", "--des-num-requests", "300", "--des-sweep", "--slo-tpot-ms", "40"}, "Knee"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := run(t, small(c.args...)...)
			o.want(t, 0)
			if !strings.Contains(strings.ToLower(o.out), strings.ToLower(c.text)) {
				t.Errorf("output lacks %q:\n%s", c.text, o.out)
			}
		})
	}
}

func TestSimulateFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page, steps, chart := filepath.Join(dir, "page.html"), filepath.Join(dir, "steps.jsonl"), filepath.Join(dir, "steps.json")
	o := run(t, small("--request-rate", "10", "--html", page, "--des-dump-steps", steps, "--des-dump-trace", chart, "-o", "json")...)
	o.want(t, 0)
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), "<html") {
		t.Errorf("page: %v, %d bytes", err, len(html))
	}
	log, err := os.ReadFile(steps)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	if want := number(t, o.object(t), "batch.num_steps"); float64(len(lines)) != want {
		t.Errorf("%d steps written, %v counted", len(lines), want)
	}
	var first map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || first["num_prefill_reqs"] != 1.0 {
		t.Errorf("first step %v, %v", first, err)
	}
	if data, err := os.ReadFile(chart); err != nil || !json.Valid(data) {
		t.Errorf("trace of steps: %v, %d bytes", err, len(data))
	}
}

func TestSimulateTrace(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": 1024, "output_length": 16, "hash_ids": [1, %d]}`+"\n", 100*i, 2+i%4)
	}
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	o := run(t, "simulate", "--model", "llama3.1_8B", "--gpu-arch", "mi300x", "--profiling-mode", "simulate", "--des-mooncake-trace", path, "--rate-scale", "2", "-o", "json")
	o.want(t, 0)
	v := o.object(t)
	// 20 prompts of two blocks. The first finds nothing, the other three of the
	// first round one block; the last 16 could find both but must compute their
	// last token, so that one block it is again.
	if hits := number(t, v, "cache.block_hits"); hits != 19 {
		t.Errorf("%v blocks found, want 19", hits)
	}
	// 1.9 s at twice the rate.
	if rate := number(t, v, "offered_req_s"); rate < 20 || rate > 22 {
		t.Errorf("offered %v requests/s, want 20 in 0.95 s", rate)
	}
	for _, c := range []struct{ name, content, text string }{
		{"no arrival", `{"input_length": 10, "output_length": 1}` + "\n", "line 1"},
		{"cut off", `{"timestamp": 1, "input_length": 10`, "line 1"},
		{"negative", `{"timestamp": 1, "input_length": -10, "output_length": 1, "hash_ids": [1]}`, "line 1"},
		{"empty", "", "empty"},
	} {
		bad := filepath.Join(t.TempDir(), "bad.jsonl")
		if err := os.WriteFile(bad, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		o := run(t, "simulate", "--model", "llama3.1_8B", "--gpu-arch", "mi300x", "--profiling-mode", "simulate", "--des-mooncake-trace", bad)
		o.want(t, 2)
		if !strings.Contains(o.err, c.text) || strings.Contains(o.err, "goroutine") {
			t.Errorf("%s: %q, want a mention of %q", c.name, o.err, c.text)
		}
	}
}

func TestSimulateRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"--request-rate", "10", "--des-routing", "kv-awre"}, 2, "kv-aware"},
		{[]string{"--request-rate", "10", "--des-client-think-ms", "5"}, 2, "closed loop"},
		{[]string{"--request-rate", "10", "--des-prefix-zipf", "1"}, 2, "--des-num-prefixes"},
		{[]string{"--request-rate", "10", "--des-tier", "dram:5"}, 2, "--des-tier"},
		{[]string{"--request-rate", "10", "--des-tier", "dram:-5:1"}, 2, "dram"},
		{[]string{"--request-rate", "10", "--des-prefill-gpu-arch", "mi355x"}, 2, "--disaggregate"},
		{[]string{"--request-rate", "10", "--disaggregate", "--des-prefill-gpu-arch", "mi3550x"}, 2, "mi355x"},
		{[]string{"--request-rate", "10", "--des-class", "chat:x"}, 2, "weight"},
		{[]string{"--request-rate", "10", "--des-class", "chat:1:prio=2"}, 2, "known: priority"},
		{[]string{"--request-rate", "10", "--des-fault", "crash@x+1"}, 2, "--des-fault"},
		{[]string{"--request-rate", "10", "--des-fault", "crash@1+1:9"}, 2, "instance 9"},
		{[]string{"--request-rate", "10", "--des-lengths-from", "no-such-file"}, 2, "no-such-file"},
		{[]string{"--request-rate", "10", "--des-lengths-from", "a.csv", "--des-length-sigma", "1"}, 2, "--des-length-sigma has no effect"},
		{[]string{"--request-rate", "10", "--des-range-ratio", "1.5"}, 2, "des-range-ratio"},
		{[]string{"--request-rate", "10", "--des-num-requests", "0"}, 2, "des-num-requests"},
		{[]string{"--request-rate", "nan"}, 2, "request-rate"},
		{[]string{"--max-concurrency", "4", "--des-sweep"}, 2, "--des-sweep"},
		{[]string{"--request-rate", "10", "--des-mixed-chunk"}, 2, "SGLang"},
		{[]string{"--request-rate", "10", "--des-instances", "2", "--replicas", "3"}, 2, "--replicas"},
		{[]string{"--request-rate", "10", "--des-cache-shares-pool=false"}, 2, "one pool"},
		{[]string{"--des-workload-file", "nowhere.jsonl"}, 2, "nowhere.jsonl"},
		{[]string{"--request-rate", "10", "--des-autoscale", "latency"}, 2, "--slo-ttft-ms"},
		{[]string{"--request-rate", "10", "--max-context-len", "10000000"}, 4, ""},
		{[]string{"--request-rate", "10", "--des-kv-cache-tokens", "100"}, 4, "refused"},
		{[]string{"--request-rate", "10", "--des-swing", "0.3"}, 2, "diurnal"},
		{[]string{"--request-rate", "10", "--des-on-s", "3"}, 2, "on-off"},
		{[]string{"--request-rate", "10", "--arrival-model", "deterministic", "--des-burstiness", "0.5"}, 2, "gamma"},
		{[]string{"--request-rate", "10", "--des-burstiness", "0"}, 2, "des-burstiness"},
		{[]string{"--request-rate", "10", "--des-overlap-weight", "3"}, 2, "kv-aware"},
		{[]string{"--request-rate", "10", "--des-signal-staleness-ms", "3"}, 2, "kv-aware"},
		{[]string{"--request-rate", "10", "--des-prefix-hash-tokens", "3"}, 2, "prefix-hash"},
		{[]string{"--request-rate", "10", "--replicas", "2", "--des-routing", "session_affinity"}, 2, "conversations"},
		{[]string{"--request-rate", "10", "--des-session-turns", "0.5"}, 2, "one turn"},
		{[]string{"--request-rate", "1e-9"}, 2, "60 requests"},
		{[]string{"--request-rate", "10", "--des-class", "a:1", "--des-class", "a:2"}, 2, "already"},
		{[]string{"--request-rate", "10", "--des-class", "a:1:output=0"}, 2, "output=0"},
		{[]string{"--request-rate", "10", "--des-tier", "a:1:1", "--des-tier", "a:2:1"}, 2, "already"},
		{[]string{"--request-rate", "10", "--des-fault", "slow@1+1:0:1e300"}, 2, "factor"},
		{[]string{"--request-rate", "10", "--des-fault", "crash@1+1:0:3"}, 2, "factor"},
		{[]string{"--request-rate", "10", "--des-fault", "events@1+1:0"}, 2, "kv-aware"},
		{[]string{"--request-rate", "10", "--replicas", "4", "--des-autoscale", "queue", "--des-autoscale-max", "2"}, 2, "4 instances"},
		{[]string{"--request-rate", "10", "--engine", "atom", "--des-exclusive-prefill"}, 2, "by itself"},
		{[]string{"--request-rate", "10", "--explain-request", "60"}, 2, "--explain-request 60"},
	} {
		o := run(t, small(c.args...)...)
		o.want(t, c.code)
		if !strings.Contains(o.err, c.text) || strings.Contains(o.err, "goroutine") || strings.Count(strings.TrimSpace(o.err), "\n") > 1 {
			t.Errorf("%v: %q, want one line with %q", c.args, o.err, c.text)
		}
	}
}

// TestSweepSettles: a sweep does not take a fleet that is still filling up for
// one that sustains the rate. A saturated run of many requests gives what the
// fleet can do.
func TestSweepSettles(t *testing.T) {
	t.Parallel()
	o := run(t, small("--request-rate", "1000", "--des-num-requests", "20000", "-o", "json")...)
	o.want(t, 0)
	most := number(t, o.object(t), "achieved_req_s")
	// Wherever the search begins.
	for _, rate := range []string{"0.5", "20", "400"} {
		o := run(t, small("--request-rate", rate, "--des-sweep", "-o", "json")...)
		o.want(t, 0)
		if knee := number(t, o.object(t), "knee_req_s"); knee < 0.9*most || knee > 1.1*most {
			t.Errorf("from %s requests/s on the knee is %v, the fleet does %v", rate, knee, most)
		}
	}
}

func TestSimulateShortRun(t *testing.T) {
	t.Parallel()
	// 60 requests in 3 s that take 1 s and more each.
	o := run(t, small("--request-rate", "20", "--output-len", "150")...)
	o.want(t, 0)
	if !strings.Contains(o.out, "short_run") {
		t.Errorf("not said to be short:\n%s", o.out)
	}
}

// TestSimulateHonours: settings that are easily lost on the way to the simulation.
func TestSimulateHonours(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		path string
		want float64
	}{
		{[]string{"--des-warmup-requests", "3"}, "requests.scored", 57},
		{[]string{"--des-warmup-requests", "3", "--des-warmup-frac", "0.5"}, "requests.scored", 30},
		// Exactly the longest context that the model's config allows.
		{[]string{"--input-len", "131000", "--output-len", "72"}, "requests.rejected", 0},
	} {
		o := run(t, small(append(c.args, "--request-rate", "10", "-o", "json")...)...)
		o.want(t, 0)
		if got := number(t, o.object(t), c.path); got != c.want {
			t.Errorf("%v: %s = %v, want %v", c.args, c.path, got, c.want)
		}
	}
	o := run(t, small("--request-rate", "1", "--des-num-requests", "3", "--des-session-turns", "20", "--des-turn-tokens", "30000", "-o", "json")...)
	o.want(t, 0)
	if number(t, o.object(t), "requests.rejected") == 0 {
		t.Error("prompts beyond the model's longest context were answered")
	}
	// Requests of one recorded pair of lengths are those of fixed lengths.
	pair := filepath.Join(t.TempDir(), "pair.csv")
	if err := os.WriteFile(pair, []byte("arrival,isl,osl\n0,256,32\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	drawn := run(t, "simulate", "--model", "llama3.1_8B", "--gpu-arch", "mi300x", "--profiling-mode", "simulate",
		"--des-num-requests", "60", "--request-rate", "10", "--des-lengths-from", pair, "-o", "json").object(t)
	fixed := run(t, small("--request-rate", "10", "-o", "json")...).object(t)
	for _, path := range []string{"cache.prompt_tokens", "ttft_ms.mean"} {
		if a, b := number(t, drawn, path), number(t, fixed, path); a != b {
			t.Errorf("%s = %v with recorded lengths, %v with the same fixed", path, a, b)
		}
	}
	full, ranged := run(t, small("--request-rate", "10", "-o", "json")...), run(t, small("--request-rate", "10", "--des-range-ratio", "0", "-o", "json")...)
	if a, b := number(t, full.object(t), "cache.prompt_tokens"), number(t, ranged.object(t), "cache.prompt_tokens"); b > 0.7*a {
		t.Errorf("lengths from 1 to the nominal one: %v prompt tokens, all nominal %v", b, a)
	}
}
