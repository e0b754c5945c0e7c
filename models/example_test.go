package models_test

import (
	"fmt"

	"infera/configs"
	"infera/models"
)

func Example() {
	catalog, err := models.LoadCatalog(configs.FS)
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := catalog.Lookup("gpt_oss_120B")
	if err != nil {
		fmt.Println(err)
		return
	}
	p := a.Params()
	fmt.Printf("%s: %.1f B parameters, %.1f B active, %.1f GB\n", a.Name, float64(p.Total)/1e9, float64(p.Active)/1e9, a.WeightBytes().GB())
	fmt.Println(a.KVBytesPerToken(models.Format{}), "bytes of cache per token")
	// Output:
	// gpt-oss-120b: 116.8 B parameters, 5.1 B active, 65.2 GB
	// 73728 bytes of cache per token
}
