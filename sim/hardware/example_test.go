package hardware_test

import (
	"fmt"
	"os"

	"infera/sim/hardware"
)

func ExampleCatalog_Lookup() {
	c, err := hardware.Load(os.DirFS("../../configs"))
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := c.Lookup("AMD Instinct MI300X")
	fmt.Println(g, err)
	_, err = c.Lookup("mi3000x")
	fmt.Println(err)
	// Output:
	// mi300x (gfx942, 304 CUs, 191.98 GiB, 5.30 TB/s) <nil>
	// unknown GPU "mi3000x" (known: a100, b200, b300, cpu, gb200, gb300, h100, h20, h200, l20, mi250x, mi300a, mi300x, mi308x, mi325x, mi350x, mi355x, mi430x, mi440x, mi455x, rtx-pro-6000, rtx3090, rtx4090, rtx5090); did you mean "mi300x"?
}
