package cluster

import (
	"fmt"
	"math"

	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/metrics"
)

// Handoff is how caches go from the instances that compute prompts to those
// that decode. Transfers share the network of both ends fairly.
type Handoff struct {
	// Latency passes before the first byte; Bandwidth is the most one transfer
	// reaches, 0 = the network's.
	Latency   units.Seconds
	Bandwidth units.BytesPerSecond
	// Layers, when above 0, overlaps transfer and computation: layers are sent
	// as they are computed, and what the last step before the first token could
	// not send goes after it.
	Layers int
	// LocalPrompt lets decode instances compute prompts themselves that have at
	// most so many tokens not in their cache.
	LocalPrompt int
}

func (h *Handoff) validate() error {
	if h == nil {
		return nil
	}
	if !(h.Latency >= 0) || math.IsInf(float64(h.Latency), 0) || !(h.Bandwidth >= 0) || h.Layers < 0 || h.LocalPrompt < 0 {
		return fmt.Errorf("%w: hand-off with latency %v s, %v B/s, %d layers, local prompts of %d tokens",
			ErrConfig, h.Latency, h.Bandwidth, h.Layers, h.LocalPrompt)
	}
	return nil
}

// transfer is a cache on its way.
type transfer struct {
	id       int // of the flight
	request  *engine.Request
	from, to *instance
	begun    units.Time
	left     float64 // bytes
	rate     float64 // bytes per second at the moment
	blocks   int     // kept free for it at the target
}

// handoffs moves caches from prefill to decode instances.
type handoffs struct {
	f      *fleet
	cfg    *Handoff
	active []*transfer
	inbox  map[int][]*transfer // by index of the target: no room there yet
	// updated is when the transfers' rest was computed last; version tells the
	// next end from ends that were computed before rates changed.
	updated units.Time
	version int
	// lost is set while the network is out.
	lost bool

	bytes    float64
	count    int64
	busy     units.Time
	duration metrics.Sketch
}

func newHandoffs(f *fleet) *handoffs {
	if f.cfg.Handoff == nil {
		return nil
	}
	return &handoffs{f: f, cfg: f.cfg.Handoff, inbox: map[int][]*transfer{}}
}

// roleOf returns where a request starts.
func (h *handoffs) roleOf(fl *flight) Role {
	if h.cfg.LocalPrompt == 0 {
		return Prefill
	}
	if fl.w.Input <= h.cfg.LocalPrompt {
		return Decode
	}
	best := 0
	for _, in := range h.f.instances {
		if in.spec.Role == Decode && in.state == ready && fl.w.Content != nil {
			in.catchUp()
			granule := in.core.Pool().ContentTokens()
			best = max(best, in.core.Pool().Match(h.f.router.chain(fl, granule))*granule)
		}
	}
	if fl.w.Input-best <= h.cfg.LocalPrompt {
		return Decode
	}
	return Prefill
}

// begin takes over a request whose prompt an instance has computed. Its blocks
// there stay held until they have been transferred: a decode pool that is full
// holds the prefill instances back.
func (h *handoffs) begin(id int, from *instance, r *engine.Request) {
	fl := &h.f.flights[id]
	fl.from = from.index
	h.f.router.finished(fl)
	to := h.f.router.pick(fl, Decode)
	if to < 0 {
		// Nobody decodes at the moment; the first to join will.
		h.f.router.holdHandoff(&transfer{id: id, request: r, from: from, begun: h.f.now})
		return
	}
	h.offer(&transfer{id: id, request: r, from: from, begun: h.f.now}, to)
}

// offer starts a transfer, or leaves it in the inbox of an instance without
// room.
func (h *handoffs) offer(t *transfer, to int) {
	t.to = h.f.instances[to]
	fl := &h.f.flights[t.id]
	fl.instance = to
	t.to.outstanding++
	if len(h.inbox[to]) > 0 || !h.start(t) {
		h.inbox[to] = append(h.inbox[to], t)
	}
}

// start begins a transfer when the target has room for the request.
func (h *handoffs) start(t *transfer) bool {
	fl := &h.f.flights[t.id]
	t.to.catchUp()
	pool := t.to.core.Pool()
	need := pool.Blocks(fl.w.Input + 1)
	reserved, coming := 0, 0
	for _, other := range h.active {
		if other.to == t.to {
			reserved += other.blocks
			coming++
		}
	}
	seats := t.to.spec.Scheduler.MaxSequences - t.to.core.Running() - t.to.core.Waiting() - coming
	if t.to.state == down || seats < 1 || pool.Available()-reserved < need {
		return false
	}
	t.blocks = need
	t.left = float64(t.from.spec.StateBytes) + float64(t.from.spec.KVBytesPerToken)*float64(fl.w.Input)
	h.bytes += t.left
	h.count++
	if h.cfg.Layers > 0 {
		// What was computed before the last step is there already. The layers
		// of that step were sent as they were computed, but for the last.
		sent := float64(h.rateAlone(t)) * float64(h.f.now-t.request.Admitted) / 1e9
		t.left = max(t.left/float64(h.cfg.Layers), t.left-sent)
	}
	t.left += float64(h.cfg.Latency) * h.rateAlone(t)
	h.advance()
	h.active = append(h.active, t)
	h.share()
	return true
}

func (h *handoffs) rateAlone(t *transfer) float64 {
	r := math.Min(float64(t.from.spec.Network), float64(t.to.spec.Network))
	if h.cfg.Bandwidth > 0 {
		r = math.Min(r, float64(h.cfg.Bandwidth))
	}
	return r
}

// advance computes what is left of every transfer now.
func (h *handoffs) advance() {
	now := h.f.now
	if len(h.active) > 0 && !h.lost {
		h.busy += now - h.updated
		for _, t := range h.active {
			t.left -= t.rate * float64(now-h.updated) / 1e9
		}
	}
	h.updated = now
}

// share divides the networks among the transfers and schedules the next end.
func (h *handoffs) share() {
	out, in := map[int]int{}, map[int]int{}
	for _, t := range h.active {
		out[t.from.index]++
		in[t.to.index]++
	}
	h.version++
	if h.lost || len(h.active) == 0 {
		return
	}
	soonest := math.Inf(1)
	for _, t := range h.active {
		t.rate = math.Min(float64(t.from.spec.Network)/float64(out[t.from.index]), float64(t.to.spec.Network)/float64(in[t.to.index]))
		if h.cfg.Bandwidth > 0 {
			t.rate = math.Min(t.rate, float64(h.cfg.Bandwidth))
		}
		soonest = math.Min(soonest, math.Max(0, t.left)/t.rate)
	}
	version := h.version
	at := h.f.now + units.Time(math.Ceil(soonest*1e9))
	h.f.queue.schedule(event{at: at, kind: kindTransfer, do: func(units.Time) {
		if version == h.version {
			h.arrived()
		}
	}})
}

// arrived ends the transfers that have nothing left.
func (h *handoffs) arrived() {
	h.advance()
	var done []*transfer
	left := h.active[:0]
	for _, t := range h.active {
		// A rest that takes less than a nanosecond is none.
		if t.left <= t.rate*1e-9 {
			done = append(done, t)
		} else {
			left = append(left, t)
		}
	}
	h.active = left
	for _, t := range done {
		h.complete(t)
	}
	h.share()
}

// complete hands a request to the instance that decodes it.
func (h *handoffs) complete(t *transfer) {
	f := h.f
	fl := &f.flights[t.id]
	h.duration.Add(float64(f.now-t.begun), 1)
	t.to.catchUp()
	r, err := t.to.core.Resume(t.request, fl.w.Output, f.now)
	h.release(t)
	if err != nil {
		t.to.outstanding--
		f.router.finished(fl)
		f.end(t.id, true)
		h.retry(t.to)
		return
	}
	fl.engine = r
	t.to.wake()
}

// release lets go of the blocks that a transfer's source still held.
func (h *handoffs) release(t *transfer) {
	t.from.outstanding--
	t.from.catchUp()
	t.from.core.LetGo(t.request)
	t.from.core.Recycle(t.request)
	if t.from.state == draining && t.from.outstanding == 0 {
		t.from.stop()
	}
	t.from.wake()
}

// retry looks at the inbox of an instance where a request has ended.
func (h *handoffs) retry(in *instance) {
	box := h.inbox[in.index]
	for len(box) > 0 && h.start(box[0]) {
		box = box[1:]
	}
	h.inbox[in.index] = box
}

// busyShare returns the share of the run in which caches were under way.
func (h *handoffs) busyShare(span units.Time) float64 {
	if span <= 0 {
		return 0
	}
	return float64(h.busy) / float64(span)
}

// waitsAt reports whether the cache of a request is held by an instance on its
// way to another.
func (h *handoffs) waitsAt(id int, in *instance) bool {
	for _, t := range h.active {
		if t.id == id && t.from == in {
			return true
		}
	}
	for _, box := range h.inbox {
		for _, t := range box {
			if t.id == id && t.from == in {
				return true
			}
		}
	}
	return false
}

// abort gives up the transfers from and to an instance that crashed. What the
// other end holds for them is let go.
func (h *handoffs) abort(in *instance) {
	h.advance()
	drop := func(t *transfer) bool {
		switch {
		case t.from == in:
			t.to.outstanding--
		case t.to == in:
			h.release(t)
		default:
			return false
		}
		return true
	}
	left := h.active[:0]
	for _, t := range h.active {
		if !drop(t) {
			left = append(left, t)
		}
	}
	h.active = left
	for to := range h.f.instances {
		kept := h.inbox[to][:0]
		for _, t := range h.inbox[to] {
			if !drop(t) {
				kept = append(kept, t)
			}
		}
		h.inbox[to] = kept
	}
	h.share()
	// Seats may have become free, and no end of a request may come to tell.
	for _, to := range h.f.instances {
		h.retry(to)
	}
}
