package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"infera/internal/nearest"
	"infera/internal/strict"
)

// fileValue is what stands behind a key of a --config file: one value or a
// list, kept as the text that was written ("0.10" is not 0.1).
type fileValue struct {
	items []string
	list  bool
}

// UnmarshalYAML reads a scalar or a list of scalars.
func (v *fileValue) UnmarshalYAML(decode func(any) error) error {
	if decode(&v.items) == nil {
		v.list = true
		return nil
	}
	v.items = make([]string, 1)
	return decode(&v.items[0])
}

// readFile returns the settings of the --config file by key, nil when no file
// is named. env is consulted for the file's name only.
func (s *Settings) readFile(cmd *cobra.Command, state *State, env map[string]any) (map[string]any, error) {
	path := ""
	if f := cmd.Flags().Lookup("config"); f != nil {
		path = f.Value.String()
		if fromEnv, ok := env["config"].(string); ok && !f.Changed {
			path = fromEnv
		}
	}
	if path == "" {
		return nil, nil
	}
	data, err := state.Files.ReadFile(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	var keys map[string]fileValue
	if err := strict.YAML(path, data, &keys); err != nil {
		return nil, err
	}
	layer := map[string]any{}
	for _, name := range sortedKeys(keys) {
		value, at := keys[name], lineOf(data, name)
		key := flagKey(name)
		if _, twice := layer[key]; twice {
			return nil, &strict.Error{Path: path, Line: at, Text: fmt.Sprintf("key %q is given twice, with - and with _", name)}
		}
		if text, hint := s.refuse(cmd, name); text != "" {
			return nil, &strict.Error{Path: path, Line: at, Text: text, Hint: hint}
		}
		if len(value.items) == 0 && !value.list {
			return nil, &strict.Error{Path: path, Line: at, Text: fmt.Sprintf("key %q has no value", name)}
		}
		if value.list {
			layer[key] = value.items
		} else {
			if err := s.check(s.catalog.byKey[key], value.items[0]); err != nil {
				return nil, prefixed(fmt.Sprintf("%s:%d: %s", path, at, name), err)
			}
			layer[key] = value.items[0]
		}
		s.record(key, source{FromFile, fmt.Sprintf("%s:%d: %s", path, at, name)})
	}
	return layer, nil
}

// allSettings marks a command that looks at settings of other commands.
const allSettings = "cli-all-settings"

// refuse says why name cannot be a key of a file for cmd, or "".
func (s *Settings) refuse(cmd *cobra.Command, name string) (text, hint string) {
	key := flagKey(name)
	v, known := s.catalog.byKey[key]
	if name == "config" {
		return `key "config": a file cannot name another file`, ""
	}
	if !known || name != strings.ToLower(name) {
		return fmt.Sprintf("unknown key %q", name), nearest.Hint(name, s.fileKeys(cmd))
	}
	if v.Flag == "" || cmd.Annotations[allSettings] != "" || cmd.Flags().Lookup(v.Flag) != nil {
		return "", ""
	}
	owners := s.catalog.owners[key]
	if len(owners) == 0 {
		return fmt.Sprintf("key %q is not a setting of %s", name, commandName(cmd)), ""
	}
	return fmt.Sprintf("key %q is not a setting of %s", name, commandName(cmd)), "it belongs to " + list(owners)
}

// fileKeys lists the keys a file for cmd may have.
func (s *Settings) fileKeys(cmd *cobra.Command) []string {
	var keys []string
	for key, v := range s.catalog.byKey {
		if v.Flag == "" || cmd.Annotations[allSettings] != "" || cmd.Flags().Lookup(v.Flag) != nil {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	return keys
}

// fileError is the error for a file the user named that cannot be read.
func fileError(path string, err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return Errorf(BadInput, "read %s: %w", filepath.ToSlash(path), err)
}

// lineOf finds the line of a key of a flat mapping, 0 when it is not found.
func lineOf(data []byte, key string) int {
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimLeft(line, " {")
		for _, quote := range []string{"", `"`, "'"} {
			if rest, ok := strings.CutPrefix(line, quote+key+quote); ok && strings.HasPrefix(strings.TrimLeft(rest, " "), ":") {
				return i + 1
			}
		}
	}
	return 0
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// list joins names for a sentence and shortens a long row.
func list(names []string) string {
	if len(names) > 4 {
		names = append(append([]string{}, names[:3]...), fmt.Sprintf("%d more", len(names)-3))
	}
	return strings.Join(names, ", ")
}
