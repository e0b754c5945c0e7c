package report_test

import (
	"fmt"
	"os"

	"infera/sim/report"
	"infera/sim/report/page"
)

// The waterfall of a decode step with two operations.
func ExampleProjection_WriteExplain() {
	p := report.Projection{Feasible: true, Performance: &report.Performance{
		Concurrency:  8,
		DecodeStepMs: report.Point(4),
		Breakdown: report.Breakdown{Decode: []report.Op{
			{Name: "experts", TimeMs: 3, Bound: "hbm"},
			{Name: "all-reduce", TimeMs: 1, Bound: "fabric"},
		}},
	}}
	if err := p.WriteExplain(os.Stdout, page.Options{Width: 60, ASCII: true}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// One decode step at concurrency 8: 4.000 ms
	// ------------------------------------------------------------
	// op                 ms    share  bound    time
	// experts         3.000   75.0 %  hbm      ##############
	// all-reduce      1.000   25.0 %  fabric                 #####
	//
	// By bound: hbm 3.000 ms (75.0%), fabric 1.000 ms (25.0%)
	//
	// One prefill: 0.000 ms
	// ------------------------------------------------------------
	// (no operations)
}

func ExampleFeatures() {
	fmt.Println(report.Features(report.Request{
		{Key: "kv_cache_dtype", Value: "fp8"},
		{Key: "prefix_cache_hit_rate", Value: 0.5},
		{Key: "speculative_num_tokens", Value: 0},
	}))
	// Output: [prefix_cache_hit=0.50 kv_dtype=fp8]
}
