// Package strict decodes the project's own YAML files without forgiveness: an
// unknown key, a duplicate key, a second document or trailing rubbish is an
// error that names the file, the line and the nearest known key.
//
// It is the only package that imports a YAML library, so that replacing the
// library is one line.
package strict
