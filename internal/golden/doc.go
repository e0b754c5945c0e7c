// Package golden compares what a test rendered with a file under testdata, and
// rewrites the file under -update. Only tests import it.
package golden
