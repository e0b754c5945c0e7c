package routing

// decay is what is left of a worker's recent work after each pick, and
// negligible what counts as nothing left. Half of it is gone after 23 picks:
// shorter memories pinned sequential sessions to one of two equal workers.
const (
	decay      = 0.97
	negligible = 1e-3
)

// Load accounts for the work of every worker.
type Load struct {
	// active counts the requests in flight on each block, by worker.
	active []map[Hash]int
	// unshared counts the blocks in flight that only one request has.
	unshared []int
	// outstanding counts requests, tokens their prompts' tokens, and foreign
	// the requests of others.
	outstanding, tokens, foreign []int
	// recent is the decayed sum of blocks to compute, at a scale that shrinks
	// with every pick instead of the sums.
	recent []float64
	scale  float64
}

// NewLoad returns an account without workers.
func NewLoad() *Load { return &Load{scale: 1} }

func (l *Load) widen(worker int) {
	for worker >= len(l.outstanding) {
		l.active = append(l.active, nil)
		l.unshared = append(l.unshared, 0)
		l.outstanding = append(l.outstanding, 0)
		l.tokens = append(l.tokens, 0)
		l.foreign = append(l.foreign, 0)
		l.recent = append(l.recent, 0)
	}
}

// Active returns how many different blocks the requests in flight at a worker
// have: a prefix that all share counts once.
func (l *Load) Active(worker int) int {
	if worker >= len(l.active) {
		return 0
	}
	return len(l.active[worker]) + l.unshared[worker]
}

// Outstanding returns the requests in flight at a worker: those sent from here,
// and those of others as it last reported.
func (l *Load) Outstanding(worker int) int {
	if worker >= len(l.outstanding) {
		return 0
	}
	return l.outstanding[worker] + l.foreign[worker]
}

// Reported notes how many requests a worker said it has, running and waiting.
// What exceeds those sent from here is of others, other routers say, and counts
// until it reports again. What was sent from here counts at once, so that an old
// report never hides it.
func (l *Load) Reported(worker, requests int) {
	l.widen(worker)
	l.foreign[worker] = max(0, requests-l.outstanding[worker])
}

// Forget takes back everything about a worker that is gone. Its number may be
// given to another once the requests that were sent to it have finished.
func (l *Load) Forget(worker int) {
	if worker >= len(l.outstanding) {
		return
	}
	l.active[worker], l.unshared[worker] = nil, 0
	l.outstanding[worker], l.tokens[worker], l.foreign[worker] = 0, 0, 0
	l.recent[worker] = 0
}

// Tokens returns the prompt tokens in flight at a worker.
func (l *Load) Tokens(worker int) int {
	if worker >= len(l.tokens) {
		return 0
	}
	return l.tokens[worker]
}

// Recent returns the decayed blocks a worker was asked to compute.
func (l *Load) Recent(worker int) float64 {
	if worker >= len(l.recent) {
		return 0
	}
	v := l.recent[worker] * l.scale
	if v < negligible {
		return 0
	}
	return v
}

// fade decays all recent work by one pick.
func (l *Load) fade() {
	if l.scale *= decay; l.scale < 1e-100 {
		for i := range l.recent {
			l.recent[i] *= l.scale
		}
		l.scale = 1
	}
}

// charge adds blocks to a worker's recent work.
func (l *Load) charge(worker int, blocks float64) {
	l.widen(worker)
	l.recent[worker] = (l.Recent(worker) + blocks) / l.scale
}

// Sent notes that a request is in flight at a worker. Its chain must stay as it
// is until Finished.
func (l *Load) Sent(worker int, r *Request) {
	l.widen(worker)
	l.outstanding[worker]++
	l.tokens[worker] += r.Tokens
	l.unshared[worker] += r.Unshared
	if len(r.Chain) == 0 {
		return
	}
	if l.active[worker] == nil {
		l.active[worker] = map[Hash]int{}
	}
	for _, h := range r.Chain {
		l.active[worker][h]++
	}
}

// Finished takes back what Sent noted.
func (l *Load) Finished(worker int, r *Request) {
	if worker >= len(l.outstanding) || l.outstanding[worker] == 0 {
		return
	}
	l.outstanding[worker]--
	l.tokens[worker] -= r.Tokens
	l.unshared[worker] -= r.Unshared
	for _, h := range r.Chain {
		if n := l.active[worker][h]; n > 1 {
			l.active[worker][h] = n - 1
		} else {
			delete(l.active[worker], h)
		}
	}
}
