package layout_test

import (
	"fmt"

	"infera/models"
	"infera/sim/layout"
)

func ExampleCheck() {
	a := &models.Architecture{
		Name: "toy", Vocab: 32000, Pattern: []uint8{0, 0},
		Groups: []models.LayerGroup{{
			Count:     2,
			Attention: models.Attention{Kind: models.AttentionGQA, Heads: 32, KVHeads: 8, KDim: 128, VDim: 128},
			FFN:       models.FFN{Kind: models.FFNDense, Intermediate: 14336},
		}},
	}
	l := layout.Layout{TP: 6, PP: 1, EP: 1, AttentionDP: 1}
	for _, v := range layout.Check(a, l, nil) {
		fmt.Println(v)
	}
	fmt.Println("nearest:", layout.Nearest(a, l))
	// Output:
	// 32 query heads do not divide by attention TP 6; attention TP 4 or 8
	// 14336 feed-forward columns do not divide by attention TP 6; attention TP 4 or 7
	// nearest: tp4
}
