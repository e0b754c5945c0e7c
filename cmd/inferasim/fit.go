package main

import (
	"bytes"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"infera/internal/cli"
	"infera/sim/memory/enginelog"
	"infera/sim/planner"
	"infera/sim/report"
)

func (a *app) fitCommand() *cobra.Command {
	var f requestFlags
	var log string
	cmd := &cobra.Command{
		Use:   "fit",
		Short: "Answer whether a recipe fits into memory, and up to which context and concurrency",
		Long: "Answer whether a recipe fits into memory, up to which context and concurrency, and term by term why.\n\n" +
			"Nothing here depends on a measurement, so --profiling-mode does not matter. Exit code 4 says that it does not fit.",
		Example: "  inferasim fit --model deepseek-ai/DeepSeek-R1 --gpu-arch mi300x --tp 8 --max-context-len 131072\n" +
			"  inferasim fit --launch \"vllm serve openai/gpt-oss-120b -tp 1\" --gpu-arch mi355x --engine-log start.log",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := a.resolve(cmd.Context(), &f, cmd.Flags())
			if err != nil {
				return err
			}
			a.planContext(q, &f)
			a.warnIdle(q)
			r, err := a.fit(q, log)
			if err != nil {
				return err
			}
			err = a.Emit(cli.Report{JSON: r, CSV: r.Records(), Text: func(w io.Writer, width int) error {
				return r.WriteTable(w, a.page(width))
			}})
			return verdict(err, r.Feasible, r.Reason)
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().StringVar(&log, "engine-log", "", "start-up log of the engine to compare with, term by term (- = standard input)")
	return cmd
}

// planContext plans for requests of the longest context when no lengths are
// given: that of --max-context-len, or for an engine's command line without a
// limit the model's own, which engines then plan for too.
func (a *app) planContext(q *question, f *requestFlags) {
	if a.Settings.Origin("input-len") != cli.FromDefault || a.Settings.Origin("output-len") != cli.FromDefault {
		return
	}
	if q.MaxContext == 0 && f.launch != "" {
		q.MaxContext = q.Arch.MaxContext
	}
	if q.MaxContext > 1 {
		out := min(f.outputLen, q.MaxContext-1)
		q.InputLen, q.OutputLen = float64(q.MaxContext-out), float64(out)
		q.fields.Set("input_len", report.Number(q.InputLen))
		q.fields.Set("output_len", report.Number(q.OutputLen))
		q.fields.Set("max_context_len", q.MaxContext)
	}
}

// warnIdle names the given flags that memory does not depend on.
func (a *app) warnIdle(q *question) {
	counts := memoryFlags()
	var idle []string
	for _, name := range requestNames() {
		if !counts[name] && name != "profiling-mode" && a.Settings.Origin(name) == cli.FromFlag {
			idle = append(idle, "--"+name)
		}
	}
	if len(idle) > 0 {
		sort.Strings(idle)
		q.warnings = append(q.warnings, report.Warning{Code: "no_effect", Text: "without effect on memory: " + strings.Join(idle, ", ")})
	}
}

// fit answers a question about memory. Of two pools it reports the one that
// does not fit, else the decode pool.
func (a *app) fit(q *question, log string) (report.Fit, error) {
	lib, err := a.library()
	if err != nil {
		return report.Fit{}, err
	}
	s, err := lib.Size(q.Request)
	if err != nil {
		return report.Fit{}, err
	}
	pool := ""
	if d := q.Disagg; d != nil {
		pool = "decode pool: "
		prefill, err := lib.SizePool(q.Request, d.Prefill, 1)
		if err != nil {
			return report.Fit{}, err
		}
		if s.OK && !prefill.OK {
			s, pool = prefill, "prefill pool: "
		}
	}
	out := fitReport(q, s, pool)
	if log == "" {
		return out, nil
	}
	data, err := a.State.ReadInput(log)
	if err != nil {
		return report.Fit{}, err
	}
	facts, err := enginelog.Read(bytes.NewReader(data))
	if err != nil {
		return report.Fit{}, cli.WithHint(fmt.Errorf("--engine-log %s: %w", log, err),
			"it must be the start-up log of vllm, sglang or atom")
	}
	out.Warnings = append(out.Warnings, logDoubts(q, facts)...)
	out.EngineLog = logTerms(s, facts)
	return out, nil
}

// logDoubts says where the log is of another engine than the one asked for.
func logDoubts(q *question, f enginelog.Facts) []report.Warning {
	var out []report.Warning
	if f.Engine != "" && f.Engine != q.Engine.Name {
		out = append(out, report.Warning{Code: "engine_log", Text: fmt.Sprintf("the log is of %s, the request of %s", f.Engine, q.Engine.Name)})
	}
	if f.Version != "" && !strings.Contains(f.Version, q.Release.Version) {
		out = append(out, report.Warning{Code: "engine_log", Text: fmt.Sprintf("the log is of release %s, the request of %s: name it with --engine-version", f.Version, q.Release)})
	}
	return out
}

// logTerms puts the comparison with a log into its report form; what is not an
// amount of memory is told in words.
func logTerms(s *planner.Sizing, f enginelog.Facts) []report.LogTerm {
	var out []report.LogTerm
	for _, d := range enginelog.Attribute(s.Report, f) {
		t := report.LogTerm{Name: d.Term, ProjectedBytes: report.Number(d.Ours), LoggedBytes: report.Number(d.Logged), Note: d.Note}
		if d.Unit != "bytes" {
			t.ProjectedBytes, t.LoggedBytes = report.None(), report.None()
			t.Note = join(fmt.Sprintf("%s %s projected, %s logged (%+.1f %%)", report.Number(d.Ours).Text(), d.Unit, report.Number(d.Logged).Text(), d.Percent()), d.Note)
		}
		out = append(out, t)
	}
	return out
}
