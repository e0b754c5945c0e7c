package hardware

import (
	"slices"
	"strconv"
	"strings"
)

// decoration lists the words around a part's name that do not tell parts
// apart. "pcie", "nvl" and "hf" are absent: those are other parts.
var decoration = []string{
	"amd", "instinct", "nvidia", "tesla", "hgx", "dgx", "gpu", "accelerator",
	"oam", "vf", "sxm", "sxm4", "sxm5", "sxm6", "hbm2e", "hbm3", "hbm3e", "hbm4", "ac",
}

// fold reduces a spelling to the key under which names are compared, and the
// memory size in marketing GB that the spelling carries (0 = none):
// "NVIDIA A100-SXM4-80GB" -> "a100", 80; "gfx942:sramecc+:xnack-" -> "gfx942".
func fold(name string) (key string, marketed int) {
	name, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(name)), ":")
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(" -_/.()", r) })
	var kept []string
	for _, w := range words {
		if gb, ok := memoryWord(w); ok {
			marketed = gb
			continue
		}
		if !slices.Contains(decoration, w) {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, ""), marketed
}

func memoryWord(w string) (gb int, ok bool) {
	for _, suffix := range []string{"gib", "gb"} {
		if digits, found := strings.CutSuffix(w, suffix); found {
			n, err := strconv.Atoi(digits)
			return n, err == nil
		}
	}
	return 0, false
}
