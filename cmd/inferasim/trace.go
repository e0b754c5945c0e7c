package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"infera/internal/cli"
	"infera/sim/report"
	"infera/sim/report/inspection"
	"infera/sim/workload"
	"infera/sim/workload/trace"
)

// traceFormats describes the formats of recorded workloads.
const traceFormats = `Formats, recognised from the content unless --format names one:
  mooncake       JSON lines or array of timestamp (ms), input_length, output_length, hash_ids of 512-token blocks
  bailian        Qwen-Bailian: JSON lines of timestamp (s), chat_id, parent_chat_id, hash_ids of 16-token blocks
  azure          Azure LLM inference 2023 and 2024: CSV of TIMESTAMP, ContextTokens, GeneratedTokens
  burstgpt       CSV of Timestamp (s), Request tokens, Response tokens, and perhaps Session ID, Model, Log Type
  llmservingsim  JSON lines of arrival_time_ns, input_toks, output_toks, and perhaps input_tok_ids
  workload       CSV, JSON array or lines of arrival (ms; arrival_ms, time, step), isl (input_len, prompt_len), osl (output_len)
  sharegpt       JSON array of conversations; tokens are estimated from the text, there are no arrivals
  vllm           vLLM's custom data set: JSON lines of prompt and output_tokens or completion; likewise
  infera         our own: JSON lines under a header line, keeps everything

What cannot be used is an error with the line; what is assumed, estimated or left out is a warning. Timestamps are
shifted so that the first request comes at 0.`

func (a *app) traceCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "trace", Short: "Inspect, convert and generate recorded workloads", Long: "Inspect, convert and generate recorded workloads.\n\n" + traceFormats}
	cmd.AddCommand(a.traceInspectCommand(), a.traceConvertCommand(), a.traceGenerateCommand())
	return cmd
}

// traceFlags say how a trace is read.
type traceFlags struct {
	format    trace.Format
	blockSize int
}

func (f *traceFlags) options() trace.Options {
	return trace.Options{Format: f.format, BlockSize: f.blockSize}
}

func (f *traceFlags) bind(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.Var(cli.Choice(&f.format, append([]trace.Format{""}, trace.Formats()...)...), "format", "format of the file (default: recognised)")
	fs.Var(cli.Int(&f.blockSize, 0, workload.MaxTokens), "block-size", "tokens that a hash id of a mooncake or bailian trace stands for (0 = 512 and 16)")
}

// readLengths returns the lengths of a recorded workload for a generated one to
// draw from, none without a name.
func (a *app) readLengths(name string) (workload.Pairs, error) {
	if name == "" {
		return workload.Pairs{}, nil
	}
	t, err := a.readRecorded(name, trace.Options{})
	if err != nil {
		return workload.Pairs{}, err
	}
	return workload.Pairs{Of: t.Pairs()}, nil
}

// readRecorded reads the trace that the user named; "-" is standard input.
func (a *app) readRecorded(name string, o trace.Options) (*trace.Trace, error) {
	in, err := a.State.OpenInput(a.path(name))
	if err != nil {
		return nil, err
	}
	t, err := trace.Read(in, o)
	if err := errors.Join(err, in.Close()); err != nil {
		return nil, cli.Errorf(cli.BadInput, "%s: %w", name, err)
	}
	return t, nil
}

func (a *app) traceInspectCommand() *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use: "inspect FILE", Short: "Say what a recorded workload holds: arrivals, lengths, conversations, reuse",
		Long: "Say what a recorded workload holds: arrivals, lengths, conversations, and what a prefix cache that never forgets would find.\n" +
			"FILE is - for standard input.\n\n" + traceFormats,
		Args:    cobra.ExactArgs(1),
		Example: "  inferasim trace inspect conversation_trace.jsonl\n  inferasim trace inspect AzureLLMInferenceTrace_conv.csv -o json",
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := a.readRecorded(args[0], f.options())
			if err != nil {
				return err
			}
			x := inspection.Of(t, t.Statistics(), args[0])
			return a.Emit(cli.Report{JSON: x, CSV: x.Records(), Text: func(w io.Writer, width int) error {
				return x.WriteTable(w, a.page(width))
			}})
		},
	}
	f.bind(cmd)
	return cmd
}

// convertFlags are the settings of trace convert.
type convertFlags struct {
	traceFlags
	to                   trace.Format
	out                  string
	anonymise            bool
	timeScale, rateScale float64
	first                int
}

func (a *app) traceConvertCommand() *cobra.Command {
	f := convertFlags{to: trace.Infera, timeScale: 1, rateScale: 1}
	cmd := &cobra.Command{
		Use: "convert FILE", Short: "Write a recorded workload in another form, scaled or anonymised",
		Long: "Write a recorded workload in another form, scaled or anonymised. FILE is - for standard input.\n\n" +
			"The infera form keeps everything; the mooncake form has times, lengths and hash ids of 512-token blocks, numbered anew,\n" +
			"and what it has no place for is a warning. Without --out the trace goes to standard output, warnings to standard error.\n\n" + traceFormats,
		Args: cobra.ExactArgs(1),
		Example: "  inferasim trace convert conversation_trace.jsonl --to infera --out conversation.jsonl\n" +
			"  inferasim trace convert prod.jsonl --to mooncake --anonymise --rate-scale 2 --out shared.jsonl",
		RunE: func(_ *cobra.Command, args []string) error { return a.convert(args[0], &f) },
	}
	f.bind(cmd)
	fs := cmd.Flags()
	fs.Var(cli.Choice(&f.to, trace.Infera, trace.Mooncake), "to", "form to write")
	fs.StringVar(&f.out, "out", "", "file to write (default: standard output)")
	fs.BoolVar(&f.anonymise, "anonymise", false, "replace the identities of content, sessions and classes by numbers in order of appearance")
	fs.Var(cli.Positive(&f.timeScale, 1e9), "time-scale", "factor on all times")
	fs.Var(cli.Positive(&f.rateScale, 1e9), "rate-scale", "factor on the rate: times are divided by it; who shares which prefix stays")
	fs.Var(cli.Int(&f.first, 0, math.MaxInt), "first", "keep only so many requests from the start (0 = all)")
	return cmd
}

func (a *app) convert(name string, f *convertFlags) error {
	t, err := a.readRecorded(name, f.options())
	if err != nil {
		return err
	}
	if f.first > 0 {
		t.First(f.first)
	}
	if err := t.Stretch(f.timeScale / f.rateScale); err != nil {
		return err
	}
	if f.anonymise {
		t.Anonymise()
	}
	warnings := t.Warnings
	err = a.writeTo(f.out, func(w io.Writer) error {
		if f.to == trace.Infera {
			return trace.WriteInfera(w, t)
		}
		lost, err := trace.WriteMooncake(w, t)
		warnings = append(warnings, lost...)
		return err
	})
	if err != nil {
		return err
	}
	return a.emitWritten(&written{File: name, Format: string(t.Format), To: string(f.to), Out: f.out, Requests: len(t.Requests), Warnings: inspection.Warnings(warnings)})
}

// writeTo writes a file, or standard output when there is no name.
func (a *app) writeTo(name string, write func(io.Writer) error) error {
	if name == "" {
		return write(a.State.Stdout)
	}
	out, err := a.State.Files.Create(a.path(name))
	if err != nil {
		return cli.Errorf(cli.BadInput, "write %s: %w", name, err)
	}
	if err := errors.Join(write(out), out.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// written is the contract of trace convert and generate when they write a file.
type written struct {
	Schema   string                      `json:"schema"`
	File     string                      `json:"file"` // that was read, "" when it was generated
	Format   string                      `json:"format"`
	To       string                      `json:"to"`
	Out      string                      `json:"out"`
	Requests int                         `json:"requests"`
	Warnings report.List[report.Warning] `json:"warnings"`
}

// emitWritten says what was written to a file; when it went to standard output,
// only warnings are said, on standard error.
func (a *app) emitWritten(x *written) error {
	x.Schema = "inferasim.trace_written/v1"
	if x.Out == "" {
		for _, w := range x.Warnings {
			if _, err := fmt.Fprintf(a.State.Stderr, "inferasim: %s: %s\n", w.Code, w.Text); err != nil {
				return err
			}
		}
		return nil
	}
	return a.Emit(cli.Report{
		JSON: x,
		CSV: [][]string{
			{"file", "format", "to", "out", "requests", "warnings"},
			{x.File, x.Format, x.To, x.Out, strconv.Itoa(x.Requests), strconv.Itoa(len(x.Warnings))},
		},
		Text: func(w io.Writer, _ int) error {
			var b strings.Builder
			fmt.Fprintf(&b, "%s: %d requests, %s\n", x.Out, x.Requests, x.To)
			for _, warning := range x.Warnings {
				fmt.Fprintf(&b, "  %s: %s\n", warning.Code, warning.Text)
			}
			_, err := io.WriteString(w, b.String())
			return err
		},
	})
}
