// Package shell splits a command line the way a POSIX shell does: quotes,
// escapes, line continuations, operators, redirections, comments.
//
// It expands nothing: no variable, no command substitution, no pattern. A word
// that a shell would have changed carries the first such place in it, and the
// caller decides whether that matters. It runs nothing and knows no command.
package shell
