package memory_test

import (
	"fmt"
	"log"

	"infera/configs"
	"infera/models"
	"infera/sim/hardware"
	"infera/sim/layout"
	"infera/sim/memory"
	"infera/sim/software"
)

// What one MI300X holds of Llama-3.1-8B under vLLM 0.22.
func ExampleSize() {
	presets, err := models.LoadCatalog(configs.FS)
	if err != nil {
		log.Fatal(err)
	}
	arch, err := presets.Lookup("llama-3.1-8b")
	if err != nil {
		log.Fatal(err)
	}
	cards, err := hardware.Load(configs.FS)
	if err != nil {
		log.Fatal(err)
	}
	gpu, err := cards.Lookup("mi300x")
	if err != nil {
		log.Fatal(err)
	}
	engines, err := software.Load(configs.FS)
	if err != nil {
		log.Fatal(err)
	}
	vllm, err := engines.Lookup("vllm")
	if err != nil {
		log.Fatal(err)
	}
	release, err := vllm.Release("0.22.0")
	if err != nil {
		log.Fatal(err)
	}
	defaults, err := vllm.Defaults(release, gpu)
	if err != nil {
		log.Fatal(err)
	}
	r, err := memory.Size(arch, &memory.Request{GPU: gpu, Engine: defaults,
		Layout: layout.Layout{TP: 1, PP: 1, EP: 1, AttentionDP: 1}, InputLen: 1024, OutputLen: 1024})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("fits %v, weights %.2f GiB, %d bytes per token\n", r.OK, r.Weights.GiB(), int(r.KVBytesPerToken))
	// Output: fits true, weights 14.96 GiB, 131072 bytes per token
}
