// Command infera serves large language models: gateway, router, workers and
// the KV-cache daemon.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"infera/internal/cli"
)

func main() { os.Exit(run(context.Background(), cli.OS())) }

// run is main with its effects handed in, so that a test can run the program.
func run(ctx context.Context, state *cli.State) int {
	r := cli.New(state, cli.Program{Name: "infera", Prefix: "INFERA_", Variables: variables()})
	return r.Main(ctx, root(r))
}

// root puts the commands together; without one of them it shows the help.
func root(r *cli.Run) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "infera",
		Short: "Serve large language models on a fleet of GPUs",
		Long: "Serve large language models on a fleet of GPUs: an OpenAI-compatible gateway with a\n" +
			"KV-cache-aware router, workers around the engines, and a KV-cache daemon.",
	}
	cmd.AddCommand(r.EnvCommand(), r.CompletionCommand(), r.ManCommand(), r.VersionCommand())
	return cmd
}
