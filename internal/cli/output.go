package cli

import (
	"encoding/csv"
	"fmt"
	"io"
)

// Format is a form of output.
type Format string

// The forms every command knows; a command may lack CSV.
const (
	FormatTable Format = "table"
	FormatJSON  Format = "json"
	FormatCSV   Format = "csv"
)

// Report is one result in its forms. JSON is the contract; Text is for people.
type Report struct {
	JSON any                                // a struct that begins with Schema string `json:"schema"`
	CSV  [][]string                         // header and records; nil when the command has no CSV
	Text func(w io.Writer, width int) error // within width columns
}

// Output returns the format asked for.
func (r *Run) Output() Format { return r.output }

// Emit writes the report to standard output in the format asked for.
func (r *Run) Emit(report Report) error {
	switch r.output {
	case FormatJSON:
		return WriteJSON(r.State.Stdout, report.JSON)
	case FormatCSV:
		if report.CSV == nil {
			return Errorf(BadInput, "--output csv is not offered by this command; allowed: table, json")
		}
		return WriteCSV(r.State.Stdout, report.CSV)
	default:
		return report.Text(r.State.Stdout, r.State.Width)
	}
}

// WriteCSV writes records, the first of which is the header.
func WriteCSV(w io.Writer, records [][]string) error {
	if err := csv.NewWriter(w).WriteAll(records); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}
