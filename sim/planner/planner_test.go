package planner

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"

	"infera/configs"
	"infera/internal/units"
	"infera/models"
	"infera/sim/accuracy"
	"infera/sim/layout"
	"infera/sim/memory"
)

// shipped is the library of the data in the binary, opened once.
var shipped = sync.OnceValues(func() (*Library, error) { return Open(configs.FS) })

func library(tb testing.TB) *Library {
	tb.Helper()
	l, err := shipped()
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func grid(tp, ep, dp int) layout.Layout {
	return layout.Layout{TP: tp, PP: 1, EP: ep, AttentionDP: dp}
}

func project(t *testing.T, l *Library, r *Request) *Projection {
	t.Helper()
	p, err := l.Project(r)
	if err != nil {
		t.Fatalf("%s on %s %s: %v", r.Arch.Name, r.GPU.Name, r.Layout, err)
	}
	return p
}

// numbers returns the headline numbers of a projection by name.
func numbers(p *Projection) map[string]Band {
	return map[string]Band{
		"TTFT": p.TTFT, "TPOT": p.TPOT, "E2E": p.E2E, "decode step": p.DecodeStep, "mixed step": p.MixedStep,
		"output rate": p.OutputRate, "total rate": p.TotalRate, "output per GPU": p.OutputPerGPU,
		"total per GPU": p.TotalPerGPU, "prefill rate": p.PrefillRate,
	}
}

// silent fails when an infeasible projection carries performance.
func silent(t *testing.T, p *Projection) {
	t.Helper()
	if p.Reason == "" {
		t.Errorf("%s on %s: infeasible without a reason", p.Request.Arch.Name, p.Request.GPU.Name)
	}
	for name, b := range numbers(p) {
		if b != (Band{}) {
			t.Errorf("%s on %s is infeasible (%s) and has a %s of %v", p.Request.Arch.Name, p.Request.GPU.Name, p.Reason, name, b)
		}
	}
	if p.Decode.Total() != 0 || p.Prefill.Total() != 0 || p.Steady.RequestRate != 0 {
		t.Errorf("%s on %s is infeasible and has a step", p.Request.Arch.Name, p.Request.GPU.Name)
	}
}

// TestEveryPreset projects every preset on three GPUs under three engines: at
// the legal layout nearest to eight ranks an answer is either a reason or
// finite positive numbers within their bands.
func TestEveryPreset(t *testing.T) {
	l := library(t)
	feasible := map[string]bool{}
	for _, name := range l.Models.Names() {
		arch, err := l.Model(name)
		if err != nil {
			t.Fatal(err)
		}
		lay := layout.Nearest(arch, grid(8, 1, 1))
		for _, gpu := range []string{"mi300x", "mi355x", "h200"} {
			for _, engine := range []string{"vllm", "sglang", "atom"} {
				if engine == "atom" && gpu == "h200" {
					continue
				}
				r := question(t, l, name, gpu, engine, lay, 1024, 512, 16)
				p := project(t, l, r)
				if !p.Feasible {
					silent(t, p)
					continue
				}
				feasible[name] = true
				for q, b := range numbers(p) {
					if !(b.Value > 0) || !(b.Low > 0) || b.Low > b.Value || b.Value > b.High || math.IsInf(b.High, 0) {
						t.Errorf("%s on %s under %s, %s: %s = %+v", name, gpu, engine, lay, q, b)
					}
				}
				if d := math.Abs(float64(p.Decode.Total()/p.Steady.DecodeStep) - 1); lay.PP == 1 && d > 1e-6 {
					t.Errorf("%s on %s under %s: the parts of a decode step sum to %v, the step takes %v", name, gpu, engine, p.Decode.Total(), p.Steady.DecodeStep)
				}
			}
		}
		// The largest ones need more GPUs: a pipeline of eight ranks each.
		for pp := 2; pp <= 16 && !feasible[name]; pp *= 2 {
			deep := lay
			deep.PP = pp
			p := project(t, l, question(t, l, name, "mi355x", "vllm", deep, 1024, 512, 16))
			feasible[name] = p.Feasible && p.TPOT.Value > 0
		}
		if !feasible[name] {
			t.Errorf("%s fits nowhere", name)
		}
	}
}

// TestNotServed: an engine that does not exist on a GPU is an error or a
// warning, not a silent number.
func TestNotServed(t *testing.T) {
	l := library(t)
	p, err := l.Project(question(t, l, "llama3.1_8B", "h200", "atom", grid(1, 1, 1), 1024, 512, 16))
	if err != nil {
		return
	}
	for _, w := range p.Warnings {
		if w.Code == "unmeasured_stack" {
			return
		}
	}
	t.Errorf("atom on h200: no error and no warning among %v", p.Warnings)
}

// TestDeterminism: a new library gives the same answer to the last bit, and
// asking twice does too.
func TestDeterminism(t *testing.T) {
	other, err := Open(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"gpt_oss_120B", "deepseek_v3"} {
		var got []string
		for _, l := range []*Library{library(t), library(t), other} {
			p := project(t, l, question(t, l, model, "mi355x", "vllm", grid(8, 8, 1), 8192, 1024, 64))
			got = append(got, fmt.Sprintf("%v %v %+v %+v", numbers(p), p.Steady, p.Decode, p.Memory))
		}
		if got[0] != got[1] || got[0] != got[2] {
			t.Errorf("%s: different answers:\n%s", model, strings.Join(got, "\n"))
		}
	}
}

// TestWeightsInvariant: spreading experts or cutting them moves weights between
// GPUs and neither makes nor loses any; what is replicated (norms, routers,
// latent down-projections) and padded is a few per cent.
func TestWeightsInvariant(t *testing.T) {
	l := library(t)
	weights := func(model string, lay layout.Layout) float64 {
		r := question(t, l, model, "mi355x", "vllm", lay, 1024, 512, 16)
		s, err := l.Size(r)
		if err != nil {
			t.Fatal(err)
		}
		return float64(s.Weights) * float64(lay.GPUs())
	}
	for _, c := range []struct {
		model string
		legal []layout.Layout
		slack float64
	}{
		{"deepseek_v3", []layout.Layout{grid(8, 1, 1), grid(8, 8, 1), grid(8, 4, 1), grid(8, 2, 1)}, 0.03},
		{"gpt_oss_120B", []layout.Layout{grid(1, 1, 1), grid(2, 1, 1), grid(2, 2, 1), grid(4, 4, 1), grid(8, 8, 1)}, 0.10},
		{"qwen3_30B_A3B", []layout.Layout{grid(1, 1, 1), grid(2, 2, 1), grid(4, 1, 1), grid(4, 4, 1)}, 0.02},
		{"mixtral-8x7b", []layout.Layout{grid(1, 1, 1), grid(2, 1, 1), grid(4, 4, 1), grid(8, 8, 1)}, 0.02},
		{"kimi_k2", []layout.Layout{grid(8, 1, 1), grid(8, 8, 1)}, 0.03},
	} {
		first := weights(c.model, c.legal[0])
		for _, lay := range c.legal[1:] {
			if r := weights(c.model, lay) / first; r < 0.995 || r > 1+c.slack {
				t.Errorf("%s: %s holds %.3f times the weights of %s in all", c.model, lay, r, c.legal[0])
			}
		}
	}
}

// TestInfeasible: recipes that cannot run say why and have no performance.
func TestInfeasible(t *testing.T) {
	l := library(t)
	for _, c := range []struct {
		name, model, gpu string
		layout           layout.Layout
		in               float64
		want             string
	}{
		{"weights too large", "deepseek_v3", "mi300x", grid(1, 1, 1), 1024, "does not fit: weights"},
		{"heads do not divide", "llama3.1_8B", "mi300x", grid(3, 1, 1), 1024, "nearest legal layout"},
		{"context too long", "llama3.1_70B", "mi300x", grid(1, 1, 1), 1e6, "does not fit"},
	} {
		p := project(t, l, question(t, l, c.model, c.gpu, "vllm", c.layout, c.in, 512, 16))
		if p.Feasible || !strings.Contains(p.Reason, c.want) {
			t.Errorf("%s: feasible %v, reason %q; want %q", c.name, p.Feasible, p.Reason, c.want)
		}
		silent(t, p)
	}
	r := question(t, l, "deepseek_v3", "mi300x", "vllm", grid(8, 1, 1), 1024, 512, 16)
	r.Disagg = &Disaggregation{Prefill: grid(1, 1, 1), Decode: grid(8, 1, 1), PrefillReplicas: 1, DecodeReplicas: 1}
	if p := project(t, l, r); p.Feasible || !strings.HasPrefix(p.Reason, "prefill pool: ") {
		t.Errorf("a prefill pool too small: feasible %v, reason %q", p.Feasible, p.Reason)
	} else {
		silent(t, p)
	}
}

// TestCapped: when memory holds fewer requests than are asked for, the others
// wait and the answer says so.
func TestCapped(t *testing.T) {
	l := library(t)
	p := project(t, l, question(t, l, "llama3.1_70B", "mi300x", "vllm", grid(1, 1, 1), 8192, 1024, 512))
	if !p.Feasible || !p.Capped || p.Steady.AdmissionWait <= 0 || p.Steady.Running > p.Sustainable*1.001 {
		t.Errorf("feasible %v, capped %v, wait %v, %v run of %v", p.Feasible, p.Capped, p.Steady.AdmissionWait, p.Steady.Running, p.Sustainable)
	}
}

// TestDisaggregated: more prefill replicas never raise the time to first
// token, and a pool named as the limit is relieved by a replica more.
func TestDisaggregated(t *testing.T) {
	l := library(t)
	at := func(np, nd int, rate float64) *Projection {
		r := question(t, l, "llama3.1_70B", "mi355x", "vllm", grid(1, 1, 1), 8192, 1024, 256)
		r.Disagg = &Disaggregation{Prefill: grid(4, 1, 1), Decode: grid(4, 1, 1), PrefillReplicas: np, DecodeReplicas: nd}
		r.RequestRate = rate
		return project(t, l, r)
	}
	last := units.Seconds(math.Inf(1))
	for np := 1; np <= 4; np++ {
		p := at(np, 2, 1)
		if p.GPUs != 4*(np+2) || p.Transfer == nil || p.Transfer.Time <= 0 {
			t.Errorf("%d prefill replicas: %d GPUs, transfer %+v", np, p.GPUs, p.Transfer)
		}
		if ttft := units.Seconds(p.TTFT.Value); ttft > last*1.001 {
			t.Errorf("%d prefill replicas: first token after %v, %v with one fewer", np, ttft, last)
		} else {
			last = ttft
		}
	}
	p := at(1, 4, 0)
	more := at(2, 4, 0)
	if p.Transfer.Limit != "prefill" || more.OutputRate.Value < 1.3*p.OutputRate.Value {
		t.Errorf("8k prompts, one prefill replica: limit %s, %v tokens/s; %v with two", p.Transfer.Limit, p.OutputRate.Value, more.OutputRate.Value)
	}
}

// TestSpeculationYield checks the mean of accepted tokens: for k = 3 and a =
// 0.7 it is 1 + 0.7 + 0.49 + 0.343 = 2.533.
func TestSpeculationYield(t *testing.T) {
	for _, c := range []struct {
		s    Speculation
		want float64
	}{
		{Speculation{}, 1},
		{Speculation{Acceptance: 0.9}, 1},
		{Speculation{Tokens: 3, Acceptance: 0.7}, 2.533},
		{Speculation{Tokens: 3, Acceptance: 0}, 1},
		{Speculation{Tokens: 3, Acceptance: 1}, 4},
		{Speculation{Tokens: 1, Acceptance: 0.5}, 1.5},
		{Speculation{Tokens: 3, Acceptance: 0.7, AcceptedLength: 1.9}, 1.9},
		{Speculation{Tokens: 2, AcceptedLength: 9}, 3},
	} {
		if got := c.s.Yield(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v yields %v, want %v", c.s, got, c.want)
		}
	}
}

// TestSpeculationSpeeds: drafts of a checkpoint's own drafter pay when they are
// accepted and cost when they are not.
func TestSpeculationSpeeds(t *testing.T) {
	l := library(t)
	at := func(s Speculation) float64 {
		r := question(t, l, "deepseek_v3", "mi355x", "sglang", grid(8, 1, 1), 1024, 1024, 4)
		r.Speculation = s
		return project(t, l, r).TPOT.Value
	}
	plain, never, always := at(Speculation{}), at(Speculation{Tokens: 3}), at(Speculation{Tokens: 3, Acceptance: 1})
	if !(never > plain) || !(always < plain) {
		t.Errorf("TPOT %v without drafts, %v with rejected and %v with accepted ones", plain, never, always)
	}
}

// TestSkips lists why a measured point cannot be predicted.
func TestSkips(t *testing.T) {
	l := library(t)
	good := accuracy.Point{
		GPU: "MI355X", GPUs: 8, TP: 8, Model: "DeepSeek-R1/V3", WeightDType: "fp8", Engine: "sglang", Quality: "A", Date: "2026-01-01",
		InputLen: 1024, OutputLen: 1024, LengthScale: 1, Concurrency: 64,
	}
	r, err := l.FromPoint(&good)
	if err != nil || r.Layout.TP != 8 || r.Layout.EP != 1 || r.Engine.Name != "sglang" || r.GPU.Name == "" {
		t.Fatalf("a usable point: %+v, %v", r, err)
	}
	for _, c := range []struct {
		want   string
		change func(*accuracy.Point)
	}{
		{"disaggregated", func(p *accuracy.Point) { p.Disaggregated = true }},
		{"speculative decoding", func(p *accuracy.Point) { p.Speculation = "mtp" }},
		{"quality C", func(p *accuracy.Point) { p.Quality = "c" }},
		{"no concurrency", func(p *accuracy.Point) { p.Concurrency = 0 }},
		{"no lengths", func(p *accuracy.Point) { p.OutputLen = 0 }},
		{"no layout", func(p *accuracy.Point) { p.TP, p.GPUs = 0, 0 }},
		{"unknown GPU", func(p *accuracy.Point) { p.GPU = "MI9999" }},
		{"unknown engine", func(p *accuracy.Point) { p.Engine = "tgi 2" }},
		{"unknown model", func(p *accuracy.Point) { p.Model = "nobody/nothing" }},
		{"unknown weight dtype", func(p *accuracy.Point) { p.WeightDType = "fp7" }},
		{"unknown cache dtype", func(p *accuracy.Point) { p.KVDType = "fp7" }},
	} {
		p := good
		c.change(&p)
		if _, err := l.FromPoint(&p); !errors.Is(err, ErrSkip) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want ErrSkip that says so", c.want, err)
		}
	}
	for _, p := range []accuracy.Point{good, {}} {
		if _, err := l.Score(&p); !errors.Is(err, ErrSkip) {
			t.Errorf("a point without measured values: %v, want ErrSkip", err)
		}
	}
	// Two replicas of four GPUs on eight; attention data parallelism spreads
	// experts; the batch of a rank tells the number of groups.
	p := good
	p.TP = 4
	if r, err = l.FromPoint(&p); err != nil || r.Replica != 2 {
		t.Errorf("TP4 on 8 GPUs: %+v, %v; want two replicas", r, err)
	}
	p = good
	p.AttentionDP = true
	if r, err = l.FromPoint(&p); err != nil || r.Layout != grid(8, 8, 8) {
		t.Errorf("attention DP: %+v, %v; want tp8 ep8 attention-dp8", r.Layout, err)
	}
	p.RankBatch = 16
	if r, err = l.FromPoint(&p); err != nil || r.Layout != grid(8, 8, 4) {
		t.Errorf("attention DP, 16 of 64 on a rank: %+v, %v; want four groups", r.Layout, err)
	}
}

// TestScore predicts a point and places it in its curve.
func TestScore(t *testing.T) {
	l := library(t)
	p := accuracy.Point{
		GPU: "MI355X", GPUs: 8, TP: 8, Model: "DeepSeek-R1/V3", WeightDType: "fp8", Engine: "sglang", Quality: "A", Date: "2026-01-01",
		InputLen: 1024, OutputLen: 1024, LengthScale: 1, Concurrency: 64, TPOT: 0.02,
	}
	s, err := l.Score(&p)
	if err != nil {
		t.Fatal(err)
	}
	if s.TPOT.Measured != 0.02 || !(s.TPOT.Predicted > 0) || s.TPOT.Low > s.TPOT.Predicted || s.TPOT.Predicted > s.TPOT.High || s.TPOT.Curve == "" {
		t.Errorf("TPOT %+v", s.TPOT)
	}
	if s.TTFT.Measured != 0 || s.Doubt != "" {
		t.Errorf("TTFT %+v, doubt %q; want neither", s.TTFT, s.Doubt)
	}
	// A point that ran where memory says it cannot is priced with a doubt.
	p.TP, p.GPUs = 1, 1
	if s, err = l.Score(&p); err != nil || !strings.Contains(s.Doubt, "not to fit") || !(s.TPOT.Predicted > 0) {
		t.Errorf("one GPU: %+v, %v; want a doubt and a price", s, err)
	}
}

// TestBadRequests: numbers that cannot mean anything are errors, wherever they
// stand in a request.
func TestBadRequests(t *testing.T) {
	l := library(t)
	base := question(t, l, "gpt_oss_120B", "mi355x", "vllm", grid(2, 2, 1), 1024, 1024, 32)
	for name, change := range map[string]func(*Request){
		"no model":  func(r *Request) { r.Arch = nil },
		"no GPU":    func(r *Request) { r.GPU = nil },
		"no fabric": func(r *Request) { r.Fabric = nil },
		"no engine": func(r *Request) { r.Engine = nil },
		"no input":  func(r *Request) { r.InputLen = 0 },
		"no output": func(r *Request) { r.OutputLen = 0 },
	} {
		r := *base
		change(&r)
		if p, err := l.Project(&r); !errors.Is(err, ErrBadRequest) || p != nil {
			t.Errorf("%s: %v, %v; want ErrBadRequest", name, p, err)
		}
		if _, err := l.Size(&r); !errors.Is(err, ErrBadRequest) {
			t.Errorf("%s: Size = %v, want ErrBadRequest", name, err)
		}
		if _, err := l.Prepare(&r, 0); !errors.Is(err, ErrBadRequest) {
			t.Errorf("%s: Prepare = %v, want ErrBadRequest", name, err)
		}
	}
	// Every floating-point setting in turn. A cache format comes from a parser;
	// sampling switches only count passes.
	seen := 0
	r := *base
	floats(reflect.ValueOf(&r).Elem(), "", func(v reflect.Value, path string) {
		switch {
		case strings.HasPrefix(path, ".KV."), path == ".Sampling.TopP":
			return
		}
		seen++
		old := v.Float()
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e300} {
			v.SetFloat(bad)
			p, err := l.Project(&r)
			switch {
			case err == nil && p.Feasible:
				t.Errorf("%s = %v: TTFT %v, TPOT %v; want an error", path, bad, p.TTFT.Value, p.TPOT.Value)
			case err != nil && err.Error() == "":
				t.Errorf("%s = %v: an error without a text", path, bad)
			}
		}
		v.SetFloat(old)
	})
	if seen < 25 {
		t.Errorf("only %d settings tried", seen)
	}
	if p := project(t, l, &r); !p.Feasible {
		t.Errorf("the request that all others differ from: %s", p.Reason)
	}
}

// floats calls do for every settable floating-point field below v.
func floats(v reflect.Value, path string, do func(v reflect.Value, path string)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				floats(v.Field(i), path+"."+f.Name, do)
			}
		}
	case reflect.Float64:
		do(v, path)
	}
}

// TestStatic: the static serving model needs a batch and no rate.
func TestStatic(t *testing.T) {
	l := library(t)
	r := question(t, l, "gpt_oss_120B", "mi355x", "vllm", grid(1, 1, 1), 1024, 256, 0)
	r.Serving, r.Batch = Static, 16
	p := project(t, l, r)
	if !p.Feasible || p.Concurrency != 16 || p.Steady.Running != 16 || !(p.TTFT.Value > 0) {
		t.Errorf("a static batch of 16: %v, %v run, TTFT %v", p.Concurrency, p.Steady.Running, p.TTFT.Value)
	}
	r.RequestRate = 1
	if _, err := l.Project(r); err == nil {
		t.Error("a static batch with a request rate is no error")
	}
}

// TestFormats: stating the checkpoint's own cache format changes nothing, and
// half of it holds twice the requests.
func TestFormats(t *testing.T) {
	l := library(t)
	at := func(kv string) *Projection {
		r := question(t, l, "llama3.1_8B", "mi300x", "vllm", grid(1, 1, 1), 8192, 1024, 64)
		if kv != "" {
			f, err := models.ParseFormat(kv)
			if err != nil {
				t.Fatal(err)
			}
			r.KV = f
		}
		r.Engineering.MaxSeqs = 1 << 20
		return project(t, l, r)
	}
	plain, bf16, fp8 := at(""), at("bf16"), at("fp8")
	if plain.TPOT != bf16.TPOT || plain.Sustainable != bf16.Sustainable {
		t.Errorf("bf16 cache: TPOT %v and %v, %v and %v requests", plain.TPOT, bf16.TPOT, plain.Sustainable, bf16.Sustainable)
	}
	if r := fp8.Sustainable / bf16.Sustainable; r < 1.95 || r > 2.05 {
		t.Errorf("an fp8 cache holds %.2f times the requests", r)
	}
}

// TestBadMemory: sizes that memory refuses are errors of its kind.
func TestBadMemory(t *testing.T) {
	l := library(t)
	r := question(t, l, "llama3.1_8B", "mi300x", "vllm", grid(1, 1, 1), 1024, 1024, 8)
	r.Engineering.MemoryFraction = 1.5
	if _, err := l.Project(r); !errors.Is(err, memory.ErrRequest) {
		t.Errorf("a memory fraction of 1.5: %v, want memory.ErrRequest", err)
	}
}
