package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"infera/internal/cli"
	"infera/internal/units"
	"infera/sim/cluster"
	"infera/sim/report"
	"infera/sim/report/simulation"
	"infera/sim/workload"
	"infera/sim/workload/trace"
)

// recorded is a workload that was recorded.
type recorded struct {
	*trace.Trace
	name string
	// rate is the mean rate of its arrivals, requests per second; conversations
	// says that some requests are turns that follow others.
	rate          float64
	conversations bool
}

// readTrace reads the recorded workload, nil when none is named.
func (s *scenario) readTrace() (*recorded, error) {
	f := s.f
	name, format := f.workloadFile, trace.Format(f.traceFormat)
	if f.mooncakeTrace != "" {
		name, format = f.mooncakeTrace, trace.Mooncake
	}
	if name == "" {
		return nil, nil
	}
	t, err := s.app.readRecorded(name, trace.Options{Format: format})
	if err != nil {
		return nil, err
	}
	if s.app.Settings.Origin("des-num-requests") != cli.FromDefault {
		t.First(f.requests)
	}
	if err := t.Stretch(f.timeScale / f.rateScale); err != nil {
		return nil, err
	}
	workload.MarkUnshared(t.Requests)
	f.requests = len(t.Requests)
	r := &recorded{Trace: t, name: name}
	r.conversations = slices.ContainsFunc(t.Requests, func(q workload.Request) bool { return q.Session != 0 })
	if span := t.Requests[len(t.Requests)-1].Arrival; span > 0 {
		r.rate = float64(len(t.Requests)) / float64(span.Seconds())
	}
	for _, w := range t.Warnings {
		s.q.warnings = append(s.q.warnings, report.Warning{Code: w.Code, Text: w.Text})
	}
	if !t.Timed && !f.closedLoop {
		return nil, cli.WithHint(cli.Errorf(cli.BadInput, "%s has no arrivals", name), "replay it with --des-closed-loop")
	}
	return r, nil
}

// source replays the trace, faster or slower to reach a rate.
func (t *recorded) source(s *scenario, rate float64) (workload.Source, error) {
	replay := func(requests []workload.Request) workload.Source {
		if !t.conversations {
			return workload.Replay(requests)
		}
		// A turn is not sent before the answer that it follows.
		return workload.ReplayTurns(requests, units.Seconds(s.f.thinkMs/1e3))
	}
	if rate == 0 || t.rate == 0 {
		return replay(t.Requests), nil
	}
	scaled := *t.Trace
	scaled.Requests = append([]workload.Request(nil), t.Requests...)
	if err := scaled.Stretch(t.rate / rate); err != nil {
		return nil, err
	}
	return replay(scaled.Requests), nil
}

func (t *recorded) text() string {
	return fmt.Sprintf("%s (%s), %d requests", t.name, t.Format, len(t.Requests))
}

// parseClasses reads NAME:WEIGHT[:key=value...]: the classes of the workload and
// their objectives. prioritised says that some class has a priority.
func (s *scenario) parseClasses() (of []workload.Class, specs []cluster.ClassSpec, prioritised bool, err error) {
	for _, text := range s.f.classes {
		bad := func(format string, args ...any) error {
			return cli.WithHint(cli.Errorf(cli.BadInput, "--des-class %q: %s", text, fmt.Sprintf(format, args...)), "for example batch:1:priority=1:output=512")
		}
		parts := strings.Split(text, ":")
		if len(parts) < 2 || parts[0] == "" {
			return nil, nil, false, bad("want NAME:WEIGHT[:key=value...]")
		}
		if slices.ContainsFunc(of, func(c workload.Class) bool { return c.Name == parts[0] }) {
			return nil, nil, false, bad("there is a class of this name already")
		}
		c, spec := workload.Class{Name: parts[0]}, cluster.ClassSpec{Name: parts[0], Objective: s.objective()}
		if c.Weight, err = strconv.ParseFloat(parts[1], 64); err != nil {
			return nil, nil, false, bad("weight %q is not a number", parts[1])
		}
		for _, pair := range parts[2:] {
			key, text, _ := strings.Cut(pair, "=")
			v, err := strconv.ParseFloat(text, 64)
			whole := v == float64(int(v))
			if err != nil || !(v >= 0 && v < 1e12) {
				return nil, nil, false, bad("%s is %q, want a number", key, text)
			}
			switch {
			case key == "priority" && whole:
				c.Priority, prioritised = int(v), true
			case key == "input" && whole && v > 0:
				c.Input = s.length(v)
			case key == "output" && whole && v > 0:
				c.Output = s.length(v)
			case key == "ttft_ms":
				spec.Objective.TTFT = v / 1e3
			case key == "tpot_ms":
				spec.Objective.TPOT = v / 1e3
			case key == "e2e_ms":
				spec.Objective.E2E = v / 1e3
			default:
				return nil, nil, false, bad("%s=%s is not understood (known: priority, input, output, ttft_ms, tpot_ms, e2e_ms)", key, text)
			}
		}
		of, specs = append(of, c), append(specs, spec)
	}
	return of, specs, prioritised, nil
}

// length is the distribution of a nominal length.
func (s *scenario) length(n float64) workload.Length {
	l := workload.Length{Mean: int(n), Sigma: s.f.sigma}
	if s.f.rangeRatio < 1 {
		// 0 is from one token on; to the workload it would be no range at all.
		l.RangeRatio = max(s.f.rangeRatio, math.SmallestNonzeroFloat64)
	}
	return l
}

// lengths says where those of a generated workload are from.
func (s *scenario) lengths() string {
	if s.f.lengthsFrom != "" {
		return "lengths from " + s.f.lengthsFrom
	}
	return fmt.Sprintf("input=%g tok, output=%g tok", s.q.InputLen, s.q.OutputLen)
}

// parseTiers reads NAME:CAPACITY:READ[:WRITE[:LATENCY]][:shared].
func parseTiers(texts []string) ([]cluster.TierSpec, error) {
	var out []cluster.TierSpec
	for _, text := range texts {
		parts := strings.Split(text, ":")
		t := cluster.TierSpec{Name: parts[0]}
		if n := len(parts); parts[n-1] == "shared" {
			t.Shared, parts = true, parts[:n-1]
		}
		bad := func(err error) error {
			return cli.WithHint(cli.Errorf(cli.BadInput, "--des-tier %q: %v", text, err), "for example dram:512GiB:50 or nvme:4TB:12:6:100")
		}
		if len(parts) < 3 || len(parts) > 5 || t.Name == "" {
			return nil, bad(fmt.Errorf("want NAME:CAPACITY:READ[:WRITE[:LATENCY]][:shared]"))
		}
		if slices.ContainsFunc(out, func(o cluster.TierSpec) bool { return o.Name == t.Name }) {
			return nil, bad(fmt.Errorf("there is a tier of this name already"))
		}
		var err error
		if t.Capacity, err = units.ParseBytes(parts[1], units.GB); err != nil {
			return nil, bad(err)
		}
		if t.Read, err = units.ParseBytesPerSecond(parts[2], 1e9); err != nil {
			return nil, bad(err)
		}
		t.Write = t.Read
		if len(parts) > 3 {
			if t.Write, err = units.ParseBytesPerSecond(parts[3], 1e9); err != nil {
				return nil, bad(err)
			}
		}
		if len(parts) > 4 {
			if t.Latency, err = units.ParseSeconds(parts[4], 1e-6); err != nil {
				return nil, bad(err)
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// mostSlowdown keeps the times of slowed steps far from the range of the clock.
const mostSlowdown = 1e6

// parseFaults reads KIND@START+LENGTH[:INSTANCE[:FACTOR]].
func parseFaults(texts []string) ([]cluster.FaultSpec, error) {
	var out []cluster.FaultSpec
	for _, text := range texts {
		bad := func(why string) error {
			return cli.WithHint(cli.Errorf(cli.BadInput, "--des-fault %q: %s", text, why), "for example crash@60+30:1 or slow@10+120:0:1.5")
		}
		kind, rest, ok := strings.Cut(text, "@")
		parts := strings.Split(rest, ":")
		start, length, both := strings.Cut(parts[0], "+")
		if !ok || !both || len(parts) > 3 {
			return nil, bad("want KIND@START+LENGTH[:INSTANCE[:FACTOR]]")
		}
		s := cluster.FaultSpec{Kind: cluster.FaultKind(kind), Factor: 2}
		var err error
		if s.At, err = units.ParseSeconds(start, 1); err != nil {
			return nil, bad(err.Error())
		}
		if s.Duration, err = units.ParseSeconds(length, 1); err != nil {
			return nil, bad(err.Error())
		}
		if len(parts) > 1 {
			if s.Instance, err = strconv.Atoi(parts[1]); err != nil {
				return nil, bad(fmt.Sprintf("instance %q is not a number", parts[1]))
			}
		}
		if len(parts) > 2 {
			if s.Factor, err = strconv.ParseFloat(parts[2], 64); err != nil || !(s.Factor > 0 && s.Factor <= mostSlowdown) {
				return nil, bad(fmt.Sprintf("factor %q is not a number above 0 and up to %g", parts[2], float64(mostSlowdown)))
			}
			if s.Kind != cluster.FaultSlow {
				return nil, bad("only slow takes a factor")
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// The queue rule's targets: a queue of two requests per instance is too many,
// engines are kept 85 % busy, and three decisions in a row must ask for fewer
// instances.
const (
	scaleQueue    = 2
	scaleBusy     = 0.85
	scalePatience = 3
)

// autoscaler returns the autoscaler asked for, nil for none.
func (s *scenario) autoscaler() (*cluster.Autoscaler, error) {
	f := s.f
	if f.autoscale == "" {
		return nil, nil
	}
	if f.autoscale == cluster.ScaleByLatency && (f.ttftMs == 0 || f.tpotMs == 0) {
		return nil, cli.Errorf(cli.BadInput, "--des-autoscale latency needs --slo-ttft-ms and --slo-tpot-ms")
	}
	if f.autoscale != cluster.ScaleByLatency && f.autoscale != cluster.ScaleByQueue {
		return nil, cli.Errorf(cli.BadInput, "--des-autoscale %q: want queue or latency", f.autoscale)
	}
	return &cluster.Autoscaler{
		Rule: f.autoscale, Interval: units.Seconds(f.autoscaleIntervalS), StartDelay: units.Seconds(f.coldStartS),
		Least: 1, Most: f.autoscaleMost, Queue: scaleQueue, Busy: scaleBusy, Patience: scalePatience,
		TTFT: units.Seconds(f.ttftMs / 1e3), TPOT: units.Seconds(f.tpotMs / 1e3),
	}, nil
}

// writeFiles writes the page and the step logs that were asked for.
func (s *scenario) writeFiles(ctx context.Context, r *cluster.Result) error {
	f := s.f
	for _, file := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{f.html, func(w io.Writer) error { return simulation.HTML(w, r) }},
		{f.dumpSteps, func(w io.Writer) error {
			return s.steps(ctx, func(all iter.Seq[simulation.Step]) error { return simulation.StepsJSONL(w, all) })
		}},
		{f.dumpTrace, func(w io.Writer) error {
			return s.steps(ctx, func(all iter.Seq[simulation.Step]) error { return simulation.StepsTrace(w, all) })
		}},
	} {
		if file.path == "" {
			continue
		}
		var b bytes.Buffer
		if err := file.write(&b); err != nil {
			return err
		}
		if err := s.app.State.Files.WriteFile(file.path, b.Bytes()); err != nil {
			return fmt.Errorf("write %s: %w", file.path, err)
		}
	}
	return nil
}

// steps runs the scenario again, the same, and gives its steps to write.
func (s *scenario) steps(ctx context.Context, write func(iter.Seq[simulation.Step]) error) error {
	var failed error
	err := write(func(yield func(simulation.Step) bool) {
		more := true
		_, failed = s.once(ctx, uint64(s.f.seed), 0, func(r cluster.StepRecord) {
			more = more && yield(simulation.Step{
				Instance: r.Instance, Index: r.Index, Start: r.Start, End: r.End, Prefills: r.Prefills, Decodes: r.Decodes,
				PromptTokens: r.PromptTokens, QueryTokens: r.Tokens, KVTokens: float64(r.KVTokens), Waiting: r.Waiting,
			})
		})
	})
	if failed != nil {
		return failed
	}
	return err
}
