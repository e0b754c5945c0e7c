package layout

import "fmt"

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
func (l Layout) GPUs() int { return l.StageGPUs() * l.PP }

// StageGPUs returns the GPUs of one pipeline stage.
func (l Layout) StageGPUs() int { return max(l.TP, l.EP) }

// AttentionTP returns the ranks that share one sequence's attention heads.
func (l Layout) AttentionTP() int { return max(1, l.TP/max(1, l.AttentionDP)) }

// AttentionGroups returns how many groups of AttentionTP ranks a stage has,
// each with its own sequences. It exceeds AttentionDP when EP exceeds TP.
func (l Layout) AttentionGroups() int { return max(1, l.StageGPUs()/l.AttentionTP()) }

// ExpertTP returns the ranks that share one expert's weights.
func (l Layout) ExpertTP() int { return max(1, l.TP/max(1, l.EP)) }

// DenseTP returns the ranks over which everything but routed experts is split:
// dense and shared feed-forward weights, embedding and head. It is the
// attention group, so attention data parallelism replicates them.
func (l Layout) DenseTP() int { return l.AttentionTP() }

// String returns the parts that differ from 1: "tp8 ep8 attention-dp8".
func (l Layout) String() string {
	s := fmt.Sprintf("tp%d", l.TP)
	for _, p := range []struct {
		name string
		n    int
	}{
		{"pp", l.PP}, {"ep", l.EP}, {"attention-dp", l.AttentionDP}, {"decode-cp", l.DecodeCP},
	} {
		if p.n != 1 && (p.n != 0 || p.name != "decode-cp") {
			s += fmt.Sprintf(" %s%d", p.name, p.n)
		}
	}
	if l.RedundantExperts != 0 {
		s += fmt.Sprintf(" redundant-experts%d", l.RedundantExperts)
	}
	return s
}
