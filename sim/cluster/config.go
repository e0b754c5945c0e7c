package cluster

import (
	"errors"
	"fmt"
	"math"

	"infera/internal/units"
	"infera/sim/engine"
	"infera/sim/kvcache"
	"infera/sim/metrics"
	"infera/sim/step"
	"infera/sim/workload"
)

// ErrConfig is the kind of errors about impossible fleets.
var ErrConfig = errors.New("bad fleet")

// Role says which part of a request an instance serves.
type Role uint8

// The roles.
const (
	Mixed   Role = iota // whole requests
	Prefill             // prompts and first tokens
	Decode              // the tokens after the first
)

// String returns the name of the role.
func (r Role) String() string { return [...]string{"mixed", "prefill", "decode"}[min(r, Decode)] }

// Spec describes one kind of instance.
type Spec struct {
	Role Role
	// Name says what it is, for reports; GPUs is how many it takes.
	Name      string
	GPUs      int
	Scheduler engine.Options
	Pool      kvcache.Options
	// Prices may be shared by instances that price alike.
	Prices *Prices
	// KVBytesPerToken is the cache of one token over all GPUs of the instance,
	// for transfers and tiers; StateBytes what a sequence has besides.
	KVBytesPerToken, StateBytes units.Bytes
	// Network is the bandwidth of the instance's NICs together, each way.
	Network units.BytesPerSecond
}

// Config is a fleet and its workload.
type Config struct {
	Source workload.Source
	// Fleet are the instances at the start.
	Fleet []*Spec
	// Routing is how requests find an instance.
	Routing Routing
	// Handoff is set when prompts and answers are served by different
	// instances.
	Handoff *Handoff
	// Tiers are the cache tiers below GPU memory of every instance, fastest
	// first.
	Tiers []TierSpec
	// Autoscaler, when set, changes the size of the fleet.
	Autoscaler *Autoscaler
	Faults     []FaultSpec
	Host       Host
	Scoring    Scoring
	// Seed is for the random streams of routing and of drafts.
	Seed uint64
	// Until cuts the run off; 0 = when all requests have ended.
	Until units.Time
	// Explain is the ID of a request whose waterfall is wanted, -1 = none.
	Explain int
	// ClosedLoop says that arrivals depend on answers: there is no offered rate
	// then, and nothing that could outrun the fleet.
	ClosedLoop bool
	// Objective is that of all requests when there are no classes.
	Objective metrics.Objective
	// Classes name the classes of the workload, with their objectives.
	Classes []ClassSpec
	// OnStep, when set, is told every run of steps that ended.
	OnStep func(StepRecord)
	// OnAnswer, when set, is told every request that was answered.
	OnAnswer func(metrics.Record)
	// SingleSteps forbids coalescing of equal decode steps: for tests, and for
	// logs of every step.
	SingleSteps bool
}

// ClassSpec names a class of requests.
type ClassSpec struct {
	Name      string
	Objective metrics.Objective
}

// Host are costs outside the engine's steps.
type Host struct {
	// RequestFixed passes before a request reaches the router; Tokenize per
	// prompt token and Detokenize per token are added to what the client sees.
	RequestFixed, Tokenize, Detokenize units.Seconds
}

// StepRecord is a run of equal steps that ended.
type StepRecord struct {
	Instance, Index      int
	Start, End           units.Time
	Times                int
	Prefills, Decodes    int
	PromptTokens, Tokens int
	KVTokens, Waiting    int
	// Batch is what was priced. Its chunks are valid during the call only.
	Batch step.Batch
}

func (c *Config) validate() error {
	switch {
	case c.Source == nil:
		return fmt.Errorf("%w: no workload", ErrConfig)
	case len(c.Fleet) == 0:
		return fmt.Errorf("%w: no instances", ErrConfig)
	}
	roles := map[Role]int{}
	for i, s := range c.Fleet {
		if s.Prices == nil || s.GPUs < 1 || s.Role > Decode {
			return fmt.Errorf("%w: instance %d has %d GPUs, role %d, prices %t", ErrConfig, i, s.GPUs, s.Role, s.Prices != nil)
		}
		roles[s.Role]++
	}
	split := roles[Prefill] > 0 || roles[Decode] > 0
	switch {
	case split && (roles[Prefill] == 0 || roles[Decode] == 0):
		return fmt.Errorf("%w: %d prefill and %d decode instances", ErrConfig, roles[Prefill], roles[Decode])
	case split && roles[Mixed] > 0:
		return fmt.Errorf("%w: mixed instances beside prefill and decode ones", ErrConfig)
	case split != (c.Handoff != nil):
		return fmt.Errorf("%w: prefill and decode instances need a hand-off, and only they", ErrConfig)
	}
	for _, h := range []units.Seconds{c.Host.RequestFixed, c.Host.Tokenize, c.Host.Detokenize} {
		if !(h >= 0) || math.IsInf(float64(h), 0) {
			return fmt.Errorf("%w: host time %v", ErrConfig, h)
		}
	}
	return errors.Join(c.Handoff.validate(), c.Autoscaler.validate(), validateTiers(c.Tiers), c.validateFaults())
}
