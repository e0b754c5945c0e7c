package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// Settings are the layered settings of one run: default < --config file <
// environment < flag, with the origin of each.
//
// viper merges the layers. It is fed maps instead of reading the environment
// and the file itself, because it would read the process's environment (a test
// has its own), would accept unknown keys, and does not remember where a value
// came from.
type Settings struct {
	prefix  string
	layers  *viper.Viper
	catalog *catalog
	origin  map[string]source // by key
	failed  error             // what resolve returned
}

// source is where a value was found.
type source struct {
	origin Origin
	label  string // "--tp", "INFERASIM_TP", "run.yaml:3: tp"
}

func newSettings(prefix string) *Settings {
	return &Settings{
		prefix: prefix,
		layers: viper.NewWithOptions(viper.KeyDelimiter("::")), // keys are flat
		origin: map[string]source{}, catalog: &catalog{},       // the tree is known in Main
	}
}

// Origin tells which layer the value of a flag or of a variable came from.
func (s *Settings) Origin(name string) Origin {
	if v, ok := s.catalog.byName[name]; ok {
		name = v.key(s.prefix)
	}
	if o, ok := s.origin[flagKey(name)]; ok {
		return o.origin
	}
	return FromDefault
}

// Text returns the value of a documented variable as text, "" when it is unset
// and has no default. A name the program does not declare is a mistake of the
// program and panics.
func (s *Settings) Text(name string) string {
	v, ok := s.catalog.byName[name]
	if !ok {
		panic("cli: undeclared variable " + name)
	}
	return s.layers.GetString(v.key(s.prefix))
}

// Bool returns the value of a variable whose Check is [Boolean]; unset is false.
func (s *Settings) Bool(name string) bool {
	b, err := parseBool(s.Text(name))
	return err == nil && b
}

// Int returns the value of a variable that holds a whole number, and whether
// it has one.
func (s *Settings) Int(name string) (int, bool) {
	n, err := strconv.Atoi(s.Text(name))
	return n, err == nil
}

// Float returns the value of a variable that holds a number, and whether it
// has one.
func (s *Settings) Float(name string) (float64, bool) {
	f, err := parseFloat(s.Text(name))
	return f, err == nil
}

// resolve merges the layers and gives the flags of cmd that the command line
// left unset their value from the environment or the file.
func (s *Settings) resolve(cmd *cobra.Command, state *State) error {
	s.failed = s.merge(cmd, state)
	return s.failed
}

func (s *Settings) merge(cmd *cobra.Command, state *State) error {
	for _, v := range s.catalog.variables {
		s.layers.SetDefault(v.key(s.prefix), s.catalog.defaultOf(v))
	}
	visitFlags(cmd, func(f *pflag.Flag) {
		if f.Changed {
			s.origin[flagKey(f.Name)] = source{FromFlag, "--" + f.Name}
		}
	})
	// The environment goes first because it may name the file; the file still
	// ranks below it, so both are merged at the end.
	env, err := s.readEnvironment(state.Env)
	if err != nil {
		return err
	}
	file, err := s.readFile(cmd, state, env)
	if err != nil {
		return err
	}
	for _, layer := range []map[string]any{file, env} {
		if err := s.layers.MergeConfigMap(layer); err != nil {
			return fmt.Errorf("merge settings: %w", err)
		}
	}
	return s.apply(cmd)
}

// readEnvironment returns the settings of the environment by key.
func (s *Settings) readEnvironment(env map[string]string) (map[string]any, error) {
	layer := map[string]any{}
	set := environment(env)
	for _, name := range set {
		if _, known := s.catalog.byName[name]; !known && strings.HasPrefix(name, s.prefix) {
			return nil, unknownVariable(s.prefix, name, s.catalog)
		}
	}
	// In the order of the table, so that the first of two spellings wins.
	for _, v := range s.catalog.variables {
		key, value := v.key(s.prefix), env[v.Name]
		if !slices.Contains(set, v.Name) {
			continue
		}
		if err := s.check(v, value); err != nil {
			return nil, prefixed(v.Name, err)
		}
		for _, key := range []string{key, s.catalog.also[v.Name]} {
			if _, ok := layer[key]; key != "" && !ok {
				layer[key] = value
				s.record(key, source{FromEnv, v.Name})
			}
		}
	}
	return layer, nil
}

// check refuses a malformed value of a variable, whichever command reads it.
func (s *Settings) check(v Variable, value string) error {
	if v.Check != nil {
		return v.Check(value)
	}
	if f := s.catalog.flags[flagKey(v.Flag)]; v.Flag != "" && f != nil {
		return checkFlag(f, value)
	}
	return nil
}

// record notes the origin of key unless a higher layer has set it.
func (s *Settings) record(key string, from source) {
	rank := map[Origin]int{FromDefault: 0, FromFile: 1, FromEnv: 2, FromFlag: 3}
	if have, ok := s.origin[key]; !ok || rank[from.origin] > rank[have.origin] {
		s.origin[key] = from
	}
}

// apply sets the flags of cmd that were not on the command line.
func (s *Settings) apply(cmd *cobra.Command) error {
	var failed error
	visitFlags(cmd, func(f *pflag.Flag) {
		key := flagKey(f.Name)
		from, ok := s.origin[key]
		if failed != nil || !ok || notSettable[f.Name] {
			return
		}
		if from.origin == FromFlag {
			// The flag ranks above the merged layers.
			failed = s.layers.BindPFlag(key, f)
			return
		}
		if err := s.set(cmd, f, key); err != nil {
			failed = prefixed(from.label, err)
		}
	})
	return failed
}

// set gives one flag its merged value and marks it as given, so that required
// flags and "was it set" see no difference from the command line.
func (s *Settings) set(cmd *cobra.Command, f *pflag.Flag, key string) error {
	if list, ok := s.layers.Get(key).([]string); ok {
		slice, ok := f.Value.(pflag.SliceValue)
		if !ok {
			return Errorf(BadInput, "a list is given where one value is wanted")
		}
		if err := slice.Replace(list); err != nil {
			return valueError(f, strings.Join(list, ","), err)
		}
		f.Changed = true
		return nil
	}
	value := s.layers.GetString(key)
	if f.Value.Type() == "bool" {
		if b, err := parseBool(value); err == nil {
			value = strconv.FormatBool(b) // pflag does not know on and off
		}
	}
	if err := cmd.Flags().Set(f.Name, value); err != nil {
		return valueError(f, value, err)
	}
	return nil
}

// checkFlag tests whether value would be accepted by a flag without setting
// it: the flag may belong to a command that does not run.
func checkFlag(f *pflag.Flag, value string) error {
	var err error
	switch f.Value.Type() {
	case "bool":
		_, err = parseBool(value)
	case "int", "int64":
		_, err = strconv.ParseInt(value, 0, 64)
	case "float64":
		_, err = parseFloat(value)
	case "duration":
		if _, ok := f.Value.(checker); !ok {
			_, err = time.ParseDuration(value)
		}
	}
	if c, ok := f.Value.(checker); ok {
		err = c.check(value)
	}
	if err != nil {
		return valueError(f, value, err)
	}
	return nil
}

// checker is a flag value that can be asked before it is set.
type checker interface{ check(text string) error }
