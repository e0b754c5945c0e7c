package cli_test

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"infera/internal/cli"
)

// A program with one command; the environment sets a flag.
func Example() {
	state := &cli.State{
		Args: []string{"project"}, Env: map[string]string{"DEMO_TP": "8"},
		Stdout: os.Stdout, Stderr: os.Stdout, Width: cli.PipeWidth,
	}
	r := cli.New(state, cli.Program{Name: "demo", Prefix: "DEMO_"})
	tp := 1
	project := &cobra.Command{Use: "project", RunE: func(*cobra.Command, []string) error {
		fmt.Println("tp", tp, "from", r.Settings.Origin("tp"))
		return cli.Errorf(cli.Infeasible, "weights do not fit")
	}}
	project.Flags().Var(cli.Int(&tp, 1, 64), "tp", "tensor parallelism")
	root := &cobra.Command{Use: "demo"}
	root.AddCommand(project)
	fmt.Println("exit", r.Main(context.Background(), root))
	// Output:
	// tp 8 from env
	// demo: weights do not fit
	// exit 4
}
