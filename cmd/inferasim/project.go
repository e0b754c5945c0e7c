package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"infera/internal/cli"
	"infera/sim/planner"
	"infera/sim/report"
	"infera/sim/report/page"
	"infera/sim/report/simulation"
	"infera/sim/step"
)

// inferenceMode says which parts of a projection the table shows.
type inferenceMode string

const (
	showBoth        inferenceMode = "both"
	showPerformance inferenceMode = "performance"
	showMemory      inferenceMode = "memory"
)

func (a *app) projectCommand() *cobra.Command {
	var f requestFlags
	var sim simulateFlags
	var explain bool
	show := showBoth
	cmd := &cobra.Command{
		Use: "project", Aliases: []string{"inference"},
		Short: "Project latency, throughput, memory and cost of one recipe",
		Long: "Project latency, throughput, memory and cost of one recipe.\n\n" +
			"Exit code 4 says that the recipe does not fit; the output then holds the reason and what would help.\n\n" +
			"With --arrival-model, --des-closed-loop or a recorded workload a simulation of the recipe follows, as `inferasim simulate` prints it.",
		Example: "  inferasim project --model openai/gpt-oss-120b --gpu-arch mi355x --tp 2 --input-len 1024 --output-len 1024 \\\n" +
			"      --max-concurrency 32 --profiling-mode simulate\n" +
			"  inferasim project --launch \"vllm serve ./DeepSeek-R1 -tp 8\" --gpu-arch mi300x --profiling-mode simulate --explain",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := a.resolve(cmd.Context(), &f, cmd.Flags())
			if err != nil {
				return err
			}
			if err := a.calibration(&f); err != nil {
				return err
			}
			p, err := a.project(q)
			if err != nil {
				return err
			}
			result, err := a.simulateAfter(cmd.Context(), q, &f, &sim, &p)
			if err != nil {
				return err
			}
			p.HideMemory, p.HidePerformance = show == showPerformance, show == showMemory
			err = a.Emit(cli.Report{JSON: p, CSV: p.Records(), Text: func(w io.Writer, width int) error {
				if err := p.WriteTable(w, a.page(width)); err != nil {
					return err
				}
				if explain {
					if err := p.WriteExplain(w, a.page(width)); err != nil {
						return err
					}
				}
				if result == nil {
					return nil
				}
				if _, err := fmt.Fprintln(w); err != nil {
					return err
				}
				return simulation.Table(w, result, a.page(width))
			}})
			return verdict(err, p.Feasible, p.Reason)
		},
	}
	f.bind(cmd.Flags())
	sim.bind(cmd.Flags())
	cmd.Flags().Var(cli.Choice(&show, showBoth, showPerformance, showMemory), "inference-mode", "parts of the table to print")
	cmd.Flags().BoolVar(&explain, "explain", false, "print the waterfall of one decode step and of one prompt")
	return cmd
}

// page is how text is laid out for this run: without block characters where
// the locale has none. A machine without a locale is taken to have them, as
// containers and their terminals do.
func (a *app) page(width int) page.Options {
	locale := ""
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale = strings.ToUpper(a.State.Env[name]); locale != "" {
			break
		}
	}
	ascii := locale != "" && !strings.Contains(locale, "UTF-8") && !strings.Contains(locale, "UTF8")
	return page.Options{Width: width, ASCII: ascii}
}

// verdict turns an infeasible answer that has been written into the error that
// sets the exit code.
func verdict(err error, feasible bool, reason string) error {
	if err != nil || feasible {
		return err
	}
	return cli.Reported(cli.Errorf(cli.Infeasible, "%s", reason))
}

// calibration refuses a mode that stands on measurements when there are none.
func (a *app) calibration(f *requestFlags) error {
	if f.mode == modeSimulate {
		return nil
	}
	for _, path := range f.loadBenchmark {
		if _, err := a.State.ReadInput(path); err != nil {
			return err
		}
	}
	what := "no measurement is given"
	if len(f.loadBenchmark) > 0 || f.anchorStore != "" {
		what = "no measurement given fits this request"
	}
	return cli.WithHint(cli.Errorf(cli.NoCalibration, "--profiling-mode %s needs a measured anchor and %s", f.mode, what),
		"name one with --load-benchmark FILE, a directory of them with --anchor-store DIR, or use the analytic model with --profiling-mode simulate")
}

// project answers a question.
func (a *app) project(q *question) (report.Projection, error) {
	lib, err := a.library()
	if err != nil {
		return report.Projection{}, err
	}
	p, err := lib.Project(q.Request)
	if err != nil {
		return report.Projection{}, err
	}
	s, err := decidingPool(lib, q, p)
	if err != nil {
		return report.Projection{}, err
	}
	if a.Settings.Bool("INFERASIM_DEBUG_BREAKDOWN") && p.Feasible {
		a.debugBreakdown(p)
	}
	return projectionReport(q, p, s), nil
}

// decidingPool sizes the pool that the verdict is about: the prefill pool when
// that is the one that does not fit.
func decidingPool(lib *planner.Library, q *question, p *planner.Projection) (*planner.Sizing, error) {
	if d := q.Disagg; d != nil && strings.HasPrefix(p.Reason, "prefill pool") {
		return lib.SizePool(q.Request, d.Prefill, 1)
	}
	return lib.Size(q.Request)
}

// debugBreakdown prints the parts of a decode step and of a prompt chunk to
// standard error.
func (a *app) debugBreakdown(p *planner.Projection) {
	for _, pass := range []struct {
		name string
		b    *step.Breakdown
	}{{"decode", &p.Decode}, {"prefill", &p.Prefill}} {
		for i := range pass.b.Ops {
			o := &pass.b.Ops[i]
			if o.Time > 0 {
				fmt.Fprintf(a.State.Stderr, "breakdown %s %s: %.4f ms (at least %.4f ms, %.4g bytes, %.4g flops, %s)\n", pass.name, step.Op(i),
					o.Time.Milliseconds(), o.Lower.Milliseconds(), float64(o.Bytes), float64(o.FLOPs), o.Bound)
			}
		}
	}
}
