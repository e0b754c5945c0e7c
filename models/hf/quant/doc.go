// Package quant reads in which number format a Hugging Face checkpoint stores
// each tensor class and its cache ([Read]).
//
// It knows how quantisation tools (ModelOpt, llm-compressor, Quark, GPTQ, AWQ,
// bitsandbytes, the fp8 of DeepSeek) write down what they did, in config.json
// or beside it. Module names are read by models/modules. It must not know how
// a config states shapes: it takes an architecture that has them.
package quant
