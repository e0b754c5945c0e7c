package planner

import (
	"errors"
	"fmt"
	"math"

	"infera/internal/units"
	"infera/models"
	"infera/sim/collective"
	"infera/sim/hardware"
	"infera/sim/layout"
	"infera/sim/moe"
	"infera/sim/software"
)

// ErrBadRequest is the kind of errors about requests that cannot mean
// anything.
var ErrBadRequest = errors.New("bad request")

// ServingModel is how requests share the engine.
type ServingModel uint8

// The serving models.
const (
	Continuous ServingModel = iota // requests join and leave the batch at any step
	Static                         // a batch is processed from first to last token
)

// String returns the flag value.
func (s ServingModel) String() string {
	if s == Static {
		return "static"
	}
	return "continuous"
}

// Request is one question, resolved: every name is already the object it
// names, every optional number that is zero means "the engine's default" or
// "off" as its comment says.
type Request struct {
	Arch    *models.Architecture
	GPU     *hardware.GPU
	Fabric  *hardware.Fabric
	Layout  layout.Layout
	Replica int // replicas of the layout that share the traffic; 0 = 1
	Engine  *software.Engine
	Release software.Release

	KV models.Format // cache format; zero = the checkpoint's
	// Activation is the operand type of products with quantised weights;
	// unknown = what the engine does on the GPU.
	Activation models.DType

	InputLen, OutputLen float64 // mean tokens per request
	// LengthScale is the mean over the nominal length of a client that draws
	// lengths below the nominal one; 0 = 1. It scales the traffic, not the
	// memory: the cache is planned for the nominal length.
	LengthScale float64
	// Concurrency is the requests in flight over all replicas; 0 = as many as
	// memory holds.
	Concurrency float64
	// MaxContext is the longest sequence memory is planned for; 0 = input +
	// output.
	MaxContext    int
	PrefixHitRate float64
	Serving       ServingModel
	// Batch is the batch of one replica under the static serving model; 0 = its
	// share of the concurrency.
	Batch float64

	// RequestRate opens the loop: requests per second over all replicas.
	RequestRate   float64
	Deterministic bool
	// Lockstep marks a client whose requests all have the nominal lengths and
	// so start and end together.
	Lockstep bool
	// BurstShare and Drain describe a benchmark client of finite length: the
	// share of requests that start at once, and achieved over steady
	// throughput; 0 = none and 1.
	BurstShare, Drain float64

	Engineering EngineSettings
	Speculation Speculation
	Communication
	Routing  moe.Options
	Host     HostSettings
	Sampling Sampling
	Sparse   SparseSettings
	Memory   MemorySettings
	Disagg   *Disaggregation

	GPUCostPerHour *units.Dollars
}

// EngineSettings are the engine arguments that change memory or speed; zero
// values take the release's defaults.
type EngineSettings struct {
	MaxBatchedTokens, MaxSeqs, ChunkedPrefill, BlockSize int
	MemoryFraction                                       float64
	// GraphMode is "", none, piecewise or full.
	GraphMode string
	// AttentionBackend is "", aiter, ck, triton or hip.
	AttentionBackend string
	// FusedKernels marks an engine build whose small kernels are fused.
	FusedKernels bool
	// StepOverhead, KernelLaunch, KernelsPerLayer and KernelOccupancy override
	// the fitted fixed times; see step.Options.
	StepOverhead, KernelLaunch units.Seconds
	KernelsPerLayer            int
	KernelOccupancy            units.Seconds
	MixedPenalty               float64
	Prefill                    PrefillRate
	AdmissionSteps             float64
	// BoundsOnly prices kernels at their lower bounds instead of by the
	// calibrated curves.
	BoundsOnly bool
}

// Speculation is the drafting scheme.
type Speculation struct {
	Tokens     float64 // drafted per step; 0 = off
	Acceptance float64 // chance that a draft token is accepted, 0 to 1
	// AcceptedLength, when positive, is the measured mean of tokens per step
	// and replaces Acceptance.
	AcceptedLength float64
	// DraftCost is the price of one drafted token as a share of a plain step;
	// 0 = price the checkpoint's own drafter.
	DraftCost float64
}

// Yield returns the mean tokens per step: (1-a^(k+1))/(1-a) for a drafted
// chain of k tokens each accepted with chance a.
func (s Speculation) Yield() float64 {
	switch {
	case s.Tokens <= 0:
		return 1
	case s.AcceptedLength > 0:
		return min(s.AcceptedLength, s.Tokens+1)
	case s.Acceptance >= 1:
		return s.Tokens + 1
	case s.Acceptance <= 0:
		return 1
	}
	return (1 - math.Pow(s.Acceptance, s.Tokens+1)) / (1 - s.Acceptance)
}

// Communication holds the collective knobs of a recipe.
type Communication struct {
	Collective collective.Options
	// PrefillOverlap and DecodeOverlap are the shares of collectives hidden
	// behind compute.
	PrefillOverlap, DecodeOverlap float64
	// DeepEP overlaps expert dispatch with expert compute; SyncFreeStage 1 to 3
	// raises the share.
	DeepEP        bool
	SyncFreeStage int
	// KVTransfer is the bandwidth and latency of the cache transfer between
	// pools; zero = the fabric's network.
	KVTransferBandwidth units.BytesPerSecond
	KVTransferLatency   units.Seconds
	// TransferBackend names the library that moves the cache (nixl, mooncake,
	// mori); its figures stand where the two above are zero. "" = the network.
	TransferBackend string
}

// HiddenAllToAll returns the share of expert dispatch hidden under expert
// compute: the figures of the DeepEP overlap schedule and its synchronisation-
// free stages (cost-model reference, DeepEP hidden fraction).
func (c Communication) HiddenAllToAll() float64 {
	if !c.DeepEP && c.SyncFreeStage == 0 {
		return 0
	}
	hidden := [...]float64{0.65, 0.75, 0.80, 0.85}
	return hidden[min(max(0, c.SyncFreeStage), len(hidden)-1)]
}

// HostSettings are host costs added to the fitted ones.
type HostSettings struct {
	Tokenize, Detokenize units.Seconds // per token
	Request              units.Seconds // per request
	StreamInterval       int           // tokens sent at once; 0 = 1
}

// Sampling is what happens to the logits.
type Sampling struct {
	Off         bool
	TopK        int
	TopP        float64 // 1 or 0 = off
	Temperature float64 // 0 and 1 need no pass
}

// Passes returns the extra passes over the logits.
func (s Sampling) Passes() float64 {
	var n float64
	if s.Temperature != 0 && s.Temperature != 1 {
		n++
	}
	if s.TopK > 0 || (s.TopP > 0 && s.TopP < 1) {
		n++
	}
	return n
}

// SparseSettings override a checkpoint's attention pattern.
type SparseSettings struct {
	TopK           int     // 0 = the checkpoint's
	IndexerScale   float64 // 0 = 1
	Window         int     // 0 = the checkpoint's
	WindowFraction float64 // share of layers with Window; 0 = 1
}

// MemorySettings override the memory model.
type MemorySettings struct {
	// PoolTokens is a measured cache pool; 0 = computed.
	PoolTokens float64
	// ResidentTokens is the mean cache of one running request, for the ceiling
	// on running requests; 0 = input + output/2.
	ResidentTokens float64
	EngineReserved units.Bytes
	Offload        units.Bytes // host memory per GPU for the cache tier below
	OffloadRate    units.BytesPerSecond
}

// Disaggregation splits a deployment into a prefill and a decode pool.
type Disaggregation struct {
	Prefill, Decode                 layout.Layout
	PrefillReplicas, DecodeReplicas int
	// PrefillOn and DecodeOn put a pool on another GPU or engine than the
	// request's; nil = the same. Only [Library.Fleet] knows them.
	PrefillOn, DecodeOn *Machine
}

// Machine is a GPU in its fabric and the engine that runs on it. What is nil is
// the request's.
type Machine struct {
	GPU     *hardware.GPU
	Fabric  *hardware.Fabric
	Engine  *software.Engine
	Release software.Release
}

// on returns the request as it is asked of a machine.
func (r *Request) on(m *Machine) *Request {
	if m == nil {
		return r
	}
	out := *r
	if m.GPU != nil {
		out.GPU, out.Fabric = m.GPU, m.Fabric
	}
	if m.Engine != nil {
		out.Engine, out.Release = m.Engine, m.Release
	}
	return &out
}

// check refuses values that cannot mean anything; legality of the layout is a
// verdict, not an error.
func (r *Request) check() error {
	switch {
	case r.Arch == nil:
		return fmt.Errorf("%w: no model", ErrBadRequest)
	case r.GPU == nil || r.Fabric == nil:
		return fmt.Errorf("%w: no GPU", ErrBadRequest)
	case r.Engine == nil:
		return fmt.Errorf("%w: no engine", ErrBadRequest)
	}
	if p := &r.Engineering.Prefill; p.PerToken > 0 && !(p.Low >= 1 && p.High > p.Low) {
		return fmt.Errorf("%w: a prefill rate between prompts of %v and %v tokens, want a span from 1 upwards", ErrBadRequest, p.Low, p.High)
	}
	for _, c := range r.ranges() {
		if math.IsNaN(c.v) || c.v < c.min || c.v > c.max {
			return fmt.Errorf("%w: %s %v is outside %v..%v", ErrBadRequest, c.name, c.v, c.min, c.max)
		}
	}
	return nil
}

// within is a value with the range it must lie in.
type within struct {
	name        string
	v, min, max float64
}

// A time of more than a quarter of an hour, or a factor of more than a
// thousand, is a mistake of units.
const (
	longest = 1000
	largest = 1000
)

// ranges lists the numbers of a request that no other package checks.
func (r *Request) ranges() [37]within {
	e, c, s, m := &r.Engineering, &r.Communication, &r.Speculation, &r.Memory
	return [...]within{
		{"input length", r.InputLen, 1, 1e8},
		{"output length", r.OutputLen, 1, 1e8},
		{"length scale", r.LengthScale, 0, largest},
		{"concurrency", r.Concurrency, 0, 1e7},
		{"batch", r.Batch, 0, 1e7},
		{"replicas", float64(r.Replica), 0, 1e6},
		{"request rate", r.RequestRate, 0, 1e7},
		{"prefix hit rate", r.PrefixHitRate, 0, 1},
		{"burst share", r.BurstShare, 0, 1},
		{"drain", r.Drain, 0, 1},
		{"prefill chunk", float64(e.ChunkedPrefill), 0, 1e9},
		{"step overhead", float64(e.StepOverhead), 0, longest},
		{"kernel launch time", float64(e.KernelLaunch), 0, longest},
		{"kernel occupancy", float64(e.KernelOccupancy), 0, longest},
		{"kernels per layer", float64(e.KernelsPerLayer), 0, 1e6},
		{"mixed-step penalty", e.MixedPenalty, 0, largest},
		{"prefill time per token", float64(e.Prefill.PerToken), 0, longest},
		{"shortest prompt of the prefill rate", e.Prefill.Low, 0, 1e8},
		{"longest prompt of the prefill rate", e.Prefill.High, 0, 1e8},
		{"admission steps", e.AdmissionSteps, 0, 1e6},
		{"speculative tokens", s.Tokens, 0, 64},
		{"acceptance", s.Acceptance, 0, 1},
		{"accepted length", s.AcceptedLength, 0, 65},
		{"draft cost", s.DraftCost, 0, largest},
		{"prefill overlap", c.PrefillOverlap, 0, 1},
		{"decode overlap", c.DecodeOverlap, 0, 1},
		{"transfer bandwidth", float64(c.KVTransferBandwidth), 0, 1e16},
		{"transfer latency", float64(c.KVTransferLatency), 0, longest},
		{"tokenize time", float64(r.Host.Tokenize), 0, longest},
		{"detokenize time", float64(r.Host.Detokenize), 0, longest},
		{"request time", float64(r.Host.Request), 0, longest},
		{"stream interval", float64(r.Host.StreamInterval), 0, 1e8},
		{"temperature", r.Sampling.Temperature, 0, largest},
		{"indexer scale", r.Sparse.IndexerScale, 0, largest},
		{"window fraction", r.Sparse.WindowFraction, 0, 1},
		{"resident tokens", m.ResidentTokens, 0, 1e9},
		{"offload rate", float64(m.OffloadRate), 0, 1e16},
	}
}
