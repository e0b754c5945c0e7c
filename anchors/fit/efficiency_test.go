package fit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"infera/configs"
	"infera/sim/accuracy"
	"infera/sim/planner"
	"infera/sim/software"
)

// sharedData returns a file of the measured data set that may lie beside the
// project, or skips.
func sharedData(t testing.TB, name string) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir != filepath.Dir(dir) {
		p := filepath.Join(dir, "..", "shared", "data", name)
		if _, err := os.Stat(p); err == nil {
			return p
		}
		dir = filepath.Dir(dir)
	}
	t.Skipf("measured data %s is not here", name)
	return ""
}

func TestExplore(t *testing.T) {
	if os.Getenv("EXPLORE") == "" {
		t.Skip("exploration")
	}
	f, err := os.Open(sharedData(t, "serving_measured.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	points, err := accuracy.ReadCSV(f)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := planner.Open(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	samples, skipped, err := Samples(lib, points)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("samples", len(samples))
	for _, k := range sortedKeys(skipped) {
		fmt.Println("  skipped", skipped[k], k)
	}
	base, _, err := lib.Efficiencies.Find("none", "", "", software.Release{})
	if err != nil {
		t.Fatal(err)
	}
	if v := os.Getenv("VENDOR"); v != "" {
		var keep []Sample
		for _, s := range samples {
			if s.Request.GPU.Vendor == v {
				keep = append(keep, s)
			}
		}
		samples = keep
	}
	if n := os.Getenv("LIMIT"); n != "" {
		var k int
		fmt.Sscan(n, &k)
		samples = samples[:k]
	}
	explore(t, samples, base)
}
