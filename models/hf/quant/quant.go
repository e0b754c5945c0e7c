package quant

import (
	"fmt"
	"sort"
	"strings"

	"infera/models"
	"infera/models/hf/hfjson"
	"infera/models/modules"
)

// Config is a checkpoint's description, as far as it may say how tensors are
// stored.
type Config struct {
	// Text is the language model's part of config.json and Root the whole;
	// they are the same in a config of a language model alone.
	Text, Root hfjson.Object
	// File is hf_quant_config.json (NVIDIA ModelOpt); nil if there is none.
	File hfjson.Object
	// Layers is how many layers the checkpoint numbers; 0 if it does not say.
	// An architecture of twice as many has written each of them as two.
	Layers int
}

// blockKeys are where a config keeps its quantisation.
var blockKeys = []string{"quantization_config", "compression_config", "quantization"}

func (c Config) block() (hfjson.Object, bool) {
	if o, ok := c.Text.Object(blockKeys...); ok {
		return o, true
	}
	return c.Root.Object(blockKeys...)
}

// Method returns the quant_method of config.json; "" if it states none.
func (c Config) Method() string {
	o, _ := c.block()
	s, _ := o.Text("quant_method")
	return s
}

// Read sets the formats of the tensor classes of a, whose shapes and compute
// type are known, and of its cache. It calls warn with a config key and a text
// for what a reader should know and what does not stop the use of the model.
func Read(a *models.Architecture, c Config, warn func(key, text string)) error {
	q := &reader{
		config: c, a: a, warn: warn,
		formats: []models.Format{models.FormatOf(a.Compute)}, rows: make([][modules.NumParts]uint8, len(a.Pattern)+2), perRow: 1,
	}
	if c.Layers > 0 && len(a.Pattern) == 2*c.Layers {
		q.perRow = 2
	}
	for _, g := range a.Groups {
		q.mlpOnly = q.mlpOnly || g.FFN.Kind == models.FFNMoE && g.FFN.Intermediate > 0
	}
	q.readAll()
	if q.problem != nil {
		return q.problem
	}
	q.resolve()
	if n := len(q.unknown); n > 0 {
		sort.Strings(q.unknown)
		q.warn("quantization_config", fmt.Sprintf("%d module names are not understood and were skipped, such as %s",
			n, strings.Join(q.unknown[:min(n, 3)], ", ")))
	}
	return nil
}

// reader works out the stored format of every tensor kind of every layer.
type reader struct {
	config Config
	a      *models.Architecture
	warn   func(key, text string)
	// problem is the first thing found that makes the config unusable.
	problem error
	// formats holds the formats in use; 0 is the compute type.
	formats []models.Format
	// rows[i] is layer i, then comes a row for the drafter and one for what is
	// outside the layers.
	rows    [][modules.NumParts]uint8
	names   modules.Reader
	perRow  int  // rows per layer number of the checkpoint
	mlpOnly bool // "mlp" names the dense branch beside the experts
	unknown []string
}

func (q *reader) fail(format string, args ...any) {
	if q.problem == nil {
		q.problem = fmt.Errorf(format, args...)
	}
}

func (q *reader) number(key string, v any) int {
	n, err := hfjson.Count(key, v, q.warn)
	if err != nil {
		q.fail("%w", err)
	}
	return n
}

// readAll reads the places that speak of formats, the later ones over the
// earlier ones.
func (q *reader) readAll() {
	block, ok := q.config.block()
	if file := q.config.File; file != nil {
		sub, found := file.Object("quantization")
		if !found {
			sub = file
		}
		q.cacheFormat(sub)
		if !ok {
			block, ok = sub, true
		}
	}
	if ok {
		q.cacheFormat(block)
		q.read(block)
	}
	q.expertDType()
}

// read dispatches on the tool that wrote the block.
func (q *reader) read(qc hfjson.Object) {
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
			q.fail("quantization_config states no quant_method")
		}
	default:
		f, err := models.ParseFormat(method)
		if err != nil {
			q.fail("quantization_config: unknown quant_method %q; known: fp8, fbgemm_fp8, modelopt, compressed-tensors, quark, mxfp4, gptq, awq, auto-round, bitsandbytes", method)
			return
		}
		q.set(modules.Linear, modules.Pattern{Layer: modules.AllLayers}, q.use(f))
		q.ignore(qc)
	}
}

// use returns the index of a format, adding it if new.
func (q *reader) use(f models.Format) uint8 {
	for i, have := range q.formats {
		if have == f {
			return uint8(i)
		}
	}
	if len(q.formats) == 255 {
		q.fail("quantization_config: more than 255 formats")
		return 0
	}
	q.formats = append(q.formats, f)
	return uint8(len(q.formats) - 1)
}

// all stores parts of every layer in a named format.
func (q *reader) all(parts modules.Set, name string) {
	f, err := models.ParseFormat(name)
	if err != nil {
		q.fail("quantization_config: %w", err)
		return
	}
	q.set(parts, modules.Pattern{Layer: modules.AllLayers}, q.use(f))
}

func (q *reader) draftRow() int { return len(q.rows) - 2 }

func (q *reader) outside() int { return len(q.rows) - 1 }

// set stores the format of parts in the layers a pattern speaks of.
func (q *reader) set(parts modules.Set, at modules.Pattern, f uint8) {
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

func (q *reader) setRow(i int, parts modules.Set, f uint8) {
	row := &q.rows[i]
	for p := range modules.NumParts {
		if parts.Has(p) {
			row[p] = f
		}
	}
}

// setNamed stores the format of what a module name or pattern means.
func (q *reader) setNamed(name string, f uint8) {
	if expr, ok := strings.CutPrefix(name, "re:"); ok {
		q.setRegexp(expr, f)
		return
	}
	p := q.names.Read(name)
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

func (q *reader) setRegexp(expr string, f uint8) {
	re, err := modules.ReadRegexp(expr)
	if err != nil {
		q.warn("quantization_config", "skipped "+err.Error())
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

func (q *reader) ignore(qc hfjson.Object) {
	l, ok := qc.List(ignoreKeys...)
	if !ok {
		return
	}
	for _, v := range l {
		s, ok := v.(string)
		if !ok {
			q.fail("quantization_config: ignored module %s is not a string", hfjson.Show(v))
			return
		}
		q.setNamed(s, 0)
	}
}

// expertDType reads DeepSeek-V4's second weight type. Its fp4 has one 8-bit
// power-of-two scale per 32 elements and multiplies fp8 activations.
func (q *reader) expertDType() {
	s, ok := q.config.Text.Text("expert_dtype")
	if !ok {
		return
	}
	f, err := models.ParseFormat(s)
	if err != nil {
		q.fail("expert_dtype: %w", err)
		return
	}
	if f.Element == models.FP4 {
		f = mustFormat("mxfp4")
		f.Activation = models.FP8
	} else if f.Element == models.FP8 {
		return // as the rest of the checkpoint
	}
	use := q.use(f)
	for i := range q.rows {
		for _, p := range [...]modules.Part{modules.ExpertUp, modules.ExpertDown} {
			// A format that a tool listed for the experts wins.
			if e := q.formats[q.rows[i][p]].Element; e == models.FP8 || e == q.a.Compute {
				q.rows[i][p] = use
			}
		}
	}
}

// cacheFormat reads what the checkpoint asks of the key/value cache.
func (q *reader) cacheFormat(qc hfjson.Object) {
	v, key, ok := qc.Find("kv_cache_quant_algo", "kv_cache_scheme", "kv_cache_dtype")
	if !ok {
		return
	}
	switch v := v.(type) {
	case string:
		if s := strings.ToLower(v); s != "none" && s != "auto" && s != "" {
			f, err := models.ParseFormat(s)
			if err != nil {
				q.fail("%s: %w", key, err)
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
		q.fail("%s is %s", key, hfjson.Show(v))
	}
}

// resolve turns the table into one format per tensor class.
func (q *reader) resolve() {
	var share [models.NumTensorClasses][]float64
	for c := range share {
		share[c] = make([]float64, len(q.formats))
	}
	perGroup := make([][]models.Tensor, len(q.a.Groups))
	for i, g := range q.a.Groups {
		perGroup[i] = q.a.Tensors(g)
	}
	for i, g := range q.a.Pattern {
		for _, p := range perGroup[g] {
			share[p.Class][q.rows[i][p.Part]] += p.Params
		}
	}
	if q.a.Draft.Layers > 0 {
		for _, p := range q.a.Tensors(q.a.Draft.Layer) {
			share[models.ClassDraft][q.rows[q.draftRow()][p.Part]] += p.Params
		}
	}
	out := q.rows[q.outside()]
	share[models.ClassEmbedding][out[modules.Embedding]] += 1
	share[models.ClassHead][out[modules.Head]] += 1
	share[models.ClassVision][out[modules.Vision]] += 1
	for c := range share {
		q.a.Formats[c] = q.mean(models.TensorClass(c), share[c])
	}
}

// pure is the share above which a class counts as stored in one format.
const pure = 0.995

func (q *reader) mean(c models.TensorClass, share []float64) models.Format {
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
		q.warn("quantization_config", fmt.Sprintf("%v weights are stored in several formats: %.0f %% %v, %.2f bits per weight on average",
			c, 100*share[best]/total, f.Name, f.MixedBits))
	}
	return f
}
