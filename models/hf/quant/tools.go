package quant

import (
	"sort"
	"strings"

	"infera/models"
	"infera/models/hf/hfjson"
	"infera/models/modules"
)

// fp8 reads the block and tensor fp8 of Hugging Face (DeepSeek-V3). A list of
// layers in another format, which NVIDIA adds to DeepSeek-V4, lies on top; the
// ignore list then belongs to that list.
func (q *reader) fp8(qc hfjson.Object) {
	f := mustFormat("fp8")
	if block, ok := qc.List("weight_block_size"); ok && len(block) > 0 {
		f = mustFormat("fp8_block")
		n := 1
		for _, v := range block {
			e, err := hfjson.Int(v)
			if err != nil || e < 1 || e > 1<<14 {
				q.fail("weight_block_size: %s", hfjson.Show(v))
				return
			}
			n *= e
		}
		if n == 32 {
			f = mustFormat("mxfp8")
		}
		f.Group = n
	}
	q.set(modules.Linear, modules.Pattern{Layer: modules.AllLayers}, q.use(f))
	if _, overlay := qc.Object("quantized_layers"); overlay || qc["moe_quant_algo"] != nil {
		if s, ok := qc.Text("moe_quant_algo"); ok {
			if f, ok := q.algo(s, 0); ok {
				q.set(modules.Experts, modules.Pattern{Layer: modules.AllLayers}, q.use(f))
			}
		}
		q.listedLayers(qc)
		return
	}
	q.ignore(qc)
}

// modelOpt reads NVIDIA ModelOpt's quantisation.
func (q *reader) modelOpt(qc hfjson.Object) {
	algo, _ := qc.Text("quant_algo")
	switch {
	case algo == "" && qc["config_groups"] != nil:
		q.compressedTensors(qc)
		return
	case strings.EqualFold(algo, "MIXED_PRECISION"):
		q.listedLayers(qc)
		q.ignore(qc)
		return
	case algo == "":
		q.fail("quantization_config states no quant_algo")
		return
	}
	group := 0
	if v, k, ok := qc.Find("group_size"); ok {
		group = q.number(k, v)
	}
	f, ok := q.algo(algo, group)
	if !ok {
		return
	}
	q.set(modules.Linear, modules.Pattern{Layer: modules.AllLayers}, q.use(f))
	q.ignore(qc)
}

// listedLayers reads a list of modules with their algorithms.
func (q *reader) listedLayers(qc hfjson.Object) {
	layers, ok := qc.Object("quantized_layers")
	if !ok {
		if qc["config_groups"] != nil {
			q.compressedTensors(qc)
		}
		return
	}
	known := map[string]uint8{} // by algorithm, with the usual group size
	for _, name := range sortedKeys(layers) {
		o, ok := layers[name].(map[string]any)
		if !ok {
			q.fail("quantized_layers: %s is not an object", name)
			return
		}
		s, _ := o["quant_algo"].(string)
		use, ok := known[s]
		if !ok || o["group_size"] != nil && q.formats[use].Group == 0 {
			group := 0
			if v := o["group_size"]; v != nil {
				group = q.number("group_size", v)
			}
			f, ok := q.algo(s, group)
			if !ok {
				return
			}
			use = q.use(f)
			known[s] = use
		}
		q.setNamed(name, use)
	}
}

// sortedKeys gives a map's keys in a fixed order. Later patterns overwrite
// earlier ones, so shorter (wider) names come first.
func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool {
		if len(keys[i]) != len(keys[j]) {
			return len(keys[i]) < len(keys[j])
		}
		return keys[i] < keys[j]
	})
	return keys
}

// algorithms maps ModelOpt's names to formats.
var algorithms = map[string]string{
	"fp8": "fp8", "fp8_pb_wo": "fp8_block", "fp8_pb": "fp8_block", "fp8_block_scales": "fp8_block", "fp8_block": "fp8_block",
	"fp8_per_channel_per_token": "fp8_channel", "fp8_pc_pt": "fp8_channel",
	"nvfp4": "nvfp4", "nvfp4_awq": "nvfp4", "nvfp4_svdquant": "nvfp4", "w4a16_nvfp4": "nvfp4_a16", "w4a8_nvfp4_fp8": "nvfp4_a8",
	"w4a16_awq": "int4", "w4a8_awq": "int4_a8", "w4a16": "int4", "w4a16_gptq": "int4", "w8a16": "int8_a16", "w8a16_gptq": "int8_a16",
	"int8_sq": "int8", "w8a8_sq_per_channel": "int8", "w8a8_sq_per_channel_per_token_plugin": "int8", "int8_wo": "int8_a16",
	"mxfp8": "mxfp8", "mxfp4": "mxfp4", "w4a8_mxfp4_fp8": "mxfp4_a8", "w4a8_mxfp4_mxfp8": "mxfp4_a8", "w4a16_mxfp4": "mxfp4_a16", "mxfp6": "mxfp6",
}

func (q *reader) algo(name string, group int) (models.Format, bool) {
	s, ok := algorithms[strings.ToLower(name)]
	if !ok {
		q.fail("unknown quant_algo %q; known: FP8, FP8_PB_WO, NVFP4, W4A16_NVFP4, W4A8_NVFP4_FP8, W4A16_AWQ, W4A8_AWQ, INT8_SQ, MXFP8, MXFP4, W4A8_MXFP4_FP8, MIXED_PRECISION", name)
		return models.Format{}, false
	}
	f, _ := models.ParseFormat(s)
	if group > 0 && f.Group > 0 && f.Group <= 256 {
		f.Group = group
	}
	return f, true
}

// compressedTensors reads the config_groups of llm-compressor (and of
// ModelOpt's newer files).
func (q *reader) compressedTensors(qc hfjson.Object) {
	groups, ok := qc.Object("config_groups")
	if !ok {
		q.fail("quantization_config: no config_groups")
		return
	}
	for _, name := range sortedKeys(groups) {
		g, ok := groups[name].(map[string]any)
		if !ok {
			q.fail("config_groups.%s is not an object", name)
			return
		}
		group := hfjson.Object(g)
		w, ok := group.Object("weights")
		if !ok {
			continue // only activations or cache
		}
		act, _ := group.Object("input_activations")
		f, ok := q.weights(w, act)
		if !ok {
			return
		}
		use := q.use(f)
		targets, ok := group.List("targets")
		if !ok {
			q.set(modules.Linear, modules.Pattern{Layer: modules.AllLayers}, use)
		}
		for _, t := range targets {
			if s, ok := t.(string); ok {
				q.setNamed(s, use)
			}
		}
	}
	q.ignore(qc)
}

// weights reads the description of a weight (num_bits, type, strategy,
// group_size) and of the activation it meets (nil = not quantised).
func (q *reader) weights(w, act hfjson.Object) (models.Format, bool) {
	get := func(o hfjson.Object, key string) int {
		v, k, ok := o.Find(key)
		if !ok {
			return 0
		}
		return q.number(k, v)
	}
	bits := get(w, "num_bits")
	if bits == 0 {
		bits = get(w, "bits")
	}
	kind, _ := w.Text("type")
	strategy, _ := w.Text("strategy")
	group := get(w, "group_size")
	var f models.Format
	switch {
	case bits == 8 && kind == "float" && strategy == "block":
		f = mustFormat("fp8_block")
		if l, ok := w.List("block_structure"); ok && len(l) == 2 {
			f.Group = q.number("block_structure", l[0]) * q.number("block_structure", l[1])
		}
	case bits == 8 && kind == "float" && group == 32:
		f = mustFormat("mxfp8")
	case bits == 8 && kind == "float" && strategy == "channel":
		f = mustFormat("fp8_channel")
	case bits == 8 && kind == "float":
		f = mustFormat("fp8")
	case bits == 4 && kind == "float" && group == 32:
		f = mustFormat("mxfp4")
	case bits == 4 && kind == "float":
		f = mustFormat("nvfp4")
	case bits == 6 && kind == "float":
		f = mustFormat("mxfp6")
	case bits == 8:
		f = mustFormat("int8")
		if group > 0 {
			f.Group, f.ScaleBits = group, 16
		}
	case bits == 4:
		f = mustFormat("int4")
		if group > 0 {
			f.Group = group
		} else {
			f.Group, f.ScaleBits = 0, 0
		}
	default:
		q.fail("quantization_config: weights of %d bits of type %q", bits, kind)
		return models.Format{}, false
	}
	if sym, ok := w.Flag("symmetric"); ok && !sym && f.Group > 0 && (f.Element == models.INT4 || f.Element == models.INT8) {
		f.ScaleBits += f.Element.Bits()
	}
	if f.Group < 0 || f.Group > 1<<28 {
		q.fail("quantization_config: groups of %d", f.Group)
		return models.Format{}, false
	}
	f.Activation = q.activation(f, act, get)
	return f, true
}

func (q *reader) activation(f models.Format, act hfjson.Object, get func(hfjson.Object, string) int) models.DType {
	if act == nil {
		return models.BF16
	}
	kind, _ := act.Text("type")
	switch n := get(act, "num_bits"); {
	case n == 8 && kind == "float":
		return models.FP8
	case n == 8:
		return models.INT8
	case n == 4 && kind == "float":
		return models.FP4
	case n == 4:
		return models.INT4
	case n == 6:
		return models.FP6
	}
	return f.Activation
}

// integerGroups reads GPTQ, AWQ and AutoRound.
func (q *reader) integerGroups(qc hfjson.Object) {
	num := func(keys ...string) int {
		v, k, ok := qc.Find(keys...)
		if !ok {
			return 0
		}
		if n, err := hfjson.Int(v); err == nil && n == -1 {
			return 0 // one group per channel
		}
		return q.number(k, v)
	}
	var f models.Format
	switch bits := num("bits", "w_bit", "nbits"); bits {
	case 4:
		f = mustFormat("int4")
	case 8:
		f = mustFormat("int8")
		f.Activation = models.BF16
	default:
		q.fail("quantization_config: %d bits, want 4 or 8", bits)
		return
	}
	f.Group = num("group_size", "q_group_size")
	if f.Group > 0 {
		f.ScaleBits = 16 + f.Element.Bits() // packed zero points
		if sym, ok := qc.Flag("sym"); ok && sym {
			f.ScaleBits = 16
		}
		if zero, ok := qc.Flag("zero_point"); ok && !zero {
			f.ScaleBits = 16
		}
	} else {
		f.ScaleBits = 0
	}
	q.set(modules.Linear, modules.Pattern{Layer: modules.AllLayers}, q.use(f))
	q.ignore(qc)
	if dynamic, ok := qc.Object("dynamic"); ok { // GPTQModel: "-:regexp" leaves modules alone
		for _, k := range sortedKeys(dynamic) {
			if expr, ok := strings.CutPrefix(k, "-:"); ok {
				q.setRegexp(expr, 0)
			}
		}
	}
}

func (q *reader) bitsAndBytes(qc hfjson.Object) {
	name := "int8_a16"
	if four, _ := qc.Flag("load_in_4bit", "_load_in_4bit"); four {
		name = "int4_g64" // nf4: one scale per 64
	}
	q.all(modules.Linear, name)
	q.ignore(qc)
}

// quark reads AMD Quark's export.
func (q *reader) quark(qc hfjson.Object) {
	global, ok := qc.Object("global_quant_config")
	if !ok {
		q.fail("quantization_config: no global_quant_config")
		return
	}
	if f, ok := q.quarkFormat(global); ok {
		q.set(modules.Linear, modules.Pattern{Layer: modules.AllLayers}, q.use(f))
	}
	for _, key := range [...]string{"layer_type_quant_config", "layer_quant_config"} {
		layers, _ := qc.Object(key)
		for _, name := range sortedKeys(layers) {
			o, ok := layers[name].(map[string]any)
			if !ok {
				continue
			}
			if f, ok := q.quarkFormat(o); ok {
				q.setNamed(name, q.use(f))
			} else if q.problem == nil {
				q.setNamed(name, 0)
			}
		}
	}
	q.ignore(qc)
	kv, _ := qc.Object("kv_cache_quant_config")
	for _, name := range sortedKeys(kv) {
		o, _ := kv[name].(map[string]any)
		if spec, ok := quarkSpec(hfjson.Object(o), "output_tensors"); ok {
			if s, ok := spec.Text("dtype"); ok {
				f, err := models.ParseFormat(s)
				if err != nil {
					q.fail("kv_cache_quant_config: %w", err)
					return
				}
				q.a.KVFormat = f
			}
		}
	}
}

// quarkSpec returns a tensor description, the last stage of a progressive one.
func quarkSpec(o hfjson.Object, key string) (hfjson.Object, bool) {
	switch v := o[key].(type) {
	case map[string]any:
		return v, true
	case []any:
		if len(v) > 0 {
			m, ok := v[len(v)-1].(map[string]any)
			return m, ok
		}
	}
	return nil, false
}

func (q *reader) quarkFormat(o hfjson.Object) (models.Format, bool) {
	w, ok := quarkSpec(o, "weight")
	if !ok {
		return models.Format{}, false
	}
	f, ok := q.quarkElement(w)
	if !ok {
		return models.Format{}, false
	}
	f.Activation = models.BF16
	if in, ok := quarkSpec(o, "input_tensors"); ok {
		if a, ok := q.quarkElement(in); ok {
			f.Activation = a.Element
		}
	}
	return f, q.problem == nil
}

func (q *reader) quarkElement(w hfjson.Object) (models.Format, bool) {
	s, _ := w.Text("dtype")
	s = strings.ToLower(s)
	switch {
	case s == "uint4":
		s = "int4"
	case s == "uint8":
		s = "int8"
	case strings.HasPrefix(s, "fp6"):
		s = "mxfp6"
	}
	f, err := models.ParseFormat(s)
	if err != nil {
		q.fail("quantization_config: dtype: %w", err)
		return models.Format{}, false
	}
	group := 0
	if v, k, ok := w.Find("group_size"); ok {
		group = q.number(k, v)
	}
	scheme, _ := w.Text("qscheme")
	if scheme != "per_group" {
		f.Group, f.ScaleBits = 0, 0
		return f, true
	}
	scale, _ := w.Text("scale_format")
	switch {
	case f.Element == models.FP8 && group == 32:
		f = mustFormat("mxfp8")
	case f.Element == models.FP4 && group == 16 && scale != "e8m0":
		f = mustFormat("nvfp4")
	case f.Element == models.FP8, f.Element == models.INT8:
		f.ScaleBits = 16
	}
	if group > 0 {
		f.Group = group
	}
	return f, true
}

// mustFormat returns the format called name; it is for names written in this
// package, which a test checks.
func mustFormat(name string) models.Format {
	f, _ := models.ParseFormat(name)
	return f
}
