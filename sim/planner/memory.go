package planner

import (
	"fmt"

	"infera/models"
	"infera/sim/layout"
	"infera/sim/memory"
)

// sizer returns the memory model of an architecture, cached by pointer.
func (l *Library) sizer(a *models.Architecture) (*memory.Sizer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.sizers[a]; ok {
		return s, nil
	}
	s, err := memory.New(a)
	if err != nil {
		return nil, err
	}
	if len(l.sizers) >= maxSizers {
		clear(l.sizers)
	}
	l.sizers[a] = s
	return s, nil
}

// maxSizers bounds the cache: callers that import models in a loop make a new
// architecture each time.
const maxSizers = 256

// memoryRequest translates a request for one replica of a layout that holds
// the given number of requests.
func (r *Request) memoryRequest(on *engineOn, lay layout.Layout, concurrency float64) memory.Request {
	e, m := &r.Engineering, &r.Memory
	q := memory.Request{
		GPU: r.GPU, Layout: lay, Engine: on.defaults, KVFormat: r.KV, MaxContext: r.MaxContext,
		InputLen: int(r.InputLen), OutputLen: int(r.OutputLen), Concurrency: int(concurrency),
		MaxBatchedTokens: e.MaxBatchedTokens, MaxSequences: e.MaxSeqs, BlockTokens: e.BlockSize,
		MemoryFraction: e.MemoryFraction, SpeculativeTokens: int(r.Speculation.Tokens),
		Eager: e.GraphMode == "none", ReservedBytes: m.EngineReserved,
		KVPoolTokens: int(m.PoolTokens) / max(1, lay.AttentionGroups()), OffloadBytes: m.Offload,
	}
	if q.MaxContext == 0 {
		q.MaxContext = q.InputLen + q.OutputLen
	}
	return q
}

// fit sizes one replica of a layout.
func (l *Library) fit(r *Request, on *engineOn, lay layout.Layout, concurrency float64) (memory.Fit, error) {
	s, err := l.sizer(r.Arch)
	if err != nil {
		return memory.Fit{}, err
	}
	q := r.memoryRequest(on, lay, concurrency)
	f, err := s.Fit(&q)
	if err != nil {
		return f, fmt.Errorf("memory of %s: %w", r.Arch.Name, err)
	}
	return f, nil
}

// sequences returns how many requests may run at once on one replica of a
// point that is known to have run: what memory holds at the mean resident
// length, at least one.
func (l *Library) sequences(r *Request) (float64, error) {
	on, err := l.engine(r.Engine, r.Release, r.GPU)
	if err != nil {
		return 0, err
	}
	f, err := l.fit(r, on, r.Layout, r.Concurrency)
	if err != nil {
		return 0, err
	}
	return r.running(&f, on), nil
}

// running returns the requests that may run at once: the pool over the tokens
// a running request holds on average, bounded by the engine's own limit.
func (r *Request) running(f *memory.Fit, on *engineOn) float64 {
	resident := r.Memory.ResidentTokens
	scale := 1.0
	if r.LengthScale > 0 {
		scale = r.LengthScale
	}
	if resident <= 0 {
		resident = scale * (r.InputLen + r.OutputLen/2)
	}
	// MaxConcurrency counts whole requests; while they grow they hold less.
	n := float64(f.MaxConcurrency)
	if whole := r.InputLen + r.OutputLen; resident > 0 && f.StateBytesPerSequence == 0 {
		n *= whole / resident
	}
	n = max(1, n)
	limit := r.Engineering.MaxSeqs
	if limit == 0 {
		limit = on.defaults.MaxSequences
	}
	if limit > 0 {
		n = min(n, float64(limit*r.Layout.AttentionGroups()))
	}
	return n
}
