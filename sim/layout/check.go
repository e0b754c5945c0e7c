package layout

import (
	"fmt"
	"slices"
	"strings"

	"infera/models"
	"infera/sim/hardware"
)

// The codes of violations. They are part of the output and do not change.
const (
	CodeCount       = "layout_count"       // a size below 1 or beyond any machine
	CodeAttentionDP = "attention_dp_tp"    // attention DP does not divide TP
	CodeEP          = "ep_tp"              // EP neither divides TP nor is a multiple of it
	CodeNoExperts   = "ep_dense"           // EP or redundancy without experts to spread
	CodeExperts     = "ep_experts"         // experts not divisible by EP
	CodePP          = "pp_layers"          // more stages than layers
	CodeHeads       = "tp_heads"           // query heads not divisible
	CodeKVHeads     = "tp_kv_heads"        // key/value heads neither divisible nor replicable
	CodeRecurrent   = "tp_recurrent_heads" // heads of a recurrent layer not divisible
	CodeExpertWidth = "tp_expert_width"    // expert columns not divisible
	CodeDenseWidth  = "tp_ffn_width"       // dense or shared columns not divisible
	CodeBlock       = "tp_quant_block"     // a shard cuts a quantisation block
	CodeDecodeCP    = "decode_cp"          // decode context parallelism without replicas to use
	CodeReplicated  = "kv_replicated"      // note: key/value heads replicated
	CodePadded      = "width_padded"       // note: shards padded to whole groups
	CodeVocab       = "vocab_padded"       // note: vocabulary padded
	CodeCrossDomain = "crosses_domain"     // note: a group leaves the scale-up domain
	CodeIdle        = "idle_gpus"          // note: GPUs of the domain cannot be used
)

// Violation is one finding about a layout.
type Violation struct {
	Code string
	// Text states the fact with its numbers; Suggestion the values of the same
	// knob that would do, "" when there is nothing to change.
	Text, Suggestion string
	// Note marks a consequence worth knowing of a legal layout.
	Note bool
}

// String returns "text; suggestion".
func (v Violation) String() string {
	if v.Suggestion == "" {
		return v.Text
	}
	return v.Text + "; " + v.Suggestion
}

// Legal reports whether vs has nothing but notes.
func Legal(vs []Violation) bool {
	return !slices.ContainsFunc(vs, func(v Violation) bool { return !v.Note })
}

// Check returns what is wrong with running a in layout l, then notes, each once
// and in a fixed order. With a fabric (nil = not known) it also notes groups
// that leave their scale-up domain.
func Check(a *models.Architecture, l Layout, f *hardware.Fabric) []Violation {
	c := checker{a: a, l: l}
	c.run()
	if !c.bad {
		c.vocab()
		if f != nil {
			c.placement(f)
		}
	}
	slices.SortStableFunc(c.found, func(x, y Violation) int {
		switch {
		case x.Note == y.Note:
			return 0
		case x.Note:
			return 1
		default:
			return -1
		}
	})
	return c.found
}

// legal is Check without words, for the search.
func legal(a *models.Architecture, l Layout) bool {
	c := checker{a: a, l: l, quiet: true}
	c.run()
	return !c.bad
}

// legalBesideExperts reports that nothing but the split of the experts can be
// wrong with l.
func legalBesideExperts(a *models.Architecture, l Layout) bool {
	c := checker{a: a, l: l, quiet: true, skipExperts: true}
	c.run()
	return !c.bad
}

// Bounds beyond any machine: they keep the search and the products small.
const (
	maxRanks  = 4096
	maxStages = 1024
	maxGPUs   = 1 << 17
)

type checker struct {
	a     *models.Architecture
	l     Layout
	quiet bool // only bad is wanted
	bad   bool
	// skipExperts leaves out all rules on routed experts.
	skipExperts bool
	found       []Violation
}

// add records a finding; text and suggest run only when words are wanted.
func (c *checker) add(note bool, code string, text, suggest func() string) {
	c.bad = c.bad || !note
	if c.quiet {
		return
	}
	v := Violation{Code: code, Text: text(), Note: note}
	if suggest != nil {
		v.Suggestion = suggest()
	}
	if !slices.Contains(c.found, v) {
		c.found = append(c.found, v)
	}
}

func (c *checker) run() {
	if c.counts(); c.bad {
		return
	}
	if c.groups(); c.bad {
		return
	}
	c.pipeline()
	for i := range c.a.Groups {
		c.layer(&c.a.Groups[i])
	}
	if c.a.Draft.Layers > 0 {
		c.layer(&c.a.Draft.Layer)
	}
}

func (c *checker) layer(g *models.LayerGroup) {
	if c.bad && c.quiet {
		return
	}
	c.attention(g.Attention)
	c.decodeCP(g.Attention)
	c.ffn(g.FFN)
}

func (c *checker) counts() {
	l := c.l
	for _, n := range []struct {
		name            string
		value, low, top int
	}{
		{"TP", l.TP, 1, maxRanks}, {"PP", l.PP, 1, maxStages}, {"EP", l.EP, 1, maxRanks},
		{"attention DP", l.AttentionDP, 1, maxRanks}, {"decode CP", l.DecodeCP, 0, maxRanks},
		{"redundant experts", l.RedundantExperts, 0, maxRanks},
	} {
		if n.value < n.low || n.value > n.top {
			c.add(false, CodeCount, func() string { return fmt.Sprintf("%s is %d", n.name, n.value) },
				func() string { return fmt.Sprintf("%d to %d are possible", n.low, n.top) })
		}
	}
	if !c.bad && l.GPUs() > maxGPUs {
		c.add(false, CodeCount, func() string { return fmt.Sprintf("a replica of %d GPUs", l.GPUs()) },
			func() string { return fmt.Sprintf("at most %d are possible", maxGPUs) })
	}
}

// groups checks how the groups of ranks nest.
func (c *checker) groups() {
	l := c.l
	if l.TP%l.AttentionDP != 0 {
		c.add(false, CodeAttentionDP,
			func() string { return fmt.Sprintf("attention DP %d does not divide TP %d", l.AttentionDP, l.TP) },
			func() string {
				return around("attention DP", l.AttentionDP, l.TP, func(n int) bool { return l.TP%n == 0 })
			})
	}
	if l.TP%l.EP != 0 && l.EP%l.TP != 0 {
		c.add(false, CodeEP,
			func() string { return fmt.Sprintf("EP %d neither divides TP %d nor is a multiple of it", l.EP, l.TP) },
			func() string {
				return around("EP", l.EP, 2*max(l.EP, l.TP), func(n int) bool { return l.TP%n == 0 || n%l.TP == 0 })
			})
	}
}

func (c *checker) pipeline() {
	if layers := c.a.Layers(); c.l.PP > max(1, layers) {
		c.add(false, CodePP, func() string { return fmt.Sprintf("PP %d exceeds the %d layers", c.l.PP, layers) },
			func() string { return fmt.Sprintf("PP %d or less", layers) })
	}
	if c.hasExperts() {
		return
	}
	if c.l.EP > 1 || c.l.RedundantExperts > 0 {
		c.add(false, CodeNoExperts, func() string {
			return fmt.Sprintf("%s has no routed experts to spread over EP %d", c.a.Name, c.l.EP)
		}, func() string { return "EP 1 without redundant experts" })
	}
}

func (c *checker) hasExperts() bool {
	return slices.ContainsFunc(c.a.Groups, func(g models.LayerGroup) bool { return g.FFN.Experts > 0 })
}

// decodeCP: the cache of a sequence can only be dealt out over ranks that would
// otherwise hold copies of it.
func (c *checker) decodeCP(at models.Attention) {
	cp := c.l.DecodeCP
	if cp <= 1 || at.Kind != models.AttentionGQA && at.Kind != models.AttentionMLA {
		return
	}
	if r := KVReplication(at, c.l); r%cp != 0 {
		c.add(false, CodeDecodeCP, func() string {
			return fmt.Sprintf("decode CP %d needs that many copies of each KV head, attention TP %d over %d KV heads has %d",
				cp, c.l.AttentionTP(), KVHeads(at), r)
		}, func() string { return around("decode CP", cp, r, func(n int) bool { return r%n == 0 }) })
	}
}

func (c *checker) vocab() {
	rows := max(c.a.Vocab, c.a.PaddedVocab)
	if all := VocabPerRank(c.a, c.l) * c.l.DenseTP(); all > rows {
		c.add(true, CodeVocab, func() string {
			return fmt.Sprintf("the vocabulary of %d rows is padded to %d over %d ranks", rows, all, c.l.DenseTP())
		}, nil)
	}
}

func (c *checker) placement(f *hardware.Fabric) {
	p := Place(c.l, f)
	for _, g := range []struct {
		name string
		span Span
	}{{"TP", p.TP}, {"EP", p.EP}} {
		if g.span.Crosses() {
			c.add(true, CodeCrossDomain, func() string {
				return fmt.Sprintf("the %s group of %d ranks spans %d scale-up domains of %d GPUs (%s) and uses the network",
					g.name, g.span.Ranks, g.span.Domains, f.DomainSize, f.Name)
			}, nil)
		}
	}
	// A replica smaller than half a domain shares it with others.
	if own := c.l.GPUs(); p.Idle > 0 && own > f.DomainSize/2 {
		c.add(true, CodeIdle, func() string {
			return fmt.Sprintf("%d GPUs of %d scale-up domains of %d (%s) stay idle", p.Idle, p.Domains, f.DomainSize, f.Name)
		}, nil)
	}
}

// around names the values of a knob closest to n, below and above, that ok
// accepts; nothing above top is offered.
func around(knob string, n, top int, ok func(int) bool) string {
	top = min(top, maxRanks)
	var found []string
	for v := min(n, top); v >= 1; v-- {
		if ok(v) {
			found = append(found, fmt.Sprint(v))
			break
		}
	}
	for v := n + 1; v <= top; v++ {
		if ok(v) {
			found = append(found, fmt.Sprint(v))
			break
		}
	}
	if len(found) == 0 {
		return ""
	}
	return knob + " " + strings.Join(found, " or ")
}
