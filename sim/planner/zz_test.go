package planner

import (
	"fmt"
	"testing"

	"infera/configs"
	"infera/sim/accuracy"
)

func TestZZ(t *testing.T) {
	l, err := Open(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []accuracy.Point{
		{GPU: "MI355X", Engine: "atom-vllm", Model: "Kimi-K2/K2.5", WeightDType: "fp4", TP: 4, InputLen: 1024, OutputLen: 1024, Concurrency: 512, LengthScale: .9, Date: "2026-05-18"},
		{GPU: "MI355X", Engine: "atom-vllm", Model: "DeepSeek-V4-Pro", WeightDType: "fp8", TP: 8, InputLen: 8192, OutputLen: 1024, Concurrency: 256, LengthScale: .9, Date: "2026-08-08"},
		{GPU: "MI355X", Engine: "atom", Model: "Llama-3.x-70B", WeightDType: "fp4", TP: 1, InputLen: 8192, OutputLen: 1024, Concurrency: 64, LengthScale: .9, Date: "2026-05-08"},
	} {
		r, err := l.FromPoint(&p)
		if err != nil {
			t.Fatal(err)
		}
		on, err := l.engine(r.Engine, r.Release, r.GPU)
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.fit(r, on, r.Layout, r.Concurrency)
		fmt.Printf("%s: %v running %.0f maxc %d pool %.1f GiB weights %.1f act %.1f over %.1f reserve %.1f one %.3f GiB kv/token %.0f cap %d ok %v %v by %.1f state %v\n", p.Model, err, r.running(&f, on), f.MaxConcurrency, f.Pool.GiB(), f.Weights.GiB(), f.Activation.GiB(), f.Overhead.GiB(), f.Reserve.GiB(), f.OneRequest.GiB(), f.KVBytesPerToken, f.KVCapacityTokens, f.OK, f.Short, f.By.GiB(), f.StateBytesPerSequence)
		fmt.Println(on.defaults.MaxBatchedTokens, on.defaults.MaxSequences, r.Arch.Formats)
		pr, err := l.Project(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("tpot %.2f ttft %.1f step %.2f mixed %.2f\n", pr.TPOT.Value*1e3, pr.TTFT.Value*1e3, pr.DecodeStep.Value*1e3, pr.MixedStep.Value*1e3)
		for i, o := range pr.Decode.Ops {
			if o.Time > 0 {
				fmt.Printf("   %v %.3f ms lower %.3f | prefill %.3f lower %.3f\n", i, o.Time*1e3, o.Lower*1e3, pr.Prefill.Ops[i].Time*1e3, pr.Prefill.Ops[i].Lower*1e3)
			}
		}
	}
}
