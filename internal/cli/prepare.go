package cli

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"infera/internal/nearest"
)

// prepare gives every command of the tree the common flags, strictness,
// settings and texts. It is called once all commands have been added.
func (r *Run) prepare(root *cobra.Command) {
	root.SetArgs(r.State.Args)
	root.SetIn(r.State.Stdin)
	root.SetOut(r.State.Stdout)
	root.SetErr(r.State.Stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true // see CompletionCommand
	if root.Version == "" {
		root.Version = readBuild().String()
		root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	}
	if root.PersistentFlags().Lookup("output") == nil {
		root.PersistentFlags().VarP(Choice(&r.output, FormatTable, FormatJSON, FormatCSV), "output", "o", "output format")
	}
	if root.PersistentFlags().Lookup("config") == nil {
		root.PersistentFlags().StringVar(&r.config, "config", "", "YAML file of settings, keyed by flag name")
	}
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return r.flagError(cmd, err) })
	root.SetHelpCommand(helpCommand(root))
	r.Settings.catalog = newCatalog(root, r.program.Prefix, r.program.Variables)
	walk(root, r.prepareCommand)
	r.nameVariables(root)
}

// prepareCommand makes one command strict about arguments and lets it resolve
// the settings before it checks what is required.
func (r *Run) prepareCommand(cmd *cobra.Command) {
	switch {
	case cmd.HasSubCommands() && !cmd.Runnable():
		// cobra shows help and exits 0 for "model lsit".
		cmd.Args = unknownCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		cmd.DisableFlagsInUseLine = true
		return
	case cmd.Args != nil:
		given := cmd.Args
		cmd.Args = func(cmd *cobra.Command, args []string) error { return Wrap(BadInput, given(cmd, args)) }
	case cmd.HasSubCommands():
		cmd.Args = unknownCommand
	default:
		cmd.Args = noArguments
	}
	before, beforePlain := cmd.PreRunE, cmd.PreRun
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := r.Settings.resolve(cmd, r.State); err != nil && cmd.Annotations[allSettings] == "" {
			return err
		}
		if err := required(cmd); err != nil {
			return err
		}
		if before != nil {
			return before(cmd, args)
		}
		if beforePlain != nil {
			beforePlain(cmd, args)
		}
		return nil
	}
	visitFlags(cmd, func(f *pflag.Flag) { completeValues(cmd, f) })
}

// unknownCommand refuses any argument of a command that only has sub-commands.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
			names = append(names, c.Aliases...)
		}
	}
	hint := nearest.Hint(args[0], names)
	if hint == "" {
		hint = "known: " + strings.Join(names, ", ")
	}
	return WithHint(Errorf(BadInput, "unknown command %q for %q", args[0], cmd.CommandPath()), hint)
}

// noArguments is the rule for a command that does not say what it takes.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Errorf(BadInput, "unexpected argument %q: %s takes flags only", args[0], cmd.CommandPath())
}

// required names the first flag that must be given and is not, and applies
// cobra's flag groups.
func required(cmd *cobra.Command) error {
	var missing []string
	visitFlags(cmd, func(f *pflag.Flag) {
		if a := f.Annotations[cobra.BashCompOneRequiredFlag]; len(a) > 0 && a[0] == "true" && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
	})
	if len(missing) > 0 {
		sort.Strings(missing)
		return Errorf(BadInput, "%s needs %s", cmd.CommandPath(), strings.Join(missing, ", "))
	}
	return Wrap(BadInput, cmd.ValidateFlagGroups())
}

// nameVariables appends to a flag's help the documented variable it reads.
func (r *Run) nameVariables(root *cobra.Command) {
	seen := map[*pflag.Flag]bool{}
	walk(root, func(cmd *cobra.Command) {
		visitFlags(cmd, func(f *pflag.Flag) {
			v, ok := r.Settings.catalog.byKey[flagKey(f.Name)]
			if ok && v.Name != "" && v.Group != impliedGroup && !seen[f] {
				seen[f] = true
				f.Usage += " [$" + v.Name + "]"
			}
		})
	})
}

// flagError turns an error of the flag parser into one line with a hint.
func (r *Run) flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		return r.unknownFlag(cmd, unknown)
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return prefixed("--"+invalid.GetFlag().Name, valueError(invalid.GetFlag(), invalid.GetValue(), err))
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		return Errorf(BadInput, "--%s needs a value", missing.GetFlag().Name)
	}
	return Wrap(BadInput, err)
}

func (r *Run) unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	name := unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		return Errorf(BadInput, "unknown flag -%s for %s", name, cmd.CommandPath())
	}
	err := Errorf(BadInput, "unknown flag --%s for %s", name, cmd.CommandPath())
	if owners := r.Settings.catalog.owners[flagKey(name)]; len(owners) > 0 {
		return WithHint(err, "it belongs to "+list(owners))
	}
	var names []string
	visitFlags(cmd, func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return WithHint(err, nearest.Hint("--"+name, names))
}

// valueError explains why a flag does not take value. The values of this
// package explain themselves; those of pflag leak the parser's own words.
func valueError(f *pflag.Flag, value string, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		err = invalid.Unwrap()
	}
	var syntax *strconv.NumError
	if !errors.As(err, &syntax) {
		return Wrap(BadInput, err)
	}
	if errors.Is(err, strconv.ErrRange) {
		return Errorf(BadInput, "%s is out of range", value)
	}
	what := map[string]string{"bool": "true or false", "float64": "a number", "float32": "a number"}[f.Value.Type()]
	if what == "" {
		what = "a whole number"
	}
	return Errorf(BadInput, "%q is not %s", value, what)
}

// prefixed puts the name of a flag, variable or key in front of an error about
// its value.
func prefixed(name string, err error) error {
	kind := classify(err, nil)
	if kind == Failure {
		kind = BadInput
	}
	return Wrap(kind, fmt.Errorf("%s: %w", name, err))
}

// completeValues offers the values of a [Choice] to shell completion.
func completeValues(cmd *cobra.Command, f *pflag.Flag) {
	v, ok := f.Value.(interface{ Values() []string })
	if !ok {
		return
	}
	if _, has := cmd.GetFlagCompletionFunc(f.Name); has || len(v.Values()) == 0 {
		return
	}
	// The only error is a flag that does not exist, and this one does.
	_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(v.Values(), cobra.ShellCompDirectiveNoFileComp))
}

// helpCommand is cobra's help command, strict about its topic.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || cmd == nil || len(rest) > 0 {
				if cmd == nil {
					cmd = root
				}
				if len(rest) == 0 {
					rest = args
				}
				return unknownCommand(cmd, rest)
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}
