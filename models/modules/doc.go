// Package modules reads the module names and patterns of checkpoint files
// (model.layers.3.mlp.experts.*.down_proj, re:.*self_attn.*, lm_head): which
// parts of a transformer a pattern means, and in which layers.
//
// It knows the naming habits of Hugging Face checkpoints and of quantisation
// tools, and nothing of shapes, formats or of any particular model.
package modules
