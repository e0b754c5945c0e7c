package hf_test

import (
	"fmt"

	"infera/models/hf"
)

func ExampleImport() {
	_, _, err := hf.Import(hf.Source{Path: "config.json", Config: []byte(`{"model_type": "llama", "hidden_size": 4096}`)})
	fmt.Println(err)
	// Output:
	// bad model config: config.json: missing vocab_size, num_attention_heads, num_hidden_layers
}
