package hf

import (
	"strings"

	"infera/models"
	"infera/models/hf/hfjson"
)

// mixerKind is what a config says about one layer's token mixer.
type mixerKind uint8

const (
	mixNone mixerKind = iota
	mixFull
	mixSliding
	mixChunked
	mixCross
	mixRecurrent
)

// ffnChoice is what a config says about one layer's feed-forward part.
type ffnChoice uint8

const (
	ffnAbsent ffnChoice = iota
	ffnDense
	ffnMoE
)

// layerPlan is one layer as the layer lists of the config describe it.
type layerPlan struct {
	mixer     mixerKind
	recurrent models.RecurrentKind
	ffn       ffnChoice
	// kvHeads, ffnWidth and the linear flags are set by per-layer blocks.
	kvHeads, ffnWidth      int
	linearMixer, linearFFN bool
	// beside is the width of a dense branch next to the experts.
	beside int
	index  int
}

// layerLists are the keys that describe layers one by one.
func (c *config) layerLists() []string {
	var found []string
	for _, k := range []string{"block_configs", "layers_block_type", "hybrid_override_pattern", "layer_types", "hybrid_layer_pattern", "attn_type_list"} {
		if _, _, ok := c.text.Find(k); ok {
			found = append(found, k)
		}
	}
	return found
}

// plan reads the pattern of layers from whichever of its carriers is there.
func (c *config) plan() []layerPlan {
	n := c.dim(layerKeys...)
	if n > models.MaxLayers {
		c.fail("%s is %d, want at most %d", layerKeys[0], n, models.MaxLayers)
		return nil
	}
	if blocks, ok := c.text.List("block_configs"); ok {
		return c.blockPlan(blocks)
	}
	if p := c.subLayerPlan(n); p != nil || c.problem != nil {
		return p
	}
	mixers := c.mixers(n)
	if c.problem != nil {
		return nil
	}
	if len(mixers) == 0 {
		c.miss(layerKeys...)
		return nil
	}
	if l, ok := c.ints("cross_attention_layers"); ok { // Llama-3.2 Vision
		for _, i := range l {
			if i >= 0 && i < len(mixers) {
				mixers[i].mixer = mixCross
			}
		}
	}
	plan := make([]layerPlan, 0, len(mixers))
	isMoE := c.moeLayers(len(mixers))
	for i, m := range mixers {
		m.ffn, m.index = ffnDense, i
		if isMoE(i) {
			m.ffn = ffnMoE
			m.beside = c.besideExperts()
		}
		plan = append(plan, m)
	}
	return c.splitLayers(plan)
}

// splitLayers writes layers with two mixers as two: Falcon-H1 runs attention
// and Mamba side by side, LongCat two attentions with a dense part each around
// one mixture of experts.
func (c *config) splitLayers(plan []layerPlan) []layerPlan {
	_, _, longcat := c.find("zero_expert_num")
	_, _, parallel := c.find("mamba_d_ssm")
	if !longcat && !parallel || len(plan) > models.MaxLayers/2 {
		return plan
	}
	out := make([]layerPlan, 0, 2*len(plan))
	for _, p := range plan {
		if parallel {
			out = append(out, layerPlan{mixer: mixRecurrent, recurrent: models.Mamba2, index: p.index}, p)
			continue
		}
		first, second := p, p
		first.beside = c.denseWidth()
		second.ffn = ffnDense
		out = append(out, first, second)
	}
	c.warn(layerKeys[0], "each layer has two token mixers and counts as two layers")
	return out
}

// mixers returns the token mixer of each layer.
func (c *config) mixers(n int) []layerPlan {
	switch {
	case c.has("linear_attn_config"):
		if p := c.kimiMixers(n); p != nil {
			return p
		}
	case c.has("layers_block_type", "layer_types"):
		names, ok := c.texts("layers_block_type", "layer_types")
		if ok {
			return c.namedMixers(names, n)
		}
	}
	if l, ok := c.ints("hybrid_layer_pattern"); ok { // 1 = sliding (MiMo-V2)
		return c.listed("hybrid_layer_pattern", l, n, func(v int) layerPlan {
			if v == 1 {
				return layerPlan{mixer: mixSliding}
			}
			return layerPlan{mixer: mixFull}
		})
	}
	if l, ok := c.ints("attn_type_list"); ok { // 0 = linear (MiniMax)
		return c.listed("attn_type_list", l, n, func(v int) layerPlan {
			if v == 0 {
				return layerPlan{mixer: mixRecurrent, recurrent: c.linearKind()}
			}
			return layerPlan{mixer: mixFull}
		})
	}
	return c.periodicMixers(n)
}

func (c *config) has(keys ...string) bool {
	_, _, ok := c.text.Find(keys...)
	return ok
}

// listed applies a per-layer list, which may be longer than the model (extra
// entries describe drafters) but not shorter.
func (c *config) listed(key string, l []int, n int, of func(int) layerPlan) []layerPlan {
	if n == 0 {
		n = len(l)
	}
	if len(l) < n {
		c.fail("%s has %d entries for %d layers", key, len(l), n)
		return nil
	}
	out := make([]layerPlan, n)
	for i := range out {
		out[i] = of(l[i])
	}
	return out
}

// namedMixers reads layer_types and layers_block_type.
func (c *config) namedMixers(names []string, n int) []layerPlan {
	kinds := make([]int, len(names))
	var plans []layerPlan
	seen := map[string]int{}
	for i, s := range names {
		k, ok := seen[s]
		if !ok {
			p, known := c.namedMixer(s)
			if !known {
				c.fail("layer_types[%d]: unknown layer type %q; known: full_attention, sliding_attention, chunked_attention, linear_attention, deepseek_sparse_attention, mamba, conv", i, s)
				return nil
			}
			k = len(plans)
			plans = append(plans, p)
			seen[s] = k
		}
		kinds[i] = k
	}
	return c.listed("layer_types", kinds, n, func(k int) layerPlan { return plans[k] })
}

func (c *config) namedMixer(s string) (layerPlan, bool) {
	switch s {
	case "full_attention", "attention", "global", "global_attention", "full", "deepseek_sparse_attention",
		"sparse_attention", "minimax_m3_sparse", "hybrid", "csa", "hca", "compressed_sparse_attention",
		"heavily_compressed_attention", "compressed_attention", "mla":
		if s == "hybrid" && c.has("attn_layer_indices") {
			return layerPlan{}, false
		}
		return layerPlan{mixer: mixFull}, true
	case "sliding_attention", "sliding_window", "local", "local_attention", "sliding", "swa", "sliding_window_attention":
		return layerPlan{mixer: mixSliding}, true
	case "chunked_attention":
		return layerPlan{mixer: mixChunked}, true
	case "linear_attention", "gated_deltanet", "gated_delta_net", "kda", "lightning_attention", "linear":
		return layerPlan{mixer: mixRecurrent, recurrent: c.linearKind()}, true
	case "mamba", "mamba2", "ssm":
		return layerPlan{mixer: mixRecurrent, recurrent: c.mambaKind()}, true
	case "conv", "short_conv":
		return layerPlan{mixer: mixRecurrent, recurrent: models.ShortConv}, true
	}
	return layerPlan{}, false
}

// linearKind is what "linear attention" means in this config.
func (c *config) linearKind() models.RecurrentKind {
	if k, ok := models.RecurrentKindOf(c.class.Recurrent); ok && k != models.RecurrentNone {
		return k
	}
	switch {
	case c.has("linear_num_value_heads", "linear_num_key_heads"):
		return models.GatedDelta
	case c.has("linear_attn_config"):
		return models.KDA
	}
	return models.Lightning
}

func (c *config) mambaKind() models.RecurrentKind {
	if c.has("mamba_num_heads", "mamba_n_heads") {
		return models.Mamba2
	}
	return models.Mamba1
}

// kimiMixers reads Kimi's linear_attn_config, whose layer numbers start at 1.
func (c *config) kimiMixers(n int) []layerPlan {
	l, _ := c.text.Object("linear_attn_config")
	kda, ok := l.List("kda_layers")
	if !ok {
		return nil
	}
	full, _ := l.List("full_attn_layers")
	if n == 0 {
		n = len(kda) + len(full)
	}
	out := make([]layerPlan, n)
	for _, listed := range []struct {
		kind   mixerKind
		layers []any
	}{{mixRecurrent, kda}, {mixFull, full}} {
		kind := listed.kind
		for _, v := range listed.layers {
			i, err := hfjson.Int(v)
			if err != nil || i < 1 || i > n || out[i-1].mixer != mixNone {
				c.fail("linear_attn_config: layer %s is out of range or listed twice", hfjson.Show(v))
				return nil
			}
			out[i-1] = layerPlan{mixer: kind}
			if kind == mixRecurrent {
				out[i-1].recurrent = models.KDA
			}
		}
	}
	for i := range out {
		if out[i].mixer == mixNone {
			c.fail("linear_attn_config: layer %d is in neither list", i+1)
			return nil
		}
	}
	return out
}

// periodicMixers reads the patterns that are stated as a rule.
func (c *config) periodicMixers(n int) []layerPlan {
	out := make([]layerPlan, n)
	full := layerPlan{mixer: mixFull}
	every := func(period, offset int, other layerPlan) []layerPlan {
		for i := range out {
			out[i] = other
			if i%period == offset%period {
				out[i] = full
			}
		}
		return out
	}
	linear := layerPlan{mixer: mixRecurrent, recurrent: c.linearKind()}
	if p := c.dim("full_attention_interval"); p > 0 {
		return every(p, p-1, linear)
	}
	if p := c.dim("layer_group_size"); p > 0 { // Ring-linear: the last layer of each group, and the rest group
		every(p, p-1, linear)
		for i := n / p * p; i < n; i++ {
			out[i] = full
		}
		return out
	}
	mamba := layerPlan{mixer: mixRecurrent, recurrent: c.mambaKind()}
	if p := c.dim("attn_layer_period"); p > 0 { // Jamba
		return every(p, c.dim("attn_layer_offset"), mamba)
	}
	if l, ok := c.ints("attn_layer_indices", "full_attn_idxs"); ok { // Bamba, LFM2
		other := mamba
		if c.has("conv_L_cache") {
			other = layerPlan{mixer: mixRecurrent, recurrent: models.ShortConv}
		}
		for i := range out {
			out[i] = other
		}
		for _, i := range l {
			if i < 0 || i >= n {
				c.fail("attention layer %d of %d", i, n)
				return nil
			}
			out[i] = full
		}
		return out
	}
	return c.windowedMixers(out)
}

// windowedMixers places sliding windows where the config gives their length
// and a rule.
func (c *config) windowedMixers(out []layerPlan) []layerPlan {
	full, sliding := layerPlan{mixer: mixFull}, layerPlan{mixer: mixSliding}
	for i := range out {
		out[i] = full
	}
	if c.has("compress_ratios") {
		return out
	}
	if c.has("attention_chunk_size") {
		return c.chunkedMixers(out)
	}
	if use, ok := c.stated("use_sliding_window", "use_swa"); ok && !use {
		return out
	}
	if c.dim(windowKeys...) == 0 {
		return out
	}
	if s, ok := c.text.Text("sliding_window_pattern"); ok && s != "" { // "LLLG"
		for i := range out {
			if s[i%len(s)] == 'L' {
				out[i] = sliding
			}
		}
		return out
	}
	period := firstPositive(c.dim("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers"), c.class.FullEvery)
	from := 0
	if use, ok := c.stated("use_sliding_window"); ok && use && period == 0 { // Qwen2: the upper layers
		from = c.dim("max_window_layers")
	}
	for i := range out {
		if i >= from && (period == 0 || (i+1)%period != 0) {
			out[i] = sliding
		}
	}
	return out
}

// chunkedMixers places Llama-4's chunked attention: everywhere but in the
// layers without rotary embedding.
func (c *config) chunkedMixers(out []layerPlan) []layerPlan {
	rope, listed := c.ints("no_rope_layers") // 1 = the layer has rotary embedding
	period := firstPositive(c.dim("no_rope_layer_interval"), c.class.FullEvery, 4)
	for i := range out {
		chunked := (i+1)%period != 0
		if listed && len(rope) > 0 {
			chunked = i < len(rope) && rope[i] == 1
		}
		if chunked {
			out[i].mixer = mixChunked
		}
	}
	return out
}

// subLayerPlan reads Nemotron-H patterns, where each entry is a mixer or a
// feed-forward part alone.
func (c *config) subLayerPlan(n int) []layerPlan {
	var codes []byte
	if s, ok := c.text.Text("hybrid_override_pattern"); ok {
		codes = []byte(strings.ReplaceAll(s, "|", ""))
	} else if names, ok := c.texts("layers_block_type"); ok {
		byName := map[string]byte{"mamba": 'M', "attention": '*', "mlp": '-', "moe": 'E'}
		sub := false
		for _, s := range names {
			sub = sub || s == "moe" || s == "mlp"
			codes = append(codes, byName[s])
		}
		if !sub {
			return nil
		}
	}
	if codes == nil {
		return nil
	}
	if len(codes) > models.MaxLayers {
		c.fail("a layer pattern of %d entries", len(codes))
		return nil
	}
	plan := make([]layerPlan, len(codes))
	for i, b := range codes {
		switch b {
		case 'M':
			plan[i] = layerPlan{mixer: mixRecurrent, recurrent: c.mambaKind()}
		case '*':
			plan[i] = layerPlan{mixer: mixFull}
		case '-':
			plan[i] = layerPlan{ffn: ffnDense}
		case 'E':
			plan[i] = layerPlan{ffn: ffnMoE}
		default:
			c.fail("layer pattern entry %d is unknown; known: M (mamba), * (attention), - (mlp), E (moe)", i)
			return nil
		}
		plan[i].index = i
	}
	if n > 0 && n != len(plan) {
		c.fail("the layer pattern has %d entries for %d layers", len(plan), n)
		return nil
	}
	return plan
}
