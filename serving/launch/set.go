package launch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"infera/internal/nearest"
)

func lower(s string) string { return strings.ToLower(s) }

func oneOf(v string, known ...string) error {
	if slices.Contains(known, v) {
		return nil
	}
	hint := nearest.Hint(v, known)
	if hint != "" {
		hint = "; " + hint
	}
	return wrong("%s is not known%s (known: %s)", clip(v), hint, strings.Join(known, ", "))
}

func setModel(p *parser, a *Argument, v string) error {
	if v == "" {
		return wrong("is empty")
	}
	a.Status = Used
	p.s.Model = v
	return nil
}

// setMaxLen reads a longest sequence; -1 and auto leave it to the engine.
func setMaxLen(p *parser, a *Argument, v string) error {
	if v == "-1" || lower(v) == "auto" {
		p.s.MaxModelLen = nil
		a.Note = join(a.Note, "the engine takes what fits in memory")
		return nil
	}
	n, err := count(v, 1)
	if err != nil {
		return err
	}
	a.Status = Used
	p.s.MaxModelLen = &n
	return nil
}

// setDType reads the type of unquantised weights.
func setDType(p *parser, _ *Argument, v string) error {
	names := map[string]string{"auto": "", "half": "fp16", "float16": "fp16", "fp16": "fp16", "bfloat16": "bf16", "bf16": "bf16", "float": "fp32", "float32": "fp32"}
	d, ok := names[lower(v)]
	if !ok {
		return oneOf(v, "auto", "half", "float16", "bfloat16", "float", "float32")
	}
	p.s.DType = d
	return nil
}

// setKVDType reads the cache's type. fp8 alone means e4m3, and fp8_ds_mla packs
// fp8 latents with their scales (vllm/config/cache.py).
func setKVDType(p *parser, a *Argument, v string) error {
	names := map[string]string{"auto": "", "float16": "fp16", "fp16": "fp16", "bfloat16": "bf16", "bf16": "bf16", "fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8",
		"fp8_inc": "fp8", "fp8_ds_mla": "fp8", "fp4": "fp4", "fp4_e2m1": "fp4", "nvfp4": "nvfp4", "int8": "int8"}
	d, ok := names[lower(v)]
	if !ok {
		return oneOf(v, "auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_ds_mla", "fp4_e2m1", "nvfp4", "int8")
	}
	p.s.KVCacheDType = d
	if d == lower(v) {
		a.Status = Used
	}
	return nil
}

// setQuantization reads a method. Some name the weight format; the others say
// how to read a checkpoint, whose own configuration names it.
func setQuantization(p *parser, a *Argument, v string) error {
	formats := map[string]string{"fp8": "fp8", "ptpc_fp8": "fp8", "w8a8_fp8": "fp8", "fbgemm_fp8": "fp8", "fp8_per_tensor": "fp8", "fp8_per_block": "fp8_block",
		"mxfp4": "mxfp4", "quark_mxfp4": "mxfp4", "mxfp8": "mxfp8", "modelopt_fp4": "nvfp4", "petit_nvfp4": "nvfp4", "modelopt_fp8": "fp8",
		"w8a8_int8": "int8", "experts_int8": "int8"}
	if v == "" {
		return wrong("is empty")
	}
	p.s.Quantization, p.s.WeightDType = lower(v), formats[lower(v)]
	switch {
	case lower(v) == "none" || lower(v) == "null":
		p.s.Quantization = ""
		a.Note = join(a.Note, "the checkpoint's own format")
	case p.s.WeightDType == "":
		a.Note = join(a.Note, "the checkpoint's own configuration names the weight format")
	default:
		a.Note = join(a.Note, "weights in "+p.s.WeightDType+" unless the checkpoint is already quantised")
	}
	return nil
}

// setGraphMode reads a graph mode of vLLM or ATOM.
func setGraphMode(p *parser, _ *Argument, v string) error {
	mode := lower(v)
	if i := strings.LastIndexByte(mode, '.'); i >= 0 { // CUDAGraphMode.FULL
		mode = mode[i+1:]
	}
	names := map[string]string{"0": "none", "1": "piecewise", "2": "full"}
	if n := names[mode]; n != "" {
		mode = n
	}
	if err := oneOf(mode, "none", "piecewise", "full", "full_decode_only", "full_and_piecewise"); err != nil {
		return err
	}
	p.s.GraphMode = mode
	return nil
}

func setEager(p *parser, _ *Argument, v string) error {
	b, err := boolean(v)
	p.s.eager = b
	return err
}

// setCaptureSizes keeps the largest captured batch.
func setCaptureSizes(p *parser, a *Argument, v string) error {
	sizes, err := list(v)
	if err != nil {
		return err
	}
	if len(sizes) == 0 {
		p.s.eager = true
		a.Note = join(a.Note, "nothing is captured")
		return nil
	}
	largest := slices.Max(sizes)
	p.s.GraphMaxBatch = &largest
	a.Note = join(a.Note, "the largest of the captured sizes: "+strconv.Itoa(largest))
	return nil
}

func setExpertParallel(p *parser, _ *Argument, v string) error {
	b, err := boolean(v)
	p.s.expertParallel = b
	return err
}

// quickReduce reads the quantisation of quick all-reduce
// (rocm.docs.amd.com, vLLM V1 performance optimization).
func quickReduce(p *parser, _ *Argument, v string) error {
	if err := oneOf(lower(v), "none", "fp", "int8", "int6", "int4"); err != nil {
		return err
	}
	p.s.QuickReduce = lower(v)
	return nil
}

// visibleDevices counts the devices that are left visible.
func visibleDevices(p *parser, a *Argument, v string) error {
	n := 0
	for d := range strings.SplitSeq(v, ",") {
		if d = strings.TrimSpace(d); d == "" || d == "-1" {
			break // the runtimes stop at the first invalid entry
		}
		n++
	}
	p.s.VisibleGPUs = &n
	a.Note = join(a.Note, fmt.Sprintf("%d visible devices", n))
	return nil
}

// speculative returns the speculation to fill in.
func (p *parser) speculative() *Speculative {
	if p.s.Speculative == nil {
		p.s.Speculative = &Speculative{}
	}
	return p.s.Speculative
}

func setSpecMethod(p *parser, a *Argument, v string) error {
	if v == "" || lower(v) == "none" || lower(v) == "null" {
		return nil
	}
	a.Status = Used
	p.speculative().Method = lower(v)
	return nil
}

func setSpecTokens(p *parser, a *Argument, v string) error {
	n, err := count(v, 1)
	if err != nil {
		return err
	}
	a.Status = Used
	p.speculative().NumTokens = n
	return nil
}

func setSpecDraft(p *parser, a *Argument, v string) error {
	if v == "" {
		return wrong("is empty")
	}
	a.Status = Used
	p.speculative().DraftModel = v
	return nil
}

// offloadConnectors are the beginnings of connector names that keep a lower
// cache tier instead of handing the cache to a decode engine.
var offloadConnectors = []string{"lmcache", "offloading", "simplecpuoffload", "mooncakestore", "sharedstorage", "flexkv", "hf3fs", "kvd", "infera"}

// transfer reads a --kv-transfer-config of vLLM or ATOM.
func (p *parser) transfer(name string) error {
	config := p.objects[name]
	if config == nil {
		return nil
	}
	var backends []string
	var visit func(c map[string]any, depth int)
	visit = func(c map[string]any, depth int) {
		connector, role := asText(c["kv_connector"]), lower(asText(c["kv_role"]))
		below := role == "offload" || slices.ContainsFunc(offloadConnectors, func(b string) bool { return strings.HasPrefix(lower(connector), b) })
		if below {
			backends = append(backends, connector)
		}
		roles := map[string]string{"kv_producer": "prefill", "kv_consumer": "decode"}
		if r := roles[role]; r != "" && !below {
			if d := p.s.Disaggregation; d == nil || d.Connector == "MultiConnector" {
				p.s.Disaggregation = &Disaggregation{Role: r, Connector: connector}
			}
		}
		extra, _ := c["kv_connector_extra_config"].(map[string]any)
		children, _ := extra["connectors"].([]any)
		for _, child := range children {
			if m, ok := child.(map[string]any); ok && depth > 0 {
				visit(m, depth-1)
			}
		}
	}
	visit(config, 2)
	if role := lower(asText(config["kv_role"])); role != "" {
		if err := oneOf(role, "kv_producer", "kv_consumer", "kv_both", "offload"); err != nil {
			return bad("%s: kv_role: %s", name, err)
		}
	}
	if len(backends) > 0 {
		p.s.Offload = offloadOf(p.s.Offload)
		p.s.Offload.Backend = strings.Join(backends, ",")
	}
	return nil
}

func offloadOf(o *Offload) *Offload {
	if o == nil {
		return &Offload{}
	}
	return o
}
