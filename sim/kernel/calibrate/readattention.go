package calibrate

import (
	"fmt"
	"io"

	"infera/models"
	"infera/sim/kernel"
)

// widestHead is the widest head the tables measure with their main kernel; wider
// ones ran on a fallback that no engine of today's models takes.
const widestHead = 256

var attentionColumns = []string{
	"device", "batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim", "kv_cache_dtype", "step", "window_size", "latency",
}

func cacheFormat(name string) models.Format {
	if name == "fp8" {
		return fp8
	}
	return bf16
}

// ReadDecodeAttention reads a table of decode attention: columns device,
// batch_size, num_heads, num_key_value_heads, head_dim, kv_cache_dtype, step
// (cached tokens of each sequence before this one), window_size (0 = all) and
// latency in milliseconds.
func ReadDecodeAttention(r io.Reader) ([]Row, error) {
	t, err := open(r, attentionColumns...)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for t.next() {
		batch, cached, dim := t.number("batch_size"), t.number("step")+1, int(t.number("head_dim"))
		if w := t.number("window_size"); w > 0 {
			cached = min(cached, w)
		}
		d := kernel.DecodeAttention{
			Sequences: batch, Tokens: 1, KVTokens: batch * cached, Heads: int(t.number("num_heads")),
			KVHeads: kvHeads(t), KDim: dim, VDim: dim, KV: cacheFormat(t.text("kv_cache_dtype")),
		}
		if dim > widestHead {
			continue
		}
		shape := fmt.Sprint(d.Heads, "/", d.KVHeads, "/", dim)
		rows = append(rows, Row{
			Part: t.text("device"), Family: kernel.AttentionDecodeCore, Seconds: t.seconds("latency", 1e-3),
			Size: d.KVTokens * float64(d.KVHeads*2*dim) * d.KV.BitsPerElement() / 8, HeldOut: heldOut(shape),
			key:   fmt.Sprint(d.KV.Name, batch, "/", cached, "/", t.text("window_size"), "/", t.text("step"), "/", shape),
			price: func(model *kernel.Model) kernel.Estimate { return model.DecodeAttention(d) },
		})
	}
	return best(rows), t.err
}

// kvHeads reads the KV heads; 0 in a table means as many as query heads.
func kvHeads(t *table) int {
	if n := int(t.number("num_key_value_heads")); n > 0 {
		return n
	}
	return int(t.number("num_heads"))
}

// ReadPrefillAttention reads a table of prefill attention with the columns of
// [ReadDecodeAttention], where isl is the new tokens of each sequence and step
// the tokens before them.
func ReadPrefillAttention(r io.Reader) ([]Row, error) {
	t, err := open(r, attentionColumns...)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for t.next() {
		dim := int(t.number("head_dim"))
		a := kernel.PrefillAttention{
			Sequences: t.number("batch_size"), Tokens: t.number("isl"), Context: t.number("step"),
			Heads: int(t.number("num_heads")), KVHeads: kvHeads(t), KDim: dim, VDim: dim,
			Window: int(t.number("window_size")), KV: cacheFormat(t.text("kv_cache_dtype")),
		}
		if dim > widestHead {
			continue
		}
		shape := fmt.Sprint(a.Heads, "/", a.KVHeads, "/", dim)
		rows = append(rows, Row{
			Part: t.text("device"), Family: kernel.AttentionPrefillCore, Seconds: t.seconds("latency", 1e-3),
			Size: a.Tokens, HeldOut: heldOut(shape),
			key:   fmt.Sprint(a.KV.Name, a.Sequences, "/", a.Tokens, "/", a.Context, "/", a.Window, "/", shape),
			price: func(model *kernel.Model) kernel.Estimate { return model.PrefillAttention(a) },
		})
	}
	return best(rows), t.err
}
