package collective_test

import (
	"fmt"
	"os"

	"infera/sim/collective"
	"infera/sim/hardware"
)

func ExampleModel() {
	gpu := &hardware.GPU{Name: "mi355x", ISA: "gfx950", ScaleUp: 537.6e9}
	node := &hardware.Fabric{Name: "xgmi", Topology: hardware.Mesh, DomainSize: 8, LinkEfficiency: 0.72}
	table, err := collective.LoadTable(os.DirFS("../../configs"), gpu)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := collective.New(gpu, node, table, collective.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	e := m.AllReduce(2, 1_000_000)
	fmt.Printf("%.1f us by %s, at least %.1f us\n", e.Time.Microseconds(), e.Implementation, e.Lower.Microseconds())
	// Output:
	// 23.0 us by vllm custom all-reduce, at least 13.0 us
}
