package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"infera/anchors/fit"
	"infera/internal/cli"
	"infera/internal/strict"
	"infera/sim/accuracy"
	"infera/sim/software"
)

// calibrateCommand refits the engine efficiencies to a table of measured
// points and writes them as the files of configs/engines/efficiency.
func (a *app) calibrateCommand() *cobra.Command {
	var data, out string
	folds := 5
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Fit engine efficiencies to measured serving points",
		Long: "Fit engine efficiencies to measured serving points and write them as YAML.\n\n" +
			"The table has the columns of validate --data. Efficiencies belong to an engine on a GPU architecture in a\n" +
			"release epoch; bands come from residuals of configurations the fit has not seen.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			content, err := a.State.ReadInput(data)
			if err != nil {
				return err
			}
			points, err := accuracy.ReadCSV(bytes.NewReader(content))
			if err != nil {
				return err
			}
			return a.calibrate(cmd.Context(), points, data, out, folds)
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "CSV of measured points")
	cmd.Flags().StringVar(&out, "out", "", "directory to write the files to")
	cmd.Flags().Var(cli.Int(&folds, 2, 100), "folds", "cross-validation folds for the bands")
	for _, name := range []string{"data", "out"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
	return cmd
}

func (a *app) calibrate(ctx context.Context, points []accuracy.Point, data, out string, folds int) error {
	lib, err := a.library()
	if err != nil {
		return err
	}
	samples, skipped, err := fit.Samples(lib, points)
	if err != nil {
		return err
	}
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		fmt.Fprintf(a.State.Stderr, "skipped %d points: %s\n", skipped[reason], reason)
	}
	start, err := lib.Efficiencies.Start()
	if err != nil {
		return err
	}
	files := map[string]*software.EfficiencyFile{}
	byVendor := fit.ByVendor(samples)
	for _, vendor := range slices.Sorted(maps.Keys(byVendor)) {
		part := byVendor[vendor]
		opt := fit.Defaults()
		bar := a.Progress("fit "+vendor, 0)
		opt.Progress = func(int, float64) { bar.Add(1) }
		c, err := fit.Calibrate(ctx, part, start, folds, opt)
		bar.Done()
		if err != nil {
			return fmt.Errorf("calibrate %s: %w", vendor, err)
		}
		c.AddTo(files, calibrationSource(part, data))
		a.unseen(vendor, c)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := a.writeEfficiency(filepath.Join(out, name+".yaml"), files[name]); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.State.Stdout, "fitted %d points, wrote %d files to %s\n", len(samples), len(files), out)
	return nil
}

// unseen prints how well configurations left out of the fit were predicted.
func (a *app) unseen(vendor string, c *fit.Calibration) {
	tpot, ttft, throughput := c.Unseen()
	for _, q := range []struct {
		name  string
		pairs []accuracy.Pair
	}{{"TPOT", tpot}, {"TTFT", ttft}, {"tokens/s per GPU", throughput}} {
		s := accuracy.Summarize(q.pairs)
		fmt.Fprintf(a.State.Stdout, "%s, configurations left out, %s: %d points, MAPE %.1f %%, median %.1f %%, p90 %.1f %%, bias %+.1f %%, Spearman %.3f\n",
			vendor, q.name, s.N, s.MAPE, s.Median, s.P90, s.Bias, s.Spearman)
	}
}

func (a *app) writeEfficiency(path string, f *software.EfficiencyFile) error {
	content, err := strict.Marshal(f)
	if err != nil {
		return err
	}
	if err := a.State.Files.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	if err := a.State.Files.WriteFile(path, content); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// calibrationSource says what a fit stands on.
func calibrationSource(samples []fit.Sample, data string) string {
	sources := map[string]bool{}
	for i := range samples {
		sources[samples[i].Measured.Source] = true
	}
	return fmt.Sprintf("inferasim calibrate on %d points of %s; sources: %v",
		len(samples), filepath.Base(data), slices.Sorted(maps.Keys(sources)))
}
