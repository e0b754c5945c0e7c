package software

import (
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"infera/internal/measured"
)

// Every engine and release that the measured points name is understood, and a
// release is never dated after the day it was measured on.
func TestMeasuredReleases(t *testing.T) {
	f, err := os.Open(filepath.Join(measured.Dir(t), "serving_measured.csv"))
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.ReuseRecord = true
	head, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range head {
		column[name] = i
	}
	c := load(t)
	seen := map[[3]string]bool{}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		key := [3]string{strings.Clone(row[column["engine"]]), strings.Clone(row[column["engine_version"]]), strings.Clone(row[column["date"]])}
		if seen[key] || key[0] == "" {
			continue
		}
		seen[key] = true
		e, err := c.Lookup(key[0])
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := e.Resolve(key[1], key[2])
		if errors.Is(err, ErrRelease) && key[2] == "" {
			continue // neither a number nor a day
		}
		if err != nil {
			t.Errorf("%q: %v", key, err)
			continue
		}
		if _, last, err := ParseDate(key[2]); err == nil && got.Date > last {
			t.Errorf("%q is dated %s, after it was measured", key, got)
		}
	}
	t.Logf("%d engine, version and day combinations", len(seen))
}
