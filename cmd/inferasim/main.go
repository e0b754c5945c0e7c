// Command inferasim plans LLM inference: it answers whether a model fits on
// GPUs and how fast it will be served there, with the bound that decides and
// the source of every number.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"infera/configs"
	"infera/internal/cli"
	"infera/internal/routing"
	"infera/models"
	"infera/serving/launch"
	"infera/sim/accuracy"
	"infera/sim/cluster"
	"infera/sim/engine"
	"infera/sim/hardware"
	"infera/sim/hardware/probe"
	"infera/sim/kernel"
	"infera/sim/kvcache"
	"infera/sim/memory"
	"infera/sim/memory/enginelog"
	"infera/sim/moe"
	"infera/sim/planner"
	"infera/sim/software"
	"infera/sim/steady"
	"infera/sim/workload"
	"infera/sim/workload/trace"
)

func main() { os.Exit(newApp(cli.OS()).execute(context.Background())) }

// app is one run of the program and the data its commands share.
type app struct {
	*cli.Run

	// tool runs a program of the machine, to ask a driver.
	tool   probe.Runner
	opened *planner.Library
}

func newApp(state *cli.State) *app {
	return &app{
		Run: cli.New(state, cli.Program{
			Name: "inferasim", Prefix: "INFERASIM_", Variables: variables(), Classify: kindOf,
		}),
		tool: runTool,
	}
}

// execute runs one command line and returns its exit code.
func (a *app) execute(ctx context.Context) int {
	root := &cobra.Command{
		Use:   "inferasim",
		Short: "Plan LLM inference: does it fit, how fast is it, what does it cost",
		Example: "  inferasim project --model gpt_oss_120B --gpu-arch mi355x --tp 2 --ep 2 \\\n" +
			"      --input-len 1024 --output-len 1024 --max-concurrency 32 --profiling-mode simulate",
	}
	root.AddCommand(
		a.projectCommand(), a.simulateCommand(), a.traceCommand(), a.fitCommand(), a.validateCommand(), a.calibrateCommand(), a.modelCommand(), a.hardwareCommand(),
		a.EnvCommand(), a.CompletionCommand(), a.ManCommand(), a.VersionCommand(),
	)
	return a.Main(ctx, root)
}

// library returns the data that ships in the program, opened on first use.
func (a *app) library() (*planner.Library, error) {
	if a.opened != nil {
		return a.opened, nil
	}
	l, err := planner.Open(configs.FS)
	if err != nil {
		return nil, err
	}
	a.opened = l
	return l, nil
}

// kindOf gives the errors of the domain packages their kind; all that a user
// can mend by other input is bad input.
func kindOf(err error) cli.Kind {
	for _, bad := range []error{
		models.ErrBadConfig, models.ErrUnknownModel, models.ErrUnknownFormat,
		hardware.ErrUnknownGPU, hardware.ErrUnknownFabric, hardware.ErrIncomplete, hardware.ErrInvalid,
		kernel.ErrNoCurves, software.ErrEngine, software.ErrRelease, launch.ErrBadCommand,
		memory.ErrRequest, enginelog.ErrNothing, moe.ErrCoverage,
		planner.ErrBadRequest, steady.ErrBadWorkload, accuracy.ErrBadTable,
		cluster.ErrConfig, engine.ErrOptions, kvcache.ErrOptions, workload.ErrSpec, trace.ErrTrace, routing.ErrPolicy, routing.ErrOptions,
	} {
		if errors.Is(err, bad) {
			return cli.BadInput
		}
	}
	return ""
}
