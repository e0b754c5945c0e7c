package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"infera/internal/cli"
	"infera/models"
	"infera/sim/report"
	"infera/sim/report/catalog"
)

func (a *app) modelCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "model", Short: "List, show and import models"}
	list := &cobra.Command{
		Use: "list", Short: "List the model presets",
		RunE: func(*cobra.Command, []string) error { return a.listModels() },
	}
	show := &cobra.Command{
		Use: "show NAME", Short: "Show a model: parameters, formats and cache per token",
		Args:    cobra.ExactArgs(1),
		Example: "  inferasim model show gpt_oss_120B\n  inferasim model show deepseek-ai/DeepSeek-V3",
		RunE:    func(_ *cobra.Command, args []string) error { return a.showModel(args[0]) },
	}
	var save string
	load := &cobra.Command{
		Use: "import PATH", Short: "Read a Hugging Face config.json, or a directory that holds one",
		Long: "Read a Hugging Face config.json, or a directory that holds one, and show what was understood.\n\n" +
			"hf_quant_config.json and model.safetensors.index.json are read too when they lie beside it.",
		Args:    cobra.ExactArgs(1),
		Example: "  inferasim model import ./DeepSeek-V3/config.json\n  inferasim model import ./DeepSeek-V3 --save deepseek.yaml",
		RunE:    func(_ *cobra.Command, args []string) error { return a.importAndShow(args[0], save) },
	}
	load.Flags().StringVar(&save, "save", "", "file to write the model to as a preset, for --model")
	cmd.AddCommand(list, show, load)
	return cmd
}

func (a *app) listModels() error {
	lib, err := a.library()
	if err != nil {
		return err
	}
	var l catalog.ModelList
	for _, name := range lib.Models.Names() {
		arch, err := lib.Models.Lookup(name)
		if err != nil {
			return err
		}
		l.Models = append(l.Models, modelEntry(arch))
	}
	return a.Emit(cli.Report{JSON: l, CSV: l.Records(), Text: func(w io.Writer, width int) error {
		return l.WriteTable(w, a.page(width))
	}})
}

func modelEntry(m *models.Architecture) catalog.ModelEntry {
	n := m.Params()
	return catalog.ModelEntry{
		Name: m.Name, Aliases: m.Aliases, Family: m.Family, ParamsTotal: n.Total, ParamsActive: n.Active, Layers: m.Layers(),
		Attention: kinds(m, func(g *models.LayerGroup) string { return attentionKind(&g.Attention) }),
		FFN:       kinds(m, func(g *models.LayerGroup) string { return ffnKind(&g.FFN) }),
		DType:     mainFormat(m), MaxContextTokens: m.MaxContext, Source: m.Source,
	}
}

// kinds joins the different words for the layer groups of a model with "+".
func kinds(m *models.Architecture, word func(*models.LayerGroup) string) string {
	var seen []string
	text := ""
	for i := range m.Groups {
		w := word(&m.Groups[i])
		if w == "" || slices.Contains(seen, w) {
			continue
		}
		if text != "" {
			text += "+"
		}
		seen = append(seen, w)
		text += w
	}
	return text
}

func attentionKind(at *models.Attention) string {
	if at.Kind == models.AttentionNone {
		return ""
	}
	return at.Kind.String()
}

func ffnKind(f *models.FFN) string {
	if f.Kind == models.FFNNone {
		return ""
	}
	return f.Kind.String()
}

func (a *app) showModel(name string) error {
	lib, err := a.library()
	if err != nil {
		return err
	}
	arch, warnings, err := a.findModel(lib, name)
	if err != nil {
		return err
	}
	return a.emitModel(arch, warnings)
}

func (a *app) importAndShow(path, save string) error {
	arch, warnings, err := a.importModel(a.path(path))
	if err != nil {
		return err
	}
	if save != "" {
		data, err := models.MarshalPreset(arch)
		if err != nil {
			return err
		}
		if err := a.State.Files.WriteFile(save, data); err != nil {
			return fmt.Errorf("save preset: %w", err)
		}
	}
	return a.emitModel(arch, warnings)
}

func (a *app) emitModel(arch *models.Architecture, warnings []report.Warning) error {
	m := catalog.ModelReport{Model: modelOf(arch), Warnings: warnings}
	m.Warnings = append(m.Warnings, sizeWarnings(arch)...)
	return a.Emit(cli.Report{JSON: m, CSV: m.Records(), Text: func(w io.Writer, width int) error {
		return m.WriteTable(w, a.page(width))
	}})
}

func modelOf(m *models.Architecture) catalog.Model {
	n := m.Params()
	bytes := m.ClassBytes()
	out := catalog.Model{
		Name: m.Name, ParamsTotal: n.Total, ParamsActive: n.Active, Layers: m.Layers(),
		KVBytesPerToken: report.Number(m.KVBytesPerToken(models.Format{})), StateBytesPerSequence: report.Number(m.StateBytesPerSequence()),
		Aliases: m.Aliases, Family: m.Family, Source: m.Source, Hidden: m.Hidden, Vocab: m.Vocab, MaxContextTokens: m.MaxContext,
		KVDType: m.KV().String(), WeightsBytes: report.Number(m.WeightBytes()), Groups: catalog.LayerGroups(m),
		PublishedParams: m.PublishedParams, PublishedActive: m.PublishedActive, Partial: m.Partial,
	}
	for c, params := range n.ByClass {
		if params > 0 {
			class := models.TensorClass(c)
			out.TensorClasses = append(out.TensorClasses, catalog.TensorClass{
				Class: class.String(), Params: params, DType: classFormat(m, class), Bytes: report.Number(bytes[c]),
			})
		}
	}
	return out
}

// sizeWarnings says what the total leaves out, and where it departs from the
// published size.
func sizeWarnings(m *models.Architecture) []report.Warning {
	var out []report.Warning
	n := m.Params()
	if n.Draft > 0 {
		out = append(out, report.Warning{Code: "draft_excluded", Text: fmt.Sprintf("params_total does not count the built-in drafter, %s parameters", report.Params(n.Draft))})
	}
	if n.Vision > 0 {
		out = append(out, report.Warning{Code: "vision_excluded", Text: fmt.Sprintf("params_total does not count the vision or audio tower, %s parameters", report.Params(n.Vision))})
	}
	if p := m.PublishedParams; p > 0 {
		off := 100 * (float64(n.Total)/float64(p) - 1)
		if off > 1 || off < -1 {
			out = append(out, report.Warning{Code: "published_size", Text: fmt.Sprintf("counted %s parameters, %+.1f %% from the published %s", report.Params(n.Total), off, report.Params(p))})
		}
	}
	if m.Partial {
		out = append(out, report.Warning{Code: "partial_model", Text: "the source of this model is incomplete; sizes are approximate"})
	}
	return out
}
