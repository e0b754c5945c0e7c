package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"infera/internal/units"
	"infera/models"
	"infera/sim/planner"
	"infera/sim/report"
)

// describe lists every field of the request under its flag's name, as asked
// and then with names and formats resolved.
func (r *resolver) describe() {
	r.out.asked = askedFields(r.set)
	for key, v := range map[string]float64{
		"kv_offload_gb_per_gpu": r.flags.offload.GB(), "kv_offload_bw_gbps": float64(r.flags.offloadRate / 1e9),
		"engine_reserved_gb": r.flags.engineReserved.GB(), "kv_transfer_bw_gbps": float64(r.flags.kvTransfer / 1e9),
		"hbm_capacity_gb": r.flags.hbm.GB(),
	} {
		r.out.asked.Set(key, report.Number(v)) // all are there: the order stays
	}
	r.out.fields = append(report.Request(nil), r.out.asked...)
	q, set := r.out.Request, r.out.fields.Set
	set("model", q.Arch.Name)
	set("gpu_arch", q.GPU.Name)
	set("hbm_capacity_gb", report.Number(float64(q.GPU.UsableCapacity())/1e9))
	set("gpu_clock_mhz", report.Number(float64(q.GPU.Clock)/1e6))
	set("fabric", q.Fabric.Name)
	set("engine", q.Engine.Name)
	set("engine_version", q.Release.Version)
	set("engine_date", q.Release.Date.String())
	set("weight_dtype", mainFormat(q.Arch))
	set("linear_weight_dtype", classFormat(q.Arch, models.ClassAttention))
	set("moe_expert_dtype", classFormat(q.Arch, models.ClassRoutedExpert))
	set("kv_cache_dtype", kvFormat(q).String())
	if r.flags.arrivalModel == "" {
		set("arrival_model", "closed")
	}
	if r.flags.cost == nil {
		set("gpu_cost_per_hour", nil)
	} else {
		set("gpu_cost_per_hour", report.Number(*r.flags.cost))
	}
	// The cache format of the checkpoint is a feature only when it was asked for.
	if r.flags.kv != "" {
		r.out.asked.Set("kv_cache_dtype", kvFormat(q).String())
	}
}

// requestNames lists the flags of a request in their order.
func requestNames() []string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	new(requestFlags).bind(set)
	var names []string
	set.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// askedFields returns the request's fields as the flags hold them.
func askedFields(set *pflag.FlagSet) report.Request {
	var out report.Request
	for _, name := range requestNames() {
		f := set.Lookup(name)
		if f == nil {
			continue
		}
		out = append(out, report.Field{Key: strings.ReplaceAll(name, "-", "_"), Value: fieldValue(f)})
	}
	return out
}

// fieldValue is the value of a flag as JSON shows it.
func fieldValue(f *pflag.Flag) any {
	text := f.Value.String()
	if s, ok := f.Value.(pflag.SliceValue); ok {
		return report.List[string](s.GetSlice())
	}
	switch f.Value.Type() {
	case "bool":
		return text == "true"
	case "string":
		return text
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return report.Number(n)
	}
	return text
}

func kvFormat(q *planner.Request) models.Format {
	if !q.KV.IsZero() {
		return q.KV
	}
	return q.Arch.KV()
}

// mainFormat is the format of the class with the most bytes.
func mainFormat(a *models.Architecture) string {
	best, most := models.TensorClass(0), -1.0
	for c, b := range a.ClassBytes() {
		if float64(b) > most {
			best, most = models.TensorClass(c), float64(b)
		}
	}
	return classFormat(a, best)
}

// classFormat is the format of one class, "" when the model has none of it.
func classFormat(a *models.Architecture, c models.TensorClass) string {
	if a.Params().ByClass[c] == 0 {
		return ""
	}
	if f := a.Formats[c]; !f.IsZero() {
		return f.String()
	}
	return a.Compute.String()
}

// features lists what the request and the model switch on.
func (q *question) features() []string {
	out := report.Features(q.asked)
	linear := 0
	for i := range q.Arch.Groups {
		if g := &q.Arch.Groups[i]; g.Attention.Kind == models.AttentionRecurrent {
			linear += g.Count
		}
	}
	if linear > 0 {
		out = append(out, fmt.Sprintf("linear_attn=%d/%d(state=%.1f MiB)", linear, q.Arch.Layers(), float64(q.Arch.StateBytesPerSequence()/units.MiB)))
	}
	return out
}
