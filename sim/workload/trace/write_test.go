package trace

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"infera/internal/units"
	"infera/sim/workload"
)

// anyTrace draws a trace with every field of its requests.
func anyTrace(t *rapid.T) *Trace {
	x := &Trace{
		Format: Infera, Timed: true, BlockSize: rapid.IntRange(1, 600).Draw(t, "block size"),
		Classes: rapid.SliceOfN(rapid.StringMatching(`[a-zé" ]{0,8}`), 0, 3).Draw(t, "classes"),
	}
	if len(x.Classes) == 0 {
		x.Classes = nil
	}
	if x.Absolute = rapid.Bool().Draw(t, "absolute"); x.Absolute {
		x.Start = epoch + units.Time(rapid.Int64Range(0, 1e18).Draw(t, "start"))
	}
	at := units.Time(0)
	for i := range rapid.IntRange(1, 20).Draw(t, "requests") {
		at += units.Time(rapid.Int64Range(0, 1e10).Draw(t, "gap"))
		r := workload.Request{
			ID: i, Arrival: at, Output: rapid.IntRange(1, 1000).Draw(t, "output"),
			Answer: rapid.Uint64().Draw(t, "answer"), Session: rapid.Uint64().Draw(t, "session"), Turn: rapid.IntRange(0, 9).Draw(t, "turn"),
			Class: rapid.IntRange(0, max(0, len(x.Classes)-1)).Draw(t, "class"), Priority: rapid.IntRange(-3, 3).Draw(t, "priority"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "segments") {
			s := workload.Segment{ID: rapid.Uint64Range(0, 5).Draw(t, "identity"), Tokens: rapid.IntRange(1, 1000).Draw(t, "tokens")}
			r.Content, r.Input = append(r.Content, s), r.Input+s.Tokens
		}
		if r.Content == nil {
			r.Input = rapid.IntRange(1, 1000).Draw(t, "input")
		}
		r.Unshared = rapid.IntRange(0, r.Input).Draw(t, "unshared")
		x.Requests = append(x.Requests, r)
	}
	return x
}

func written(t rapid.TB, x *Trace) []byte {
	var b bytes.Buffer
	if err := WriteInfera(&b, x); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What is written in our own form is read back, and written again the same byte
// for byte; its replay gives the same requests.
func TestOwnFormKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := anyTrace(t)
		text := written(t, x)
		back, err := Read(bytes.NewReader(text), Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		back.Warnings = nil
		if d := cmp.Diff(x, back); d != "" {
			t.Fatalf("(-written +read):\n%s", d)
		}
		if again := written(t, back); !bytes.Equal(text, again) {
			t.Fatalf("written again:\n%s\nfirst:\n%s", again, text)
		}
		source := workload.Replay(back.Requests)
		for i := range x.Requests {
			got, ok := source.Next()
			if d := cmp.Diff(x.Requests[i], got); !ok || d != "" {
				t.Fatalf("replayed request %d (-written +replayed):\n%s", i, d)
			}
		}
	})
}

// The mooncake form keeps times, lengths and, in whole blocks, what prompts
// share.
func TestMooncakeForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := anyTrace(t)
		x.BlockSize = mooncakeBlock
		for i := range x.Requests {
			x.Requests[i].Answer = 0 // which it has no place for
		}
		var b bytes.Buffer
		if _, err := WriteMooncake(&b, x); err != nil {
			t.Fatal(err)
		}
		back, err := Read(bytes.NewReader(b.Bytes()), Options{Format: Mooncake})
		if err != nil {
			t.Fatalf("%v\n%s", err, b.Bytes())
		}
		for i, r := range back.Requests {
			w := x.Requests[i]
			if r.Arrival != w.Arrival-x.Requests[0].Arrival || r.Input != w.Input || r.Output != w.Output {
				t.Fatalf("request %d is %+v, was %+v", i, r, w)
			}
		}
		was, is := x.Statistics().Reuse, back.Statistics().Reuse
		if was.Blocks != is.Blocks || was.Hits != is.Hits || was.Distinct != is.Distinct {
			t.Fatalf("reuse %+v, was %+v", is, was)
		}
		// A second time nothing changes any more.
		var again bytes.Buffer
		if _, err := WriteMooncake(&again, back); err != nil {
			t.Fatal(err)
		}
		if x.Requests[0].Arrival == 0 && !bytes.Equal(b.Bytes(), again.Bytes()) {
			t.Fatalf("written again:\n%s\nfirst:\n%s", again.Bytes(), b.Bytes())
		}
	})
}

func TestWriteMooncake(t *testing.T) {
	x := &Trace{Timed: true, Requests: []workload.Request{
		{Arrival: 46_926_808, Input: 700, Output: 5, Content: seg(70, 700), Session: 3},
		{Arrival: 50e6, Input: 513, Output: 6},
		{Arrival: 50e6, Input: 1024, Output: 7, Content: seg(70, 512, 5, 512), Priority: -1},
	}}
	var b bytes.Buffer
	warnings, err := WriteMooncake(&b, x)
	if err != nil {
		t.Fatal(err)
	}
	// The first block of the third prompt is that of the first.
	want := `{"timestamp": 46.926808, "input_length": 700, "output_length": 5, "hash_ids": [0, 1]}
{"timestamp": 50, "input_length": 513, "output_length": 6, "hash_ids": [2, 3]}
{"timestamp": 50, "input_length": 1024, "output_length": 7, "hash_ids": [0, 4]}
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(warnings) != 2 || !strings.Contains(warnings[0].Text, "sessions") || !strings.Contains(warnings[1].Text, "priorities") {
		t.Errorf("warnings %v", warnings)
	}
}

func TestWriteFails(t *testing.T) {
	x := &Trace{Requests: make([]workload.Request, 20_000)}
	for i := range x.Requests {
		x.Requests[i].Input = 1
	}
	if err := WriteInfera(full{}, x); !errors.Is(err, errDisk) {
		t.Errorf("WriteInfera: %v", err)
	}
	if _, err := WriteMooncake(full{}, x); !errors.Is(err, errDisk) {
		t.Errorf("WriteMooncake: %v", err)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errDisk }

// Anonymising leaves everything but the identities, and who shares what.
func TestAnonymise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := anyTrace(t)
		text := written(t, x)
		y, err := Read(bytes.NewReader(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		y.Anonymise()
		content, sessions := map[uint64]uint64{0: 0}, map[uint64]uint64{0: 0}
		same := func(names map[uint64]uint64, was, is uint64) {
			if n, ok := names[was]; ok && n != is || is > 1000 {
				t.Fatalf("%d became %d and %d", was, n, is)
			}
			names[was] = is
		}
		delete(content, 0) // an identity like any other in content
		for i := range x.Requests {
			was, is := x.Requests[i], y.Requests[i]
			if len(was.Content) != len(is.Content) {
				t.Fatalf("content %v became %v", was.Content, is.Content)
			}
			for k := range was.Content {
				same(content, was.Content[k].ID, is.Content[k].ID)
				if was.Content[k].Tokens != is.Content[k].Tokens {
					t.Fatalf("content %v became %v", was.Content, is.Content)
				}
			}
			if was.Answer != 0 || is.Answer != 0 {
				same(content, was.Answer, is.Answer)
			}
			same(sessions, was.Session, is.Session)
			was.Content, was.Answer, was.Session, is.Content, is.Answer, is.Session = nil, 0, 0, nil, 0, 0
			if d := cmp.Diff(was, is); d != "" {
				t.Fatalf("(-was +is):\n%s", d)
			}
		}
		if back := x.Statistics().Reuse; back != y.Statistics().Reuse {
			t.Fatalf("reuse %+v became %+v", back, y.Statistics().Reuse)
		}
	})
}

// Turns of a conversation may share memory; renaming one must not rename the
// others again.
func TestAnonymiseShared(t *testing.T) {
	x := read(t, `[{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}, {"from": "human", "value": "c"}, {"from": "gpt", "value": "d"}]}]`, Options{})
	x.Classes = []string{"acme"}
	x.Anonymise()
	if d := cmp.Diff(seg(1, 1), x.Requests[0].Content); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(seg(1, 1, 2, 1, 3, 1), x.Requests[1].Content); x.Requests[0].Answer != 2 || d != "" {
		t.Errorf("answer %d, %s", x.Requests[0].Answer, d)
	}
	if x.Classes[0] != "class 1" {
		t.Errorf("class %q", x.Classes[0])
	}
}

func TestStretchAndFirst(t *testing.T) {
	x := read(t, "arrival,isl,osl\n0,1,1\n10,2,2\n25,3,3\n", Options{})
	if err := x.Stretch(1.0 / 4); err != nil { // four times the rate
		t.Fatal(err)
	}
	x.First(2)
	if len(x.Requests) != 2 || x.Requests[1].Arrival != 2_500_000 || x.Requests[1].Input != 2 {
		t.Errorf("requests %+v", x.Requests)
	}
	x.First(9)
	for _, f := range []float64{0, -1, math.NaN(), math.Inf(1), 1e30} {
		if err := x.Stretch(f); !errors.Is(err, ErrTrace) {
			t.Errorf("stretched by %v: %v", f, err)
		}
	}
	if got := x.Pairs(); len(got) != 2 || got[1] != (workload.Pair{Input: 2, Output: 2}) {
		t.Errorf("pairs %v", got)
	}
}

// A trace of four requests, counted by hand.
func TestStatistics(t *testing.T) {
	x := read(t, `{"schema":"infera.trace/v1","block_size":10,"classes":["a","b"]}
{"id":0,"arrival_ns":0,"input":25,"output":5,"content":[1,25],"answer":2,"session":1}
{"id":1,"arrival_ns":500000000,"input":10,"output":7,"class":1}
{"id":2,"arrival_ns":2000000000,"input":35,"output":8,"content":[1,25,2,5,3,5],"session":1,"turn":1}
{"id":3,"arrival_ns":2000000000,"input":25,"output":9,"content":[1,25]}
`, Options{})
	s := x.Statistics()
	if s.Requests != 4 || s.Span != 2e9 || s.Rate != 2 || s.Busiest != 2 || s.Sessions != 1 || s.Turns.Max != 2 {
		t.Errorf("%+v", s)
	}
	// Gaps 0.5, 1.5 and 0: mean 2/3, variance (1/36 + 25/36 + 16/36)/3 = 7/18.
	if g := s.Gaps; g.Count != 3 || math.Abs(g.Mean-2.0/3) > 1e-12 || math.Abs(g.CoefficientOfVariation-math.Sqrt(7.0/18)*1.5) > 1e-12 {
		t.Errorf("gaps %+v", g)
	}
	// 10, 25, 25, 35: p50 25, p90 at 2.7: 25 + 0.7 x 10.
	if in := s.Input; in.Mean != 23.75 || in.P50 != 25 || math.Abs(in.P90-32) > 1e-9 || in.Min != 10 || in.Max != 35 {
		t.Errorf("input %+v", in)
	}
	// Blocks: 3 + 1 + 4 + 3. The third prompt finds the two full blocks of the
	// first and the one that its answer completes; the fourth finds all three of
	// the first, the last of them partial.
	if u := s.Reuse; u.Blocks != 11 || u.Hits != 6 || u.Age.Max != 2 || u.Age.Min != 0 {
		t.Errorf("reuse %+v", u)
	}
	if d := cmp.Diff([]ClassCount{{"a", 3}, {"b", 1}}, s.Classes); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Bin{{8, 16, 1}, {16, 32, 2}, {32, 64, 1}}, s.Inputs); d != "" {
		t.Error(d)
	}
	if n := len(s.Arrivals); n != arrivalBins || s.Arrivals[0].Count != 1 || s.Arrivals[n/4].Count != 1 || s.Arrivals[n-1].Count != 2 {
		t.Errorf("arrivals %v", s.Arrivals)
	}
	if (&Reuse{}).HitRate() != 0 {
		t.Error("a hit rate without blocks")
	}
}

// Reuse is that of a set of all texts that began a prompt, token by token.
func TestReuseByTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := anyTrace(t)
		x.BlockSize = rapid.SampledFrom([]int{1, 3, 16, 512}).Draw(t, "size")
		for i := range x.Requests {
			r := &x.Requests[i]
			r.Input = 0
			for k := range r.Content {
				r.Content[k].Tokens = 1 + r.Content[k].Tokens%40
				r.Input += r.Content[k].Tokens
			}
			r.Input, r.Output, r.Answer = max(1, r.Input), 1+r.Output%20, r.Answer%7
		}
		type text = string
		seen := map[text]bool{}
		remember := func(content []workload.Segment) (beginnings []text) {
			var b strings.Builder
			n := 0
			for _, s := range content {
				for k := range s.Tokens {
					fmt.Fprintf(&b, "%d.%d ", s.ID, k)
					if n++; n%x.BlockSize == 0 {
						beginnings = append(beginnings, b.String())
					}
				}
			}
			if n%x.BlockSize != 0 {
				beginnings = append(beginnings, b.String()+"end")
			}
			return beginnings
		}
		blocks, hits := int64(0), int64(0)
		for _, r := range x.Requests {
			blocks += int64((r.Input + x.BlockSize - 1) / x.BlockSize)
			texts := remember(r.Content)
			for _, s := range texts {
				if !seen[s] {
					break
				}
				hits++
			}
			if r.Content != nil && r.Answer != 0 {
				texts = append(texts, remember(append(slices.Clone(r.Content), workload.Segment{ID: r.Answer, Tokens: r.Output}))...)
			}
			for _, s := range texts {
				seen[s] = true
			}
		}
		if u := x.Statistics().Reuse; u.Blocks != blocks || u.Hits != hits {
			t.Fatalf("%d of %d blocks, by texts %d of %d", u.Hits, u.Blocks, hits, blocks)
		}
	})
}

func BenchmarkStatistics(b *testing.B) {
	x := &Trace{Timed: true, BlockSize: 16}
	for i := range 20_000 {
		x.Requests = append(x.Requests, workload.Request{Arrival: units.Time(i) * 1e6, Input: 512, Output: 1, Content: seg(i%64, 256, 1000+i, 256)})
	}
	b.ReportAllocs()
	for b.Loop() {
		x.Statistics()
	}
}

func BenchmarkOwnForm(b *testing.B) {
	x := &Trace{Timed: true, BlockSize: 16}
	for i := range 20_000 {
		x.Requests = append(x.Requests, workload.Request{ID: i, Arrival: units.Time(i) * 1e6, Input: 512, Output: 1, Content: seg(i%64, 256, 1000+i, 256)})
	}
	var text bytes.Buffer
	if err := WriteInfera(&text, x); err != nil {
		b.Fatal(err)
	}
	benchmarkRead(b, text.Bytes())
}
