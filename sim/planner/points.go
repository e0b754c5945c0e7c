package planner

import (
	"errors"
	"strings"

	"infera/models"
	"infera/sim/accuracy"
	"infera/sim/hardware"
	"infera/sim/layout"
	"infera/sim/software"
)

// ErrSkip is the kind of errors that say why a measured point cannot be
// predicted; the text without the kind is the reason to count it under.
var ErrSkip = errors.New("cannot be scored")

// skip returns an ErrSkip with a reason.
func skip(reason string) error { return &skipError{reason} }

type skipError struct{ reason string }

func (e *skipError) Error() string { return e.reason }
func (e *skipError) Unwrap() error { return ErrSkip }

// FromPoint returns the question that a measured point answers. Errors of kind
// [ErrSkip] say why it cannot be asked.
func (l *Library) FromPoint(p *accuracy.Point) (*Request, error) {
	switch {
	case p.Disaggregated:
		return nil, skip("disaggregated")
	case p.Speculation != "" && p.Speculation != "none":
		return nil, skip("speculative decoding (acceptance unknown)")
	case strings.EqualFold(p.Quality, "C"):
		return nil, skip("quality C")
	case p.Concurrency <= 0:
		return nil, skip("no concurrency")
	case p.InputLen <= 0 || p.OutputLen <= 0:
		return nil, skip("no lengths")
	case p.TP <= 0 && p.GPUs <= 0:
		return nil, skip("no layout")
	}
	r := &Request{
		InputLen: p.InputLen, OutputLen: p.OutputLen, Concurrency: p.Concurrency, PrefixHitRate: p.PrefixHitRate,
	}
	l.load(p, r)
	if err := l.pointHardware(p, r); err != nil {
		return nil, err
	}
	if err := l.pointModel(p, r); err != nil {
		return nil, err
	}
	if err := l.pointEngine(p, r); err != nil {
		return nil, err
	}
	r.Layout = pointLayout(p)
	// A benchmark raises the engine's limit on running sequences to its load.
	r.Engineering.MaxSeqs = int(p.Concurrency)
	if n := r.Layout.GPUs(); p.GPUs > n && p.GPUs%n == 0 {
		r.Replica = p.GPUs / n
	}
	return r, nil
}

func (l *Library) pointHardware(p *accuracy.Point, r *Request) error {
	gpu, fabric, err := l.GPU(p.GPU)
	if errors.Is(err, hardware.ErrUnknownGPU) {
		return skip("unknown GPU " + p.GPU)
	}
	if err != nil {
		return err
	}
	r.GPU, r.Fabric = gpu, fabric
	return nil
}

func (l *Library) pointEngine(p *accuracy.Point, r *Request) error {
	name, _, _ := strings.Cut(p.Engine, " ")
	engine, err := l.Engines.Lookup(name)
	if err != nil {
		return skip("unknown engine " + name)
	}
	r.Engine = engine
	r.Release, err = engine.Resolve(p.Version, possible(p.Date, r.Arch.Released))
	if err != nil {
		r.Release = engine.Latest()
	}
	return nil
}

// possible cuts the part of a span of days off that lies before a model was
// published: no build of those days can have run it.
func possible(date, released string) string {
	from, to, span := strings.Cut(date, "..")
	if !span || released == "" || released <= from || released >= to {
		return date
	}
	return released + "-01.." + to
}

func (l *Library) pointModel(p *accuracy.Point, r *Request) error {
	arch, err := l.Model(p.Model)
	if err != nil {
		return skip("unknown model " + p.Model)
	}
	if arch, err = requantised(arch, p.WeightDType, r.GPU.Vendor); err != nil {
		return skip("unknown weight dtype " + p.WeightDType)
	}
	r.Arch = arch
	if p.KVDType != "" && p.KVDType != "auto" {
		if r.KV, err = models.ParseFormat(p.KVDType); err != nil {
			return skip("unknown cache dtype " + p.KVDType)
		}
	}
	return nil
}

// requantised stores a model in the format that a point names. fp4 means the
// vendor's: mxfp4 on AMD, nvfp4 on NVIDIA, unless the checkpoint is 4-bit
// already; a trailing question mark is a guess of the source.
func requantised(a *models.Architecture, dtype, vendor string) (*models.Architecture, error) {
	name := strings.ToLower(strings.TrimSuffix(dtype, "?"))
	switch name {
	case "", "unset":
		return a, nil
	case "fp4":
		if a.Formats[models.ClassRoutedExpert].Element == models.FP4 || a.Formats[models.ClassDenseFFN].Element == models.FP4 {
			return a, nil
		}
		name = "mxfp4"
		if vendor == "nvidia" {
			name = "nvfp4"
		}
	case "fp8":
		// A checkpoint of mixed 8- and 4-bit formats is labelled by the former.
		if a.Formats[models.ClassAttention].Element == models.FP8 && a.Formats[models.ClassRoutedExpert].Element.Bits() <= 8 &&
			a.Formats[models.ClassRoutedExpert].Element != models.DTypeUnknown {
			return a, nil
		}
	case "uint4":
		name = "int4"
	}
	f, err := models.ParseFormat(name)
	if err != nil {
		return nil, err
	}
	return a.WithFormats(models.Requant{Weight: f}), nil
}

// pointLayout reads the layout columns. An empty expert parallelism means that
// experts are cut by tensor parallelism, except under attention data
// parallelism, which engines only run with experts spread.
func pointLayout(p *accuracy.Point) layout.Layout {
	l := layout.Layout{TP: p.TP, PP: max(1, p.PP), EP: max(1, p.EP), AttentionDP: 1}
	if l.TP <= 0 {
		l.TP = p.GPUs
	}
	if p.AttentionDP {
		l.AttentionDP = l.TP
		if p.RankBatch > 0 {
			// The source states the batch of one rank: the number of groups
			// follows from it.
			if n := int(p.Concurrency/p.RankBatch + 0.5); n >= 1 && n <= l.TP && l.TP%n == 0 {
				l.AttentionDP = n
			}
		}
		if p.EP <= 0 {
			l.EP = l.TP
		}
	}
	return l
}

// Stack names the engine on the architecture of a request, for groupings.
func (r *Request) Stack() string { return r.GPU.ISA + "|" + r.Engine.Name }

// MixedEpoch names the epoch of points that are medians over builds of a long
// span.
const MixedEpoch = "mixed"

// EpochOf returns the release epoch that a build's efficiencies are fitted in:
// its month; for points that mix builds, [MixedEpoch] and the half-year their
// span starts in.
func EpochOf(r software.Release) string {
	d := r.Date.String()
	if r.Mixed() {
		d = r.From.String()
	}
	if len(d) < len("2006-01") {
		return "unknown"
	}
	if !r.Mixed() {
		return d[:len("2006-01")]
	}
	half := "H1"
	if d[len("2006-"):len("2006-01")] > "06" {
		half = "H2"
	}
	return MixedEpoch + " " + d[:len("2006")] + half
}

// PreparePoint compiles the question of a measured point. The layout and the
// memory of a point that ran are taken as possible; the running sequences are
// still limited by what memory holds.
func (l *Library) PreparePoint(r *Request) (*Prepared, error) {
	limit, err := l.sequences(r)
	if err != nil {
		return nil, err
	}
	return l.Prepare(r, limit)
}
