package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var sample = Table{
	Columns: []Column{{Name: "op", Whole: true}, {Name: "time_ms", Right: true}, {Name: "bound"}, {Name: "source"}},
	Rows: [][]string{
		{"attention", "0.42", "hbm", "KV re-read across query tiles, measured on one GPU"},
		{"moe_gemm", "12.5", "compute", "fit"},
	},
}

func TestTable(t *testing.T) {
	for _, tt := range []struct {
		width int
		want  string
	}{
		{100, `
op         time_ms  bound    source
───────────────────────────────────────────────────────────────────────────────
attention     0.42  hbm      KV re-read across query tiles, measured on one GPU
moe_gemm      12.5  compute  fit
`},
		{60, `
op         time_ms  bound    source
───────────────────────────────────────────────────────────
attention     0.42  hbm      KV re-read across query tiles,
                             measured on one GPU
moe_gemm      12.5  compute  fit
`},
		{30, `
op: attention
time_ms: 0.42
bound: hbm
source: KV re-read across
  query tiles, measured on one
  GPU

op: moe_gemm
time_ms: 12.5
bound: compute
source: fit
`},
	} {
		var b strings.Builder
		if err := sample.Write(&b, tt.width); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), b.String()); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", tt.width, diff)
		}
	}
	bad := Table{Columns: sample.Columns, Rows: [][]string{{"one"}}}
	if err := bad.Write(&strings.Builder{}, 80); err == nil {
		t.Error("a row with too few cells is taken")
	}
}

// No line is wider than the terminal, whatever it holds.
func TestTableFits(t *testing.T) {
	wide := Table{
		Columns: []Column{{Name: "name"}, {Name: "值"}, {Name: "long_identifier_without_blanks"}},
		Rows: [][]string{
			{strings.Repeat("x", 70), "寬度二的字元寬度二的字元", "INFERASIM_BENCH_SERVING_BACKEND=vllm,sglang"},
			{"", "a b", ""},
		},
	}
	for width := 12; width <= 120; width++ {
		for _, table := range []Table{wide, sample} {
			var b strings.Builder
			if err := table.Write(&b, width); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if w := textWidth(strings.TrimRight(line, "\n")); w > width {
					t.Fatalf("width %d: %d columns in %q", width, w, line)
				}
			}
		}
	}
}

func TestProgress(t *testing.T) {
	f := &fake{args: []string{"version"}, tty: true, width: 60}
	f.main(t)
	now := f.run.State.Now()
	f.run.State.Now = func() time.Time { return now }
	p := f.run.Progress("sweep", 200)
	now = now.Add(2 * time.Second)
	p.Add(50)
	p.Add(1) // too soon to be drawn
	p.Done()
	p.Done()
	// A quarter in 2 s leaves 6 s. A line is 59 columns: 8 around the bar, 11
	// and then 15 behind it; a quarter of 36 is 9.
	want := "\r\x1b[Ksweep [" + strings.Repeat(" ", 40) + "]   0% 0/200" +
		"\r\x1b[Ksweep [" + strings.Repeat("=", 9) + strings.Repeat(" ", 27) + "]  25% 50/200 6s" + "\r\x1b[K"
	if diff := cmp.Diff(want, f.err.String()); diff != "" {
		t.Errorf("bar (-want +got):\n%s", diff)
	}

	f = &fake{args: []string{"version"}}
	f.main(t)
	p = f.run.Progress("sweep", 10)
	p.Add(10)
	p.Done()
	if f.err.Len() != 0 {
		t.Errorf("progress in a pipe: %q", f.err.String())
	}
}

func TestCommonCommands(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"completion bash", "# bash completion V2 for demo"},
		{"completion zsh", "#compdef demo"},
		{"completion fish", "# fish completion for demo"},
		{"completion powershell", "# powershell completion for demo"},
		{"man", ".nh\n.TH \"DEMO\" \"1\""},
		{"man model list", ".nh\n.TH \"DEMO-MODEL-LIST\" \"1\""},
		{"version", "demo "},
		{"--version", "demo "},
		{"version -o json", "{\n  \"schema\": \"infera.version/v1\",\n  \"name\": \"demo\""},
		{"env", "Main\nvariable "},
		{"env -o csv", "name,value,default,origin,flag,help\nDEMO_GPU_ARCH"},
		{"__complete project --engine s", "vllm\nsglang\natom\n:4"},
		{"help project", "Usage:\n  demo project"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			f := &fake{args: strings.Fields(tt.args)}
			if code := f.main(t); code != 0 || !strings.HasPrefix(f.out.String(), tt.want) {
				t.Errorf("exit %d, stderr %q, stdout %.200q", code, f.err.String(), f.out.String())
			}
		})
	}
}

func TestManDirectory(t *testing.T) {
	f := &fake{args: []string{"man", "--dir", "out"}}
	if code := f.main(t); code != 0 {
		t.Fatal(f.err.String())
	}
	names := fmt.Sprint(sortedKeys(f.written))
	want := "[out/demo-completion.1 out/demo-env.1 out/demo-fail.1 out/demo-man.1 out/demo-model-list.1 out/demo-model-show.1 out/demo-model.1 out/demo-project.1 out/demo-simulate.1 out/demo-version.1 out/demo.1]"
	if names != want {
		t.Errorf("pages %s", names)
	}
}
