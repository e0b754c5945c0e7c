// Package nearest finds the known name that a mistyped one most likely meant,
// for hints in error messages. It knows no domain.
package nearest
