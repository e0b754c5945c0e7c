package fit

import (
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"testing"

	"infera/sim/software"
)

type errs struct{ tpot, ttft []float64 }

func summarize(v []float64) string {
	if len(v) == 0 {
		return "-"
	}
	a := make([]float64, len(v))
	var mape, bias float64
	for i, e := range v {
		a[i] = math.Abs(e)
		mape += a[i] / float64(len(v))
		bias += e / float64(len(v))
	}
	sort.Float64s(a)
	return fmt.Sprintf("n=%4d mape %5.1f med %5.1f p90 %5.1f bias %+5.1f", len(v), 100*mape, 100*a[len(a)/2], 100*a[len(a)*9/10], 100*bias)
}

func explore(t *testing.T, samples []Sample, base software.Efficiency) {
	folds := 3
	if v, err := strconv.Atoi(os.Getenv("FOLDS")); err == nil {
		folds = v
	}
	opt := Defaults()
	opt.Start = base.Values
	if v := os.Getenv("DEV"); v != "" {
		fmt.Sscanf(v, "%g,%g,%g,%g,%g,%g", &opt.Deviation[0], &opt.Deviation[1], &opt.Deviation[2], &opt.Deviation[3], &opt.Deviation[4], &opt.Deviation[5])
	}
	if v := os.Getenv("NOISE"); v != "" {
		fmt.Sscanf(v, "%g,%g", &opt.TPOTNoise, &opt.TTFTNoise)
	}
	opt.Progress = func(i int, loss float64) { fmt.Printf("  iteration %d loss %.1f\n", i, loss) }
	tot := map[string]*errs{}
	add := func(k string, s *Sample, tp, tt float64) {
		e := tot[k]
		if e == nil {
			e = &errs{}
			tot[k] = e
		}
		if s.Measured.TPOT > 0 {
			e.tpot = append(e.tpot, tp/s.Measured.TPOT-1)
		}
		if s.Measured.TTFT > 0 {
			e.ttft = append(e.ttft, tt/s.Measured.TTFT-1)
		}
	}
	run := 1
	if v, err := strconv.Atoi(os.Getenv("RUN")); err == nil {
		run = v
	}
	dump, _ := os.Create("/tmp/residuals" + os.Getenv("TAG") + ".csv")
	defer dump.Close()
	for f := 0; f < run; f++ {
		var train []Point
		for i := range samples {
			if samples[i].Fold(folds) != f {
				train = append(train, samples[i].Point())
			}
		}
		m, err := Fit(t.Context(), train, opt)
		if err != nil {
			t.Fatal(err)
		}
		for i := range samples {
			s := &samples[i]
			e := m.At(s.Levels())
			tp, tt := s.predict(&e)
			set := "train"
			if s.Fold(folds) == f {
				set = "test"
			}
			g := "nv"
			if s.Request.GPU.Vendor == "amd" {
				g = "mi"
			} else {
				switch s.Measured.GPU {
				case "H100", "H200", "B200":
				default:
					g = "other"
				}
			}
			add(set+" "+g, s, tp, tt)
			{
				p := s.Measured
				fmt.Fprintf(dump, "%s,%s,%s,%s,%s,%d,%d,%v,%g,%g,%g,%s,%.3f,%.3f,%.1f,%.1f,%s\n", p.ID, p.GPU, p.Engine, p.Model, p.WeightDType, p.TP, p.EP, p.AttentionDP, p.InputLen, p.OutputLen, p.Concurrency, s.Epoch, p.TPOT*1e3, tp*1e3, p.TTFT*1e3, tt*1e3, set)
			}
			if set == "test" {
				p := s.Measured
				if g == "mi" {
					add("  mi "+p.GPU+" "+p.Engine, s, tp, tt)
					add("  mi model "+p.Model+" "+p.WeightDType, s, tp, tt)
					add(fmt.Sprintf("  mi conc %5.0f", math.Exp2(math.Round(math.Log2(p.Concurrency)))), s, tp, tt)
					add("  mi epoch "+s.Request.Stack()+" "+s.Epoch, s, tp, tt)
				}
			}
		}
	}
	var names []string
	for k := range tot {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		fmt.Printf("%-50s TPOT %s | TTFT %s\n", k, summarize(tot[k].tpot), summarize(tot[k].ttft))
	}
}
