package hf

import (
	"fmt"
	"strings"

	"infera/models"
)

// The keys of each dimension, the most common spelling first.
var (
	hiddenKeys  = []string{"hidden_size", "n_embd", "d_model", "dim", "model_dim"}
	layerKeys   = []string{"num_hidden_layers", "n_layer", "n_layers", "num_layers"}
	headKeys    = []string{"num_attention_heads", "n_head", "n_heads", "num_heads"}
	kvHeadKeys  = []string{"num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "kv_n_heads", "multi_query_group_num", "num_attention_groups", "num_query_groups"}
	headDimKeys = []string{"head_dim", "kv_channels", "attention_head_dim", "d_head"}
	vocabKeys   = []string{"vocab_size", "n_vocab", "padded_vocab_size"}
	windowKeys  = []string{"sliding_window", "sliding_window_size", "attention_window_size", "window_size"}
	draftKeys   = []string{"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "mtp_num_layers", "num_mtp_layers", "n_mtp_layers"}
	contextKeys = []string{"max_position_embeddings", "n_positions", "seq_length", "max_seq_len", "max_sequence_length", "model_max_length"}
)

// architecture builds everything but the formats.
func (c *config) architecture() *models.Architecture {
	a := &models.Architecture{
		Name:   c.name(),
		Family: c.modelType(),
		Source: c.path,
		Hidden: c.need(hiddenKeys...),
		Vocab:  c.need(vocabKeys...),
	}
	a.PaddedVocab = c.dim("padded_vocab_size")
	if a.PaddedVocab <= a.Vocab {
		a.PaddedVocab = 0
	}
	a.MaxContext = c.dim(contextKeys...)
	a.Tied = c.tied()
	a.Compute = c.compute()
	a.ResidualStreams = c.dim("hc_mult")
	if a.PerLayerEmbedding = c.dim("hidden_size_per_layer_input"); a.PerLayerEmbedding > 0 {
		if a.PerLayerVocab = c.dim("vocab_size_per_layer_input"); a.PerLayerVocab == 0 {
			a.PerLayerVocab = a.Vocab
		}
	}
	a.Partial = c.class.Suspect != "" || strings.Contains(c.path, ".partial") || strings.Contains(c.path, ".sparse")
	if len(c.missing) > 0 || c.problem != nil { // report what else is missing at once
		c.need(headKeys...)
		if len(c.layerLists()) == 0 {
			c.need(layerKeys...)
		}
		return a
	}
	plan := c.plan()
	if c.err() != nil || len(plan) == 0 {
		return a
	}
	c.fill(a, plan)
	c.vision(a)
	return a
}

// fill turns the plan into layer groups.
func (c *config) fill(a *models.Architecture, plan []layerPlan) {
	index := map[models.LayerGroup]int{}
	layers := make([]models.LayerGroup, 0, len(plan))
	for i, p := range plan {
		g := c.layer(i, p)
		if c.problem != nil || len(c.missing) > 0 {
			return
		}
		layers = append(layers, g)
		n, ok := index[g]
		if !ok {
			n = len(a.Groups)
			if n == 255 {
				c.fail("more than 255 kinds of layers")
				return
			}
			index[g] = n
			a.Groups = append(a.Groups, g)
		}
		a.Groups[n].Count++
		a.Pattern = append(a.Pattern, uint8(n))
	}
	c.draft(a, plan, layers)
}

// layer builds one layer.
func (c *config) layer(i int, p layerPlan) models.LayerGroup {
	g := models.LayerGroup{Norms: c.class.Norms}
	if g.Norms == 0 {
		g.Norms = 2
	}
	switch p.mixer {
	case mixNone:
		g.Attention = models.Attention{Linear: p.linearMixer}
		g.Norms = 1
	case mixRecurrent:
		g.Attention = models.Attention{Kind: models.AttentionRecurrent, Recurrent: c.recurrent(p.recurrent)}
	default:
		g.Attention = c.attention(i, p)
	}
	switch p.ffn {
	case ffnAbsent:
		g.FFN = models.FFN{Linear: p.linearFFN}
		g.Norms = 1
		if p.mixer == mixNone && !p.linearMixer && !p.linearFFN {
			g.Norms = 0
		}
	case ffnDense:
		g.FFN = c.dense(i, p)
	case ffnMoE:
		g.FFN = c.moe(i, p)
	}
	return g
}

func (c *config) tied() bool {
	if v, ok := c.text.Flag("tie_word_embeddings"); ok {
		return v
	}
	if v, ok := c.root.Flag("tie_word_embeddings"); ok {
		return v
	}
	return c.class.Tied
}

func (c *config) compute() models.DType {
	for _, o := range [...]map[string]any{c.text, c.root} {
		for _, key := range [...]string{"dtype", "torch_dtype", "params_dtype"} {
			s, ok := o[key].(string)
			if !ok {
				continue
			}
			d, ok := models.DTypeOf(strings.TrimPrefix(strings.ToLower(s), "torch."))
			if ok && d.Bits() >= 16 {
				return d
			}
			c.fail("%s is %q, want bfloat16, float16 or float32", key, s)
			return models.BF16
		}
	}
	if c.stored().Method() == "" {
		c.warn("dtype", "not stated; taken as bfloat16")
	}
	return models.BF16
}

// attention builds the softmax attention of layer i.
func (c *config) attention(i int, p layerPlan) models.Attention {
	var t models.Attention
	if _, _, ok := c.find("kv_lora_rank"); ok && p.mixer == mixFull {
		t = c.latentAttention()
	} else {
		t = c.headedAttention(p)
	}
	switch p.mixer {
	case mixSliding:
		t.Window = c.need(append([]string{"sliding_window"}, windowKeys[1:]...)...)
	case mixChunked:
		t.Window = c.need("attention_chunk_size")
	case mixCross:
		t.Kind = models.AttentionCross
	}
	if n := c.dim(contextKeys...); n > 0 && t.Window >= n {
		t.Window = 0
	}
	t.Bias = t.Bias || c.class.QKVBias
	if v, ok := c.stated("attention_bias", "qkv_bias", "add_qkv_bias", "use_qkv_bias", "use_bias"); ok {
		t.Bias = v || c.class.QKVBias
	}
	t.OutputBias = c.class.OutputBias || c.flag("attention_out_bias")
	t.Sinks = c.class.Sinks
	t.QKNorm = c.class.QKNorm || c.flag("use_qk_norm", "qk_layernorm", "qk_norm")
	c.sparse(i, &t)
	c.shareKV(i, &t)
	return t
}

// latentAttention builds multi-head latent attention. The number of key/value
// heads that such configs state equals the query heads and means nothing.
func (c *config) latentAttention() models.Attention {
	t := models.Attention{Kind: models.AttentionMLA, Heads: c.need(headKeys...)}
	t.MLA = models.MLA{
		QLoRA:  c.dim("q_lora_rank"),
		KVLoRA: c.need("kv_lora_rank"),
		Rope:   c.need("qk_rope_head_dim"),
		NoPE:   c.dim("qk_nope_head_dim"),
	}
	if t.MLA.NoPE == 0 {
		if t.MLA.NoPE = c.dim("qk_head_dim") - t.MLA.Rope; t.MLA.NoPE <= 0 {
			c.miss("qk_nope_head_dim")
		}
	}
	t.KVHeads = t.Heads
	t.KDim = t.MLA.NoPE + t.MLA.Rope
	t.VDim = c.need("v_head_dim")
	t.OutputGate = c.class.OutputGate || c.flag("mla_use_output_gate", "attn_output_gate", "attention_output_gate")
	return t
}

// headedAttention builds attention with keys and values per head. Sliding and
// full layers may differ in heads and widths (Gemma-4, MiMo-V2, Step-3.5).
func (c *config) headedAttention(p layerPlan) models.Attention {
	t := models.Attention{Kind: models.AttentionGQA}
	var extra []string // keys that win in this kind of layer
	switch p.mixer {
	case mixSliding:
		extra = []string{"swa_"}
	case mixFull:
		extra = []string{"global_", "num_global_"}
	}
	special := func(keys ...string) int {
		for _, k := range keys {
			for _, x := range extra {
				if strings.HasPrefix(k, x) {
					if v, _, ok := c.find(k); ok {
						return c.number(k, v)
					}
				}
			}
		}
		return 0
	}
	other, _ := c.text.Object("attention_other_setting")
	inOther := func(keys ...string) int {
		if p.mixer != mixSliding || other == nil {
			return 0
		}
		if v, k, ok := other.Find(keys...); ok {
			return c.number(k, v)
		}
		return 0
	}
	t.Heads = firstPositive(special("swa_num_attention_heads"), inOther(headKeys...))
	if t.Heads == 0 {
		t.Heads = c.need(headKeys...)
	}
	t.KVHeads = firstPositive(p.kvHeads, special("swa_num_key_value_heads", "num_global_key_value_heads"), inOther(kvHeadKeys...), c.kvHeads(t.Heads))
	t.KDim = firstPositive(special("swa_head_dim", "global_head_dim"), inOther(headDimKeys...), c.headDim())
	t.VDim = firstPositive(special("swa_v_head_dim"), c.dim("v_head_dim"), t.KDim)
	if _, _, ok := c.find("kv_lora_rank"); !ok {
		t.MLA.QLoRA = c.dim("q_lora_rank", "share_q_dim")
	}
	if _, _, ok := c.find("o_lora_rank"); ok { // DeepSeek-V4: one key that is also the value, grouped output
		t.MLA.OutputLoRA, t.MLA.OutputGroups = c.need("o_lora_rank"), c.need("o_groups")
		t.MLA.Rope = c.dim("qk_rope_head_dim")
		t.TiedKV = t.KVHeads == 1
	}
	if c.flag("attention_k_eq_v") && p.mixer == mixFull {
		t.TiedKV = true
	}
	t.OutputGate = c.class.OutputGate || c.flag("attn_output_gate", "attention_output_gate", "use_output_gate")
	return t
}

func firstPositive(vs ...int) int {
	for _, v := range vs {
		if v > 0 {
			return v
		}
	}
	return 0
}

func (c *config) kvHeads(heads int) int {
	if mq, ok := c.stated("multi_query"); ok && mq && !c.flag("new_decoder_architecture") {
		return 1
	}
	if n := c.dim(kvHeadKeys...); n > 0 {
		return n
	}
	return heads
}

// headDim is the stated head width, or the even share of the hidden size.
func (c *config) headDim() int {
	if d := c.dim(headDimKeys...); d > 0 {
		return d
	}
	h, n := c.need(hiddenKeys...), c.need(headKeys...)
	if n == 0 || h == 0 {
		return 0
	}
	if h%n != 0 {
		c.fail("no head_dim, and hidden_size %d does not divide into %d heads", h, n)
		return 0
	}
	return h / n
}

// shareKV marks layers that reuse the keys and values of an earlier one.
func (c *config) shareKV(i int, t *models.Attention) {
	if n := c.dim("num_kv_shared_layers"); n > 0 {
		t.KVShared = i >= c.dim(layerKeys...)-n
	}
	if c.flag("use_cla") {
		if f := c.dim("cla_share_factor"); f > 1 {
			t.KVShared = i%f != 0
		}
	}
}

// sparse reads the selectors of sparse attention for layer i.
func (c *config) sparse(i int, t *models.Attention) {
	if ratios, ok := c.ints("compress_ratios"); ok && len(ratios) > i {
		c.compressed(ratios[i], ratios, t)
		return
	}
	if topk := c.dim("index_topk"); topk > 0 && t.Kind == models.AttentionMLA {
		t.Sparse = models.Sparse{TopK: topk, IndexHeads: c.need("index_n_heads"), IndexDim: c.need("index_head_dim"), Indexer: c.indexerAt(i)}
		return
	}
	s, ok := c.text.Object("sparse_attention_config")
	if !ok {
		return
	}
	if on, ok := s.Flag("use_sparse_attention"); ok && !on {
		return
	}
	if freq, ok := s.List("sparse_attention_freq"); ok && (i >= len(freq) || fmt.Sprint(freq[i]) == "0") {
		return
	}
	get := func(key string) int {
		v, _, ok := s.Find(key)
		if !ok {
			c.miss("sparse_attention_config." + key)
			return 0
		}
		return c.number(key, v)
	}
	block := get("sparse_block_size")
	blocks := get("sparse_topk_blocks")
	if block > 1<<20 || blocks > 1<<20 {
		c.fail("sparse_attention_config: %d blocks of %d tokens", blocks, block)
		return
	}
	t.Sparse = models.Sparse{
		TopK: blocks * block, BlockTokens: block,
		IndexHeads: get("sparse_num_index_heads"), IndexDim: get("sparse_index_dim"), Indexer: true,
	}
}

// compressed reads DeepSeek-V4's compress_ratios: every layer reads a window of
// recent tokens; ratio 0 reads nothing else, the smallest ratio selects
// compressed entries by an indexer, larger ratios read them all.
func (c *config) compressed(ratio int, all []int, t *models.Attention) {
	t.Window = c.need(windowKeys...)
	t.Sinks = true
	if ratio <= 1 {
		return
	}
	t.Sparse.Compress = ratio
	for _, r := range all {
		if r > 1 && r < ratio {
			return
		}
	}
	if topk := c.dim("index_topk"); topk > 0 {
		t.Sparse.TopK = topk
		t.Sparse.IndexHeads, t.Sparse.IndexDim = c.need("index_n_heads"), c.need("index_head_dim")
		t.Sparse.Indexer = true
	}
}

// indexerAt reports whether layer i selects tokens itself.
func (c *config) indexerAt(i int) bool {
	if types, ok := c.texts("indexer_types"); ok {
		return i >= len(types) || types[i] != "shared"
	}
	if freq := c.dim("index_topk_freq"); freq > 1 {
		offset := c.dim("index_skip_topk_offset")
		return i < offset || (i-offset+1)%freq == 0
	}
	return true
}
