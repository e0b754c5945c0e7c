package kernel_test

import (
	"fmt"

	"infera/configs"
	"infera/models"
	"infera/sim/hardware"
	"infera/sim/kernel"
)

func Example() {
	catalog, err := hardware.Load(configs.FS)
	if err != nil {
		fmt.Println(err)
		return
	}
	gpu, err := catalog.Lookup("mi300x")
	if err != nil {
		fmt.Println(err)
		return
	}
	curves, err := kernel.LoadCurves(configs.FS, gpu)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := kernel.New(gpu, curves)
	if err != nil {
		fmt.Println(err)
		return
	}
	fp8 := models.Format{Name: "fp8", Element: models.FP8, Activation: models.FP8}
	e := m.GEMM(1, 8192, 8192, fp8)
	fmt.Printf("at least %.1f us, bound by %s\n", e.Lower.Microseconds(), e.Bound)
	// Output: at least 12.7 us, bound by hbm
}
