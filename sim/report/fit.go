package report

// SchemaFit names the JSON contract of [Fit].
const SchemaFit = "inferasim.fit/v1"

// Fit is the memory verdict on one recipe.
type Fit struct {
	Request  Request   `json:"request"`
	Feasible bool      `json:"feasible"`
	Reason   string    `json:"reason"`
	Memory   Memory    `json:"memory"`
	Model    ModelSize `json:"model"`
	// MaxContextAtOne is the longest context of a single sequence, and
	// MaxConcurrencyAtContext how many sequences of Memory.ContextTokens fit.
	MaxContextAtOne         int64 `json:"max_context_tokens_at_concurrency_1"`
	MaxConcurrencyAtContext int64 `json:"max_concurrency_at_context"`
	// GPUs is the size of one replica.
	GPUs        int              `json:"gpus"`
	Suggestions List[Suggestion] `json:"suggestions"`
	// EngineLog compares the terms with an engine's own start-up log; absent
	// without one.
	EngineLog List[LogTerm]  `json:"engine_log,omitempty"`
	Launch    List[Argument] `json:"launch,omitempty"`
	Warnings  List[Warning]  `json:"warnings"`
}

// LogTerm is one term as projected and as an engine logged it, in bytes.
type LogTerm struct {
	Name           string `json:"name"`
	ProjectedBytes Number `json:"projected_bytes"`
	LoggedBytes    Number `json:"logged_bytes"`
	// Note explains the difference.
	Note string `json:"note"`
}

// MarshalJSON writes the fit contract, schema first.
func (f Fit) MarshalJSON() ([]byte, error) { return Marshal(f.contract()) }

// contract is what is encoded: the fields behind the schema.
func (f Fit) contract() any {
	type body Fit
	return struct {
		Schema string `json:"schema"`
		body
	}{SchemaFit, body(f)}
}
