package models

import (
	"fmt"
	"strconv"
	"strings"
)

// parsePattern reads the layer pattern of a preset: group indices in layer
// order, where N*X repeats X and parentheses group: "3*0 58*1",
// "15*(3*0 1)".
func parsePattern(s string) ([]uint8, error) {
	p := patternParser{rest: s}
	out, err := p.sequence(0)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", s, err)
	}
	if p.rest != "" {
		return nil, fmt.Errorf("pattern %q: unexpected %q", s, p.rest)
	}
	return out, nil
}

type patternParser struct{ rest string }

func (p *patternParser) sequence(depth int) ([]uint8, error) {
	if depth > 4 {
		return nil, fmt.Errorf("parentheses nested deeper than 4")
	}
	var out []uint8
	for {
		p.rest = strings.TrimLeft(p.rest, " ")
		if p.rest == "" || p.rest[0] == ')' {
			return out, nil
		}
		item, err := p.item(depth)
		if err != nil {
			return nil, err
		}
		if len(out)+len(item) > MaxLayers {
			return nil, fmt.Errorf("more than %d layers", MaxLayers)
		}
		out = append(out, item...)
	}
}

func (p *patternParser) item(depth int) ([]uint8, error) {
	times := 1
	if p.rest[0] != '(' {
		n, err := p.number()
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(p.rest, "*") {
			if n > 254 {
				return nil, fmt.Errorf("group %d", n)
			}
			return []uint8{uint8(n)}, nil
		}
		p.rest = p.rest[1:]
		times = n
	}
	var one []uint8
	if strings.HasPrefix(p.rest, "(") {
		p.rest = p.rest[1:]
		inner, err := p.sequence(depth + 1)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(p.rest, ")") {
			return nil, fmt.Errorf("a parenthesis is not closed")
		}
		p.rest = p.rest[1:]
		one = inner
	} else {
		n, err := p.number()
		if err != nil {
			return nil, err
		}
		if n > 254 {
			return nil, fmt.Errorf("group %d", n)
		}
		one = []uint8{uint8(n)}
	}
	if times < 1 || times*len(one) > MaxLayers {
		return nil, fmt.Errorf("%d times %d layers, want 1 to %d in all", times, len(one), MaxLayers)
	}
	out := make([]uint8, 0, times*len(one))
	for range times {
		out = append(out, one...)
	}
	return out, nil
}

func (p *patternParser) number() (int, error) {
	i := 0
	for i < len(p.rest) && p.rest[i] >= '0' && p.rest[i] <= '9' {
		i++
	}
	if i == 0 || i > 6 {
		return 0, fmt.Errorf("want a number at %q", p.rest)
	}
	n, err := strconv.Atoi(p.rest[:i])
	p.rest = p.rest[i:]
	return n, err
}

// formatPattern writes a pattern as short as runs and one repeated block allow.
func formatPattern(layers []uint8) string {
	best := runs(layers)
	for period := 2; period <= 16; period++ {
		for from := 0; from < 8 && from+2*period <= len(layers); from++ {
			n := 1
			for from+(n+1)*period <= len(layers) && string(layers[from+n*period:from+(n+1)*period]) == string(layers[from:from+period]) {
				n++
			}
			if n < 2 {
				continue
			}
			s := strings.Join(strings.Fields(runs(layers[:from])+" "+strconv.Itoa(n)+"*("+runs(layers[from:from+period])+") "+runs(layers[from+n*period:])), " ")
			if len(s) < len(best) {
				best = s
			}
		}
	}
	return best
}

func runs(layers []uint8) string {
	var b strings.Builder
	for i := 0; i < len(layers); {
		j := i
		for j < len(layers) && layers[j] == layers[i] {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if j-i > 1 {
			b.WriteString(strconv.Itoa(j-i) + "*")
		}
		b.WriteString(strconv.Itoa(int(layers[i])))
		i = j
	}
	return b.String()
}
