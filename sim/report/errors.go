package report

import "encoding/json"

// SchemaError names the JSON contract of [ErrorReport].
const SchemaError = "infera.error/v1"

// ErrorReport is a command's failure as an object on stdout.
type ErrorReport struct {
	Error ErrorBody `json:"error"`
}

// ErrorBody says what went wrong; Kind is bad_input, no_calibration,
// infeasible or failure.
type ErrorBody struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// MarshalJSON writes the error contract, schema first.
func (e ErrorReport) MarshalJSON() ([]byte, error) {
	type body ErrorReport
	return Marshal(struct {
		Schema string `json:"schema"`
		body
	}{SchemaError, body(e)})
}

// LineError is the answer to one line of a JSON Lines stream that could not be
// projected.
type LineError struct {
	ID    json.RawMessage `json:"id"` // null when the line had none
	Line  int             `json:"line"`
	Error LineErrorBody   `json:"error"`
}

// LineErrorBody is [ErrorBody] without a hint.
type LineErrorBody struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}
