package models

import (
	"fmt"
	"sort"
	"strings"

	"infera/models/hfjson"
	"infera/models/modules"
)

// quantKeys are where a config keeps its quantisation.
var quantKeys = []string{"quantization_config", "compression_config", "quantization"}

// quantReader works out the stored format of every tensor kind of every layer.
type quantReader struct {
	c *config
	a *Architecture
	// formats holds the formats in use; 0 is the compute type.
	formats []Format
	// rows[i] is layer i, then comes a row for the drafter and one for what is
	// outside the layers.
	rows    [][modules.NumParts]uint8
	reader  modules.Reader
	perRow  int  // rows per layer number of the checkpoint
	mlpOnly bool // "mlp" names the dense branch beside the experts
	unknown []string
}

func (c *config) quantConfig() (hfjson.Object, bool) {
	if o, ok := c.text.Object(quantKeys...); ok {
		return o, true
	}
	return c.root.Object(quantKeys...)
}

func (c *config) quantMethod() string {
	o, _ := c.quantConfig()
	s, _ := o.Text("quant_method")
	return s
}

// readFormats fills the formats of the tensor classes and of the cache.
func (c *config) readFormats(a *Architecture, file []byte) error {
	q := &quantReader{c: c, a: a, formats: []Format{FormatOf(a.Compute)}, rows: make([][modules.NumParts]uint8, len(a.Pattern)+2), perRow: 1}
	if n := c.dim(layerKeys...); n > 0 && len(a.Pattern) == 2*n {
		q.perRow = 2
	}
	for _, g := range a.Groups {
		q.mlpOnly = q.mlpOnly || g.FFN.Kind == FFNMoE && g.FFN.Intermediate > 0
	}
	qc, ok := c.quantConfig()
	if file != nil {
		o, err := hfjson.Parse(file)
		if err != nil {
			return fmt.Errorf("%w: %s: hf_quant_config.json: %w", ErrBadConfig, c.path, err)
		}
		sub, found := o.Object("quantization")
		if !found {
			sub = o
		}
		q.cacheFormat(sub)
		if !ok {
			qc, ok = sub, true
		}
	}
	if ok {
		q.cacheFormat(qc)
		q.read(qc)
	}
	q.expertDType()
	if c.problem != nil {
		return c.problem
	}
	q.resolve()
	if len(q.unknown) > 0 {
		sort.Strings(q.unknown)
		n := len(q.unknown)
		c.warn("quantization_config", fmt.Sprintf("%d module names are not understood and were skipped, such as %s",
			n, strings.Join(q.unknown[:min(n, 3)], ", ")))
	}
	return nil
}

// read dispatches on the tool that wrote the block.
func (q *quantReader) read(qc hfjson.Object) {
	method, _ := qc.Text("quant_method")
	method = strings.ToLower(strings.ReplaceAll(method, "_", "-"))
	_, hasAlgo := qc.Text("quant_algo")
	switch {
	case method == "quark" || qc["global_quant_config"] != nil:
		q.quark(qc)
	case method == "compressed-tensors" || method == "sparseml":
		q.compressedTensors(qc)
	case method == "fp8" || method == "fbgemm-fp8" || method == "deepseek-fp8" || method == "ptpc-fp8":
		q.fp8(qc)
	case method == "mxfp4":
		q.all(modules.Experts, "mxfp4_a16")
		q.ignore(qc)
	case hasAlgo || strings.HasPrefix(method, "modelopt"):
		q.modelOpt(qc)
	case method == "gptq" || method == "awq" || method == "auto-round" || method == "autoround" || method == "gptq-marlin" ||
		method == "awq-marlin" || method == "hqq" || method == "intel/auto-round":
		q.integerGroups(qc)
	case method == "bitsandbytes":
		q.bitsAndBytes(qc)
	case method == "":
		if len(qc) > 0 {
			q.c.fail("quantization_config states no quant_method")
		}
	default:
		f, err := ParseFormat(method)
		if err != nil {
			q.c.fail("quantization_config: unknown quant_method %q; known: fp8, fbgemm_fp8, modelopt, compressed-tensors, quark, mxfp4, gptq, awq, auto-round, bitsandbytes", method)
			return
		}
		q.set(modules.Linear, modules.Pattern{Layer: modules.AllLayers}, q.use(f))
		q.ignore(qc)
	}
}

// use returns the index of a format, adding it if new.
func (q *quantReader) use(f Format) uint8 {
	for i, have := range q.formats {
		if have == f {
			return uint8(i)
		}
	}
	if len(q.formats) == 255 {
		q.c.fail("quantization_config: more than 255 formats")
		return 0
	}
	q.formats = append(q.formats, f)
	return uint8(len(q.formats) - 1)
}

// all stores parts of every layer in a named format.
func (q *quantReader) all(parts modules.Set, name string) {
	f, err := ParseFormat(name)
	if err != nil {
		q.c.fail("quantization_config: %w", err)
		return
	}
	q.set(parts, modules.Pattern{Layer: modules.AllLayers}, q.use(f))
}

func (q *quantReader) draftRow() int { return len(q.rows) - 2 }

func (q *quantReader) outside() int { return len(q.rows) - 1 }

// set stores the format of parts in the layers a pattern speaks of.
func (q *quantReader) set(parts modules.Set, at modules.Pattern, f uint8) {
	if parts.Has(modules.Draft) {
		q.setRow(q.draftRow(), modules.Layer, f)
	}
	if at.Layer == modules.AllLayers || at.Prefix {
		for i := range len(q.rows) - 2 {
			if at.Matches(i / q.perRow) {
				q.setRow(i, parts, f)
			}
		}
		if at.Layer == modules.AllLayers || at.Matches((len(q.rows)-2)/q.perRow) {
			q.setRow(q.draftRow(), parts, f)
		}
		if at.Layer == modules.AllLayers {
			q.setRow(q.outside(), parts, f)
		}
		return
	}
	first := at.Layer * q.perRow
	if first >= q.draftRow() {
		q.setRow(q.draftRow(), parts, f)
		return
	}
	for i := first; i < first+q.perRow; i++ {
		q.setRow(i, parts, f)
	}
}

func (q *quantReader) setRow(i int, parts modules.Set, f uint8) {
	row := &q.rows[i]
	for p := range modules.NumParts {
		if parts.Has(p) {
			row[p] = f
		}
	}
}

// setNamed stores the format of what a module name or pattern means.
func (q *quantReader) setNamed(name string, f uint8) {
	if expr, ok := strings.CutPrefix(name, "re:"); ok {
		q.setRegexp(expr, f)
		return
	}
	p := q.reader.Read(name)
	if !p.Known {
		if len(q.unknown) < 64 {
			q.unknown = append(q.unknown, name)
		}
		return
	}
	if q.mlpOnly && p.Parts == modules.FeedForward {
		p.Parts = modules.Dense
	}
	q.set(p.Parts, p, f)
}

func (q *quantReader) setRegexp(expr string, f uint8) {
	re, err := modules.ReadRegexp(expr)
	if err != nil {
		q.c.warn("quantization_config", "skipped "+err.Error())
		return
	}
	if !re.PerLayer() {
		q.set(re.Parts(0), modules.Pattern{Layer: modules.AllLayers}, f)
		return
	}
	for i := 0; i*q.perRow <= q.draftRow(); i++ {
		q.set(re.Parts(i), modules.Pattern{Layer: i}, f)
	}
}

// ignoreKeys are the lists of modules a quantiser left alone.
var ignoreKeys = []string{"ignore", "exclude_modules", "modules_to_not_convert", "exclude", "ignored_layers", "llm_int8_skip_modules", "modules_in_block_to_not_quantize"}

func (q *quantReader) ignore(qc hfjson.Object) {
	l, ok := qc.List(ignoreKeys...)
	if !ok {
		return
	}
	for _, v := range l {
		s, ok := v.(string)
		if !ok {
			q.c.fail("quantization_config: ignored module %s is not a string", hfjson.Show(v))
			return
		}
		q.setNamed(s, 0)
	}
}

// expertDType reads DeepSeek-V4's second weight type. Its fp4 has one 8-bit
// power-of-two scale per 32 elements and multiplies fp8 activations.
func (q *quantReader) expertDType() {
	s, ok := q.c.text.Text("expert_dtype")
	if !ok {
		return
	}
	f, err := ParseFormat(s)
	if err != nil {
		q.c.fail("expert_dtype: %w", err)
		return
	}
	if f.Element == FP4 {
		f = mustFormat("mxfp4")
		f.Activation = FP8
	} else if f.Element == FP8 {
		return // as the rest of the checkpoint
	}
	use := q.use(f)
	for i := range q.rows {
		for _, p := range [...]modules.Part{modules.ExpertUp, modules.ExpertDown} {
			// A format that a tool listed for the experts wins.
			if e := q.formats[q.rows[i][p]].Element; e == FP8 || e == q.a.Compute {
				q.rows[i][p] = use
			}
		}
	}
}

// cacheFormat reads what the checkpoint asks of the key/value cache.
func (q *quantReader) cacheFormat(qc hfjson.Object) {
	v, key, ok := qc.Find("kv_cache_quant_algo", "kv_cache_scheme", "kv_cache_dtype")
	if !ok {
		return
	}
	switch v := v.(type) {
	case string:
		if s := strings.ToLower(v); s != "none" && s != "auto" && s != "" {
			f, err := ParseFormat(s)
			if err != nil {
				q.c.fail("%s: %w", key, err)
				return
			}
			q.a.KVFormat = f
		}
	case map[string]any:
		f, ok := q.weights(v, nil)
		if ok {
			f.Activation = f.Element
			q.a.KVFormat = f
		}
	default:
		q.c.fail("%s is %s", key, hfjson.Show(v))
	}
}

// resolve turns the table into one format per tensor class.
func (q *quantReader) resolve() {
	var share [NumTensorClasses][]float64
	for c := range share {
		share[c] = make([]float64, len(q.formats))
	}
	perGroup := make([][]part, len(q.a.Groups))
	for i, g := range q.a.Groups {
		perGroup[i] = q.a.parts(g)
	}
	for i, g := range q.a.Pattern {
		for _, p := range perGroup[g] {
			share[p.class][q.rows[i][p.module]] += p.n
		}
	}
	if q.a.Draft.Layers > 0 {
		for _, p := range q.a.parts(q.a.Draft.Layer) {
			share[ClassDraft][q.rows[q.draftRow()][p.module]] += p.n
		}
	}
	out := q.rows[q.outside()]
	share[ClassEmbedding][out[modules.Embedding]] += 1
	share[ClassHead][out[modules.Head]] += 1
	share[ClassVision][out[modules.Vision]] += 1
	for c := range share {
		q.a.Formats[c] = q.mean(TensorClass(c), share[c])
	}
}

// pure is the share above which a class counts as stored in one format.
const pure = 0.995

func (q *quantReader) mean(c TensorClass, share []float64) Format {
	var total, bits float64
	best := 0
	for i, n := range share {
		total += n
		bits += n * q.formats[i].BitsPerElement()
		if n > share[best] {
			best = i
		}
	}
	f := q.formats[best]
	if total == 0 || share[best] >= pure*total {
		return f
	}
	f.MixedBits = bits / total
	if share[best] < 0.9*total {
		q.c.warn("quantization_config", fmt.Sprintf("%v weights are stored in several formats: %.0f %% %v, %.2f bits per weight on average",
			c, 100*share[best]/total, f.Name, f.MixedBits))
	}
	return f
}
