// Package configs holds the data that ships inside the binaries: model presets,
// hardware profiles, fabrics, engines, kernel curves and measured points. Every
// file names the source of its numbers. The package only carries the files; the
// packages that own their meaning decode them.
package configs
