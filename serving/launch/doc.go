// Package launch reads the command line that starts an inference engine and
// says what it means for a projection.
//
// It knows the launch commands of vLLM, SGLang and ATOM: how a shell splits the
// line, which wrapper precedes the engine (env, nohup, numactl, docker run, a
// shell -c), which flags and environment variables the engine takes, and which
// field of a plan each one sets. [Parse] returns the settings and a report with
// one [Argument] per argument of the line: used as it stands, translated, or not
// modelled. A flag that this package has never heard of is reported with the
// nearest known name; a value that the engine would refuse is an error.
//
// Nothing is executed and nothing is read: no shell, no file, no environment.
// Variables are not expanded; one in a value that matters is an error.
//
// The package must not know the cost model. Which of its fields a planner really
// consumes is told to it afterwards with [Command.Limit].
package launch
