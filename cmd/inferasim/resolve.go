package main

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"infera/internal/cli"
	"infera/models"
	"infera/models/hf"
	"infera/serving/launch"
	"infera/sim/layout"
	"infera/sim/planner"
	"infera/sim/report"
)

// question is a resolved request with what the report says about it.
type question struct {
	*planner.Request

	// fields are the request's fields by flag name, asked the same before the
	// engine's defaults were filled in.
	fields, asked report.Request
	memorySource  string
	launch        []report.Argument
	warnings      []report.Warning
}

// resolver turns flags into a question.
type resolver struct {
	*app

	ctx   context.Context
	flags *requestFlags
	set   *pflag.FlagSet
	lib   *planner.Library
	out   question

	// command is what --launch says, launched the flags it has set and
	// overridden the flags that win over it.
	command              *launch.Command
	launched, overridden map[string]bool
	quickReduceFormat    string
	noCustomAllReduce    bool
}

// resolve turns the flags of a command into a question. Errors are of the
// kinds that kindOf knows.
func (a *app) resolve(ctx context.Context, f *requestFlags, set *pflag.FlagSet) (*question, error) {
	lib, err := a.library()
	if err != nil {
		return nil, err
	}
	r := &resolver{app: a, ctx: ctx, flags: f, set: set, lib: lib, launched: map[string]bool{}, overridden: map[string]bool{}}
	r.out.Request = &planner.Request{}
	for _, stage := range []func() error{
		r.readLaunch, r.model, r.hardware, r.applyLaunch, r.engine, r.formats, r.layout, r.workload, r.settings,
		r.communication, r.routing, r.disaggregation, r.refuseUnused, r.legal,
	} {
		if err := stage(); err != nil {
			return nil, err
		}
	}
	r.describe()
	return &r.out, nil
}

// given reports whether a flag was set by anything but its default.
func (r *resolver) given(flag string) bool {
	return r.launched[flag] || r.Settings.Origin(flag) != cli.FromDefault
}

func (r *resolver) warn(code, format string, args ...any) {
	r.out.warnings = append(r.out.warnings, report.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
}

// path returns where a file that belongs to the configuration is: relative
// names start from INFERASIM_ROOT when it is set.
func (a *app) path(name string) string {
	if root := a.Settings.Text("INFERASIM_ROOT"); root != "" && !filepath.IsAbs(name) && name != "-" {
		return filepath.Join(root, name)
	}
	return name
}

func (r *resolver) model() error {
	if r.flags.model == "" {
		return cli.WithHint(cli.Errorf(cli.BadInput, "no model given"), "name one with --model, or an engine command line with --launch")
	}
	arch, warnings, err := r.findModel(r.lib, r.flags.model)
	if err != nil {
		return err
	}
	r.out.warnings = append(r.out.warnings, warnings...)
	r.out.Arch = arch
	return nil
}

// findModel returns the model of a preset name, alias or Hugging Face id, else
// of a file or directory.
func (a *app) findModel(lib *planner.Library, name string) (*models.Architecture, []report.Warning, error) {
	if preset, ok := lib.Models.Resolve(name); ok {
		arch, err := lib.Model(preset)
		return arch, nil, err
	}
	path := a.path(name)
	if _, err := a.State.Files.Stat(path); err != nil {
		_, unknown := lib.Models.Lookup(name)
		if strings.HasPrefix(name, ".") || filepath.IsAbs(name) || strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".yaml") {
			return nil, nil, cli.Errorf(cli.BadInput, "read model config %s: no such file or directory", path)
		}
		if strings.Contains(name, "/") {
			return nil, nil, fmt.Errorf("%w; there is no file or directory of that name either", unknown)
		}
		return nil, nil, unknown
	}
	return a.importModel(path)
}

// importModel reads a config.json, a directory that holds one, or a preset.
func (a *app) importModel(path string) (*models.Architecture, []report.Warning, error) {
	if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
		data, err := a.State.ReadInput(path)
		if err != nil {
			return nil, nil, err
		}
		arch, err := models.ParsePreset(path, data)
		return arch, nil, err
	}
	dir, base := a.split(path)
	arch, found, err := hf.ImportFS(dir, base)
	if err != nil {
		return nil, nil, cli.Wrap(cli.BadInput, err)
	}
	var warnings []report.Warning
	for _, w := range found {
		warnings = append(warnings, report.Warning{Code: "model_config", Text: w.String()})
	}
	return arch, warnings, nil
}

// split returns the tree that a path is read from and its name there: with the
// directory of a config.json, which names the model.
func (a *app) split(path string) (fs.FS, string) {
	if abs, err := filepath.Abs(path); err == nil { // else there is no working directory
		path = abs
	}
	dir, base := filepath.Split(path)
	if base == "config.json" {
		if up, parent := filepath.Split(filepath.Clean(dir)); parent != "" {
			return a.State.Files.Dir(up), parent + "/" + base
		}
	}
	if base == "" {
		return a.State.Files.Dir(path), "."
	}
	return a.State.Files.Dir(dir), base
}

func (r *resolver) engine() error {
	e, err := r.lib.Engines.Lookup(r.flags.engine)
	if err != nil {
		return err
	}
	r.out.Engine = e
	r.out.Release, err = e.Release(r.flags.engineVersion)
	return err
}

// formats applies the format flags to the model.
func (r *resolver) formats() error {
	var want models.Requant
	for _, f := range []struct {
		flag, value string
		to          *models.Format
	}{
		{"weight-dtype", r.flags.weight, &want.Weight},
		{"linear-weight-dtype", r.flags.linear, &want.Linear},
		{"moe-expert-dtype", r.flags.expert, &want.Expert},
		{"kv-cache-dtype", r.flags.kv, &r.out.KV},
	} {
		if f.value == "" || strings.EqualFold(f.value, "auto") {
			continue
		}
		format, err := models.ParseFormat(f.value)
		if err != nil {
			return fmt.Errorf("--%s: %w", f.flag, err)
		}
		*f.to = format
	}
	if want != (models.Requant{}) {
		r.out.Arch = r.out.Arch.WithFormats(want)
	}
	return r.activation()
}

// activation reads the operand type of products with quantised weights.
func (r *resolver) activation() error {
	switch v := strings.ToLower(r.flags.actQuant); v {
	case "", "auto":
	case "none", "bf16":
		r.out.Activation = models.BF16
	case "fp8":
		r.out.Activation = models.FP8
	case "mxfp4", "fp4":
		r.out.Activation = models.FP4
	default:
		return cli.WithHint(cli.Errorf(cli.BadInput, "--act-quant-dtype: unknown format %q", v), "allowed: auto, none, bf16, fp8, mxfp4")
	}
	return nil
}

func (r *resolver) layout() error {
	f := r.flags
	r.out.Layout = layout.Layout{
		TP: f.tp, PP: f.pp, EP: f.ep, AttentionDP: f.attentionDP, DecodeCP: f.decodeCP, RedundantExperts: f.redundantExperts,
	}
	r.out.Replica = f.replicas
	return nil
}

// legal refuses a layout that the model cannot be run in.
func (r *resolver) legal() error {
	pools := []struct {
		name   string
		layout layout.Layout
	}{{"", r.out.Layout}}
	if d := r.out.Disagg; d != nil {
		pools = pools[:0]
		pools = append(pools, struct {
			name   string
			layout layout.Layout
		}{"prefill pool: ", d.Prefill}, struct {
			name   string
			layout layout.Layout
		}{"decode pool: ", d.Decode})
	}
	for _, p := range pools {
		for _, v := range layout.Check(r.out.Arch, p.layout, r.out.Fabric) {
			if !v.Note {
				err := cli.Errorf(cli.BadInput, "%s%s", p.name, v)
				return cli.WithHint(err, fmt.Sprintf("the nearest legal layout is %s", layoutFlags(layout.Nearest(r.out.Arch, p.layout))))
			}
		}
	}
	return nil
}

// layoutFlags spells a layout as flags.
func layoutFlags(l layout.Layout) string {
	text := fmt.Sprintf("--tp %d", l.TP)
	for _, f := range []struct {
		name  string
		value int
		plain int
	}{
		{"pp", l.PP, 1}, {"ep", l.EP, 1}, {"attention-dp-size", l.AttentionDP, 1},
		{"decode-context-parallel-size", l.DecodeCP, 1}, {"redundant-experts", l.RedundantExperts, 0},
	} {
		if f.value > f.plain {
			text += fmt.Sprintf(" --%s %d", f.name, f.value)
		}
	}
	return text
}
