package launch

import (
	"path"
	"slices"
	"strings"

	"infera/serving/launch/shell"
)

// located is the engine's command, cut out of the line.
type located struct {
	engine  Engine
	env     []setting    // environment variables set on the line
	words   []shell.Word // the engine's own arguments
	wrapper []Argument
	shell   []Argument
}

// setting is one NAME=value of the environment.
type setting struct {
	name, value string
	variable    string
}

// nesting is how deep "sh -c" inside "sh -c" is followed.
const nesting = 3

const knownForms = `known: "vllm serve MODEL", "python -m vllm.entrypoints.openai.api_server", "python -m sglang.launch_server", "sglang serve", "python -m atom.entrypoints.openai_server"`

// locate finds the one engine command among the statements of a line.
func locate(statements []shell.Statement, depth int) (*located, error) {
	if depth > nesting {
		return nil, bad("shells are nested more than %d deep", nesting)
	}
	var found *located
	var before located // what other statements contribute
	for _, s := range statements {
		l, err := inspect(s, depth)
		if err != nil {
			return nil, err
		}
		switch {
		case l.engine == "":
			before.env = append(before.env, l.env...)
			before.wrapper = append(before.wrapper, l.wrapper...)
			before.shell = append(before.shell, l.shell...)
		case found != nil:
			return nil, bad("two engine commands on the line (%s and %s); give one", found.engine, l.engine)
		default:
			found = l
		}
	}
	if found == nil {
		return nil, noEngine(statements)
	}
	found.env = append(before.env, found.env...)
	found.wrapper = append(before.wrapper, found.wrapper...)
	found.shell = append(before.shell, found.shell...)
	return found, nil
}

func noEngine(statements []shell.Statement) error {
	for _, s := range statements {
		for _, w := range s.Words {
			if w.Variable != "" {
				return bad("no engine command found, and %s is not expanded; write its value out", w.Variable)
			}
		}
	}
	return bad("no engine command found; %s", knownForms)
}

// inspect reads one simple command: environment, wrapper, engine. A command that
// starts no engine comes back without one.
func inspect(s shell.Statement, depth int) (*located, error) {
	l := &located{}
	for _, r := range s.Redirects {
		l.shell = append(l.shell, Argument{Name: r.Text, Source: SourceShell, Status: NotModelled, Note: "redirection; " + noEffect})
	}
	words := s.Words
	for len(words) > 0 {
		name, val, ok := shell.Assignment(words[0].Text)
		if !ok {
			break
		}
		l.env = append(l.env, setting{name, val, words[0].Variable})
		words = words[1:]
	}
	if len(words) == 0 {
		return l, nil
	}
	if words[0].Text == "export" {
		for _, w := range words[1:] {
			if name, val, ok := shell.Assignment(w.Text); ok {
				l.env = append(l.env, setting{name, val, w.Variable})
			} else {
				l.wrap(w)
			}
		}
		l.wrapper = append([]Argument{{Name: "export", Source: SourceWrapper, Status: NotModelled, Note: "shell; " + noEffect}}, l.wrapper...)
		return l, nil
	}
	if strings.HasPrefix(words[0].Text, "-") {
		return nil, bad("a command starts with %q; is the backslash missing at the end of the line before it?", words[0].Text)
	}
	return l, l.command(words, depth)
}

// command looks for the engine in words; what stands before it is wrapper.
func (l *located) command(words []shell.Word, depth int) error {
	for i := range words {
		if engine, n := engineAt(words[i:]); engine != "" {
			l.engine, l.words = engine, words[i+n:]
			l.before(words[:i])
			return nil
		}
		if inner, n, ok := shellAt(words[i:]); ok {
			// The text itself is reported by what stands in it.
			return l.nested(words[:i+n-1], words[i+n:], inner, depth)
		}
	}
	if engine, at := imageAt(words); engine != "" {
		l.engine, l.words = engine, words[at+1:]
		l.before(words[:at+1])
		return nil
	}
	for _, w := range words {
		l.wrap(w)
	}
	return nil
}

// nested follows the text of "sh -c TEXT".
func (l *located) nested(wrapper, rest []shell.Word, inner shell.Word, depth int) error {
	statements, err := shell.Split(inner.Text)
	if err != nil {
		return bad("%s", err)
	}
	found, err := locate(statements, depth+1)
	if err != nil {
		return err
	}
	l.before(wrapper)
	for _, w := range rest {
		l.wrap(w)
	}
	l.engine, l.words = found.engine, found.words
	l.env = append(l.env, found.env...)
	l.wrapper = append(l.wrapper, found.wrapper...)
	l.shell = append(l.shell, found.shell...)
	return nil
}

func (l *located) wrap(w shell.Word) {
	if strings.HasPrefix(w.Text, "--env-file") {
		l.wrapper = append(l.wrapper, Argument{Name: w.Text, Source: SourceWrapper, Status: NotModelled, Material: true, Note: "the variables in the file are not read; write them on the line"})
		return
	}
	l.wrapper = append(l.wrapper, Argument{Name: w.Text, Source: SourceWrapper, Status: NotModelled, Note: "not the engine's; " + noEffect})
}

// before reads the words before the engine: environment of env, docker and
// podman, and the rest.
func (l *located) before(words []shell.Word) {
	env := slices.ContainsFunc(words, func(w shell.Word) bool { return path.Base(w.Text) == "env" })
	for i := 0; i < len(words); i++ {
		w := words[i]
		if i+1 < len(words) {
			next := words[i+1]
			if slices.Contains([]string{"-e", "--env", "-x"}, w.Text) && l.assign(next, next.Text) { // -x is mpirun's
				i++
				continue
			}
			if (w.Text == "-e" || w.Text == "--env") && !strings.HasPrefix(next.Text, "-") {
				i++
				l.wrapper = append(l.wrapper, Argument{Name: w.Text, Value: next.Text, Source: SourceWrapper, Status: NotModelled, Note: "passes a variable whose value is not on the line"})
				continue
			}
		}
		text := w.Text
		for _, prefix := range []string{"--env=", "-e"} {
			if rest, ok := strings.CutPrefix(text, prefix); ok && rest != "" {
				text = rest
				break
			}
		}
		if (env || text != w.Text) && l.assign(w, text) {
			continue
		}
		l.wrap(w)
	}
}

func (l *located) assign(w shell.Word, text string) bool {
	name, val, ok := shell.Assignment(text)
	if ok {
		l.env = append(l.env, setting{name, val, w.Variable})
	}
	return ok
}

// engineAt reports the engine whose command starts at words[0] and how many
// words its name takes.
func engineAt(words []shell.Word) (Engine, int) {
	text := func(i int) string {
		if i < len(words) {
			return words[i].Text
		}
		return ""
	}
	switch base := path.Base(text(0)); {
	case base == "vllm" && text(1) == "serve":
		return VLLM, 2
	case base == "sglang" && text(1) == "serve":
		return SGLang, 2
	case base == "infera" && text(1) == "engine":
		if e := Engine(text(2)); e == VLLM || e == SGLang || e == ATOM {
			return e, 3
		}
	case strings.HasPrefix(base, "python"):
		for i := 1; strings.HasPrefix(text(i), "-"); i++ {
			if text(i) == "-m" {
				return module(text(i+1), text(i+2), i+2)
			}
		}
	}
	return "", 0
}

// module reports the engine of "python -m name".
func module(name, next string, n int) (Engine, int) {
	switch {
	case name == "vllm.entrypoints.cli.main" && next == "serve":
		return VLLM, n + 1
	case name == "vllm.entrypoints.openai.api_server", name == "vllm.entrypoints.api_server", name == "infera.engine.vllm":
		return VLLM, n
	case name == "sglang" && next == "serve":
		return SGLang, n + 1
	case name == "sglang.launch_server", name == "infera.engine.sglang":
		return SGLang, n
	case name == "atom.entrypoints.openai_server", name == "atom.entrypoints.openai.api_server", name == "atom.entrypoint", name == "infera.engine.atom":
		return ATOM, n
	}
	return "", 0
}

// shellAt reports the text of "bash -c TEXT" at words[0] and how many words
// that takes.
func shellAt(words []shell.Word) (inner shell.Word, n int, ok bool) {
	switch path.Base(words[0].Text) {
	case "sh", "bash", "zsh", "dash":
	default:
		return shell.Word{}, 0, false
	}
	for i := 1; i+1 < len(words); i++ {
		t := words[i].Text
		if !strings.HasPrefix(t, "-") {
			break
		}
		if !strings.HasPrefix(t, "--") && strings.HasSuffix(t, "c") {
			return words[i+1], i + 2, true
		}
	}
	return shell.Word{}, 0, false
}

// containerSwitches are the options of docker run and podman run without a
// value (docs.docker.com/reference/cli/docker/container/run).
var containerSwitches = []string{"-d", "--detach", "-i", "--interactive", "-t", "--tty", "-it", "-ti", "-dit", "-itd", "-id", "-di", "-td", "-dt", "--rm", "--init", "--privileged", "--read-only", "-P", "--publish-all", "--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "-q", "--quiet"}

// imageAt finds the image of "docker run" when the engine is the image's entry
// point, as in "docker run vllm/vllm-openai --model M".
func imageAt(words []shell.Word) (Engine, int) {
	run := slices.IndexFunc(words, func(w shell.Word) bool { return w.Text == "run" })
	if run < 1 || !slices.Contains([]string{"docker", "podman", "nerdctl"}, path.Base(words[run-1].Text)) {
		return "", 0
	}
	for i := run + 1; i < len(words); i++ {
		t := words[i].Text
		if !strings.HasPrefix(t, "-") {
			if strings.Contains(t, "vllm-openai") {
				return VLLM, i
			}
			return "", 0
		}
		attached := strings.Contains(t, "=") || !strings.HasPrefix(t, "--") && len(t) > 2
		if !attached && !slices.Contains(containerSwitches, t) {
			i++
		}
	}
	return "", 0
}
