package layout

// Layout is how one replica of a model is spread over GPUs.
//
// A replica has TP x PP GPUs, or EP x PP when EP is larger than TP. EP lies
// inside the TP group (EP <= TP) or spans attention-data-parallel ranks.
// AttentionDP divides TP: attention runs as AttentionDP independent groups of
// TP/AttentionDP ranks, each with its own sequences and its own cache.
type Layout struct {
	TP, PP, EP, AttentionDP int
	// DecodeCP splits the cache of one sequence over this many ranks of the
	// attention group (decode context parallel); 0 or 1 = off.
	DecodeCP int
	// RedundantExperts counts the extra expert replicas a load balancer places.
	RedundantExperts int
}

// GPUs returns the GPUs of one replica.
func (l Layout) GPUs() int { return max(l.TP, l.EP) * l.PP }

// AttentionTP returns the ranks that share one sequence's attention heads.
func (l Layout) AttentionTP() int { return max(1, l.TP/max(1, l.AttentionDP)) }

// ExpertTP returns the ranks that share one expert's weights.
func (l Layout) ExpertTP() int { return max(1, l.TP/max(1, l.EP)) }
