// Package models says what a language model is, as far as planning and serving
// need to know: the layer groups of its transformer stack, the tensor classes
// its parameters fall into, the number formats they are stored in, and what
// one token or one sequence keeps in the cache.
//
// An [Architecture] comes from a Hugging Face config.json ([Import]) or from a
// preset ([Catalog]); either way a dimension that is not stated is an error,
// never a default. The package reads what it is handed (bytes, an fs.FS): it
// opens no file by itself and knows nothing of GPUs, parallelism or time.
package models
