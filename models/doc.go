// Package models says what a language model is, as far as planning and serving
// need to know: the layer groups of its transformer stack, the tensor classes
// its parameters fall into, the number formats they are stored in, and what
// one token or one sequence keeps in the cache.
//
// An [Architecture] comes from a preset ([Catalog]) or from a Hugging Face
// config.json (package models/hf); either way [Architecture.Validate] refuses
// what is missing or impossible.
//
// Sizes are counted from the shapes ([Architecture.Params]): parameters are
// exact numbers, bytes include the scales of a [Format]. The drafter and the
// vision tower are classes of their own and not part of the total.
//
// A model whose layers hold two token mixers (Falcon-H1, LongCat) is written
// with two layers for each. Not modelled: encoder-decoder models, the tables
// of hash routing, and the cache of the vision tower; the size of a vision
// tower is an estimate.
//
// The package reads what it is handed (bytes, an fs.FS): it opens no file by
// itself and knows nothing of the keys of other programs' configs, of GPUs,
// parallelism or time.
package models
