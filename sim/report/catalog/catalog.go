package catalog

import "infera/sim/report"

// The JSON contracts of this package.
const (
	SchemaModel    = "inferasim.model/v1"
	SchemaModels   = "inferasim.models/v1"
	SchemaHardware = "inferasim.hardware/v1"
)

// ModelReport is one model as `model show` and `model import` print it.
type ModelReport struct {
	Model    Model                       `json:"model"`
	Warnings report.List[report.Warning] `json:"warnings"`
}

// Model is the size of a checkpoint.
type Model struct {
	Name                  string                   `json:"name"`
	ParamsTotal           int64                    `json:"params_total"`
	ParamsActive          int64                    `json:"params_active"`
	Layers                int                      `json:"layers"`
	TensorClasses         report.List[TensorClass] `json:"tensor_classes"`
	KVBytesPerToken       report.Number            `json:"kv_bytes_per_token"`
	StateBytesPerSequence report.Number            `json:"state_bytes_per_sequence"`

	Aliases          report.List[string]     `json:"aliases"`
	Family           string                  `json:"family"`
	Source           string                  `json:"source"`
	Hidden           int                     `json:"hidden"`
	Vocab            int                     `json:"vocab"`
	MaxContextTokens int                     `json:"max_context_tokens"` // 0 = not stated
	KVDType          string                  `json:"kv_dtype"`
	WeightsBytes     report.Number           `json:"weights_bytes"`
	Groups           report.List[LayerGroup] `json:"layer_groups"`
	// PublishedParams is what the publisher states; 0 = nothing stated.
	PublishedParams int64 `json:"published_params"`
	PublishedActive int64 `json:"published_active"`
	Partial         bool  `json:"partial"`
}

// TensorClass is the parameters stored in one format.
type TensorClass struct {
	Class  string        `json:"class"`
	Params int64         `json:"params"`
	DType  string        `json:"dtype"`
	Bytes  report.Number `json:"bytes"`
}

// LayerGroup is a set of identical layers, in words.
type LayerGroup struct {
	Count     int    `json:"count"`
	Attention string `json:"attention"`
	FFN       string `json:"ffn"`
}

// MarshalJSON writes the model contract, schema first.
func (m ModelReport) MarshalJSON() ([]byte, error) {
	type body ModelReport
	return report.Marshal(struct {
		Schema string `json:"schema"`
		body
	}{SchemaModel, body(m)})
}

// ModelList is the catalog of models.
type ModelList struct {
	Models report.List[ModelEntry] `json:"models"`
}

// ModelEntry is one line of the catalog.
type ModelEntry struct {
	Name             string              `json:"name"`
	Aliases          report.List[string] `json:"aliases"`
	Family           string              `json:"family"`
	ParamsTotal      int64               `json:"params_total"`
	ParamsActive     int64               `json:"params_active"`
	Layers           int                 `json:"layers"`
	Attention        string              `json:"attention"` // gqa, mla, gqa+recurrent
	FFN              string              `json:"ffn"`       // dense, moe
	DType            string              `json:"dtype"`     // of most of the weights
	MaxContextTokens int                 `json:"max_context_tokens"`
	Source           string              `json:"source"`
}

// MarshalJSON writes the model-list contract, schema first.
func (l ModelList) MarshalJSON() ([]byte, error) {
	type body ModelList
	return report.Marshal(struct {
		Schema string `json:"schema"`
		body
	}{SchemaModels, body(l)})
}
