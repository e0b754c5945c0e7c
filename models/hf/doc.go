// Package hf reads the config.json of a Hugging Face checkpoint into a
// [models.Architecture] ([Import], [ImportFS]).
//
// It knows the keys of such configs and their spellings, the carriers of a
// layer pattern, and the facts about Hugging Face classes that their configs
// leave out (configs/models/defaults.yaml). Configs are read by the meaning of
// their keys, not by the name of the model: a dimension that is not stated is
// an error, never a default, except for the classes whose defaults that file
// lists, and then with a [Warning].
//
// How many parameters a shape has, what its cache holds and which sizes are
// possible is the business of package models; how a quantisation tool spells
// what it did is that of models/hf/quant. The package must not know presets,
// GPUs or engines, and it opens no file by itself.
package hf
