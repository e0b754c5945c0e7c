// Package probe finds out what the machine it runs on is made of, as
// [hardware.GPU] values: AMD devices from the files of the amdgpu and KFD
// drivers, NVIDIA devices from nvidia-smi, the CPU from procfs and a short
// measurement.
//
// A device that agrees with a shipped profile (name, instruction set, compute
// units, memory) is that profile with the memory the driver reports. Another is
// derived from the closest profile of its instruction set, scaled, and its
// confidence is "probed"; the notes say what was taken and what was scaled. A
// device without such a profile is reported with the reason, never guessed.
//
// Files come in as an fs.FS of the root directory and programs through a
// [Runner], so everything but [NewMeter]'s meter is a pure function of its
// input; that one uses all processors for at most about a second. The
// package needs no ROCm or CUDA library and writes nothing.
package probe
