package layout

import "infera/sim/hardware"

// Span is how a group of ranks falls on scale-up domains.
type Span struct {
	Ranks     int // of the group
	PerDomain int // ranks of the group in one domain (the fullest)
	Domains   int // domains the group touches
}

// Crosses reports whether the group needs the network between domains.
func (s Span) Crosses() bool { return s.Domains > 1 }

// Placement is one replica on nodes. Groups are packed whole: one that fits a
// domain never straddles two.
type Placement struct {
	Domains int // scale-up domains the replica occupies
	Idle    int // GPUs it leaves unused in them
	// TP, AttentionTP and EP are the spans of those groups.
	TP, AttentionTP, EP Span
	// NearHops and FarHops count the boundaries between pipeline stages inside
	// a domain and across domains.
	NearHops, FarHops int
}

// Place puts one replica of a legal layout on domains of f.
func Place(l Layout, f *hardware.Fabric) Placement {
	d := max(1, f.DomainSize)
	p := Placement{TP: span(l.TP, d), AttentionTP: span(l.AttentionTP(), d), EP: span(l.EP, d)}
	stage, stages := max(1, l.StageGPUs()), max(1, l.PP)
	if perDomain := d / stage; perDomain > 0 {
		p.Domains = ceilDiv(stages, perDomain)
		p.FarHops = p.Domains - 1
	} else {
		p.Domains = stages * ceilDiv(stage, d)
		p.FarHops = stages - 1
	}
	p.NearHops = stages - 1 - p.FarHops
	p.Idle = p.Domains*d - stage*stages
	return p
}

func span(ranks, domain int) Span {
	ranks = max(1, ranks)
	return Span{Ranks: ranks, PerDomain: min(ranks, domain), Domains: ceilDiv(ranks, domain)}
}
