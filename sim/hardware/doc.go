// Package hardware describes the machines a model runs on: a [GPU] as its data
// sheet and measurements give it, and the [Fabric] of the node it sits in.
//
// A [Catalog] reads the shipped profiles (configs/hardware, configs/fabrics)
// from an fs.FS, one small file per look-up, and lays a user's file over them
// ([Catalog.Overlay]). Every number has a source and a confidence; a profile
// that lacks a number needed for planning is refused ([ErrIncomplete]), never
// filled with another part's.
//
// A GPU is one device as a process sees it, which a tensor-parallel rank owns:
// an MI250X die, not the package of two. Bandwidths count one direction. All
// quantities are SI; the files state their unit in the key.
//
// The package opens no file and asks no device by itself (see
// sim/hardware/probe), and knows nothing of models' shapes, engines, prices or
// of what share of a peak a kernel reaches.
package hardware
