package measured

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the folder shared/data of the nearest directory above the test
// that has one, or skips the test.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		at := filepath.Join(dir, "shared", "data")
		if info, err := os.Stat(at); err == nil && info.IsDir() {
			return at
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Skip("no shared/data folder beside the repository")
		}
		dir = parent
	}
}
