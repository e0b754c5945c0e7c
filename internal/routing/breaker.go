package routing

import (
	"fmt"

	"infera/internal/units"
)

// BreakerState is what a breaker lets through to a worker.
type BreakerState uint8

// A closed breaker lets everything through and an open one nothing; a half-open
// one lets a single request probe the worker.
const (
	BreakerClosed BreakerState = iota
	BreakerOpen
	BreakerHalfOpen
)

// String returns the state in words.
func (s BreakerState) String() string {
	return [...]string{"closed", "open", "half-open"}[min(s, BreakerHalfOpen)]
}

// BreakerOptions are the settings of a breaker.
type BreakerOptions struct {
	// Threshold is how many failures in a row open it; 0 = it never opens.
	Threshold int
	// Cooldown is how long it is open. Every failed probe doubles that, up to
	// MaxCooldown.
	Cooldown, MaxCooldown units.Time
	// ProbeTimeout is when a probe that nothing was heard of is given up.
	ProbeTimeout units.Time
}

// DefaultBreaker returns the settings of an operator who has none: three
// failures, five seconds, at most a minute.
func DefaultBreaker() BreakerOptions {
	const second = units.Time(1e9)
	return BreakerOptions{Threshold: 3, Cooldown: 5 * second, MaxCooldown: 60 * second, ProbeTimeout: 60 * second}
}

// Breaker keeps requests from workers that fail, without declaring them gone. A
// failure is an answer that says the worker is at fault, or none. Moments come
// from the caller's clock and do not go backwards. A Breaker is not safe for
// concurrent use.
type Breaker struct {
	o        BreakerOptions
	circuits []circuit // by worker
	trips    int
}

// circuit is the breaker of one worker.
type circuit struct {
	failures int
	// cooldown is how long it is open this time; 0 = it is closed.
	cooldown units.Time
	// opens is when it lets a probe through, and probe when the one under way
	// is given up; 0 = none is.
	opens, probe units.Time
}

// NewBreaker returns a breaker that is closed for every worker. The error is of
// kind [ErrOptions].
func NewBreaker(o BreakerOptions) (*Breaker, error) {
	if o.Threshold < 0 || o.Threshold > 0 && (o.Cooldown <= 0 || o.MaxCooldown < o.Cooldown || o.ProbeTimeout <= 0) {
		return nil, fmt.Errorf("%w: breaker opens at %d failures for %v s to %v s and probes for %v s", ErrOptions,
			o.Threshold, o.Cooldown.Seconds(), o.MaxCooldown.Seconds(), o.ProbeTimeout.Seconds())
	}
	return &Breaker{o: o}, nil
}

func (b *Breaker) circuit(worker int) *circuit {
	for worker >= len(b.circuits) {
		b.circuits = append(b.circuits, circuit{})
	}
	return &b.circuits[worker]
}

// State returns what is let through to a worker.
func (b *Breaker) State(worker int, now units.Time) BreakerState {
	if worker >= len(b.circuits) || b.circuits[worker].cooldown == 0 {
		return BreakerClosed
	}
	if now < b.circuits[worker].opens {
		return BreakerOpen
	}
	return BreakerHalfOpen
}

// Trips returns how often a worker that was served was cut off.
func (b *Breaker) Trips() int { return b.trips }

// Allowed appends to dst the candidates that a request may be sent to. Where all
// are cut off it is all of them: trying beats refusing.
func (b *Breaker) Allowed(dst, candidates []int, now units.Time) []int {
	n := len(dst)
	for _, w := range candidates {
		switch b.State(w, now) {
		case BreakerClosed:
			dst = append(dst, w)
		case BreakerHalfOpen:
			if now >= b.circuits[w].probe {
				dst = append(dst, w)
			}
		}
	}
	if len(dst) == n {
		dst = append(dst, candidates...)
	}
	return dst
}

// Sent notes that a request goes to a worker. At a half-open one it is the
// probe; nothing else is let through until it is known how that ends.
func (b *Breaker) Sent(worker int, now units.Time) {
	if b.State(worker, now) != BreakerHalfOpen {
		return
	}
	if c := &b.circuits[worker]; now >= c.probe {
		c.probe = after(now, b.o.ProbeTimeout)
	}
}

// Succeeded notes that a worker served a request, and closes.
func (b *Breaker) Succeeded(worker int) {
	if worker < len(b.circuits) {
		b.circuits[worker] = circuit{}
	}
}

// Failed notes that a worker failed a request. While it is cut off only the
// probe counts: requests from before the cut end late.
func (b *Breaker) Failed(worker int, now units.Time) {
	if b.o.Threshold == 0 {
		return
	}
	c := b.circuit(worker)
	switch {
	case c.cooldown == 0:
		if c.failures++; c.failures < b.o.Threshold {
			return
		}
		b.trips++
		c.cooldown = b.o.Cooldown
	case c.probe == 0:
		return
	case c.cooldown > b.o.MaxCooldown/2:
		c.cooldown = b.o.MaxCooldown
	default:
		c.cooldown *= 2
	}
	c.opens, c.probe = after(now, c.cooldown), 0
}

// Neutral notes that a request ended in a way that says nothing about its
// worker: refused as malformed, over a limit, given up by the client.
func (b *Breaker) Neutral(worker int) {
	if worker < len(b.circuits) {
		b.circuits[worker].probe = 0
	}
}

// Forget notes that a worker is gone; its number may be given to another.
func (b *Breaker) Forget(worker int) { b.Succeeded(worker) }

// after returns the moment that a span after another ends.
func after(t, span units.Time) units.Time {
	if t > units.Never-span {
		return units.Never
	}
	return t + span
}
