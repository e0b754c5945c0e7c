package hf

import (
	"infera/models"
	"infera/models/hf/hfjson"
)

// draft reads the built-in drafter. Its layer is like the last attention and
// the last feed-forward part of the main stack, unless the config says more.
func (c *config) draft(a *models.Architecture, plan []layerPlan, layers []models.LayerGroup) {
	n := c.dim(draftKeys...)
	if use, ok := c.stated("use_mtp"); ok && !use {
		n = 0
	}
	if n == 0 {
		return
	}
	d := models.LayerGroup{Count: n, Norms: 2}
	for i := range layers {
		if layers[i].Attention.Kind != models.AttentionRecurrent && layers[i].Attention.Kind != models.AttentionNone {
			if plan[i].mixer == mixFull || d.Attention.Kind == models.AttentionNone {
				d.Attention = layers[i].Attention
			}
		}
		if layers[i].FFN.Kind != models.FFNNone {
			d.FFN = layers[i].FFN
		}
	}
	if d.Attention.Kind == models.AttentionNone || d.FFN.Kind == models.FFNNone {
		c.warn(draftKeys[0], "a drafter is stated but no layer to take its shape from; ignored")
		return
	}
	if ratios, ok := c.ints("compress_ratios"); ok && len(ratios) > len(layers) {
		d.Attention.Sparse = models.Sparse{}
		c.compressed(ratios[len(layers)], ratios, &d.Attention)
	}
	if c.has("hybrid_layer_pattern") { // MiMo-V2: sliding attention and a dense feed-forward part
		d.Attention = c.attention(len(layers), layerPlan{mixer: mixSliding})
		d.FFN = c.dense(len(layers), layerPlan{})
	}
	if s := &d.Attention.Sparse; s.TopK > 0 && s.IndexDim > 0 && s.Compress <= 1 {
		s.Indexer = true // a drafter selects by itself even where main layers share a selection
	}
	dedicated, _ := c.stated("mtp_use_dedicated_embeddings")
	a.Draft = models.Draft{Layers: n, Layer: d, SharesEmbedding: !dedicated}
}

// vision estimates the parameters of a vision or audio tower from its config:
// a transformer encoder, its patch embedding and a projector.
func (c *config) vision(a *models.Architecture) {
	for _, key := range [...]string{"vision_config", "visual_config", "audio_config"} {
		v, ok := c.root.Object(key)
		if !ok || len(v) == 0 {
			continue
		}
		n := visionParams(v, a.Hidden)
		if n <= 0 {
			c.warn(key, "states no size; the tower is not counted")
			continue
		}
		a.VisionParams += int64(n)
		c.warn(key, "the size of the tower is an estimate and is not part of the total")
	}
}

func visionParams(v hfjson.Object, hidden int) float64 {
	get := func(keys ...string) float64 {
		x, _, ok := v.Find(keys...)
		if !ok {
			return 0
		}
		n, err := hfjson.Float(x)
		if err != nil || n < 0 || n > 1<<20 {
			return 0
		}
		return n
	}
	layers := get("num_hidden_layers", "depth", "vt_num_hidden_layers", "layers", "num_layers", "encoder_layers", "conf_num_hidden_layers")
	h := get("hidden_size", "embed_dim", "vt_hidden_size", "width", "d_model")
	if layers == 0 || h == 0 || layers > models.MaxLayers {
		return 0
	}
	ffn := get("intermediate_size", "vt_intermediate_size", "encoder_ffn_dim")
	if ffn == 0 {
		if ratio := get("mlp_ratio"); ratio > 0 {
			ffn = ratio * h
		} else {
			ffn = 4 * h
		}
	}
	qkv := get("qkv_hidden_size")
	if qkv == 0 {
		qkv = h
	}
	mats := 2.0
	if s, _ := v.Text("hidden_act"); s == "silu" {
		mats = 3
	}
	n := layers * (4*h*qkv + mats*h*ffn)
	patch := get("patch_size")
	n += h * 3 * patch * patch * max(1, get("temporal_patch_size"))
	merge := max(1, get("spatial_merge_size"))
	in := h * merge * merge
	out := get("out_hidden_size", "text_hidden_size", "projection_dim")
	if out == 0 {
		out = float64(hidden)
	}
	return n + in*in + in*out
}
