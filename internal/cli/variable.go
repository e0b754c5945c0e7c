package cli

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"sort"
	"strings"

	"github.com/spf13/pflag"

	"infera/internal/nearest"
)

// Variable describes one environment variable a program reads.
type Variable struct {
	Name    string
	Flag    string // the flag it is the environment spelling of, or ""
	Default string // as text; a flag's own default goes before it
	Help    string
	Group   string // heading in the listing

	// Check refuses a malformed value of a variable without a flag; nil takes
	// any text. See [Checked].
	Check func(text string) error
}

// Checked makes a Check of a flag value, so that variables without a flag have
// the same bounds and messages as flags. The value's target is not kept:
//
//	Check: cli.Checked(cli.Int(new(int), 1, 1000))
func Checked(v pflag.Value) func(string) error { return v.Set }

// OneOf is the Check of a variable that is one of values, in any case.
func OneOf(values ...string) func(string) error { return Checked(Choice(new(string), values...)) }

// WholeFrom is the Check of a whole number of at least low.
func WholeFrom(low int) func(string) error { return Checked(Int(new(int), low, math.MaxInt)) }

// AtLeastZero is the Check of a number of at least 0.
func AtLeastZero() func(string) error { return Checked(Float(new(float64), 0, math.Inf(1))) }

// AboveZero is the Check of a number above 0.
func AboveZero() func(string) error { return Checked(Positive(new(float64), math.Inf(1))) }

// Boolean is the Check of a switch.
func Boolean(text string) error {
	if _, err := parseBool(text); err != nil {
		return err
	}
	return nil
}

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "1", "true", "t", "yes", "on":
		return true, nil
	case "0", "false", "f", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("%q is not a switch; allowed: 1, 0, true, false, on, off", text)
}

// Origin says which layer a setting came from.
type Origin string

// The layers, lowest precedence first.
const (
	FromDefault Origin = "default"
	FromFile    Origin = "file"
	FromEnv     Origin = "env"
	FromFlag    Origin = "flag"
)

// key is the name of a setting in the merged layers and, with either - or _,
// in a --config file.
func (v Variable) key(prefix string) string {
	if v.Flag != "" {
		return flagKey(v.Flag)
	}
	return strings.ToLower(strings.TrimPrefix(v.Name, prefix))
}

func flagKey(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// secretWord matches a part of a name after which the value is not shown. The
// part must end there: MAX_NUM_BATCHED_TOKENS is no secret.
var secretWord = regexp.MustCompile(`(TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL|CREDENTIALS)(_|$)`)

// masked returns value unless it must not be shown.
func masked(name, value string) string {
	if value == "" {
		return ""
	}
	if secretWord.MatchString(name) {
		return "********"
	}
	if u, err := url.Parse(value); err == nil && u.User != nil {
		return u.Redacted()
	}
	return value
}

// serviceLink matches what Kubernetes puts into the environment of every pod
// for each Service of the namespace. A Service called "infera" must neither
// look like an unknown INFERA_ variable nor set --port to "tcp://10.0.0.1:80".
var serviceLink = regexp.MustCompile(`^(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// environment returns the names of env that are set, not empty, and not
// injected by Kubernetes, in order.
func environment(env map[string]string) []string {
	var services []string
	for name := range env {
		if service, ok := strings.CutSuffix(name, "_SERVICE_HOST"); ok {
			services = append(services, service+"_")
		}
	}
	injected := func(name string) bool {
		for _, s := range services {
			rest, ok := strings.CutPrefix(name, s)
			if !ok || !serviceLink.MatchString(rest) {
				continue
			}
			if rest != "PORT" || strings.Contains(env[name], "://") {
				return true
			}
		}
		return false
	}
	var names []string
	for name, value := range env {
		if value != "" && !injected(name) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// unknownVariable is the error for a name with the program's prefix that
// nothing reads.
func unknownVariable(prefix, name string, c *catalog) error {
	guess := flagKey(strings.ToLower(strings.TrimPrefix(name, prefix)))
	if v, ok := c.byKey[guess]; ok {
		return WithHint(Errorf(BadInput, "unknown environment variable %s", name), fmt.Sprintf("--%s is read from %s", v.Flag, v.Name))
	}
	names := make([]string, 0, len(c.variables))
	for _, v := range c.variables {
		names = append(names, v.Name)
	}
	return WithHint(Errorf(BadInput, "unknown environment variable %s", name), nearest.Hint(name, names))
}
