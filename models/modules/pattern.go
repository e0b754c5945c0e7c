package modules

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// AllLayers is the layer of a pattern that names none.
const AllLayers = -1

// Pattern is what a module name or pattern stands for.
type Pattern struct {
	Parts Set
	// Layer is the layer index the pattern names, or AllLayers.
	Layer int
	// Prefix is set when the index is the beginning of a number ("layers.1*"
	// means 1, 10, 11, ...).
	Prefix bool
	// Known is false when the name means nothing to this package.
	Known bool
}

// Matches reports whether the pattern speaks of layer i.
func (p Pattern) Matches(i int) bool {
	switch {
	case p.Layer == AllLayers || p.Layer == i:
		return true
	case p.Prefix:
		return strings.HasPrefix(strconv.Itoa(i), strconv.Itoa(p.Layer))
	}
	return false
}

// Reader parses names and patterns; it remembers the shapes it has seen, so
// that thousands of names that differ in a number cost little each. The zero
// value is ready. It is not safe for concurrent use.
type Reader struct {
	seen map[string]Pattern
	buf  []byte
}

// Read parses one module name or glob pattern (not a regular expression).
func (r *Reader) Read(name string) Pattern {
	layer, prefix, rest := splitLayer(name)
	r.buf = foldDigits(r.buf[:0], rest)
	p, ok := r.seen[string(r.buf)]
	if !ok {
		key := string(r.buf)
		p.Parts, p.Known = classify(key, layer != noLayer)
		if r.seen == nil {
			r.seen = map[string]Pattern{}
		}
		r.seen[key] = p
	}
	p.Layer, p.Prefix = layer, prefix
	if layer == noLayer {
		p.Layer = AllLayers
	}
	if layer != noLayer && rest == "" {
		p.Parts, p.Known = Layer, true
	}
	return p
}

const noLayer = -2

// splitLayer finds "layers.N" (or blocks.N, h.N) in a name; rest is what
// follows it. A wildcard for N gives AllLayers.
func splitLayer(name string) (layer int, prefix bool, rest string) {
	for _, word := range [...]string{"layers.", "blocks.", "h."} {
		for from := 0; ; {
			i := strings.Index(name[from:], word)
			if i < 0 {
				break
			}
			i += from
			from = i + len(word)
			if i > 0 && name[i-1] != '.' && name[i-1] != '*' {
				continue
			}
			if isVision(name[:i]) || strings.Contains(name[:i], "mtp") {
				return noLayer, false, name
			}
			tail := name[from:]
			end := 0
			for end < len(tail) && tail[end] >= '0' && tail[end] <= '9' {
				end++
			}
			if end == 0 && strings.HasPrefix(tail, "*") {
				return AllLayers, false, strings.TrimLeft(tail[1:], ".")
			}
			if end == 0 || end > 6 {
				continue
			}
			n, _ := strconv.Atoi(tail[:end])
			rest = tail[end:]
			if rest == "*" {
				return n, true, ""
			}
			if rest == ".*" || rest == "." || rest == "" {
				return n, false, ""
			}
			if rest[0] != '.' {
				continue
			}
			return n, false, rest[1:]
		}
	}
	return noLayer, false, name
}

// foldDigits writes s with every dotted number replaced by "0", lower-cased.
func foldDigits(buf []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= '0' && c <= '9' && (i == 0 || s[i-1] == '.') {
			j := i
			for j < len(s) && s[j] >= '0' && s[j] <= '9' {
				j++
			}
			if j == len(s) || s[j] == '.' || s[j] == '*' {
				buf = append(buf, '0')
				i = j - 1
				continue
			}
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		buf = append(buf, c)
	}
	return buf
}

func isVision(s string) bool {
	for _, w := range [...]string{"vision", "visual", "audio", "projector", "image", "patch_", "video", "resampler", "speech"} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// Regexp is a compiled regular-expression pattern (the part after "re:").
type Regexp struct {
	re     *regexp.Regexp
	digits bool
}

// ReadRegexp compiles a pattern that a quantisation tool matches from the
// beginning of the module name.
func ReadRegexp(expr string) (Regexp, error) {
	if len(expr) > 4096 {
		return Regexp{}, fmt.Errorf("pattern of %d characters", len(expr))
	}
	re, err := regexp.Compile("^(?:" + expr + ")")
	if err != nil {
		return Regexp{}, fmt.Errorf("pattern %q: %w", expr, err)
	}
	return Regexp{re: re, digits: strings.ContainsAny(expr, "0123456789") || strings.Contains(expr, `\d`)}, nil
}

// PerLayer reports whether the expression may tell layers apart.
func (r Regexp) PerLayer() bool { return r.digits }

// Parts returns the parts of layer i whose usual module names match.
func (r Regexp) Parts(i int) Set {
	var s Set
	for _, n := range usualNames {
		if s.Has(n.part) && n.alt {
			continue
		}
		for _, prefix := range namePrefixes {
			name := n.name
			if n.layer {
				name = prefix + "layers." + strconv.Itoa(i) + "." + n.name
			} else if n.part == Head || n.part == Embedding {
				name = prefix + n.name
			}
			if r.re.MatchString(name) || r.re.MatchString(strings.TrimPrefix(name, "model.")) {
				s |= 1 << n.part
				break
			}
		}
	}
	return s
}

var namePrefixes = [...]string{"model.", "language_model.model.", "model.language_model."}

// usualNames are sample module names of each part, in the common conventions.
var usualNames = []struct {
	part  Part
	layer bool
	alt   bool
	name  string
}{
	{QueryA, true, false, "self_attn.q_a_proj"},
	{Query, true, false, "self_attn.q_proj"}, {Query, true, true, "self_attn.q_b_proj"},
	{Key, true, false, "self_attn.k_proj"}, {Value, true, false, "self_attn.v_proj"},
	{LatentA, true, false, "self_attn.kv_a_proj_with_mqa"}, {LatentB, true, false, "self_attn.kv_b_proj"},
	{Output, true, false, "self_attn.o_proj"}, {OutputGate, true, false, "self_attn.g_proj"},
	{Compressor, true, false, "self_attn.compressor.wkv"},
	{IndexQuery, true, false, "self_attn.indexer.wq_b"}, {IndexKey, true, false, "self_attn.indexer.wk"},
	{IndexGate, true, false, "self_attn.indexer.weights_proj"},
	{RecurrentIn, true, false, "linear_attn.in_proj_qkvz"}, {RecurrentIn, true, true, "mixer.in_proj"},
	{RecurrentIn, true, true, "mamba.in_proj"}, {RecurrentIn, true, true, "self_attn.q_proj"},
	{RecurrentGate, true, false, "linear_attn.in_proj_ba"}, {RecurrentGate, true, true, "self_attn.f_a_proj"},
	{RecurrentOut, true, false, "linear_attn.out_proj"}, {RecurrentOut, true, true, "mixer.out_proj"},
	{RecurrentOut, true, true, "mamba.out_proj"}, {RecurrentOut, true, true, "self_attn.o_proj"},
	{RecurrentConv, true, false, "linear_attn.conv1d"},
	{DenseUp, true, false, "mlp.gate_proj"}, {DenseUp, true, true, "feed_forward.gate_proj"},
	{DenseDown, true, false, "mlp.down_proj"}, {DenseDown, true, true, "feed_forward.down_proj"},
	{ExpertUp, true, false, "mlp.experts.0.gate_proj"}, {ExpertUp, true, true, "block_sparse_moe.experts.0.w1"},
	{ExpertUp, true, true, "feed_forward.experts.gate_up_proj"}, {ExpertUp, true, true, "ffn.experts.0.w1"},
	{ExpertDown, true, false, "mlp.experts.0.down_proj"}, {ExpertDown, true, true, "block_sparse_moe.experts.0.w2"},
	{ExpertDown, true, true, "feed_forward.experts.down_proj"}, {ExpertDown, true, true, "ffn.experts.0.w2"},
	{SharedUp, true, false, "mlp.shared_experts.gate_proj"}, {SharedUp, true, true, "mlp.shared_expert.gate_proj"},
	{SharedUp, true, true, "feed_forward.shared_expert.gate_proj"},
	{SharedDown, true, false, "mlp.shared_experts.down_proj"}, {SharedDown, true, true, "mlp.shared_expert.down_proj"},
	{SharedDown, true, true, "feed_forward.shared_expert.down_proj"},
	{SharedGate, true, false, "mlp.shared_expert_gate"},
	{Router, true, false, "mlp.gate"}, {Router, true, true, "block_sparse_moe.gate"}, {Router, true, true, "feed_forward.router"},
	{Embedding, false, false, "embed_tokens"}, {Head, false, false, "lm_head"},
	{Draft, false, false, "mtp.layers.0"},
	{Vision, false, false, "vision_tower.encoder.layers.0"}, {Vision, false, true, "vision_model.model.layers.0"},
	{Vision, false, true, "model.visual.blocks.0"}, {Vision, false, true, "visual.blocks.0"},
}
