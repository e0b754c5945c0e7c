package report

import (
	"encoding/csv"
	"io"

	"infera/sim/report/page"
)

// Document is a report that has all forms: [Projection], [Fit], [Validation]
// and those of package catalog. Its JSON is what [WriteJSON] makes of it.
type Document interface {
	// WriteTable writes the report for people.
	WriteTable(io.Writer, page.Options) error
	// Records returns the CSV form: a header, then one record per row; the
	// header of a type never depends on the values, except that of a
	// validation, which has a column per group key.
	Records() [][]string
}

// WriteCSV writes the records of a document.
func WriteCSV(w io.Writer, d Document) error {
	return csv.NewWriter(w).WriteAll(d.Records())
}
