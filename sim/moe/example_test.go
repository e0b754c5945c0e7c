package moe_test

import (
	"fmt"

	"infera/sim/moe"
)

func ExampleRouting() {
	r, err := moe.New(128, 4, moe.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f of 128 experts are touched by 16 tokens\n", r.Active(16))
	fmt.Printf("%.2f rows on the busiest of 8 ranks, %.2f on average\n", r.RowsBusiestRank(16, 8), r.RowsPerRank(16, 8))
	// Output:
	// 50.98 of 128 experts are touched by 16 tokens
	// 12.18 rows on the busiest of 8 ranks, 8.00 on average
}
