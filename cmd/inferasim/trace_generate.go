package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"infera/internal/cli"
	"infera/internal/units"
	"infera/sim/workload"
	"infera/sim/workload/trace"
)

// generateFlags are the settings of trace generate.
type generateFlags struct {
	spec                         workload.Spec
	process                      string
	seed                         int
	onS, offS, periodS           float64
	thinkS, tpotMs               float64
	ratio, inputSigma, outSigma  float64
	inputLen, outputLen, turnLen int
	lengthsFrom, out             string
}

func (a *app) traceGenerateCommand() *cobra.Command {
	f := generateFlags{process: workload.Poisson, inputLen: 1024, outputLen: 128, ratio: 1, onS: 10, offS: 10, periodS: 86400, tpotMs: 20}
	f.spec = workload.Spec{Requests: 400, Arrivals: workload.Arrivals{Rate: 1, Shape: 1, Swing: 0.5}}
	cmd := &cobra.Command{
		Use: "generate", Short: "Generate a workload and write it down",
		Long: "Generate a workload and write it down in the infera form; trace convert makes a mooncake trace of it.\n\n" +
			"Arrivals, input lengths, output lengths, prefixes and turns have random streams of their own: changing one lever leaves\n" +
			"the rest alone. Later turns of conversations depend on answers; their arrivals assume --assumed-tpot-ms.",
		Args: cobra.NoArgs,
		Example: "  inferasim trace generate --requests 10000 --arrival gamma --burstiness 0.5 --rate 20 --input-len 2048 --range-ratio 0.8 --out a.jsonl\n" +
			"  inferasim trace generate --requests 500 --turns 6 --think-s 20 --turn-len 150 --prefixes 8 --prefix-len 1500 --prefix-zipf 1 --out chat.jsonl",
		RunE: func(*cobra.Command, []string) error { return a.generate(&f) },
	}
	f.bind(cmd)
	return cmd
}

func (f *generateFlags) bind(cmd *cobra.Command) {
	fs, s := cmd.Flags(), &f.spec
	fs.Var(cli.Int(&s.Requests, 1, workload.MaxRequests), "requests", "requests, or conversations with --turns")
	fs.Var(cli.Choice(&f.process, workload.Processes()...), "arrival", "how they arrive: "+strings.Join(workload.Processes(), ", "))
	fs.Var(cli.Float(&s.Arrivals.Rate, 0, 1e9), "rate", "requests per second on average (0 = all at once)")
	fs.Var(cli.Float(&s.Arrivals.Shape, 0, 1e6), "burstiness", "shape of gamma and weibull gaps: 1 = poisson, below in bursts, above more even")
	fs.Var(cli.Float(&f.onS, 0, maxSeconds), "on-s", "mean length of the on state of on-off arrivals")
	fs.Var(cli.Float(&f.offS, 0, maxSeconds), "off-s", "mean length of the off state of on-off arrivals")
	fs.Var(cli.Float(&s.Arrivals.Swing, 0, 1), "swing", "how far the rate of diurnal arrivals goes up and down, as a share of it")
	fs.Var(cli.Float(&f.periodS, 0, maxSeconds), "period-s", "period of diurnal arrivals")
	fs.Var(cli.Int(&f.inputLen, 1, workload.MaxTokens), "input-len", "prompt tokens: the longest with --range-ratio, the mean with --input-sigma")
	fs.Var(cli.Int(&f.outputLen, 1, workload.MaxTokens), "output-len", "answer tokens, likewise")
	fs.Var(cli.Positive(&f.ratio, 1), "range-ratio", "lengths are drawn evenly between this share of the nominal length and all of it")
	fs.Var(cli.Float(&f.inputSigma, 0, 10), "input-sigma", "prompts are lognormal with this deviation of their logarithm (0 = off)")
	fs.Var(cli.Float(&f.outSigma, 0, 10), "output-sigma", "answers are lognormal with this deviation of their logarithm (0 = off)")
	fs.StringVar(&f.lengthsFrom, "lengths-from", "", "recorded workload whose requests the lengths are drawn from, prompt and answer together: any format that trace inspect reads")
	fs.Var(cli.Int(&s.Prefixes.Count, 0, 10_000_000), "prefixes", "prompt beginnings that requests share (0 = none)")
	fs.Var(cli.Int(&s.Prefixes.Tokens, 0, workload.MaxTokens), "prefix-len", "tokens of a shared beginning (0 = half the prompt)")
	fs.Var(cli.Float(&s.Prefixes.Zipf, 0, 100), "prefix-zipf", "Zipf exponent of their popularity (0 = all alike)")
	fs.Var(cli.Float(&s.Sessions.Turns, 0, workload.MaxTurns), "turns", "mean turns of a conversation; a turn's prompt holds all before it (0 = no conversations)")
	fs.BoolVar(&s.Sessions.Fixed, "fixed-turns", false, "every conversation has --turns turns instead of geometrically many")
	fs.Var(cli.Float(&f.thinkS, 0, maxSeconds), "think-s", "mean time between an answer and the next turn: a person's, or a tool's")
	fs.Var(cli.Int(&f.turnLen, 0, workload.MaxTokens), "turn-len", "new tokens of a later turn (0 = drawn like the first prompt)")
	fs.Var(cli.Int(&s.Sessions.MaxInput, 0, workload.MaxTokens), "max-input-len", "a conversation ends before a prompt gets longer (0 = never)")
	fs.Var(cli.Float(&f.tpotMs, 0, 1e9), "assumed-tpot-ms", "time per answer token that the arrivals of later turns assume")
	fs.Var(cli.Int(&f.seed, 0, 1<<53), "seed", "seed of all random streams")
	fs.StringVar(&f.out, "out", "", "file to write (default: standard output)")
}

// refuseIdle refuses flags that would have no effect together with the others.
func (a *app) refuseIdle(f *generateFlags) error {
	for _, n := range []needs{
		{[]string{"burstiness"}, f.process == workload.Gamma || f.process == workload.Weibull, "it needs --arrival gamma or weibull"},
		{[]string{"on-s", "off-s"}, f.process == workload.OnOff, "it needs --arrival on-off"},
		{[]string{"swing", "period-s"}, f.process == workload.Diurnal, "it needs --arrival diurnal"},
		{[]string{"rate"}, f.process != workload.Burst, "with --arrival burst all come at once"},
		{[]string{"range-ratio"}, f.inputSigma == 0 || f.outSigma == 0, "--input-sigma and --output-sigma replace it"},
		{[]string{"input-len", "output-len", "range-ratio", "input-sigma", "output-sigma"}, f.lengthsFrom == "", "--lengths-from gives the lengths"},
		{[]string{"prefix-len", "prefix-zipf"}, f.spec.Prefixes.Count > 0, "it needs --prefixes"},
		{[]string{"fixed-turns", "think-s", "turn-len", "max-input-len", "assumed-tpot-ms"}, f.spec.Sessions.Turns > 1, "it needs --turns above 1"},
	} {
		for _, flag := range n.flags {
			if !n.met && a.Settings.Origin(flag) != cli.FromDefault {
				return cli.Errorf(cli.BadInput, "--%s has no effect: %s", flag, n.what)
			}
		}
	}
	return nil
}

// generatedBlock is the block size that generated traces are inspected with: the
// usual one of an engine's cache.
const generatedBlock = 16

func (a *app) generate(f *generateFlags) error {
	length := func(n int, sigma float64) workload.Length {
		l := workload.Length{Mean: n, Sigma: sigma}
		if sigma == 0 {
			l.RangeRatio = f.ratio
		}
		return l
	}
	if err := a.refuseIdle(f); err != nil {
		return err
	}
	s := f.spec
	var err error
	if s.Pairs, err = a.readLengths(f.lengthsFrom); err != nil {
		return err
	}
	s.Seed, s.Arrivals.Process = uint64(f.seed), f.process
	s.Arrivals.On, s.Arrivals.Off, s.Arrivals.Period = units.Seconds(f.onS), units.Seconds(f.offS), units.Seconds(f.periodS)
	s.Input, s.Output = length(f.inputLen, f.inputSigma), length(f.outputLen, f.outSigma)
	s.Sessions.Think = units.Seconds(f.thinkS)
	if f.turnLen > 0 {
		s.Sessions.NewTokens = length(f.turnLen, f.inputSigma)
	}
	source, err := workload.New(s)
	if err != nil {
		return err
	}
	h := trace.Header{BlockSize: generatedBlock}
	if s.Sessions.Turns <= 1 {
		h.Requests = s.Requests
	}
	perToken := units.Seconds(f.tpotMs / 1e3)
	n := 0
	err = a.writeTo(f.out, func(w io.Writer) error {
		out, err := trace.NewWriter(w, h)
		if err != nil {
			return err
		}
		for r := range workload.Unroll(source, func(r *workload.Request) units.Time { return units.Nanoseconds(perToken * units.Seconds(r.Output)) }) {
			if err := out.Write(&r); err != nil {
				return err
			}
			n++
		}
		return out.Flush()
	})
	if err != nil {
		return err
	}
	return a.emitWritten(&written{To: string(trace.Infera), Out: f.out, Requests: n})
}
