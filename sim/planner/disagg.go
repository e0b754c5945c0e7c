package planner

import (
	"infera/internal/units"
	"infera/sim/layout"
	"infera/sim/steady"
	"infera/sim/step"
)

// disaggregated answers a request for two pools.
func (l *Library) disaggregated(r *Request, on *engineOn) (*Projection, error) {
	d := r.Disagg
	np, nd := max(1, d.PrefillReplicas), max(1, d.DecodeReplicas)
	p := &Projection{
		Request: r, GPUs: np*d.Prefill.GPUs() + nd*d.Decode.GPUs(), Efficiency: on.match, Concurrency: r.Concurrency,
	}
	if ok, err := l.feasible(p, r, on, d.Prefill, 1); err != nil || !ok {
		p.Reason = prefix(p.Reason, "prefill pool: ")
		p.Feasible = false
		return p, err
	}
	if ok, err := l.feasible(p, r, on, d.Decode, r.Concurrency/float64(nd)); err != nil || !ok {
		p.Reason = prefix(p.Reason, "decode pool: ")
		p.Feasible = false
		return p, err
	}
	running := r.running(&p.Memory, on)
	p.Sustainable = running * float64(nd)
	asked := *r
	asked.Replica = 1
	if asked.Concurrency == 0 && asked.RequestRate == 0 {
		asked.Concurrency = p.Sustainable
		p.Concurrency = asked.Concurrency
	}
	p.Capped = asked.Concurrency > p.Sustainable
	asked.Layout = d.Prefill
	first, err := l.Prepare(&asked, 0)
	if err != nil {
		return nil, err
	}
	asked.Layout = d.Decode
	second, err := l.Prepare(&asked, running)
	if err != nil {
		return nil, err
	}
	transfer, err := l.transfer(r, d)
	if err != nil {
		return nil, err
	}
	pair := steady.Pair{
		Prefill: first.at(&on.efficiency), Decode: second.at(&on.efficiency),
		PrefillReplicas: float64(np), DecodeReplicas: float64(nd), Transfer: transfer.Time,
	}
	if transfer.Time > 0 {
		pair.TransferCapacity = float64(np) / float64(transfer.Time)
	}
	solved, err := steady.SolvePair(pair)
	if err != nil {
		return nil, err
	}
	p.Steady = solved.Result
	p.Warnings = append(p.Warnings, second.warnings...)
	if transfer.Time <= 0 {
		p.Warnings = append(p.Warnings, Warning{"transfer_unknown", "the fabric names no network and no transfer bandwidth is given: the cache transfer is not priced"})
	}
	transfer.PrefillCompute, transfer.Limit = solved.PrefillCompute, solved.Limit
	transfer.PrefillLayout, transfer.DecodeLayout = d.Prefill, d.Decode
	transfer.PrefillReplicas, transfer.Decodes = np, nd
	transfer.Occupancy = solved.Occupancy
	p.Transfer = transfer
	second.priced(&on.efficiency).Price(p.Steady.Decode, &p.Decode)
	chunk := [1]step.Chunk{p.Steady.Prefill}
	first.priced(&on.efficiency).Price(step.Batch{Chunks: chunk[:]}, &p.Prefill)
	rated := *r
	rated.Replica = 1
	p.finish(&rated, on, p.Steady.RequestRate)
	p.Request = r
	return p, nil
}

func prefix(text, with string) string {
	if text == "" {
		return ""
	}
	return with + text
}

// transfer prices the hand-over of one request's cache: every GPU of a prefill
// replica sends its part over its own link.
func (l *Library) transfer(r *Request, d *Disaggregation) (*Transfer, error) {
	perToken := r.Arch.KVBytesPerToken(r.kv())
	bytes := units.Bytes(r.InputLen)*perToken + units.Bytes(r.Arch.StateBytesPerSequence())
	rate, latency := r.KVTransferBandwidth, r.KVTransferLatency
	if r.TransferBackend != "" {
		usual, after, err := l.transferRate(r.TransferBackend)
		if err != nil {
			return nil, err
		}
		if rate <= 0 {
			rate = usual
		}
		if latency <= 0 {
			latency = after
		}
	}
	if rate <= 0 {
		rate = units.BytesPerSecond(float64(r.Fabric.NIC) * r.Fabric.NICEfficiency)
	}
	if rate <= 0 {
		return &Transfer{Bytes: bytes}, nil
	}
	links := float64(senders(r, d.Prefill))
	return &Transfer{Bytes: bytes, Time: units.Seconds(float64(bytes)/(float64(rate)*links)) + latency}, nil
}

// senders is how many GPUs of a prefill replica hold different parts of one
// request's cache.
func senders(r *Request, l layout.Layout) int {
	heads := 0
	for i := range r.Arch.Groups {
		heads = max(heads, layout.KVHeads(r.Arch.Groups[i].Attention))
	}
	return max(1, min(l.AttentionTP(), heads)) * max(1, l.PP)
}
