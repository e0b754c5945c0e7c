package catalog

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"infera/internal/golden"
	"infera/internal/units"
	"infera/models"
	"infera/sim/hardware"
	"infera/sim/report"
	"infera/sim/report/page"
)

func sampleModel() ModelReport {
	return ModelReport{
		Model: Model{
			Name: "gpt_oss_120B", ParamsTotal: 116_829_156_672, ParamsActive: 5_132_850_432, Layers: 36,
			TensorClasses: report.List[TensorClass]{
				{"attention", 955_000_000, "bf16", 1_910_000_000}, {"routed_expert", 114_700_000_000, "mxfp4", 60_935_000_000},
				{"embedding", 579_000_000, "bf16", 1_158_000_000}, {"head", 579_000_000, "bf16", 1_158_000_000},
			},
			KVBytesPerToken: 73_728, Aliases: report.List[string]{"openai/gpt-oss-120b", "gpt-oss-120b"}, Family: "gpt_oss",
			Source: "config.json of openai/gpt-oss-120b", Hidden: 2880, Vocab: 201_088, MaxContextTokens: 131_072, KVDType: "bf16", WeightsBytes: 65_161_000_000,
			Groups: LayerGroups(sampleArchitecture()), PublishedParams: 116_800_000_000, PublishedActive: 5_100_000_000,
		},
		Warnings: report.List[report.Warning]{{Code: "params", Text: "no draft layers in this checkpoint"}},
	}
}

func sampleArchitecture() *models.Architecture {
	moe := models.FFN{Kind: models.FFNMoE, Experts: 128, TopK: 4, ExpertIntermediate: 2880}
	return &models.Architecture{Groups: []models.LayerGroup{
		{Count: 18, Attention: models.Attention{Kind: models.AttentionGQA, Heads: 64, KVHeads: 8, KDim: 64, VDim: 64, Window: 128}, FFN: moe},
		{Count: 18, Attention: models.Attention{Kind: models.AttentionGQA, Heads: 64, KVHeads: 8, KDim: 64, VDim: 64}, FFN: moe},
	}}
}

func sampleModels() ModelList {
	return ModelList{Models: report.List[ModelEntry]{
		{"gpt_oss_120B", report.List[string]{"openai/gpt-oss-120b"}, "gpt_oss", 116_829_156_672, 5_132_850_432, 36, "gqa", "moe", "mxfp4", 131_072, "config.json"},
		{"llama3.1_8B", report.List[string]{"meta-llama/Llama-3.1-8B-Instruct"}, "llama", 8_030_261_248, 8_030_261_248, 32, "gqa", "dense", "bf16", 131_072, "config.json"},
		{"qwen3_next_80B_A3B", nil, "qwen3_next", 80e9, 3e9, 48, "gqa+recurrent", "moe", "bf16", 0, "config.json"},
	}}
}

func sampleGPU() *hardware.GPU {
	return &hardware.GPU{
		Name: "mi355x", Aliases: []string{"gfx950"}, Vendor: "amd", Arch: "cdna4", ISA: "gfx950", ComputeUnits: 256, Chiplets: 8, Clock: 2.4e9, DevicesPerPackage: 1, MemoryType: "HBM3e", Marketed: 288,
		Capacity: 288 * units.GB, Bandwidth: 8e12, L2: 32 * units.MiB, LastLevel: 256 * units.MiB, Scratchpad: 160 * units.KiB,
		Peaks:  hardware.Rates{FP32: 157.3e12, BF16: 2516.6e12, FP16: 2516.6e12, FP8: 5033.2e12, FP6: 10066.3e12, FP4: 10066.3e12, INT8: 5033.2e12},
		Fabric: "xgmi-mi355x", ScaleUp: 537.6e9, LinkBandwidth: 76.8e9, Links: 7, HostLink: 64e9, Power: 1400,
		Source: "AMD Instinct MI355X data sheet", Confidence: "confirmed", Notes: []string{"peaks are dense and at the highest engine clock"},
	}
}

func sampleHardware() HardwareList {
	next := *sampleGPU()
	next.Name, next.Announced, next.Aliases = "mi400", true, nil
	next.Peaks = hardware.Rates{BF16: 1e16}
	fabric := NewFabric(&hardware.Fabric{
		Name: "xgmi-mi355x", Topology: hardware.Mesh, DomainSize: 8, LinkEfficiency: 0.85, HopLatency: 2e-6,
		NICs: 8, NIC: 50e9, NICEfficiency: 0.9, NICLatency: 3e-6, Source: "AMD Instinct MI355X platform brief",
	})
	return HardwareList{GPUs: report.List[GPU]{NewGPU(sampleGPU()), NewGPU(&next)}, Fabrics: report.List[Fabric]{fabric}}
}

func documents() map[string]report.Document {
	one := sampleHardware()
	one.GPUs = one.GPUs[:1]
	return map[string]report.Document{"model": sampleModel(), "models": sampleModels(), "hardware": sampleHardware(), "gpu": one}
}

func table(t *testing.T, d report.Document, width int) []byte {
	t.Helper()
	return golden.Render(t, func(w io.Writer) error { return d.WriteTable(w, page.Options{Width: width, ASCII: true}) })
}

func records(t *testing.T, d report.Document) []byte {
	t.Helper()
	return golden.Render(t, func(w io.Writer) error { return report.WriteCSV(w, d) })
}

func TestGolden(t *testing.T) {
	for name, d := range documents() {
		for _, width := range []int{60, 80, 120} {
			golden.Check(t, fmt.Sprintf("%s_%d", name, width), table(t, d, width))
		}
		golden.Check(t, name+"_json", golden.Render(t, func(w io.Writer) error { return report.WriteJSON(w, d) }))
		golden.Check(t, name+"_csv", records(t, d))
	}
}

func TestTablesStayInWidth(t *testing.T) {
	for name, d := range documents() {
		for width := 50; width <= 140; width += 9 {
			golden.CheckText(t, fmt.Sprintf("%s at %d", name, width), table(t, d, width), width, true)
		}
	}
}

// The keys of the published contracts, typed by hand: each object begins with
// these, in this order.
func TestContracts(t *testing.T) {
	cases := map[string][]string{
		"model": {
			`{"schema":"inferasim.model/v1","model":{"name":"gpt_oss_120B","params_total":116829156672,"params_active":5132850432,"layers":36,` +
				`"tensor_classes":[{"class":"attention","params":955000000,"dtype":"bf16","bytes":1910000000},`,
			`"kv_bytes_per_token":73728,"state_bytes_per_sequence":0,`, `"warnings":[{"code":`,
		},
		"models":   {`{"schema":"inferasim.models/v1","models":[{"name":"gpt_oss_120B","aliases":["openai/gpt-oss-120b"],`, `"aliases":[],`},
		"hardware": {`{"schema":"inferasim.hardware/v1","gpus":[{"name":"mi355x","aliases":["gfx950"],`, `"warnings":[]`, `"hbm_bytes":288000000000`},
	}
	docs := documents()
	for name, wants := range cases {
		data, err := json.Marshal(docs[name])
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range wants {
			if !bytes.Contains(data, []byte(w)) {
				t.Errorf("%s: no %s in %s", name, w, data)
			}
		}
	}
	for _, d := range []report.Document{ModelReport{}, ModelList{}, HardwareList{}} {
		data, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("null")) {
			t.Errorf("%T: null in %s", d, data)
		}
		table(t, d, 80)
		if _, err := csv.NewReader(bytes.NewReader(records(t, d))).ReadAll(); err != nil {
			t.Errorf("%T: %v", d, err)
		}
	}
}
