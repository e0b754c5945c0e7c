package shell

import (
	"errors"
	"fmt"
	"strings"
)

// ErrSyntax is the kind of every error of this package.
var ErrSyntax = errors.New("shell syntax")

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSyntax, fmt.Sprintf(format, args...))
}

// Word is one word of a command.
type Word struct {
	// Text is the word after quote removal, with variables as written.
	Text string
	// Variable is the first variable or command substitution in the word that a
	// shell would have expanded, as written; "" when there is none.
	Variable string
}

// Statement is one simple command.
type Statement struct {
	// Words are the assignments, the command and its arguments.
	Words []Word
	// Redirects are the redirections, operator and target in one word (2>&1).
	Redirects []Word
}

// Split cuts a line into simple commands the way a POSIX shell does, without
// expanding anything. Operators (; & && || | newline) end a simple command; a
// comment is skipped. Every error is an [ErrSyntax]: an open quote, a redirection
// without a target, and what is not supported (subshells, here-documents).
func Split(line string) ([]Statement, error) {
	l := &lexer{in: strings.ReplaceAll(line, "\r\n", "\n")}
	if err := l.run(); err != nil {
		return nil, err
	}
	return l.out, nil
}

type lexer struct {
	in   string
	pos  int
	out  []Statement
	stmt Statement

	cur      strings.Builder
	started  bool // cur holds a word, perhaps an empty quoted one
	quoted   bool // a part of the word was quoted, so it is no fd number
	variable string
	redirect string // the operator that waits for its target
}

func (l *lexer) run() error {
	for l.pos < len(l.in) {
		if err := l.step(); err != nil {
			return err
		}
	}
	l.endWord()
	return l.endStatement()
}

func (l *lexer) step() error {
	c := l.in[l.pos]
	switch c {
	case ' ', '\t', '\r', '\v', '\f':
		l.endWord()
		l.pos++
	case '\n', ';', '|':
		l.endWord()
		l.pos++
		return l.endStatement()
	case '&':
		return l.ampersand()
	case '<', '>':
		return l.redirection("")
	case '(', ')':
		return bad("an unquoted %q is not understood; give one simple command", string(c))
	case '#':
		if !l.started {
			for l.pos < len(l.in) && l.in[l.pos] != '\n' {
				l.pos++
			}
			return nil
		}
		l.add(c)
	case '\\':
		return l.escape()
	case '\'':
		return l.single()
	case '"':
		return l.double()
	case '$', '`':
		return l.expansion()
	default:
		l.add(c)
	}
	return nil
}

func (l *lexer) add(c byte) {
	l.cur.WriteByte(c)
	l.started = true
	l.pos++
}

func (l *lexer) endWord() {
	if !l.started {
		return
	}
	w := Word{Text: l.cur.String(), Variable: l.variable}
	if l.redirect != "" {
		w.Text = l.redirect + w.Text
		l.stmt.Redirects = append(l.stmt.Redirects, w)
		l.redirect = ""
	} else {
		l.stmt.Words = append(l.stmt.Words, w)
	}
	l.cur.Reset()
	l.started, l.quoted, l.variable = false, false, ""
}

func (l *lexer) endStatement() error {
	if l.redirect != "" {
		return bad("the redirection %q has no target", l.redirect)
	}
	if len(l.stmt.Words)+len(l.stmt.Redirects) > 0 {
		l.out = append(l.out, l.stmt)
	}
	l.stmt = Statement{}
	return nil
}

func (l *lexer) ampersand() error {
	if strings.HasPrefix(l.in[l.pos:], "&>") {
		l.endWord()
		l.pos++
		return l.redirection("&")
	}
	l.endWord()
	l.pos++
	return l.endStatement()
}

// redirection reads an operator that starts with < or >. A word of digits that
// touches it is its file descriptor.
func (l *lexer) redirection(prefix string) error {
	if l.started && !l.quoted && l.redirect == "" && digits(l.cur.String()) {
		prefix = l.cur.String()
		l.cur.Reset()
		l.started = false
	}
	l.endWord()
	if l.redirect != "" {
		return bad("the redirection %q has no target", l.redirect)
	}
	rest := l.in[l.pos:]
	if strings.HasPrefix(rest, "<<") {
		return bad("a here-document is not understood; put the text on the line")
	}
	for _, op := range []string{">>", ">&", ">|", "<&", "<>", ">", "<"} {
		if strings.HasPrefix(rest, op) {
			l.redirect = prefix + op
			l.pos += len(op)
			return nil
		}
	}
	return nil
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func (l *lexer) escape() error {
	if l.pos+1 >= len(l.in) {
		return bad("the line ends in a lone backslash")
	}
	next := l.in[l.pos+1]
	if next == '\n' { // line continuation
		l.pos += 2
		return nil
	}
	if next == ' ' || next == '\t' {
		rest := strings.TrimLeft(l.in[l.pos+1:], " \t")
		if rest == "" || rest[0] == '\n' {
			return bad("a backslash is followed by blanks at the end of a line; a line continuation must be the last character")
		}
	}
	l.pos++
	l.add(next)
	l.quoted = true
	return nil
}

func (l *lexer) single() error {
	end := strings.IndexByte(l.in[l.pos+1:], '\'')
	if end < 0 {
		return bad("a single quote is not closed")
	}
	l.cur.WriteString(l.in[l.pos+1 : l.pos+1+end])
	l.started, l.quoted = true, true
	l.pos += end + 2
	return nil
}

func (l *lexer) double() error {
	l.started, l.quoted = true, true
	l.pos++
	for l.pos < len(l.in) {
		switch c := l.in[l.pos]; c {
		case '"':
			l.pos++
			return nil
		case '\\':
			if l.pos+1 < len(l.in) && l.in[l.pos+1] == '\n' {
				l.pos += 2
				continue
			}
			if l.pos+1 < len(l.in) && strings.IndexByte("\"\\$`", l.in[l.pos+1]) >= 0 {
				l.pos++
			}
			l.add(l.in[l.pos])
		case '$', '`':
			if err := l.expansion(); err != nil {
				return err
			}
		default:
			l.add(c)
		}
	}
	return bad("a double quote is not closed")
}

// expansion copies a variable or a command substitution as it is written and
// remembers the first one of the word.
func (l *lexer) expansion() error {
	n, err := expansionLength(l.in[l.pos:])
	if err != nil {
		return err
	}
	text := l.in[l.pos : l.pos+n]
	if n > 1 && l.variable == "" {
		l.variable = text
	}
	l.cur.WriteString(text)
	l.started = true
	l.pos += n
	return nil
}

// expansionLength returns the length of the expansion at the start of s, or 1
// when the dollar sign stands for itself.
func expansionLength(s string) (int, error) {
	if s[0] == '`' {
		if end := strings.IndexByte(s[1:], '`'); end >= 0 {
			return end + 2, nil
		}
		return 0, bad("a backquote is not closed")
	}
	if len(s) == 1 {
		return 1, nil
	}
	switch c := s[1]; {
	case c == '{':
		return closing(s, '{', '}')
	case c == '(':
		return closing(s, '(', ')')
	case c == '\'':
		if end := strings.IndexByte(s[2:], '\''); end >= 0 {
			return end + 3, nil
		}
		return 0, bad("a single quote is not closed")
	case NameStart(c):
		n := 2
		for n < len(s) && (NameStart(s[n]) || s[n] >= '0' && s[n] <= '9') {
			n++
		}
		return n, nil
	case strings.IndexByte("0123456789@*#?!$-", c) >= 0:
		return 2, nil
	}
	return 1, nil
}

func closing(s string, open, shut byte) (int, error) {
	depth := 0
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case open:
			depth++
		case shut:
			if depth--; depth == 0 {
				return i + 1, nil
			}
		}
	}
	return 0, bad("%q is not closed", "$"+string(open))
}

// NameStart reports whether c can begin the name of a variable.
func NameStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// Assignment splits NAME=value. ok is false when the word has another form.
func Assignment(text string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(text, "=")
	if !ok || name == "" || !NameStart(name[0]) {
		return "", "", false
	}
	for i := range len(name) {
		if c := name[i]; !NameStart(c) && (c < '0' || c > '9') {
			return "", "", false
		}
	}
	return name, value, true
}
