package modules

import "strings"

// place is where in a layer the reading of a name has arrived.
type place uint8

const (
	nowhere place = iota
	inAttention
	inIndexer
	inFeedForward
	inExperts
	inShared
)

// containers are module names that hold others.
var containers = map[string]struct {
	parts Set
	at    place
}{
	"self_attn": {Attention | Recurrent, inAttention}, "attn": {Attention | Recurrent, inAttention},
	"attention": {Attention | Recurrent, inAttention}, "self_attention": {Attention | Recurrent, inAttention},
	"linear_attn": {Recurrent, inAttention}, "mamba": {Recurrent, inAttention}, "kda": {Recurrent, inAttention},
	"short_conv": {Recurrent, inAttention}, "conv": {Recurrent, inAttention},
	"mixer": {Attention | Recurrent | FeedForward, inFeedForward},
	"mlp":   {FeedForward, inFeedForward}, "ffn": {FeedForward, inFeedForward},
	"feed_forward": {FeedForward, inFeedForward}, "block_sparse_moe": {FeedForward, inFeedForward},
	"moe": {FeedForward, inFeedForward}, "moe_block": {FeedForward, inFeedForward},
	"indexer": {Of(IndexQuery, IndexKey, IndexGate), inIndexer},
	"experts": {Experts, inExperts}, "shared_experts": {Shared, inShared}, "shared_expert": {Shared, inShared},
	"shared_mlp": {Shared, inShared}, "share_expert": {Shared, inShared}, "expert": {Experts, inExperts},
	"compressor": {Of(Compressor), inAttention},
	"switch_mlp": {Experts, inExperts}, "local_experts": {Experts, inExperts}, "routed_experts": {Experts, inExperts},
}

// leaves are names of single tensors whose meaning does not depend on where
// they stand.
var leaves = map[string]Set{
	"q_proj": Of(Query, RecurrentIn), "wq": Of(Query), "q_a_proj": Of(QueryA), "wq_a": Of(QueryA), "q_b_proj": Of(Query),
	"wq_b": Of(Query), "k_proj": Of(Key, RecurrentIn), "wk": Of(Key), "v_proj": Of(Value, RecurrentIn), "wv": Of(Value),
	"qkv_proj": Of(Query, Key, Value), "qkv": Of(Query, Key, Value), "wqkv": Of(Query, Key, Value),
	"query_key_value": Of(Query, Key, Value), "c_attn": Of(Query, Key, Value),
	"kv_a_proj_with_mqa": Of(LatentA), "wkv_a": Of(LatentA), "wkv": Of(LatentA), "kv_a_proj": Of(LatentA),
	"kv_b_proj": Of(LatentB), "wkv_b": Of(LatentB), "fused_qkv_a_proj_with_mqa": Of(QueryA, LatentA),
	"o_proj": Of(Output, RecurrentOut), "wo": Of(Output), "wo_a": Of(Output), "wo_b": Of(Output), "dense": Of(Output),
	"g_proj": Of(OutputGate, RecurrentGate), "f_a_proj": Of(RecurrentGate), "f_b_proj": Of(RecurrentGate),
	"g_a_proj": Of(RecurrentGate), "g_b_proj": Of(RecurrentGate), "b_proj": Of(RecurrentGate),
	"index_q_proj": Of(IndexQuery), "index_k_proj": Of(IndexKey), "indexers_proj": Of(IndexGate), "weights_proj": Of(IndexGate),
	"in_proj": Of(RecurrentIn), "in_proj_qkvz": Of(RecurrentIn), "in_proj_qkv": Of(RecurrentIn), "in_proj_z": Of(RecurrentIn),
	"in_proj_ba": Of(RecurrentGate), "in_proj_b": Of(RecurrentGate), "in_proj_a": Of(RecurrentGate),
	"out_proj": Of(RecurrentOut, Output), "conv1d": Of(RecurrentConv), "x_proj": Of(RecurrentGate), "dt_proj": Of(RecurrentGate),
	"shared_expert_gate": Of(SharedGate), "router": Of(Router),
	"fc1_latent_proj": Of(LatentProj), "fc2_latent_proj": Of(LatentProj), "latent_proj": Of(LatentProj),
	"lm_head": Of(Head), "head": Of(Head), "embed_out": Of(Head), "output": Of(Head),
	"embed_tokens": Of(Embedding), "embeddings": Of(Embedding), "embedding": Of(Embedding), "wte": Of(Embedding),
	"tok_embeddings": Of(Embedding), "word_embeddings": Of(Embedding), "embed": Of(Embedding),
	"embed_tokens_per_layer": Of(Embedding),
	"mtp":                    Of(Draft), "eh_proj": Of(Norm), "enorm": Of(Norm), "hnorm": Of(Norm), "shared_head": Of(Norm),
	"nextn": Of(Draft), "mtp_block": Of(Draft),
	"e_score_correction_bias": Of(Norm), "bias": Of(Norm), "a_log": Of(Norm), "d": Of(Norm), "dt_bias": Of(Norm), "sinks": Of(Norm),
	"linear": Linear,
}

var ups = map[string]bool{
	"gate_proj": true, "up_proj": true, "gate_up_proj": true, "w1": true, "w3": true, "w13": true, "fc1": true,
	"dense_h_to_4h": true, "c_fc": true, "linear_fc1": true, "wi": true, "gate_up": true,
}

var downs = map[string]bool{
	"down_proj": true, "w2": true, "fc2": true, "dense_4h_to_h": true, "c_proj": true, "linear_fc2": true,
}

// classify reads the part of a name after its layer index, or a whole name
// without one.
func classify(name string, inLayer bool) (Set, bool) {
	if isVision(name) {
		return Of(Vision), true
	}
	if name == "*" {
		return Layer | Of(Embedding, Head), true
	}
	var set Set
	var known bool
	at := nowhere
	for token := range strings.SplitSeq(name, ".") {
		token = strings.Trim(token, "*")
		if token == "" || token == "0" || token == "weight" {
			continue
		}
		parts, next, ok := readToken(token, at)
		if !ok {
			continue
		}
		if parts.Has(Draft) {
			return Of(Draft), true
		}
		set, at, known = parts, next, true
	}
	if inLayer {
		set &^= Of(Head, Embedding)
	}
	return set, known
}

func readToken(token string, at place) (Set, place, bool) {
	if c, ok := containers[token]; ok {
		return c.parts, c.at, true
	}
	if at == inIndexer {
		switch {
		case token == "wq_b" || token == "wq":
			return Of(IndexQuery), at, true
		case token == "wk":
			return Of(IndexKey), at, true
		}
	}
	if ups[token] || downs[token] {
		up, down := DenseUp, DenseDown
		switch at {
		case inExperts:
			up, down = ExpertUp, ExpertDown
		case inShared:
			up, down = SharedUp, SharedDown
		}
		if ups[token] {
			return Of(up), at, true
		}
		return Of(down), at, true
	}
	if token == "gate" {
		switch at {
		case inAttention:
			return Of(OutputGate), at, true
		case inShared:
			return Of(SharedGate), at, true
		}
		return Of(Router), at, true
	}
	if s, ok := leaves[token]; ok {
		return s, at, true
	}
	if strings.Contains(token, "norm") || strings.HasPrefix(token, "ln_") {
		return Of(Norm), at, true
	}
	return 0, at, false
}
