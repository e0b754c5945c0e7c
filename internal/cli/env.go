package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// envReport is the contract of "env -o json".
type envReport struct {
	Schema    string        `json:"schema"`
	Variables []envVariable `json:"variables"`
}

type envVariable struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Default string `json:"default"`
	Origin  Origin `json:"origin"`
	Flag    string `json:"flag"`
	Help    string `json:"help"`

	group string
}

// EnvCommand lists every variable the program reads with its value and where
// that came from. It also shows an environment it must refuse, and then fails
// as any other command does.
func (r *Run) EnvCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Show every environment variable, its value and where it came from",
		Long: "Show every environment variable, its value and where it came from.\n\n" +
			"A setting is taken from its flag, else from the environment, else from the --config file, else from the default.\n" +
			"Values of variables that hold a secret are not shown.",
		Annotations: map[string]string{allSettings: "true"},
		RunE: func(*cobra.Command, []string) error {
			variables := r.Settings.list(r.State.Env)
			err := r.Emit(Report{
				JSON: envReport{"infera.env/v1", variables},
				CSV:  envRecords(variables),
				Text: func(w io.Writer, width int) error { return writeEnv(w, width, variables) },
			})
			if err != nil {
				return err
			}
			return Reported(r.Settings.failed)
		},
	}
}

// list describes every variable, documented ones first.
func (s *Settings) list(env map[string]string) []envVariable {
	out := make([]envVariable, 0, len(s.catalog.variables))
	for _, v := range s.catalog.variables {
		key := v.key(s.prefix)
		e := envVariable{Name: v.Name, Default: s.catalog.defaultOf(v), Origin: FromDefault, Help: v.Help, group: v.Group}
		if v.Flag != "" {
			e.Flag = "--" + v.Flag
		}
		e.Value = e.Default
		if from, ok := s.origin[key]; ok {
			e.Origin, e.Value = from.origin, s.layers.GetString(key)
			if list, ok := s.layers.Get(key).([]string); ok {
				e.Value = strings.Join(list, ",")
			}
			// A second spelling of the same setting shows its own value.
			if from.origin == FromEnv && from.label != v.Name {
				e.Origin, e.Value = FromDefault, e.Default
				if env[v.Name] != "" {
					e.Origin, e.Value = FromEnv, env[v.Name]
				}
			}
		}
		e.Value = masked(v.Name, e.Value)
		out = append(out, e)
	}
	return out
}

func envRecords(variables []envVariable) [][]string {
	records := [][]string{{"name", "value", "default", "origin", "flag", "help"}}
	for _, v := range variables {
		records = append(records, []string{v.Name, v.Value, v.Default, string(v.Origin), v.Flag, v.Help})
	}
	return records
}

// writeEnv writes one table per group.
func writeEnv(w io.Writer, width int, variables []envVariable) error {
	for start := 0; start < len(variables); {
		end := start
		for end < len(variables) && variables[end].group == variables[start].group {
			end++
		}
		title := variables[start].group + "\n"
		if start > 0 {
			title = "\n" + title
		}
		if _, err := io.WriteString(w, title); err != nil {
			return err
		}
		t := Table{Columns: []Column{{Name: "variable", Whole: true}, {Name: "value"}, {Name: "origin", Whole: true}, {Name: "meaning"}}}
		for _, v := range variables[start:end] {
			meaning := v.Help
			if v.Flag != "" {
				meaning = v.Flag + ": " + meaning
			}
			t.Rows = append(t.Rows, []string{v.Name, v.Value, string(v.Origin), meaning})
		}
		if err := t.Write(w, width); err != nil {
			return err
		}
		start = end
	}
	return nil
}
