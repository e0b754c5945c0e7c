package hf

import (
	"slices"
	"strconv"
	"strings"

	"infera/models"
	"infera/models/hf/hfjson"
)

// The keys of mixture-of-experts dimensions.
var (
	expertKeys      = []string{"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts", "num_moe_experts", "num_routed_experts"}
	topKKeys        = []string{"num_experts_per_tok", "num_experts_per_token", "top_k_experts", "experts_per_token", "moe_top_k", "moe_topk", "moe_k", "num_selected_experts"}
	expertWidthKeys = []string{"moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size", "expert_intermediate_size"}
	widthKeys       = []string{"intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "hidden_dim", "block_ff_dim", "d_ff"}
	sharedWidthKeys = []string{"moe_shared_expert_intermediate_size", "shared_expert_intermediate_size", "share_expert_dim", "share_expert_dims", "shared_intermediate_size"}
	sharedKeys      = []string{"n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"}
)

func (c *config) experts() int {
	if on, ok := c.stated("enable_moe_block"); ok && !on {
		return 0
	}
	return c.dim(expertKeys...)
}

func (c *config) gated() bool {
	if c.class.Ungated {
		return false
	}
	for _, k := range [...]string{"mlp_hidden_act", "hidden_act", "hidden_activation", "activation"} {
		if s, ok := c.text.Text(k); ok {
			return s != "relu2" && s != "relu_squared"
		}
	}
	return true
}

// dense builds the feed-forward part of a dense layer.
func (c *config) dense(i int, p layerPlan) models.FFN {
	f := models.FFN{Kind: models.FFNDense, Gated: c.gated(), Bias: c.class.FFNBias || c.flag("mlp_bias", "use_mlp_bias")}
	if f.Intermediate = p.ffnWidth; f.Intermediate == 0 {
		f.Intermediate = c.denseWidth()
	}
	if c.flag("use_double_wide_mlp") {
		if n := c.dim("num_kv_shared_layers"); n > 0 && i >= c.dim(layerKeys...)-n {
			f.Intermediate *= 2
		}
	}
	return f
}

// denseWidth is the width of dense layers.
func (c *config) denseWidth() int {
	keys := append([]string{"dense_intermediate_size", "intermediate_size_mlp"}, widthKeys...)
	if c.experts() == 0 && c.dim("shared_intermediate_size") > 0 { // Granite 4 without experts
		keys = append([]string{"shared_intermediate_size"}, keys...)
	}
	w := c.dim(keys...)
	if w == 0 && c.class.FourTimes {
		return 4 * c.need(hiddenKeys...)
	}
	if w == 0 {
		c.miss(widthKeys...)
	}
	if c.flag("block_auto_adjust_ff_dim") { // LFM2
		w = 2 * w / 3
		if v, _, ok := c.find("block_ffn_dim_multiplier"); ok {
			if m, err := hfjson.Float(v); err == nil && m > 0 && m < 100 {
				w = int(m * float64(w))
			}
		}
		if m := c.dim("block_multiple_of"); m > 0 && m < models.MaxWidth {
			w = (w + m - 1) / m * m
		}
	}
	return w
}

// besideExperts is the width of a dense branch that runs next to the experts
// (Gemma-4, Grok-2).
func (c *config) besideExperts() int {
	if c.flag("enable_moe_block", "residual_moe", "parallel_attn_mlp_res") {
		return c.denseWidth()
	}
	return 0
}

// moe builds a mixture of experts.
func (c *config) moe(i int, p layerPlan) models.FFN {
	f := models.FFN{Kind: models.FFNMoE, Gated: c.gated(), Intermediate: p.beside}
	f.Experts = c.need(expertKeys...)
	f.TopK = c.need(topKKeys...)
	if f.ExpertIntermediate = c.dim(expertWidthKeys...); f.ExpertIntermediate == 0 {
		f.ExpertIntermediate = c.need(widthKeys...)
	}
	f.LatentDim = c.dim("moe_latent_size", "routed_expert_hidden_size")
	f.SharedIntermediate = c.sharedWidth(f.ExpertIntermediate)
	f.SharedGate = c.class.SharedGate && f.SharedIntermediate > 0
	f.Bias = c.class.FFNBias
	if zero := c.dim("zero_expert_num"); zero > 0 && zero < models.MaxExperts && f.TopK < models.MaxExperts && f.Experts < models.MaxExperts {
		// A share of the visits goes to experts that do nothing.
		all := f.Experts + zero
		f.TopK = max(1, (f.TopK*f.Experts+all/2)/all)
		c.warn("zero_expert_num", "top-k counts the mean of visits to real experts")
	}
	return f
}

// sharedWidth is the summed width of the shared experts. A stated width is
// already the sum.
func (c *config) sharedWidth(expert int) int {
	if _, _, ok := c.find(sharedWidthKeys...); ok {
		return c.dim(sharedWidthKeys...)
	}
	if c.class.Shared {
		return expert
	}
	if n := c.dim(sharedKeys...); n > 0 && n < models.MaxExperts {
		return n * expert
	}
	return 0
}

// moeLayers returns which layers have experts.
func (c *config) moeLayers(n int) func(i int) bool {
	never := func(int) bool { return false }
	if c.experts() <= 1 {
		return never
	}
	if types, ok := c.texts("mlp_layer_types"); ok {
		return func(i int) bool { return i < len(types) && types[i] != "dense" }
	}
	for _, key := range [...]string{"moe_layer_freq", "moe_layers"} {
		if l, ok := c.ints(key); ok && len(l) >= n {
			return func(i int) bool { return l[i] != 0 }
		}
	}
	if s, ok := c.text.Text("moe_layers_enum"); ok { // Step-3: "4,5,6"
		return c.enumerated("moe_layers_enum", s)
	}
	if l, ok := c.ints("moe_layers_enum", "moe_layers"); ok {
		return func(i int) bool { return slices.Contains(l, i) }
	}
	if step := c.dim("interleave_moe_layer_step"); step > 0 {
		return func(i int) bool { return (i+1)%step == 0 }
	}
	if p := c.dim("expert_layer_period"); p > 0 { // Jamba
		offset := c.dim("expert_layer_offset")
		return func(i int) bool { return i%p == offset%p }
	}
	return c.moeRange(n)
}

func (c *config) enumerated(key, s string) func(int) bool {
	in := map[int]bool{}
	for f := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil {
			c.fail("%s: %q is not a layer number", key, f)
			break
		}
		in[n] = true
	}
	return func(i int) bool { return in[i] }
}

// moeRange reads the rules that give a first, a last and a step.
func (c *config) moeRange(n int) func(int) bool {
	first := firstPositive(c.dim("first_k_dense_replace"), c.dim("num_dense_layers"), c.dim("moe_layer_start_index"), c.dim("n_dense_layers"))
	last := n - 1
	if v, k, ok := c.find("moe_layer_end_index"); ok {
		if i, err := hfjson.Int(v); err == nil && i >= 0 {
			last = c.number(k, v)
		}
	}
	step, offset := 1, 0
	if s := c.dim("decoder_sparse_step"); s > 1 { // Qwen: every sth, counted from 1
		step, offset = s, s-1
	} else if s := firstPositive(c.scalar("moe_layer_freq"), c.dim("moe_layer_interval", "moe_layer_frequency")); s > 1 {
		step = s
		if _, _, ok := c.find("moe_layer_interval", "moe_layer_frequency"); ok {
			offset = s - 1 // Ernie and Arctic count from 1
		}
	}
	only, _ := c.ints("mlp_only_layers")
	return func(i int) bool {
		return i >= first && i <= last && i%step == offset && !slices.Contains(only, i)
	}
}

// scalar is dim for a key that may also hold a list, which then gives 0.
func (c *config) scalar(key string) int {
	if _, isList := c.text.List(key); isList {
		return 0
	}
	return c.dim(key)
}
