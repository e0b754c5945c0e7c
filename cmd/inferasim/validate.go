package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"infera/configs"
	"infera/internal/cli"
	"infera/internal/nearest"
	"infera/sim/accuracy"
	"infera/sim/planner"
)

// validateFlags are the settings of validate.
type validateFlags struct {
	data, where string
	groupBy     []string
	mode        requestFlags // only its fidelity flags are bound
}

func (a *app) validateCommand() *cobra.Command {
	var f validateFlags
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Compare projections with measured points",
		Long: "Compare projections with measured points: errors, bias, rank correlation and how often the band holds.\n\n" +
			"Without --data the measured points that ship with the program are used. Every row is scored or counted under a reason.\n\n" +
			"Columns for --group-by and --where: " + strings.Join(accuracy.Columns(), ", ") + ".",
		Example: "  inferasim validate --group-by gpu,engine\n" +
			"  inferasim validate --data points.csv --where 'gpu=MI300X|MI325X,engine=sglang'",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.validate(cmd.Context(), &f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.data, "data", "", "CSV of measured points (- = standard input; default: the shipped set)")
	fs.StringVar(&f.where, "where", "", "rows to take: column=value, several joined by commas, alternatives by |")
	fs.StringSliceVar(&f.groupBy, "group-by", nil, "columns to group the result by")
	f.mode.bindMode(fs)
	// Without an anchor the analytic model is all there is to validate.
	mode := fs.Lookup("profiling-mode")
	f.mode.mode, mode.DefValue = modeSimulate, string(modeSimulate)
	return cmd
}

func (a *app) validate(ctx context.Context, f *validateFlags) error {
	for _, c := range f.groupBy {
		if err := knownColumn("--group-by", c); err != nil {
			return err
		}
	}
	keep, err := parseWhere(f.where)
	if err != nil {
		return err
	}
	if err := a.calibration(&f.mode); err != nil {
		return err
	}
	points, name, err := a.points(f.data)
	if err != nil {
		return err
	}
	points = slices.DeleteFunc(points, func(p accuracy.Point) bool { return !keep.matches(&p) })
	lib, err := a.library()
	if err != nil {
		return err
	}
	t := newTally(f.groupBy)
	bar := a.Progress("scoring", len(points))
	defer bar.Done()
	for i := range points {
		if err := ctx.Err(); err != nil {
			return err
		}
		scored, err := lib.Score(&points[i])
		if err != nil && !errors.Is(err, planner.ErrSkip) {
			return fmt.Errorf("%s line %d: %w", name, points[i].Line, err)
		}
		t.add(&points[i], scored, err)
		bar.Add(1)
	}
	bar.Done()
	out := t.report()
	out.Data, out.Mode = name, string(f.mode.mode)
	return a.Emit(cli.Report{JSON: out, CSV: out.Records(), Text: func(w io.Writer, width int) error {
		return out.WriteTable(w, a.page(width))
	}})
}

// measuredDir is where the measured points that ship with the program are.
const measuredDir = "measured"

// points reads a table, or all that ship with the program.
func (a *app) points(file string) ([]accuracy.Point, string, error) {
	if file != "" {
		data, err := a.State.ReadInput(file)
		if err != nil {
			return nil, "", err
		}
		points, err := accuracy.ReadCSV(strings.NewReader(string(data)))
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", file, err)
		}
		return points, file, nil
	}
	names, err := fs.Glob(configs.FS, path.Join(measuredDir, "*.csv"))
	if err != nil || len(names) == 0 {
		return nil, "", cli.Errorf(cli.BadInput, "this build ships no measured points; name a table with --data FILE.csv")
	}
	var all []accuracy.Point
	for _, name := range names {
		r, err := configs.FS.Open(name)
		if err != nil {
			return nil, "", fmt.Errorf("open shipped points: %w", err)
		}
		points, err := accuracy.ReadCSV(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, points...)
	}
	return all, "shipped: " + strings.Join(names, ", "), nil
}

// filter keeps the rows whose columns have one of some values.
type filter []condition

type condition struct {
	column string
	values []string
}

// parseWhere reads "gpu=MI300X|MI325X,engine=sglang".
func parseWhere(text string) (filter, error) {
	var out filter
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		column, value, ok := strings.Cut(part, "=")
		column = strings.TrimSpace(column)
		if !ok || column == "" {
			return nil, cli.WithHint(cli.Errorf(cli.BadInput, "--where: %q is not column=value", part), "for example --where 'gpu=MI300X,engine=sglang'")
		}
		if err := knownColumn("--where", column); err != nil {
			return nil, err
		}
		c := condition{column: column}
		for _, v := range strings.Split(value, "|") {
			c.values = append(c.values, strings.TrimSpace(v))
		}
		out = append(out, c)
	}
	return out, nil
}

func (f filter) matches(p *accuracy.Point) bool {
	for _, c := range f {
		have, _ := p.Key(c.column)
		if !slices.ContainsFunc(c.values, func(v string) bool { return strings.EqualFold(v, have) }) {
			return false
		}
	}
	return true
}

func knownColumn(flag, name string) error {
	known := accuracy.Columns()
	if slices.Contains(known, name) {
		return nil
	}
	hint := nearest.Hint(name, known)
	if hint == "" {
		hint = "known: " + strings.Join(known, ", ")
	}
	return cli.WithHint(cli.Errorf(cli.BadInput, "%s: unknown column %q", flag, name), hint)
}
