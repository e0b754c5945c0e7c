package hf

import (
	"strings"

	"infera/models"
	"infera/models/hf/hfjson"
)

// recurrent builds a recurrent layer of the given kind.
func (c *config) recurrent(kind models.RecurrentKind) models.Recurrent {
	r := models.Recurrent{Kind: kind, StateDType: c.stateDType(kind)}
	switch kind {
	case models.Mamba2:
		c.mamba2(&r)
	case models.Mamba1:
		c.mamba1(&r)
	case models.GatedDelta:
		r.KHeads, r.VHeads = c.need("linear_num_key_heads"), c.need("linear_num_value_heads")
		r.KDim, r.VDim = c.need("linear_key_head_dim"), c.need("linear_value_head_dim")
		r.ConvKernel = c.need("linear_conv_kernel_dim")
		r.ConvChannels = c.channels(2*r.KHeads*r.KDim + r.VHeads*r.VDim)
	case models.KDA:
		c.kda(&r)
	case models.Lightning:
		r.KHeads = c.need(headKeys...)
		r.VHeads = r.KHeads
		r.KDim = c.headDim()
		r.VDim = r.KDim
	case models.ShortConv:
		r.ConvKernel = c.need("conv_L_cache")
		if r.ConvChannels = c.dim("conv_dim"); r.ConvChannels == 0 {
			r.ConvChannels = c.need(hiddenKeys...)
		}
		r.StateDType = models.DTypeUnknown
	}
	return r
}

// channels guards a product of dimensions against nonsense.
func (c *config) channels(n int) int {
	if n < 0 || n > models.MaxWidth {
		c.fail("a recurrent layer of %d channels", n)
		return 0
	}
	return n
}

func (c *config) mamba2(r *models.Recurrent) {
	r.VHeads = c.need("mamba_num_heads", "mamba_n_heads")
	r.KDim = c.need("ssm_state_size", "mamba_d_state", "state_size")
	r.ConvKernel = c.need("conv_kernel", "mamba_d_conv")
	if r.KHeads = c.dim("n_groups", "mamba_n_groups"); r.KHeads == 0 {
		c.miss("n_groups")
	}
	if v, k, ok := c.find("mamba_head_dim", "mamba_d_head"); ok && v != "auto" {
		r.VDim = c.number(k, v)
	}
	if r.VDim == 0 && r.VHeads > 0 {
		width := firstPositive(c.dim("mamba_d_ssm"), c.dim("expand", "mamba_expand")*c.need(hiddenKeys...))
		if width == 0 || width%r.VHeads != 0 {
			c.miss("mamba_head_dim")
			return
		}
		r.VDim = width / r.VHeads
	}
	if r.VHeads > models.MaxHeads || r.KHeads > models.MaxHeads || r.VDim > models.MaxWidth || r.KDim > models.MaxWidth {
		c.fail("a Mamba layer of %d heads x %d, %d groups x %d", r.VHeads, r.VDim, r.KHeads, r.KDim)
		return
	}
	r.ConvChannels = c.channels(r.VHeads*r.VDim + 2*r.KHeads*r.KDim)
}

func (c *config) mamba1(r *models.Recurrent) {
	width := c.need("mamba_expand", "expand") * c.need(hiddenKeys...)
	r.KHeads, r.VHeads, r.VDim = 1, c.channels(width), 1
	r.KDim = c.need("mamba_d_state", "state_size")
	r.ConvKernel = c.need("mamba_d_conv", "conv_kernel")
	r.ConvChannels = r.VHeads
	if v, k, ok := c.find("mamba_dt_rank", "time_step_rank"); ok && v != "auto" {
		r.DecayRank = c.number(k, v)
	} else {
		r.DecayRank = (c.need(hiddenKeys...) + 15) / 16 // Mamba's "auto"
	}
}

func (c *config) kda(r *models.Recurrent) {
	l, ok := c.text.Object("linear_attn_config")
	if !ok {
		c.miss("linear_attn_config")
		return
	}
	get := func(key string) int {
		v, _, ok := l.Find(key)
		if !ok {
			c.miss("linear_attn_config." + key)
			return 0
		}
		return c.number(key, v)
	}
	r.KHeads, r.KDim, r.ConvKernel = get("num_heads"), get("head_dim"), get("short_conv_kernel_size")
	r.VHeads, r.VDim = r.KHeads, r.KDim
	if r.KHeads > models.MaxHeads || r.KDim > models.MaxWidth {
		c.fail("linear_attn_config: %d heads of %d", r.KHeads, r.KDim)
		return
	}
	r.ConvChannels = c.channels(3 * r.KHeads * r.KDim)
	r.DecayRank = r.KDim
	if full, _ := l.Flag("use_full_rank_gate"); !full {
		r.GateRank = r.KDim
	}
}

// stateDType is the type of the recurrent state, which configs state apart
// from that of the weights.
func (c *config) stateDType(kind models.RecurrentKind) models.DType {
	for _, k := range [...]string{"mamba_ssm_cache_dtype", "mamba_ssm_dtype", "ssm_dtype", "linear_attn_state_dtype"} {
		s, ok := c.text.Text(k)
		if !ok || s == "auto" {
			continue
		}
		d, ok := models.DTypeOf(strings.TrimPrefix(strings.ToLower(s), "torch."))
		if !ok {
			c.fail("%s is %s", k, hfjson.Show(s))
		}
		return d
	}
	if kind != models.ShortConv && kind != models.KDA { // KDA kernels keep fp32
		c.warn("mamba_ssm_dtype", "type of the recurrent state not stated; taken as fp32")
	}
	return models.FP32
}
