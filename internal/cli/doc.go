// Package cli is what the commands of this project share: the outside world as
// a value, layered settings that remember their origin, exit codes, strictness
// with hints, and output. It knows no domain: nothing of models, GPUs or
// servers.
//
// A program is put together like this:
//
//	func main() { os.Exit(run(context.Background(), cli.OS())) }
//
//	func run(ctx context.Context, state *cli.State) int {
//		r := cli.New(state, cli.Program{
//			Name: "inferasim", Prefix: "INFERASIM_", Variables: variables(), Classify: kindOf,
//		})
//		root := &cobra.Command{Use: "inferasim", Short: "..."}
//		root.AddCommand(project(r), r.EnvCommand(), r.CompletionCommand(), r.ManCommand(), r.VersionCommand())
//		return r.Main(ctx, root)
//	}
//
// # Outside world
//
// [State] carries arguments, environment, standard streams, terminal, clock and
// files. Only this package and cmd import os; everything else is handed what it
// needs, so a test runs a whole command in process with a State of its own.
//
// # Settings
//
// A setting comes from its flag, else from the environment, else from the
// --config file, else from the default. Every flag is also read from the
// variable PREFIX_FLAG_NAME; a [Variable] in the program's table documents one
// that has no flag or is spelled differently. A file is a flat YAML mapping
// whose keys are flag names with - or _. By the time RunE (and PreRunE) of a
// command runs, its flags hold the merged values and count as given.
// PersistentPreRun hooks run before that and see the command line only.
//
// Nothing is skipped silently: an unknown flag, key or variable with the
// program's prefix, a key of another command, and a malformed value of any
// documented variable end the run with exit code 2 and the nearest known name.
// Empty variables count as unset; what Kubernetes injects for a Service that
// is named like the program is not taken for a variable.
//
// # Errors
//
// [Kind] decides the exit code: 0 ok, 1 failure, 2 bad input, 3 no calibration
// available, 4 does not fit or no candidate meets the SLO, 130 interrupted. A
// command returns [Errorf], [Wrap] or [WithHint] errors, or plain ones that
// [Program.Classify] knows. Each is one line on standard error and, with -o
// json, an object of schema infera.error/v1 on standard output, unless the
// error is [Reported]. A panic is one line too. When the reader of standard
// output has gone away the program ends without a word.
//
// # Output
//
// [Run.Emit] writes a [Report] in the format of --output. [Table] fits itself
// to the terminal, or to 100 columns in a pipe. There is no colour, and
// [Run.Progress] draws only on a terminal.
package cli
