package enginelog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"infera/internal/units"
)

// ErrNothing is the kind of error for a text without a single known line.
var ErrNothing = errors.New("no memory figures in the engine log")

// Facts are the figures of a log; nil = not stated. Sizes are per GPU.
type Facts struct {
	Engine  string // vllm, sglang, atom; "" = not recognised
	Version string

	Weights      *units.Bytes // "Model loading took"
	PoolBytes    *units.Bytes // "Available KV cache memory"
	KVAllocated  *units.Bytes // K size + V size, per GPU
	KVTokens     *int         // "GPU KV cache size", "max_total_num_tokens", "#tokens"
	Concurrency  *float64     // "Maximum concurrency for L tokens per request"
	MaxContext   *int         // L of that line, or the model's maximum length
	Blocks       *int         // number of cache blocks
	BlockTokens  *int
	StateSlots   *int         // available Mamba cache blocks
	MaxSequences *int         // max_num_seqs
	Activation   *units.Bytes // torch activation peak
	NonTorch     *units.Bytes
	NonKV        *units.Bytes // all that is not cache
	Graphs       *units.Bytes // graph capture
	HBM          *units.Bytes // initial free or total memory
	Requested    *units.Bytes // fraction x card

	// Needed is what one request of MaxContext tokens needs ("To serve at least
	// one request"), with PoolBytes what there is; EstimatedContext the longest
	// context the engine would accept.
	Needed           *units.Bytes
	EstimatedContext *int
	// Rest is SGLang's total_rest_memory; negative when weights and reserve do
	// not leave room for a cache.
	Rest *units.Bytes
	// Failed is set when the log says the engine refused to start.
	Failed bool
	// Lines counts the lines understood.
	Lines int
}

// maxLine bounds one log line; the rest of a longer one is passed over.
const maxLine = 1 << 16

// Read reads a start-up log. The error is of kind [ErrNothing] when no line is
// known, or that of the reader.
func Read(r io.Reader) (Facts, error) {
	var f Facts
	patterns := known()
	br := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := br.ReadSlice('\n')
		if len(line) > 0 {
			f.line(patterns, string(line))
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			err = skipLine(br)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return f, fmt.Errorf("read engine log: %w", err)
		}
	}
	if f.Lines == 0 {
		return f, ErrNothing
	}
	return f, nil
}

func skipLine(br *bufio.Reader) error {
	for {
		_, err := br.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// line reads one line; a line may state several facts.
func (f *Facts) line(patterns []pattern, s string) {
	found := false
	for i := range patterns {
		p := &patterns[i]
		if !strings.Contains(s, p.word) {
			continue
		}
		if m := p.expr.FindStringSubmatch(s); m != nil && p.take(f, m) {
			found = true
		}
	}
	if strings.Contains(s, "No available memory for the cache blocks") || strings.Contains(s, "Not enough memory. Please try") {
		f.Failed, found = true, true
	}
	if found {
		f.Lines++
		f.recognise(s)
	}
}

// recognise names the engine from the words only it uses.
func (f *Facts) recognise(s string) {
	switch {
	case f.Engine != "":
	case strings.Contains(s, "max_total_num_tokens"), strings.Contains(s, "KV Cache is allocated"),
		strings.Contains(s, "total_rest_memory"), strings.Contains(s, "Load weight end"):
		f.Engine = "sglang"
	case strings.Contains(strings.ToLower(s), "[atom"), strings.Contains(s, "atom.model_engine"):
		f.Engine = "atom"
	case strings.Contains(s, "KV cache"), strings.Contains(s, "vLLM"), strings.Contains(s, "LLM engine"):
		f.Engine = "vllm"
	}
}

func (f *Facts) version(m []string) bool {
	f.Engine, f.Version = "vllm", m[1]
	return true
}

func (f *Facts) concurrency(m []string) bool {
	x, ok := number(m[2])
	if !ok {
		return false
	}
	if f.Concurrency == nil || x < *f.Concurrency {
		f.Concurrency = &x
	}
	return fewest(&f.MaxContext, m[1])
}

func (f *Facts) allocated(m []string) bool {
	k, ok1 := bytesOf(m[2], m[3])
	v, ok2 := bytesOf(m[4], m[5])
	if !ok1 || !ok2 || !fewest(&f.KVTokens, m[1]) {
		return false
	}
	if sum := k + v; f.KVAllocated == nil || sum < *f.KVAllocated {
		f.KVAllocated = &sum
	}
	return true
}

func (f *Facts) refused(m []string) bool {
	if !fewest(&f.MaxContext, m[1]) || !most(&f.Needed, m[2], m[3]) {
		return false
	}
	f.Failed = true
	if m[4] != "" {
		least(&f.PoolBytes, m[4], m[5])
	} else if m[6] != "" {
		least(&f.PoolBytes, m[6], m[7])
	}
	return true
}

func (f *Facts) budget(m []string) bool {
	return least(&f.HBM, m[1], m[2]) && least(&f.Requested, m[3], m[4])
}

func (f *Facts) rest(m []string) bool {
	unit := m[2]
	if unit == "" {
		unit = "GB"
	}
	if !least(&f.Rest, m[1], unit) {
		return false
	}
	f.Failed = f.Failed || *f.Rest < 0
	return true
}

func (f *Facts) mamba(m []string) bool {
	f.Failed = true
	return fewest(&f.MaxSequences, m[1]) && fewest(&f.StateSlots, m[2])
}

// bytesOf reads a size as the engines mean it: binary units under any name.
func bytesOf(text, unit string) (units.Bytes, bool) {
	x, ok := number(text)
	if !ok {
		return 0, false
	}
	scale := units.GiB
	if unit == "MiB" || unit == "MB" {
		scale = units.MiB
	}
	return units.Bytes(x) * scale, true
}

func number(text string) (float64, bool) {
	x, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil || math.IsNaN(x) || math.Abs(x) > 1e15 {
		return 0, false
	}
	return x, true
}

func most(to **units.Bytes, text, unit string) bool {
	b, ok := bytesOf(text, unit)
	if ok && (*to == nil || b > **to) {
		*to = &b
	}
	return ok
}

func least(to **units.Bytes, text, unit string) bool {
	b, ok := bytesOf(text, unit)
	if ok && (*to == nil || b < **to) {
		*to = &b
	}
	return ok
}

func fewest(to **int, text string) bool {
	x, ok := number(text)
	if !ok || x < 0 {
		return false
	}
	if n := int(x); *to == nil || n < **to {
		*to = &n
	}
	return true
}
