package cli

import (
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// catalog is everything that can be set in a program: the documented variables
// and, for every other flag of any command, the variable that follows from its
// name.
type catalog struct {
	variables []Variable             // documented ones in their order, then the rest by name
	byName    map[string]Variable    // by environment name
	byKey     map[string]Variable    // by key; the first of several spellings
	flags     map[string]*pflag.Flag // by key, of the first command that has it
	owners    map[string][]string    // by key: the commands that have the flag
	also      map[string]string      // by environment name: the key of a second flag it sets
}

// impliedGroup heads the variables that follow from a flag's name.
const impliedGroup = "Flags"

// notSettable are flags that only make sense on a command line.
var notSettable = map[string]bool{"help": true, "version": true}

func newCatalog(root *cobra.Command, prefix string, documented []Variable) *catalog {
	c := &catalog{
		byName: map[string]Variable{}, byKey: map[string]Variable{},
		flags: map[string]*pflag.Flag{}, owners: map[string][]string{},
		also: map[string]string{},
	}
	walk(root, c.addFlags)
	for _, v := range documented {
		// A variable that names no flag belongs to the flag of its name.
		if f := c.flags[v.key(prefix)]; f != nil && v.Flag == "" {
			v.Flag = f.Name
		}
		c.add(v, prefix)
	}
	var implied []Variable
	for key, f := range c.flags {
		if _, ok := c.byKey[key]; !ok {
			implied = append(implied, Variable{Name: prefix + strings.ToUpper(key), Flag: f.Name, Help: usage(f), Group: impliedGroup})
		}
	}
	sort.Slice(implied, func(i, j int) bool { return implied[i].Name < implied[j].Name })
	for _, v := range implied {
		// The documented variable of that name is another flag's: it sets both.
		if taken, ok := c.byName[v.Name]; ok {
			key := flagKey(v.Flag)
			taken.Flag = v.Flag
			c.byKey[key], c.also[v.Name] = taken, key
			continue
		}
		c.add(v, prefix)
	}
	return c
}

func (c *catalog) add(v Variable, prefix string) {
	c.variables = append(c.variables, v)
	c.byName[v.Name] = v
	if _, ok := c.byKey[v.key(prefix)]; !ok {
		c.byKey[v.key(prefix)] = v
	}
}

func (c *catalog) addFlags(cmd *cobra.Command) {
	visitFlags(cmd, func(f *pflag.Flag) {
		if notSettable[f.Name] {
			return
		}
		key := flagKey(f.Name)
		if c.flags[key] == nil {
			c.flags[key] = f
		}
		c.owners[key] = append(c.owners[key], commandName(cmd))
	})
}

// defaultOf returns the default of v as text.
func (c *catalog) defaultOf(v Variable) string {
	if v.Flag != "" {
		if f := c.flags[flagKey(v.Flag)]; f != nil && f.DefValue != "" && f.DefValue != "[]" {
			return f.DefValue
		}
	}
	return v.Default
}

// walk calls visit for root and every command below it.
func walk(root *cobra.Command, visit func(*cobra.Command)) {
	visit(root)
	for _, child := range root.Commands() {
		walk(child, visit)
	}
}

// visitFlags calls visit for the flags a command takes, inherited ones too.
func visitFlags(cmd *cobra.Command, visit func(*pflag.Flag)) {
	cmd.LocalFlags().VisitAll(visit)
	cmd.InheritedFlags().VisitAll(visit)
}

// commandName is the path of a command without the program's name.
func commandName(cmd *cobra.Command) string {
	_, name, ok := strings.Cut(cmd.CommandPath(), " ")
	if !ok {
		return cmd.Name()
	}
	return name
}

// usage is the help text of a flag without what [Run] appended to it.
func usage(f *pflag.Flag) string {
	text, _, _ := strings.Cut(f.Usage, " [$")
	return text
}
