package launch

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infera/internal/units"
	"infera/serving/launch/shell"
	"infera/sim/layout"
)

// summary lists the settings that are set, in the order of the struct.
func summary(s Settings) string {
	var out []string
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		f, t := v.Field(i), v.Type().Field(i)
		if !t.IsExported() || f.IsZero() {
			continue
		}
		if f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		out = append(out, fmt.Sprintf("%s=%+v", t.Name, f.Interface()))
	}
	return strings.Join(out, " ")
}

// recipes are launch lines in the style of published recipes, written for this
// test, with what they set.
var recipes = []struct {
	name, line string
	engine     Engine
	command    int // words of the line that name the engine's command
	want       string
	layout     layout.Layout
	replicas   int
}{
	{
		"vllm, tensor parallel on ROCm",
		`VLLM_ROCM_USE_AITER=1 VLLM_ROCM_QUICK_REDUCE_QUANTIZATION=INT4 HSA_NO_SCRATCH_RECLAIM=1 \
  vllm serve openai/gpt-oss-120b --host 0.0.0.0 --port $PORT \
  --tensor-parallel-size=8 --gpu-memory-utilization 0.95 --max-model-len 10240 --max-num-seqs 256 \
  --max-num-batched-tokens 16384 --block-size=64 --no-enable-prefix-caching --async-scheduling \
  --compilation-config '{"cudagraph_mode": "FULL_AND_PIECEWISE", "pass_config": {"fuse_norm_quant": true}}' \
  --attention-backend ROCM_AITER_UNIFIED_ATTN --disable-log-requests > "$SERVER_LOG" 2>&1 &`,
		VLLM, 2,
		"Model=openai/gpt-oss-120b TP=8 MaxModelLen=10240 MaxNumSeqs=256 MaxNumBatchedTokens=16384 ChunkedPrefillSize=16384 BlockSize=64 MemoryFraction=0.95 " +
			"PrefixCaching=false GraphMode=full_and_piecewise AttentionBackend=rocm_aiter_unified_attn AsyncScheduling=true QuickReduce=int4 AITER=true",
		layout.Layout{TP: 8, PP: 1, EP: 1, AttentionDP: 1}, 1,
	},
	{
		"vllm, data-parallel attention with expert parallelism and MTP",
		`vllm serve deepseek-ai/DeepSeek-V3.2 -dp 8 --enable-expert-parallel --kv_cache_dtype fp8_e4m3 --max-model-len 128k \
--speculative-config '{"method":"deepseek_mtp","num_speculative_tokens":2}' --all2all-backend deepep_low_latency -O3 --served-model-name a b --enforce-eager`,
		VLLM, 2,
		"Model=deepseek-ai/DeepSeek-V3.2 DP=8 EP=8 KVCacheDType=fp8 MaxModelLen=128000 GraphMode=none AllToAll=deepep_low_latency " +
			"Speculative={Method:mtp NumTokens:2 VerifyTokens:3 DraftModel: DraftTP:0}",
		layout.Layout{TP: 8, PP: 1, EP: 8, AttentionDP: 8}, 1,
	},
	{
		"vllm, module form, dotted keys, decode side of a pair",
		`nohup numactl --cpunodebind=0 python3 -u -m vllm.entrypoints.openai.api_server --model /models/Llama-3.1-70B -tp 4 -pp 2 -q fp8 \
-cc.cudagraph_mode=FULL_DECODE_ONLY --compilation-config.max-cudagraph-capture-size 512 \
--kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}' --no-enable-chunked-prefill --max-num-batched-tokens 8K`,
		VLLM, 4,
		"Model=/models/Llama-3.1-70B TP=4 PP=2 Quantization=fp8 WeightDType=fp8 MaxNumBatchedTokens=8192 ChunkedPrefill=false GraphMode=full_decode_only GraphMaxBatch=512 " +
			"Disaggregation={Role:decode Connector:NixlConnector}",
		layout.Layout{TP: 4, PP: 2, EP: 1, AttentionDP: 1}, 1,
	},
	{
		"sglang, attention data parallel inside tensor parallel",
		`SGLANG_USE_AITER=1 python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1-0528 --tp 8 --dp-size 8 --enable-dp-attention \
  --moe-a2a-backend mori --mem-fraction-static 0.85 --max-running-requests 1024 --chunked-prefill-size 32768 --page-size 1 --disable-radix-cache \
  --cuda-graph-max-bs 128 --attention-backend aiter --trust-remote-code --speculative-algorithm EAGLE --speculative-num-steps 3 \
  --speculative-eagle-topk 4 --speculative-num-draft-tokens 16 --disaggregation-mode prefill --disaggregation-transfer-backend mooncake`,
		SGLang, 3,
		"Model=deepseek-ai/DeepSeek-R1-0528 TP=8 DP=8 EP=8 AttentionDP=true MaxNumSeqs=1024 ChunkedPrefill=true ChunkedPrefillSize=32768 BlockSize=1 MemoryFraction=0.85 " +
			"PrefixCaching=false GraphMaxBatch=128 AttentionBackend=aiter AllToAll=mori Speculative={Method:eagle NumTokens:3 VerifyTokens:16 DraftModel: DraftTP:0} " +
			"Disaggregation={Role:prefill Connector:mooncake} AITER=true",
		layout.Layout{TP: 8, PP: 1, EP: 8, AttentionDP: 8}, 1,
	},
	{
		"sglang, replicas",
		`sglang serve --model-path Qwen/Qwen3-235B-A22B --tp-size 4 --dp 2 --ep 4 --disable-cuda-graph --enable-mixed-chunk --chunked-prefill-size -1 --disable-overlap-schedule`,
		SGLang, 2,
		"Model=Qwen/Qwen3-235B-A22B TP=4 DP=2 EP=4 ChunkedPrefill=false GraphMode=none MixedChunk=true AsyncScheduling=false",
		layout.Layout{TP: 4, PP: 1, EP: 4, AttentionDP: 1}, 2,
	},
	{
		"atom, attention ranks made of tensor ranks",
		`HIP_VISIBLE_DEVICES=0,1,2,3 ATOM_USE_TRITON_GEMM=1 python -m atom.entrypoints.openai_server --model amd/Kimi-K2-Thinking-MXFP4 -tp 4 --kv_cache_dtype fp8 \
--server-port 8000 --enable-dp-attention --enable-expert-parallel --no-enable_prefix_caching --cudagraph-capture-sizes '[1,2,4,256]' --method mtp --num-speculative-tokens 3 --trust-remote-code`,
		ATOM, 3,
		"Model=amd/Kimi-K2-Thinking-MXFP4 TP=1 DP=4 EP=4 AttentionDP=true VisibleGPUs=4 KVCacheDType=fp8 PrefixCaching=false GraphMaxBatch=256 " +
			"Speculative={Method:mtp NumTokens:3 VerifyTokens:4 DraftModel: DraftTP:0}",
		layout.Layout{TP: 4, PP: 1, EP: 4, AttentionDP: 4}, 1,
	},
	{
		"atom, load-time quantisation and offload",
		`python -m atom.entrypoints.openai_server --model m -tp 2 -dp 2 --level 0 --online_quant_config '{"global_quant_config":"ptpc_fp8"}' --kv-transfer-config '{"kv_connector":"lmcache_offload","kv_role":"offload"}'`,
		ATOM, 3,
		"Model=m TP=2 DP=2 Quantization=ptpc_fp8 WeightDType=fp8 GraphMode=none Offload={Backend:lmcache_offload HostBytes:0 HostRatio:0}",
		layout.Layout{TP: 2, PP: 1, EP: 1, AttentionDP: 1}, 2,
	},
}

func TestRecipes(t *testing.T) {
	for _, r := range recipes {
		t.Run(r.name, func(t *testing.T) {
			c, err := Parse(r.line)
			if err != nil {
				t.Fatal(err)
			}
			if c.Engine != r.engine {
				t.Errorf("engine = %s, want %s", c.Engine, r.engine)
			}
			if diff := cmp.Diff(strings.Fields(r.want), strings.Fields(summary(c.Settings))); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			l, replicas := c.Settings.Layout(c.Engine, true)
			if diff := cmp.Diff(r.layout, l); diff != "" || replicas != r.replicas {
				t.Errorf("layout: %d replicas, want %d (-want +got):\n%s", replicas, r.replicas, diff)
			}
			for _, a := range c.Arguments {
				if strings.HasPrefix(a.Note, "unknown") {
					t.Errorf("%s is unknown", a.Name)
				}
			}
		})
	}
}

// TestEveryArgumentOnce: the words of the line are those of the report, each as
// often, besides the words that name the engine's command.
func TestEveryArgumentOnce(t *testing.T) {
	for _, r := range recipes {
		t.Run(r.name, func(t *testing.T) {
			c, err := Parse(r.line)
			if err != nil {
				t.Fatal(err)
			}
			statements, err := shell.Split(r.line)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, s := range statements {
				for _, w := range append(s.Words, s.Redirects...) {
					want = append(want, w.Text)
				}
			}
			var got []string
			for _, a := range c.Arguments {
				switch joined := a.Name + "=" + a.Value; {
				case a.Source == SourcePositional:
					got = append(got, a.Value)
				case slices.Contains(want, joined):
					got = append(got, joined)
				case slices.Contains(want, a.Value) || a.Value == "":
					got = append(got, a.Name)
					if a.Value != "" {
						got = append(got, a.Value)
					}
				default:
					got = append(append(got, a.Name), strings.Fields(a.Value)...)
				}
			}
			for _, w := range got {
				i := slices.Index(want, w)
				if i < 0 {
					t.Errorf("%q is reported once too often", w)
					continue
				}
				want = slices.Delete(want, i, i+1)
			}
			// The engine's command remains.
			if len(want) != r.command {
				t.Errorf("not reported: %q", want)
			}
		})
	}
}

func argument(t *testing.T, line, name string) Argument {
	t.Helper()
	c, err := Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range c.Arguments {
		if a.Name == name {
			return a
		}
	}
	t.Fatalf("no argument %s in %+v", name, c.Arguments)
	return Argument{}
}

func TestReport(t *testing.T) {
	for _, tt := range []struct {
		line, name   string
		status       Status
		field        string
		material     bool
		noteContains string
	}{
		{"vllm serve m -tp 2", "-tp", Used, "tp", true, ""},
		{"vllm serve m --port 1", "--port", NotModelled, "", false, "no effect"},
		{"vllm serve m --cpu-offload-gb 4", "--cpu-offload-gb", NotModelled, "", true, "memory"},
		{"vllm serve m --max-num-sequences 4", "--max-num-sequences", NotModelled, "", true, `did you mean "--max-num-seqs"`},
		{"vllm serve m --max-num-b 4", "--max-num-b", Used, "max_num_batched_tokens", true, "short for --max-num-batched-tokens"},
		{"vllm serve m --enforce-eager", "--enforce-eager", Translated, "cudagraph_mode", true, ""},
		{"vllm serve m -O3", "-O3", NotModelled, "", true, "level"},
		{"vllm serve m -O0", "-O0", Translated, "cudagraph_mode", true, ""},
		{"vllm serve m -tp 2 --enable-expert-parallel", "--enable-expert-parallel", Translated, "ep", true, "2 ranks"},
		{"vllm serve m --api-key s3cret", "--api-key", NotModelled, "", false, "no effect"},
		{"VLLM_ROCM_USE_AITER_MHA=0 vllm serve m", "VLLM_ROCM_USE_AITER_MHA", NotModelled, "", true, "selects kernels"},
		{"VLLM_ATENTION_BACKEND=X vllm serve m", "VLLM_ATENTION_BACKEND", NotModelled, "", true, `did you mean "VLLM_ATTENTION_BACKEND"`},
		{"VLLM_USE_V1=0 vllm serve m", "VLLM_USE_V1", NotModelled, "", true, "V0"},
		{"SGLANG_USE_AITER=1 vllm serve m", "SGLANG_USE_AITER", NotModelled, "", false, "not a variable of vllm"},
		{"VLLM_ATTENTION_BACKEND=A vllm serve m --attention-backend B", "VLLM_ATTENTION_BACKEND", NotModelled, "", false, "overridden"},
		{"python -m sglang.launch_server --model m --hicache-ratio 2", "--hicache-ratio", NotModelled, "", false, "without --enable-hierarchical-cache"},
		{"python -m sglang.launch_server --model m --speculative-num-steps 2", "--speculative-num-steps", NotModelled, "", false, "without --speculative-algorithm"},
		{"docker run -e HF_TOKEN -e VLLM_ROCM_USE_AITER=1 vllm/vllm-openai:v0.12 --model m", "VLLM_ROCM_USE_AITER", Used, "aiter", true, ""},
		{"mpirun -n 1 -x VLLM_ROCM_USE_AITER=1 vllm serve m", "VLLM_ROCM_USE_AITER", Used, "aiter", true, ""},
		{"docker run --env=VLLM_ROCM_USE_AITER=1 --env-file f vllm/vllm-openai:v0.12 m", "VLLM_ROCM_USE_AITER", Used, "aiter", true, ""},
		{"docker run --env-file f vllm/vllm-openai:v0.12 m", "--env-file", NotModelled, "", true, "not read"},
		{"docker run -it --shm-size 16g vllm/vllm-openai:v0.12 --model m", "--model", Used, "model", true, ""},
		{"cd /x && sh -c 'exec vllm serve m --port 3'", "--port", NotModelled, "", false, ""},
		{"infera engine vllm --discovery-backend etcd --model m", "--discovery-backend", NotModelled, "", false, ""},
	} {
		a := argument(t, tt.line, tt.name)
		if a.Status != tt.status || a.Field != tt.field || a.Material != tt.material || !strings.Contains(a.Note, tt.noteContains) {
			t.Errorf("%s: %s = %+v", tt.line, tt.name, a)
		}
	}
	if a := argument(t, "vllm serve m --api-key s3cret", "--api-key"); a.Value != "***" {
		t.Errorf("the key is shown: %q", a.Value)
	}
}

func TestLastOneWins(t *testing.T) {
	c, err := Parse("vllm serve m -tp 2 --tensor-parallel-size 4")
	if err != nil {
		t.Fatal(err)
	}
	if *c.Settings.TP != 4 || c.Arguments[1].Status != NotModelled || c.Arguments[1].Note != "overridden by a later --tensor-parallel-size" {
		t.Errorf("TP = %d, first = %+v", *c.Settings.TP, c.Arguments[1])
	}
}

func TestBadCommands(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"", "no engine command found"},
		{"trtllm-serve m", `known: "vllm serve MODEL"`},
		{"vllm bench serve", "no engine command found"},
		{"vllm serve m; vllm serve n", "two engine commands"},
		{"vllm serve m -tp abc", `-tp: "abc" is not a whole number of at least 1`},
		{"vllm serve m -tp 0", "-tp:"},
		{"vllm serve m -tp 2.5", "-tp:"},
		{"vllm serve m -tp NaN", "-tp:"},
		{"vllm serve m -tp 99999999999", "too large"},
		{"vllm serve m -tp", "-tp: needs a value"},
		{"vllm serve m -tp --port 1", "-tp: needs a value"},
		{"vllm serve m -tp=", "-tp:"},
		{"vllm serve m --gpu-memory-utilization 1.5", `--gpu-memory-utilization: "1.5" is not a fraction`},
		{"vllm serve m --gpu-memory-utilization 0", "--gpu-memory-utilization:"},
		{"vllm serve m --kv-cache-dtype fp9", `--kv-cache-dtype: "fp9" is not known; did you mean "fp8"?`},
		{"vllm serve m --speculative-config {\"method\":\"mtp\"}", "is not a JSON object; is it quoted for the shell?"},
		{`vllm serve m --speculative-config '{"num_speculative_tokens":"x"}'`, "--speculative-config: num_speculative_tokens:"},
		{`vllm serve m --compilation-config '{"cudagraph_mode":"FUL"}'`, `did you mean "full"?`},
		{"vllm serve $MODEL", "$MODEL is not expanded"},
		{"vllm serve m --tp $TP", "--tp: $TP is not expanded"},
		{"vllm serve m --tp=${TP:-8}", "${TP:-8} is not expanded"},
		{"vllm serve m $ARGS", "$ARGS is not expanded"},
		{"$CMD m", "$CMD is not expanded"},
		{"VLLM_ROCM_USE_AITER=$A vllm serve m", "VLLM_ROCM_USE_AITER: $A is not expanded"},
		{"vllm serve m n", `unexpected word "n"`},
		{"python -m atom.entrypoints.openai_server m", `unexpected word "m"`},
		{"vllm serve m\n --tp 2", `a command starts with "--tp"; is the backslash missing`},
		{"vllm serve m \\ \n --tp 2", "a backslash is followed by blanks"},
		{"vllm serve 'm", "a single quote is not closed"},
		{"python -m sglang.launch_server --model m --disaggregation-mode both", "known: null, prefill, decode"},
	} {
		_, err := Parse(tt.line)
		if !errors.Is(err, ErrBadCommand) || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("Parse(%q) = %v, want %q", tt.line, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("Parse(%q): the message has more than one line: %q", tt.line, err)
		}
	}
}

// TestLongLine: a line of junk at the limit is read in reasonable time.
func TestLongLine(t *testing.T) {
	line := "vllm serve m"
	if _, err := Parse(line + strings.Repeat(" --max-num-sequence", (maxLine-len(line))/19)); err != nil {
		t.Error(err)
	}
	if _, err := Parse(line + strings.Repeat(" ", maxLine)); !errors.Is(err, ErrBadCommand) {
		t.Errorf("a line over the limit: %v", err)
	}
}

// TestVariableOutsidePlan: a variable that hides nothing the plan needs is fine.
func TestVariableOutsidePlan(t *testing.T) {
	line := `HF_TOKEN=$T vllm serve m --port ${PORT} --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer","kv_ip":"'"$IP"'"}'`
	c, err := Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	if got := *c.Settings.Disaggregation; got != (Disaggregation{Role: "prefill", Connector: "NixlConnector"}) {
		t.Errorf("disaggregation = %+v", got)
	}
}

func TestLayoutDense(t *testing.T) {
	c, err := Parse("vllm serve m -tp 2 -dp 4 --enable-expert-parallel")
	if err != nil {
		t.Fatal(err)
	}
	l, replicas := c.Settings.Layout(c.Engine, false)
	if want := (layout.Layout{TP: 2, PP: 1, EP: 1, AttentionDP: 1}); l != want || replicas != 4 {
		t.Errorf("layout = %+v x %d, want %+v x 4", l, replicas, want)
	}
}

func TestGraphAndAttention(t *testing.T) {
	for _, tt := range []struct{ args, graph, attention string }{
		{"", "", ""},
		{"--enforce-eager -cc.cudagraph_mode=FULL", "none", ""},
		{"-cc.cudagraph_mode=FULL_AND_PIECEWISE --attention-backend ROCM_AITER_FA", "full", "aiter"},
		{`--compilation-config '{"full_cuda_graph":true}' --attention-backend FLASH_ATTN`, "full", "flashattention"},
		{`--compilation-config '{"use_cudagraph":false}' --attention-config '{"backend":"TRITON_ATTN"}'`, "none", "triton"},
		{"-O.cudagraph_mode=1 --attention-backend FLASHINFER", "piecewise", "flashinfer"},
	} {
		c, err := Parse("vllm serve m " + tt.args)
		if err != nil {
			t.Errorf("%s: %v", tt.args, err)
			continue
		}
		if g, a := c.Settings.DecodeGraph(), c.Settings.AttentionFamily(); g != tt.graph || a != tt.attention {
			t.Errorf("%s: graph %q, attention %q; want %q, %q", tt.args, g, a, tt.graph, tt.attention)
		}
	}
}

// TestSizes: the units of the sizes on the line, in bytes.
func TestSizes(t *testing.T) {
	c, err := Parse("vllm serve m --kv-cache-memory-bytes 2G --kv-offloading-size 1.5 --kv-offloading-backend native --num-gpu-blocks-override 100 --eplb-config.num_redundant_experts 4")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Settings; *got.KVCacheBytes != 2*units.GiB || *got.Offload != (Offload{Backend: "native", HostBytes: 1.5 * units.GiB}) || *got.KVCacheBlocks != 100 || *got.RedundantExperts != 4 {
		t.Errorf("settings = %s", summary(got))
	}
	c, err = Parse("python -m sglang.launch_server --model m --enable-hierarchical-cache --hicache-size 3 --hicache-ratio 1.5 --hicache-storage-backend file --max-total-tokens 1000")
	if err != nil {
		t.Fatal(err)
	}
	if o := c.Settings.Offload; o == nil || *o != (Offload{Backend: "file", HostBytes: 3 * units.GB, HostRatio: 1.5}) || *c.Settings.KVCacheTokens != 1000 {
		t.Errorf("offload = %+v", o)
	}
}

func TestLimitAndIgnored(t *testing.T) {
	c, err := Parse(`vllm serve m -tp 2 --block-size 16 --cpu-offload-gb 2 --port 1 --speculative-config '{"method":"mtp","num_speculative_tokens":1}'`)
	if err != nil {
		t.Fatal(err)
	}
	c.Limit(FieldModel, FieldTP, FieldSpecTokens)
	var names []string
	for _, a := range c.Ignored() {
		names = append(names, a.Name)
	}
	if diff := cmp.Diff([]string{"--block-size", "--cpu-offload-gb"}, names); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	if a := c.Arguments[len(c.Arguments)-1]; a.Field != FieldSpecTokens || a.Status != Translated {
		t.Errorf("speculation = %+v", a)
	}
}

// TestTables: no two flags of an engine share a name, and every field is known.
func TestTables(t *testing.T) {
	for _, e := range []Engine{VLLM, SGLang, ATOM} {
		d := dialectOf(e)
		for what, flags := range map[string][]flag{"flag": d.flags, "variable": d.env} {
			seen := map[string]bool{}
			for _, f := range flags {
				for _, n := range f.names {
					if seen[n] {
						t.Errorf("%s: %s %s stands twice", e, what, n)
					}
					seen[n] = true
					if what == "flag" && (strings.Contains(n, "_") || !strings.HasPrefix(n, "-")) {
						t.Errorf("%s: %s is not spelt with dashes", e, n)
					}
				}
				if f.field != "" && (f.set == nil || f.status == NotModelled) {
					t.Errorf("%s: %s has a field and sets nothing", e, f.names[0])
				}
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, r := range recipes {
		f.Add(r.line)
	}
	for _, s := range []string{"vllm serve m -cc.a.b=1 -cc '{\"a\":[1]}'", "docker run -e A=1 x vllm serve m", "bash -c \"bash -c 'vllm serve m'\"", "vllm serve m 2>&1 | tee l", "vllm serve m --x=$(a (b)) `c`", "python -m sglang.launch_server --cuda-graph-bs 1 2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, err := Parse(line)
		if err != nil {
			if !errors.Is(err, ErrBadCommand) {
				t.Fatalf("Parse(%q) = %v, not an ErrBadCommand", line, err)
			}
			return
		}
		for _, a := range c.Arguments {
			if a.Status == NotModelled && (a.Note == "" || a.Field != "") || a.Status != NotModelled && a.Field == "" {
				t.Fatalf("Parse(%q): %+v", line, a)
			}
		}
		c.Settings.Layout(c.Engine, true)
		c.Limit(FieldTP)
	})
}
