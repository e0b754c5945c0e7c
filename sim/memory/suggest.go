package memory

import (
	"fmt"
	"strings"

	"infera/internal/units"
	"infera/models"
)

// change is one thing to try.
type change struct {
	text  string
	apply func(*Request)
}

// suggest tries single changes and returns those that make the request fit,
// cheapest for the user first.
func (s *Sizer) suggest(r *Request, q *resolved) []string {
	var out []string
	for _, c := range s.changes(r, q) {
		next := *r
		c.apply(&next)
		f, err := s.Fit(&next)
		if err == nil && f.OK {
			out = append(out, c.text)
		}
	}
	if text := s.shorter(r); text != "" {
		out = append([]string{text}, out...)
	}
	return out
}

func (s *Sizer) changes(r *Request, q *resolved) []change {
	var list []change
	add := func(text string, apply func(*Request)) { list = append(list, change{text, apply}) }
	if q.kv.Element != models.FP8 && q.kv.Element.Bits() > 8 && r.GPU.Supports(models.FP8) {
		fp8 := models.Format{Name: "fp8", Element: models.FP8, Activation: models.FP8}
		add("store the cache in fp8 (--kv-cache-dtype fp8)", func(n *Request) { n.KVFormat = fp8 })
	}
	for n := q.batched / 2; n >= 1024; n /= 2 {
		tokens := n
		add(fmt.Sprintf("lower --max-num-batched-tokens to %d", n), func(x *Request) { x.MaxBatchedTokens = tokens })
		if n <= q.batched/4 {
			break
		}
	}
	if q.sequences > 64 {
		add("lower --max-num-seqs to 64", func(x *Request) { x.MaxSequences = 64 })
	}
	if !r.Eager && q.graphs(s.arch.Layers()) > 0 {
		for _, f := range [...]float64{0.85, 0.80} { // graphs outside the budget need room beside it
			fraction := f
			if f < float64(s.budget(r)/q.card) {
				add(fmt.Sprintf("lower the memory fraction to %.2f", f), func(x *Request) { x.MemoryFraction = fraction })
			}
		}
		add("run without captured graphs (--enforce-eager), which is slower", func(x *Request) { x.Eager = true })
	}
	for _, f := range [...]float64{0.92, 0.95} {
		if f > r.MemoryFraction && float64(q.card)*f > float64(s.budget(r)) {
			fraction := f
			add(fmt.Sprintf("raise the memory fraction to %.2f", f), func(x *Request) { x.MemoryFraction = fraction })
		}
	}
	if r.SpeculativeTokens > 0 {
		add("turn speculation off", func(x *Request) { x.SpeculativeTokens = 0 })
	}
	if s.multimodal && !r.TextOnly {
		add("serve text only (--language-only or its like)", func(x *Request) { x.TextOnly = true })
	}
	if r.Layout.AttentionDP > 1 {
		add("turn attention data parallelism off", func(x *Request) { x.Layout.AttentionDP = 1 })
	}
	for _, k := range [...]int{2, 4, 8} {
		tp := r.Layout.TP * k
		if tp > 64 || !s.divides(tp) {
			continue
		}
		add(fmt.Sprintf("raise --tp to %d", tp), func(x *Request) {
			x.Layout.TP = tp
			if x.Layout.EP > 1 && x.Layout.EP < tp {
				x.Layout.EP = min(tp, x.Layout.EP*k)
			}
		})
		if k == 2 {
			add(fmt.Sprintf("raise --pp to %d", r.Layout.PP*2), func(x *Request) { x.Layout.PP *= 2 })
		}
	}
	return list
}

// budget is what the engine may use on the card.
func (s *Sizer) budget(r *Request) units.Bytes {
	f, err := s.Fit(r)
	if err != nil {
		return 0
	}
	return f.Budget
}

// divides reports whether the query heads divide over n ranks.
func (s *Sizer) divides(n int) bool {
	for i := range s.arch.Groups {
		if h := s.arch.Groups[i].Attention.Heads; h > 0 && h%n != 0 {
			return false
		}
	}
	return true
}

// shorter suggests the longest context that fits, when only the context is too
// long.
func (s *Sizer) shorter(r *Request) string {
	f, err := s.Fit(r)
	if err != nil || f.MaxContextTokens < 1 || f.Short != TermKV {
		return ""
	}
	// What a request needs can depend on the limit itself, so the shorter limit
	// is checked, once.
	next := *r
	next.MaxContext = f.MaxContextTokens
	next.InputLen, next.OutputLen = 0, 0
	if g, err := s.Fit(&next); err != nil || !g.OK {
		return ""
	}
	return fmt.Sprintf("limit the context to %d tokens (--max-context-len)", f.MaxContextTokens)
}

// String returns the table of terms as plain text, sizes in GiB.
func (r *Report) String() string {
	var b strings.Builder
	for _, t := range r.Terms {
		fmt.Fprintf(&b, "%-26s %10.3f GiB  %s\n", t.Name, t.Bytes.GiB(), t.ShardedBy)
	}
	fmt.Fprintf(&b, "%-26s %10.3f GiB\n%-26s %10.3f GiB\n", "budget", r.Budget.GiB(), "pool", r.Pool.GiB())
	if r.Reason != "" {
		b.WriteString(r.Reason + "\n")
	}
	return b.String()
}
