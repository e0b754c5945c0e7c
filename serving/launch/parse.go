package launch

import (
	"fmt"
	"slices"
	"strings"

	"infera/internal/nearest"
	"infera/serving/launch/shell"
)

// parser reads the arguments of one engine command.
type parser struct {
	dialect dialect
	byName  map[string]*flag
	s       Settings
	args    []Argument
	// objects holds the JSON arguments, merged, by flag.
	objects map[string]map[string]any

	transferBackend string // SGLang: waits for the role
	hostTier        bool   // SGLang: the host cache is on
	hints           int
}

func newParser(engine Engine) *parser {
	p := &parser{dialect: dialectOf(engine), byName: map[string]*flag{}, objects: map[string]map[string]any{}}
	for i := range p.dialect.flags {
		f := &p.dialect.flags[i]
		for _, n := range f.names {
			p.byName[n] = f
		}
	}
	return p
}

// words reads the engine's own arguments.
func (p *parser) words(words []shell.Word) error {
	for len(words) > 0 {
		n, err := p.next(words)
		if err != nil {
			return err
		}
		words = words[n:]
	}
	return nil
}

// next reads the argument at words[0] and returns how many words it takes.
func (p *parser) next(words []shell.Word) (int, error) {
	w := words[0]
	if !option(w.Text) {
		return 1, p.positional(w)
	}
	name, val, attached := strings.Cut(w.Text, "=")
	if w.Variable != "" && strings.Contains(name, w.Variable) {
		return 0, bad("%s is not expanded in %s; write its value out", w.Variable, w.Text)
	}
	m := p.match(name)
	if m.flag == nil {
		return p.unknown(name, val, attached, words)
	}
	v, n, err := m.value(val, attached, words)
	if err != nil {
		return 0, bad("%s: %s", name, err)
	}
	for _, w := range words[:n] {
		if w.Variable != "" && m.matters(v) {
			return 0, bad("%s: %s is not expanded; write its value out", name, w.Variable)
		}
	}
	a := Argument{Name: name, Value: v, Source: SourceFlag, Note: m.note}
	if m.flag.kind == toggle && n == 1 && !attached || m.inline != "" {
		a.Value = "" // the name says it all
	}
	if m.negative {
		v = negate(v)
	}
	return n, p.apply(m, a, v)
}

// option reports whether a word is an option and not a value: "-1" is a value.
func option(text string) bool {
	if len(text) < 2 || text[0] != '-' {
		return false
	}
	c := text[1]
	return c == '-' || shell.NameStart(c)
}

func negate(v string) string {
	if b, err := boolean(v); err == nil && !b {
		return "true"
	}
	return "false"
}

// matched is a known flag and how it was written.
type matched struct {
	flag     *flag
	path     string // the key path of a dotted JSON argument
	negative bool   // --no-x
	inline   string // the value inside the name, as in -O3
	note     string
}

// match finds the flag that name means: itself, a dotted key of a JSON flag,
// --no-x, or an unambiguous beginning, which argparse also accepts.
func (p *parser) match(name string) matched {
	base := name
	var keys string
	if p.dialect.dotted {
		base, keys, _ = strings.Cut(name, ".")
	}
	if strings.HasPrefix(base, "--") {
		base = strings.ReplaceAll(base, "_", "-")
	}
	if f := p.byName[base]; f != nil {
		if keys != "" && f.kind != object_ && f.kind != level {
			return matched{}
		}
		return matched{flag: f, path: strings.ReplaceAll(keys, "-", "_")}
	}
	if keys != "" {
		return matched{}
	}
	if rest, ok := strings.CutPrefix(base, "--no-"); ok {
		if f := p.byName["--"+rest]; f != nil && f.kind == toggle && p.dialect.negatable {
			return matched{flag: f, negative: true}
		}
	}
	if rest, ok := strings.CutPrefix(base, "-O"); ok && digits(rest) {
		if f := p.byName["-O"]; f != nil {
			return matched{flag: f, inline: rest}
		}
	}
	return p.abbreviation(base)
}

func (p *parser) abbreviation(base string) matched {
	if len(base) < 4 || !strings.HasPrefix(base, "--") {
		return matched{}
	}
	var m matched
	for i := range p.dialect.flags {
		f := &p.dialect.flags[i]
		for _, n := range f.names {
			if !strings.HasPrefix(n, base) || m.flag == f {
				continue
			}
			if m.flag != nil {
				return matched{}
			}
			m = matched{flag: f, note: "short for " + n}
		}
	}
	return m
}

// value takes the flag's value from the word itself or from the words after it.
func (m matched) value(attachedValue string, attached bool, words []shell.Word) (string, int, error) {
	follows := func(i int) bool { return i < len(words) && !option(words[i].Text) }
	switch {
	case m.inline != "":
		return m.inline, 1, nil
	case attached:
		return attachedValue, 1, nil
	case m.flag.kind == toggle:
		if follows(1) && (strings.EqualFold(words[1].Text, "true") || strings.EqualFold(words[1].Text, "false")) {
			return words[1].Text, 2, nil
		}
		return "true", 1, nil
	case m.flag.kind == many:
		n := 1
		var all []string
		for ; follows(n); n++ {
			all = append(all, words[n].Text)
		}
		return strings.Join(all, " "), n, nil
	case m.flag.kind == optional && !follows(1):
		return "", 1, nil
	case !follows(1):
		return "", 0, wrong("needs a value")
	}
	return words[1].Text, 2, nil
}

// matters reports whether a variable inside the value v hides something that
// the plan needs. In a JSON value only the keys that it takes count.
func (m matched) matters(v string) bool {
	if m.flag.kind != object_ || m.path != "" {
		return m.flag.field != "" || m.flag.material
	}
	given, err := object(v)
	if err != nil {
		return true
	}
	for k := range given {
		if m.flag.keys[k] != "" && strings.ContainsAny(asText(given[k]), "$`") {
			return true
		}
	}
	return false
}

// apply sets what a known flag or variable sets and adds it to the report.
func (p *parser) apply(m matched, a Argument, v string) error {
	f := m.flag
	a.flag = f.names[0]
	a.Status, a.Field, a.Material = f.status, f.field, f.material || f.field != ""
	a.Note = join(a.Note, f.note)
	if f.secret {
		a.Value = "***"
	}
	if f.kind != object_ && f.kind != level {
		p.supersede(&a)
	}
	var err error
	switch {
	case f.kind == object_ || f.kind == level:
		err = p.mergeObject(m, &a, v)
	case f.set != nil:
		err = f.set(p, &a, v)
	}
	if err != nil {
		return bad("%s: %s", a.Name, err)
	}
	if a.Status == NotModelled && a.Field == "" && a.Note == m.note {
		a.Note = join(a.Note, noEffect)
	}
	p.args = append(p.args, a)
	return nil
}

// supersede marks an earlier occurrence of the same flag: the last one wins, and
// a flag wins over a variable.
func (p *parser) supersede(a *Argument) {
	for i := range p.args {
		old := &p.args[i]
		variable := old.Source == SourceEnv && a.Source == SourceFlag && a.Field != "" && old.Field == a.Field
		if old.flag == a.flag && old.Source == a.Source || variable {
			old.Status, old.Field, old.Material = NotModelled, "", false
			old.Note = "overridden by a later " + a.Name
			old.flag = ""
		}
	}
}

// mergeObject adds a JSON argument, whole or by one key, to what was given
// before, and notes which of its keys the plan takes.
func (p *parser) mergeObject(m matched, a *Argument, v string) error {
	var given map[string]any
	switch {
	case m.path != "":
		given = map[string]any{}
		at := given
		keys := strings.Split(m.path, ".")
		for _, k := range keys[:len(keys)-1] {
			inner := map[string]any{}
			at[k] = inner
			at = inner
		}
		at[keys[len(keys)-1]] = scalar(v)
	case m.flag.kind == level && digits(v):
		given = map[string]any{"level": scalar(v)}
	default:
		var err error
		if given, err = object(v); err != nil {
			return err
		}
	}
	all := p.objects[m.flag.names[0]]
	if all == nil {
		all = map[string]any{}
		p.objects[m.flag.names[0]] = all
	}
	merge(all, given)
	a.Status, a.Field = NotModelled, ""
	var fields, rest []string
	for k, v := range given {
		// Only the level without graphs says something of them.
		graphs := k != "level" && k != "mode" || asText(v) == "0" || strings.EqualFold(asText(v), "none")
		if f := m.flag.keys[k]; f != "" && graphs {
			fields = append(fields, strings.Split(f, ",")...)
		} else {
			rest = append(rest, k)
		}
	}
	slices.Sort(fields)
	slices.Sort(rest)
	if fields = slices.Compact(fields); len(fields) > 0 {
		a.Status, a.Field = Translated, strings.Join(fields, ",")
	}
	if len(rest) > 0 {
		a.Note = join(a.Note, "not modelled: "+strings.Join(rest, ", "))
	}
	return nil
}

// unknown reports a flag that the tables do not have.
func (p *parser) unknown(name, val string, attached bool, words []shell.Word) (int, error) {
	n := 1
	if !attached && len(words) > 1 && !option(words[1].Text) {
		val, n = words[1].Text, 2
	}
	var known []string
	for _, f := range p.dialect.flags {
		known = append(known, f.names[0])
	}
	a := Argument{Name: name, Value: val, Source: SourceFlag, Status: NotModelled, Material: true, Note: "unknown to this version"}
	a.Note = join(a.Note, p.hint(name, known))
	p.args = append(p.args, a)
	return n, nil
}

// maxHints bounds the search for nearest names on a line of junk.
const maxHints = 32

func (p *parser) hint(name string, known []string) string {
	if p.hints++; p.hints > maxHints || len(name) > 80 {
		return ""
	}
	return nearest.Hint(name, known)
}

// positional reads a bare word: the model.
func (p *parser) positional(w shell.Word) error {
	if w.Variable != "" {
		return bad("%s is not expanded; write its value out", w.Variable)
	}
	given := slices.ContainsFunc(p.args, func(a Argument) bool { return a.Source == SourcePositional })
	if given || !p.dialect.positional || w.Text == "" || w.Text == "-" || w.Text == "--" {
		return bad("unexpected word %q after the options of %s", w.Text, p.dialect.engine)
	}
	p.s.Model = w.Text
	p.args = append(p.args, Argument{Name: "model", Value: w.Text, Source: SourcePositional, Status: Used, Field: FieldModel, Material: true})
	return nil
}

// environment reads the variables set on the line.
func (p *parser) environment(env []setting) error {
	for _, e := range env {
		f := p.variable(e.name)
		if e.variable != "" && (f.field != "" || f.material) {
			return bad("%s: %s is not expanded; write its value out", e.name, e.variable)
		}
		if err := p.apply(matched{flag: f}, Argument{Name: e.name, Value: e.value, Source: SourceEnv}, e.value); err != nil {
			return err
		}
	}
	return nil
}

// variable finds what is known of an environment variable.
func (p *parser) variable(name string) *flag {
	var known []string
	for i := range p.dialect.env {
		f := &p.dialect.env[i]
		for _, n := range f.names {
			if prefix, ok := strings.CutSuffix(n, "*"); n == name || ok && strings.HasPrefix(name, prefix) {
				g := *f
				g.names = []string{name}
				return &g
			}
			known = append(known, n)
		}
	}
	f := flag{names: []string{name}, status: NotModelled, note: "not a variable of " + string(p.dialect.engine) + "; " + noEffect}
	for _, u := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD"} {
		f.secret = f.secret || strings.Contains(strings.ToUpper(name), u)
	}
	if strings.HasPrefix(name, p.dialect.envPrefix) {
		f.material = true
		f.note = join("unknown to this version", p.hint(name, known))
	}
	return &f
}

// note adds to the note of the flag's effective occurrence.
func (p *parser) note(name, format string, args ...any) {
	for i := range p.args {
		if p.args[i].flag == name {
			p.args[i].Note = join(p.args[i].Note, fmt.Sprintf(format, args...))
			p.args[i].Status = Translated
		}
	}
}

// also adds a field to the flag's effective occurrence.
func (p *parser) also(name, field string) {
	for i := range p.args {
		if a := &p.args[i]; a.flag == name {
			a.Field += "," + field
		}
	}
}

// drop marks a flag as without effect.
func (p *parser) drop(name, why string) {
	for i := range p.args {
		if a := &p.args[i]; a.flag == name {
			a.Status, a.Field, a.Material, a.Note = NotModelled, "", false, why
		}
	}
}

// finish derives what several arguments decide together.
func (p *parser) finish() error {
	if err := p.dialect.finish(p); err != nil {
		return err
	}
	if p.s.eager {
		p.s.GraphMode = "none"
	}
	return nil
}
