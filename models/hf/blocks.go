package hf

import (
	"infera/models"
	"infera/models/hf/hfjson"
)

// blockPlan reads the per-layer block_configs of Nemotron-NAS models.
func (c *config) blockPlan(blocks []any) []layerPlan {
	if len(blocks) == 0 || len(blocks) > models.MaxLayers {
		c.fail("block_configs has %d entries", len(blocks))
		return nil
	}
	heads := c.need(headKeys...)
	plan := make([]layerPlan, len(blocks))
	for i, b := range blocks {
		block, ok := b.(map[string]any)
		if !ok {
			c.fail("block_configs[%d]: %s is not an object", i, hfjson.Show(b))
			return nil
		}
		p := &plan[i]
		p.index = i
		c.blockAttention(p, block, heads)
		c.blockFFN(p, block)
		if c.problem != nil {
			return nil
		}
	}
	return plan
}

func (c *config) blockAttention(p *layerPlan, block hfjson.Object, heads int) {
	att, ok := block.Object("attention")
	if !ok {
		c.fail("block_configs[%d]: no attention", p.index)
		return
	}
	if off, _ := att.Flag("no_op"); off {
		return
	}
	if linear, _ := att.Flag("replace_with_linear"); linear {
		p.linearMixer = true
		return
	}
	p.mixer = mixFull
	if v, k, ok := att.Find("n_heads_in_group"); ok {
		per := c.number(k, v)
		if per < 1 || heads%per != 0 {
			c.fail("block_configs[%d]: %d heads in groups of %d", p.index, heads, per)
			return
		}
		p.kvHeads = heads / per
	} else if v, k, ok := att.Find("num_key_value_heads"); ok {
		p.kvHeads = c.number(k, v)
	}
	if v, _, ok := att.Find("window_length", "sliding_window_length"); ok && c.number("window_length", v) > 0 {
		c.warn("block_configs", "sliding windows of single layers are read as full attention")
	}
}

func (c *config) blockFFN(p *layerPlan, block hfjson.Object) {
	ffn, ok := block.Object("ffn")
	if !ok {
		c.fail("block_configs[%d]: no ffn", p.index)
		return
	}
	if off, _ := ffn.Flag("no_op"); off {
		return
	}
	if linear, _ := ffn.Flag("replace_with_linear"); linear {
		p.linearFFN = true
		return
	}
	p.ffn = ffnDense
	if v, k, ok := ffn.Find("intermediate_size"); ok {
		p.ffnWidth = c.number(k, v)
		return
	}
	v, _, ok := ffn.Find("ffn_mult")
	if !ok {
		c.fail("block_configs[%d]: ffn without ffn_mult or intermediate_size", p.index)
		return
	}
	mult, err := hfjson.Float(v)
	if err != nil || !(mult > 0 && mult < 1000) {
		c.fail("block_configs[%d]: ffn_mult is %s", p.index, hfjson.Show(v))
		return
	}
	// DeciLM: two thirds of the multiple, up to the next 256.
	w := int(2 * mult * float64(c.need(hiddenKeys...)) / 3)
	p.ffnWidth = (w + 255) / 256 * 256
}
