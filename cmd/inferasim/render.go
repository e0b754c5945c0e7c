package main

import (
	"math"

	"infera/internal/units"
	"infera/sim/planner"
	"infera/sim/report"
	"infera/sim/step"
)

// projectionReport puts a projection into its report form; s is the memory of
// the pool that decides, nil when it could not be sized.
func projectionReport(q *question, p *planner.Projection, s *planner.Sizing) report.Projection {
	out := report.Projection{
		Request: q.fields, Feasible: p.Feasible, Reason: p.Reason,
		Model: modelSize(q), Features: q.features(), Launch: q.launch,
		Fidelity: report.Fidelity{Mode: "simulate", Source: "analytic"},
		Warnings: append(append(report.List[report.Warning](nil), q.warnings...), warningsOf(p.Warnings)...),
	}
	if s != nil {
		out.Memory = memoryReport(q, s)
		resolveDefaults(&out.Request, s)
		if !p.Feasible {
			out.Suggestions = suggestions(s)
			if s.Reason != "" {
				out.Reason = poolPrefix(p.Reason) + s.Reason
			}
		}
	}
	out.Cost.GPUs = p.GPUs
	if p.Feasible {
		out.Performance = performance(q, p)
		out.Cost = cost(q, p)
	}
	return out
}

func warningsOf(all []planner.Warning) []report.Warning {
	var out []report.Warning
	for _, w := range all {
		out = append(out, report.Warning{Code: w.Code, Text: w.Text})
	}
	return out
}

func modelSize(q *question) report.ModelSize {
	n := q.Arch.Params()
	return report.ModelSize{Name: q.Arch.Name, ParamsTotal: n.Total, ParamsActive: n.Active}
}

// inMs is a band of seconds in milliseconds.
func inMs(b planner.Band) report.Band {
	return report.Milliseconds(units.Seconds(b.Value), units.Seconds(b.Low), units.Seconds(b.High))
}

func asBand(b planner.Band) report.Band {
	return report.Band{Value: report.Number(b.Value), Low: report.Number(b.Low), High: report.Number(b.High)}
}

func ms(s units.Seconds) report.Number { return report.Number(s.Milliseconds()) }

// scaled returns the band of v that is as wide as like, relatively.
func scaled(v float64, like planner.Band) planner.Band {
	if !(like.Value > 0) {
		return planner.Band{Value: v, Low: v, High: v}
	}
	return planner.Band{Value: v, Low: v * like.Low / like.Value, High: v * like.High / like.Value}
}

// perUser is the rate of tokens that one request sees.
func perUser(tpot planner.Band) report.Band {
	inverse := func(v float64) report.Number {
		if !(v > 0) {
			return report.None()
		}
		return report.Number(1 / v)
	}
	return report.Band{Value: inverse(tpot.Value), Low: inverse(tpot.High), High: inverse(tpot.Low)}
}

func performance(q *question, p *planner.Projection) *report.Performance {
	s := &p.Steady
	replicas := max(1, q.Replica)
	out := &report.Performance{
		TTFTMs: inMs(p.TTFT), TPOTMs: inMs(p.TPOT), ITLMs: inMs(scaled(float64(s.ITL), p.TPOT)), E2EMs: inMs(p.E2E),
		DecodeStepMs: inMs(p.DecodeStep), MixedStepMs: inMs(p.MixedStep),
		MixedStepFraction: report.Number(s.MixedFraction), TPOTPollutionPct: report.Number(100 * s.Pollution),
		OutputTokS: asBand(p.OutputRate), OutputTokSPerGPU: asBand(p.OutputPerGPU), TotalTokSPerGPU: asBand(p.TotalPerGPU),
		PrefillTokS: asBand(p.PrefillRate), InteractivityTokS: perUser(p.TPOT).Value, OutputTokSPerUser: perUser(p.TPOT),
		Concurrency: int64(math.Round(p.Concurrency)), GPUs: p.GPUs,
		Breakdown: report.Breakdown{
			Decode: operations(q, p, &p.Decode, 1), Prefill: operations(q, p, &p.Prefill, prefillPasses(p)),
		},
		CommunicationMs: report.Communication{
			Prefill: communicationMs(&p.Prefill, prefillPasses(p)), Decode: communicationMs(&p.Decode, 1),
		},
		ServingModel: q.Serving.String(), Replicas: replicas, ReplicaGPUs: q.Layout.GPUs(),
		ConcurrencyLimit: int64(p.Sustainable), ConcurrencyCapped: p.Capped,
		SpecTokensPerStep: report.Number(q.Speculation.Yield()),
		Host:              hostCosts(q, p),
		AdmissionWaitMs:   ms(s.AdmissionWait), QueueWaitMs: ms(s.QueueWait),
		TTFTWithQueueMs: ms(s.TTFT + s.ArrivalWait), E2EWithQueueMs: ms(s.E2E + s.ArrivalWait),
	}
	if s.AdmissionWait > 0 {
		out.AdmissionCeiling = int64(p.Sustainable)
	}
	if q.Serving == planner.Static {
		out.Concurrency = int64(math.Round(s.Running * float64(replicas)))
		out.AdmissionCeiling = out.Concurrency
	}
	if q.RequestRate > 0 {
		perPool := float64(replicas)
		if q.Disagg != nil {
			perPool = 1 // rates of a pair are those of all its replicas
		}
		out.Concurrency = max(1, int64(math.Round(s.Concurrency*perPool)))
		out.Load = report.Load{
			RequestRate: report.Number(q.RequestRate), MaxRequestRate: report.Number(s.MaxRate * perPool),
			ArrivalModel: q.fields.Text("arrival_model"), Utilization: report.Number(s.Utilization), Saturated: s.Saturated,
		}
	}
	if p.Transfer != nil {
		out.Disaggregation = disaggregated(p)
	}
	return out
}

// hostCosts are the parts of a request's path that no GPU works on.
func hostCosts(q *question, p *planner.Projection) report.Host {
	return report.Host{
		Step: ms(p.Decode.Ops[step.OpHost].Time), Detokenize: ms(q.Host.Detokenize),
		Tokenize: ms(q.Host.Tokenize * units.Seconds(q.InputLen)), Request: ms(p.RequestFixed),
	}
}

func disaggregated(p *planner.Projection) *report.Disagg {
	t := p.Transfer
	return &report.Disagg{
		Prefill: report.Pool{Replicas: t.PrefillReplicas, ReplicaGPUs: t.PrefillLayout.GPUs(), Layout: t.PrefillLayout.String(), Occupancy: report.Number(t.Occupancy)},
		// The running requests over those that memory holds.
		Decode:           report.Pool{Replicas: t.Decodes, ReplicaGPUs: t.DecodeLayout.GPUs(), Layout: t.DecodeLayout.String(), Occupancy: occupancy(p)},
		PrefillComputeMs: ms(t.PrefillCompute), KVTransferMs: ms(t.Time), KVTransferBytes: report.Number(t.Bytes), Limit: t.Limit,
	}
}

func occupancy(p *planner.Projection) report.Number {
	if !(p.Sustainable > 0) {
		return report.None()
	}
	return report.Number(min(1, p.Steady.Running*float64(p.Transfer.Decodes)/p.Sustainable))
}

// cost is the price of a million tokens: price x GPUs x 1e6 / (rate x 3600).
func cost(q *question, p *planner.Projection) report.Cost {
	out := report.Cost{GPUs: p.GPUs}
	if q.GPUCostPerHour == nil {
		return out
	}
	price := float64(*q.GPUCostPerHour)
	per := func(rate float64) *report.Number { return report.Maybe(price * float64(p.GPUs) * 1e6 / (rate * 3600)) }
	out.USDPerGPUHour = report.Maybe(price)
	out.USDPerMOutput, out.USDPerMTotal = per(p.OutputRate.Value), per(p.TotalRate.Value)
	return out
}

// prefillPasses is how many chunks a prompt takes; the waterfall of a prompt is
// that of its mean chunk as many times.
func prefillPasses(p *planner.Projection) float64 {
	if f := p.Steady.Prefill.Final; f > 0 {
		return math.Round(1 / f)
	}
	return 1
}

// operations lists the operation classes of a waterfall that take time.
func operations(q *question, p *planner.Projection, b *step.Breakdown, passes float64) []report.Op {
	var out []report.Op
	for i := range b.Ops {
		o := &b.Ops[i]
		if o.Time <= 0 {
			continue
		}
		out = append(out, report.Op{
			Name: step.Op(i).String(), TimeMs: ms(o.Time * units.Seconds(passes)),
			Bytes: report.Number(float64(o.Bytes) * passes), FLOPs: report.Number(float64(o.FLOPs) * passes),
			Bound: o.Bound.String(), Source: operationSource(q, p, step.Op(i)),
		})
	}
	return out
}

// operationSource says which table and which efficiency priced an operation.
func operationSource(q *question, p *planner.Projection, o step.Op) string {
	fit := p.Efficiency.Text
	kernels := q.GPU.ISA + " kernel curves x "
	if q.Engineering.BoundsOnly {
		return "bytes and FLOPs over the peaks of " + q.GPU.Name
	}
	switch o {
	case step.OpAllReduce, step.OpAllToAll:
		return q.Fabric.Name + " collective table x " + fit
	case step.OpPointToPoint:
		return q.Fabric.Name + " links"
	case step.OpLayerFixed:
		if q.Engineering.KernelOccupancy > 0 {
			return "--decode-kernel-occupancy-us"
		}
		return "fixed time per layer of " + fit
	case step.OpHost:
		return "host time of " + fit
	case step.OpDraft:
		if q.Speculation.DraftCost > 0 {
			return "--speculative-draft-cost-factor"
		}
	}
	return kernels + fit
}

func communicationMs(b *step.Breakdown, passes float64) report.CommunicationMs {
	of := func(o step.Op) report.Number { return ms(b.Ops[o].Time * units.Seconds(passes)) }
	return report.CommunicationMs{TPAR: of(step.OpAllReduce), EPA2A: of(step.OpAllToAll), PPP2P: of(step.OpPointToPoint)}
}
