package planner_test

import (
	"context"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"infera/configs"
	"infera/internal/measured"
	"infera/sim/accuracy"
	"infera/sim/cluster"
	"infera/sim/planner"
	"infera/sim/workload"
)

var every = flag.Int("every", 25, "take every so many measured points in the closed-loop comparison")

// TestClosedLoop replays measured closed loops in the simulator: the times to
// first token must be as good as those of the closed form, which was fitted to
// such points, and off by 25 % in the median at most.
func TestClosedLoop(t *testing.T) {
	file, err := os.Open(filepath.Join(measured.Dir(t), "serving_measured.csv"))
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	points, err := accuracy.ReadCSV(file)
	if err != nil {
		t.Fatal(err)
	}
	l, err := planner.Open(configs.FS)
	if err != nil {
		t.Fatal(err)
	}
	var simulated, closed, simulatedTPOT, closedTPOT []float64
	n := 0
	for i := range points {
		p := &points[i]
		if p.Quality != "A" || p.TTFT <= 0 || p.TPOT <= 0 || !strings.HasPrefix(p.GPU, "MI3") {
			continue
		}
		if n++; n%*every != 0 {
			continue
		}
		r, err := l.FromPoint(p)
		if errors.Is(err, planner.ErrSkip) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Score(p)
		if errors.Is(err, planner.ErrSkip) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		total, err := replay(l, r)
		if err != nil {
			t.Fatalf("%s: %v", p.ID, err)
		}
		if total == nil {
			continue
		}
		off := func(predicted, measured float64) float64 { return math.Abs(predicted/measured - 1) }
		simulated, closed = append(simulated, off(total.TTFT.Mean, p.TTFT)), append(closed, off(s.TTFT.Predicted, p.TTFT))
		simulatedTPOT, closedTPOT = append(simulatedTPOT, off(total.TPOT.Mean, p.TPOT)), append(closedTPOT, off(s.TPOT.Predicted, p.TPOT))
	}
	median := func(v []float64) float64 {
		slices.Sort(v)
		return 100 * v[len(v)/2]
	}
	if len(simulated) < 10 {
		t.Skipf("%d points", len(simulated))
	}
	a, b := median(simulated), median(closed)
	t.Logf("%d points: median TTFT error simulated %.1f %%, closed form %.1f %%; TPOT %.1f %% and %.1f %%",
		len(simulated), a, b, median(simulatedTPOT), median(closedTPOT))
	if a > 25 || a > b+2 {
		t.Errorf("median TTFT error %.1f %% simulated, %.1f %% in closed form, want at most 25 %% and no worse", a, b)
	}
}

// replay runs the benchmark client of a point; nil when the point's recipe is
// said not to fit.
func replay(l *planner.Library, r *planner.Request) (*cluster.Stats, error) {
	f, err := l.Fleet(r)
	if err != nil || !f.Feasible {
		return nil, err
	}
	clients := int(r.Concurrency)
	rounds := 10.0
	if r.BurstShare > 0 {
		rounds = 1 / r.BurstShare
	}
	length := func(n float64) workload.Length {
		out := workload.Length{Mean: int(n)}
		if !r.Lockstep && r.LengthScale > 0 && r.LengthScale < 1 {
			// Drawn evenly up to the nominal length: the mean tells from where.
			out.RangeRatio = 2*r.LengthScale - 1
		}
		return out
	}
	source, err := workload.New(workload.Spec{
		Requests: max(clients, int(rounds*float64(clients))), Arrivals: workload.Arrivals{Process: workload.Burst},
		Input: length(r.InputLen), Output: length(r.OutputLen), HitShare: r.PrefixHitRate, Seed: 1,
	})
	if err != nil {
		return nil, err
	}
	result, err := cluster.Run(context.Background(), &cluster.Config{
		Source: workload.Loop(source, workload.ClosedLoop{Clients: clients}), ClosedLoop: true,
		Fleet: f.Instances, Host: f.Host, Explain: -1,
	})
	if err != nil {
		return nil, err
	}
	return &result.Total, nil
}
