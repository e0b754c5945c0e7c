package report

// SchemaValidation names the JSON contract of [Validation].
const SchemaValidation = "inferasim.validation/v1"

// Validation is the accuracy over a set of measured points.
type Validation struct {
	Rows    Rows        `json:"rows"`
	Groups  List[Group] `json:"groups"`
	Overall Group       `json:"overall"`
	// Data and Mode say what was read and how it was projected.
	Data     string        `json:"data"`
	Mode     string        `json:"mode"`
	Warnings List[Warning] `json:"warnings"`
}

// Rows counts the points; Read = Scored + the sum of Skipped.
type Rows struct {
	Read    int        `json:"read"`
	Scored  int        `json:"scored"`
	Skipped List[Skip] `json:"skipped"`
}

// Skip is why some rows were not scored.
type Skip struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// Group is the accuracy over the rows that share Key.
type Group struct {
	Key             Fields   `json:"key"`
	N               int      `json:"n"`
	TPOT            Accuracy `json:"tpot"`
	TTFT            Accuracy `json:"ttft"`
	TotalTokSPerGPU Accuracy `json:"total_tok_s_per_gpu"`
}

// Accuracy compares projected with measured values of one quantity. Errors are
// per cent of the measured value; a number is [None] when too few rows have
// the quantity. All are null in JSON when N is 0.
type Accuracy struct {
	MAPEPct       Number `json:"mape_pct"`
	MedianAPEPct  Number `json:"median_ape_pct"`
	P90APEPct     Number `json:"p90_ape_pct"`
	BiasPct       Number `json:"bias_pct"` // mean of projected/measured - 1
	Spearman      Number `json:"spearman"`
	WithinBandPct Number `json:"within_band_pct"`
	N             int    `json:"n"` // rows that have the quantity
}

// MarshalJSON writes the accuracy, all null when there are no rows.
func (a Accuracy) MarshalJSON() ([]byte, error) {
	type body Accuracy
	return Marshal(body(a.orNone()))
}

func (a Accuracy) orNone() Accuracy {
	if a.N > 0 {
		return a
	}
	return Accuracy{None(), None(), None(), None(), None(), None(), 0}
}

// MarshalJSON writes the validation contract, schema first.
func (v Validation) MarshalJSON() ([]byte, error) { return Marshal(v.contract()) }

// contract is what is encoded: the fields behind the schema.
func (v Validation) contract() any {
	type body Validation
	return struct {
		Schema string `json:"schema"`
		body
	}{SchemaValidation, body(v)}
}
