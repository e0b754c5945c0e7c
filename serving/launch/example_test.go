package launch_test

import (
	"fmt"

	"infera/serving/launch"
)

func ExampleParse() {
	c, err := launch.Parse(`VLLM_ROCM_USE_AITER=1 vllm serve openai/gpt-oss-120b -tp 8 --max-model-len 16k --port 8000 --enforce-eager`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Engine, c.Settings.Model, *c.Settings.TP)
	for _, a := range c.Arguments {
		fmt.Printf("%s: %s [%s]\n", a.Name, a.Status, a.Field)
	}
	// Output:
	// vllm openai/gpt-oss-120b 8
	// VLLM_ROCM_USE_AITER: used [aiter]
	// model: used [model]
	// -tp: used [tp]
	// --max-model-len: used [max_context_len]
	// --port: not_modelled []
	// --enforce-eager: translated [cudagraph_mode]
}
