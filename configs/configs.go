package configs

import "embed"

// FS is the tree of shipped files: models/, hardware/, fabrics/, engines/,
// kernels/, measured/.
//
//go:embed all:*
var FS embed.FS
