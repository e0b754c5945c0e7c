package trace

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"infera/internal/units"
	"infera/sim/workload"
)

func codes(w []Warning) []string {
	var out []string
	for _, x := range w {
		out = append(out, x.Code)
	}
	return out
}

func equal(a, b []string) bool { return slices.Equal(a, b) }

func read(t testing.TB, text string, o Options) *Trace {
	t.Helper()
	x, err := Read(strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func benchmarkRead(b *testing.B, data []byte) {
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(bytes.NewReader(data), Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// seg makes segments of pairs of identity and tokens.
func seg(pairs ...int) []workload.Segment {
	var out []workload.Segment
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, workload.Segment{ID: uint64(pairs[i]), Tokens: pairs[i+1]})
	}
	return out
}

const ms = units.Time(1e6)

func TestFormats(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       Trace
		codes      []string
	}{
		{
			// 600 tokens are a block of 512 and one of 88.
			"mooncake", "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [0, 1]}\n" +
				"{\"timestamp\": 27.5, \"input_length\": 512, \"output_length\": 6, \"hash_ids\": [0]}\n",
			Trace{Format: Mooncake, BlockSize: 512, Timed: true, Requests: []workload.Request{
				{Input: 600, Output: 5, Content: seg(0, 512, 1, 88)},
				{ID: 1, Arrival: 27*ms + ms/2, Input: 512, Output: 6, Content: seg(0, 512)},
			}}, nil,
		},
		{
			"mooncake array, other names, a mark, CRLF, unsorted", "\xef\xbb\xbf[\r\n {\"TIME\": 3e3, \"isl\": 3, \"osl\": 2, \"Blocks\": [9], \"model\": \"m\"},\r\n" +
				" {\"time\": 1000, \"isl\": 4.0, \"osl\": 1, \"blocks\": null}]\r\n",
			Trace{Format: Mooncake, BlockSize: 512, Timed: true, Start: 1000 * ms, Requests: []workload.Request{
				{Input: 4, Output: 1},
				{ID: 1, Arrival: 2000 * ms, Input: 3, Output: 2, Content: seg(9, 3)},
			}}, []string{"unsorted", "shifted", "not_read"},
		},
		{
			// Chats 2 and 3 follow chat 1; 7 is not in the file.
			"bailian", `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 17, "output_length": 3, "type": "text", "turn": 1, "hash_ids": [4, 5]}
{"chat_id": 2, "parent_chat_id": 1, "timestamp": 62.5, "input_length": 16, "output_length": 3, "type": "search", "turn": 2, "hash_ids": [4]}

{"chat_id": 3, "parent_chat_id": 2, "timestamp": 63, "input_length": 20, "output_length": 3, "type": "text", "turn": 3}
{"chat_id": 8, "parent_chat_id": 7, "timestamp": 64, "input_length": 20, "output_length": 3, "type": "text", "turn": 2}`,
			Trace{Format: Bailian, BlockSize: 16, Timed: true, Start: 61114 * ms, Classes: []string{"text", "search"}, Requests: []workload.Request{
				{Input: 17, Output: 3, Content: seg(4, 16, 5, 1), Session: 1},
				{ID: 1, Arrival: 1386 * ms, Input: 16, Output: 3, Content: seg(4, 16), Session: 1, Turn: 1, Class: 1},
				{ID: 2, Arrival: 1886 * ms, Input: 20, Output: 3, Session: 1, Turn: 2},
				{ID: 3, Arrival: 2886 * ms, Input: 20, Output: 3, Session: 2, Turn: 1},
			}}, []string{"no_parent", "shifted"},
		},
		{
			// 2023-11-16 18:17:03 UTC is 1700158623.
			"azure 2023", "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04.0319600,3180,8",
			Trace{Format: Azure, Timed: true, Absolute: true, Start: 1700158623_979960000, Requests: []workload.Request{
				{Input: 4808, Output: 10}, {ID: 1, Arrival: 52 * ms, Input: 3180, Output: 8},
			}}, []string{"shifted", "no_content"},
		},
		{
			// 2024-05-10 00:00:00 UTC is 1715299200; two hours east of it it is 02:00.
			"azure 2024", "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10T02:00:01+02:00,2399,6\n2024-05-10 00:00:02,1,1\n",
			Trace{Format: Azure, Timed: true, Absolute: true, Start: 1715299200_009930000, Requests: []workload.Request{
				{Input: 2162, Output: 5}, {ID: 1, Arrival: 990070000, Input: 2399, Output: 6}, {ID: 2, Arrival: 1990070000, Input: 1, Output: 1},
			}}, []string{"shifted", "no_content"},
		},
		{
			"burstgpt with sessions", "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
				"19440110.0,1722ac82,43,GPT-4,906,446,1352,Conversation log\n19440161.0,,2,ChatGPT,36,29,65,API log\n19440192.5,1722ac82,8,GPT-4,1779,123,9,Conversation log\n",
			Trace{Format: BurstGPT, Timed: true, Start: 19440110e9, Classes: []string{"GPT-4, Conversation log", "ChatGPT, API log"}, Requests: []workload.Request{
				{Input: 906, Output: 446, Session: 1}, {ID: 1, Arrival: 51e9, Input: 36, Output: 29, Class: 1},
				{ID: 2, Arrival: 82_500 * ms, Input: 1779, Output: 123, Session: 1, Turn: 1},
			}}, []string{"sums", "shifted", "no_content", "not_read"},
		},
		{
			"burstgpt", "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,230,1317,Conversation log\n",
			Trace{Format: BurstGPT, Timed: true, Start: 5e9, Classes: []string{"ChatGPT, Conversation log"}, Requests: []workload.Request{
				{Input: 472, Output: 18}, {ID: 1, Arrival: 40e9, Input: 1087, Output: 230},
			}}, []string{"shifted", "no_content"},
		},
		{
			"llmservingsim", `{"input_toks": 27369, "output_toks": 1626, "arrival_time_ns": 101537000}`,
			Trace{Format: LLMServingSim, Timed: true, Start: 101537000, Requests: []workload.Request{{Input: 27369, Output: 1626}}}, []string{"shifted", "no_content"},
		},
		{
			"workload CSV", "Step,Input_Len,OSL\n0,1024,128\n12.25,7,8\n",
			Trace{Format: Workload, Timed: true, Requests: []workload.Request{{Input: 1024, Output: 128}, {ID: 1, Arrival: 12*ms + ms/4, Input: 7, Output: 8}}}, []string{"no_content"},
		},
		{
			"workload JSON", `[{"arrival_ms": 1, "isl": 10, "osl": 2}, {"arrival": 1, "prompt_len": 11, "output_len": 3}]`,
			Trace{Format: Workload, Timed: true, Start: ms, Requests: []workload.Request{{Input: 10, Output: 2}, {ID: 1, Input: 11, Output: 3}}}, []string{"shifted", "no_content"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := read(t, tt.text, Options{})
			if d := cmp.Diff(&tt.want, got, cmpopts.IgnoreFields(Trace{}, "Warnings")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if !equal(codes(got.Warnings), tt.codes) {
				t.Errorf("warnings %v, want %v", got.Warnings, tt.codes)
			}
			// Naming the format changes nothing.
			if d := cmp.Diff(got, read(t, tt.text, Options{Format: tt.want.Format})); d != "" {
				t.Errorf("named (-found out +named):\n%s", d)
			}
		})
	}
}

// Prompts with equal token ids share the blocks before the first difference.
func TestTokenIDs(t *testing.T) {
	ids := func(n int, last string) string {
		return "[" + strings.Repeat("7,", n-1) + last + "]"
	}
	line := func(n int, last string) string {
		return `{"input_toks":40,"output_toks":1,"arrival_time_ns":0,"output_tok_ids":[3],"input_tok_ids":` + ids(n, last) + "}\n"
	}
	x := read(t, line(40, "7")+line(40, "8")+line(40, "7"), Options{})
	a, b, c := x.Requests[0].Content, x.Requests[1].Content, x.Requests[2].Content
	if len(a) != 3 || a[0].Tokens != 16 || a[1].Tokens != 16 || a[2].Tokens != 8 {
		t.Fatalf("40 tokens are blocks %v", a)
	}
	if a[0] != b[0] || a[1] != b[1] || a[2] == b[2] || a[0].ID == a[1].ID {
		t.Errorf("prompts that differ in the last token: %v and %v", a, b)
	}
	if d := cmp.Diff(a, c); d != "" {
		t.Errorf("equal prompts differ: %s", d)
	}
	// 3 + 3 + 3 blocks, the second finds 2 and the third all 3.
	if s := x.Statistics(); s.Reuse.Blocks != 9 || s.Reuse.Hits != 5 || s.Reuse.Distinct != 4 {
		t.Errorf("reuse %+v, want 5 of 9 blocks", s.Reuse)
	}
}

func TestShareGPT(t *testing.T) {
	x := read(t, `[
{"id": "a", "conversations": [
  {"from": "system", "value": "Be brief"},
  {"from": "human", "value": "Say hello world to me"},
  {"from": "gpt", "value": "hello world"},
  {"from": "human", "value": "again"},
  {"from": "gpt", "value": "hello world."}, {"from": "human", "value": "bye"}]},
{"id": "b", "conversations": [{"from": "gpt", "value": "hi"}]},
{"messages": [{"role": "user", "content": "1234"}, {"role": "assistant", "content": "12345"}]}]`, Options{})
	// 8 bytes are 2 tokens, 21 are 6, 11 are 3, 5 are 2, 12 are 3.
	want := []struct{ in, out, session, turn, segments int }{{8, 3, 1, 0, 2}, {13, 3, 1, 1, 4}, {1, 2, 0, 0, 1}}
	if len(x.Requests) != len(want) {
		t.Fatalf("%d requests, want %d", len(x.Requests), len(want))
	}
	for i, w := range want {
		r := &x.Requests[i]
		if r.Input != w.in || r.Output != w.out || int(r.Session) != w.session || r.Turn != w.turn || len(r.Content) != w.segments {
			t.Errorf("request %d is %+v, want %+v", i, r, w)
		}
	}
	first, second := &x.Requests[0], &x.Requests[1]
	if first.Answer == 0 || second.Content[2].ID != first.Answer || second.Content[2].Tokens != 3 || second.Answer != 0 {
		t.Errorf("the second turn %v does not hold the first answer %d", second.Content, first.Answer)
	}
	if x.Timed || !equal(codes(x.Warnings), []string{"estimated_tokens", "no_answer", "no_answer", "no_arrivals"}) {
		t.Errorf("timed %v, warnings %v", x.Timed, x.Warnings)
	}
}

func TestVLLM(t *testing.T) {
	long := strings.Repeat("x", 4*textBlock)
	x := read(t, `{"prompt": "`+long+`ab", "output_tokens": 9}
{"prompt": "`+long+`cdefg", "completion": "12345"}`, Options{})
	a, b := &x.Requests[0], &x.Requests[1]
	if a.Input != 17 || a.Output != 9 || b.Input != 18 || b.Output != 2 {
		t.Errorf("lengths %d/%d and %d/%d, want 17/9 and 18/2", a.Input, a.Output, b.Input, b.Output)
	}
	if a.Content[0] != b.Content[0] || a.Content[1] == b.Content[1] {
		t.Errorf("prompts that share 16 tokens: %v and %v", a.Content, b.Content)
	}
}

func TestErrors(t *testing.T) {
	const (
		mooncake = `{"timestamp": 1000, "input_length": 10, "output_length": 5, "hash_ids": [1]}` + "\n"
		azure    = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1,1\n"
		own      = `{"schema":"infera.trace/v1"}` + "\n"
	)
	for _, tt := range []struct {
		name, text string
		format     Format
		want       string
	}{
		{"empty", "", "", "empty"},
		{"blank", " \n\n", "", "empty"},
		{"no rows", "TIMESTAMP,ContextTokens,GeneratedTokens\n", "", "holds no requests"},
		{"no elements", " [ ]", "", "holds no requests"},
		{"no lines", own, "", "holds no requests"},
		{"unknown", "hello\n", "", "none of the formats"},
		{"binary", "\x00\x01\x02", "", "none of the formats"},
		{"unknown format", mooncake, "vidur", `unknown format "vidur"`},
		{"no arrival", mooncake + "\n" + `{"input_length": 10, "output_length": 5}`, "", "line 3: no timestamp or arrival"},
		{"arrival is null", mooncake + `{"timestamp": null, "input_length": 10, "output_length": 5}`, "", "line 2: no timestamp"},
		{"empty arrival", "arrival,isl,osl\n,10,5\n", "", "line 2: no arrival"},
		{"no column", "arrival,isl\n1,10\n", "", "line 1: no column osl"},
		{"column twice", "arrival,time,isl,osl\n1,1,10,1\n", "", "line 1: arrival is given twice"},
		{"key twice", `{"timestamp": 0, "input_length": 10, "isl": 10, "output_length": 5}`, "", "line 1: input_length is given twice"},
		{"missing field", azure + "2023-11-16 18:17:04,1\n", "", "line 3: wrong number of fields"},
		{"zero", `{"timestamp": 0, "input_length": 0, "output_length": 5}`, "", "line 1: input_length 0: want 1 to 1000000000"},
		{"negative", azure + "2023-11-16 18:17:04,-1,1\n", "", "line 3: contexttokens -1: want 1"},
		{"not a number", azure + "2023-11-16 18:17:04,NaN,1\n", "", "line 3: contexttokens NaN: not a whole number"},
		{"fraction", mooncake + `{"timestamp": 0, "input_length": 10, "output_length": 5.5}`, "", "line 2: output_length 5.5: not a whole number"},
		{"a string", `{"timestamp": 0, "input_length": "10", "output_length": 5}`, "", `line 1: input_length "10": not a whole number`},
		{"too many", `{"timestamp": 0, "input_length": 1000000001, "output_length": 5}`, "", "line 1: input_length 1000000001: want 1 to"},
		{"far too many", `{"timestamp": 0, "input_length": 99999999999999999999, "output_length": 5}`, "", "line 1: input_length 9999"},
		{"negative time", `{"timestamp": -1, "input_length": 1, "output_length": 5}`, "", "line 1: timestamp -1: negative"},
		{"time of a date in another unit", `{"chat_id": 1, "timestamp": 1700000000000, "input_length": 1, "output_length": 5}`, "", "line 1: timestamp 1700000000000: in seconds, more than 100 years"},
		{"no date", azure + "yesterday,1,1\n", "", `line 3: timestamp "yesterday" is not a date`},
		{"a year", azure + "1970-01-01 00:00:00,1,1\n", "", "line 3: timestamp the year 1970"},
		{"a date among offsets", mooncake + `{"timestamp": 1700000000000, "input_length": 10, "output_length": 5}`, "", "line 2: timestamp 1700000000 s is a date"},
		{"an offset among dates", `{"timestamp": 1700000000000, "input_length": 10, "output_length": 5}` + "\n" + mooncake, "", "line 2: timestamp 1 s is no date"},
		{"another unit", mooncake + strings.ReplaceAll(mooncake, "1000", "60000") + strings.ReplaceAll(mooncake, "1000", "61"), "", "line 3: timestamp falls from 60 s to 0.061 s"},
		{"too few hashes", `{"timestamp": 0, "input_length": 513, "output_length": 5, "hash_ids": [1]}`, "", "line 1: 1 hash ids of 512 tokens for a prompt of 513 tokens, which has 2 blocks"},
		{"too many hashes", `{"timestamp": 0, "input_length": 512, "output_length": 5, "hash_ids": [1, 2]}`, "", "line 1: 2 hash ids"},
		{"a hash that is none", `{"timestamp": 0, "input_length": 512, "output_length": 5, "hash_ids": [1.5]}`, "", "line 1: hash_ids [1.5]: not a list of whole numbers"},
		{"hashes that are none", `{"timestamp": 0, "input_length": 512, "output_length": 5, "hash_ids": {"a": [1]}}`, "", "line 1: hash_ids"},
		{"cut line", mooncake + mooncake[:30], "", "line 2: the JSON is cut off"},
		{"not JSON", mooncake + "{]", "", "line 2: not JSON"},
		{"two on a line", mooncake + mooncake[:len(mooncake)-1] + mooncake, "", "line 2: not JSON: something follows"},
		{"not an object", mooncake + "17", "", "line 2: not a JSON object"},
		{"cut array", "[\n" + mooncake[:60], "", "cut off"},
		{"cut after an element", "[\n" + mooncake, "", "line 2: the JSON array is cut off"},
		{"a bad element", "[\n" + mooncake + ",\n\n" + `{"timestamp": 0, "input_length": 0, "output_length": 5}]`, "", "line 5: input_length 0"},
		{"after the array", "[" + mooncake + "]\n[]", "", "line 3: something follows"},
		{"too deep", "[" + strings.Repeat("[", 20_000), "mooncake", "line 1: "},
		{"failed request", "Timestamp,Model,Request tokens,Response tokens\n1,a,5,0\n", "", "line 2: response tokens 0: a request that failed"},
		{"too few token ids", `{"input_toks": 2, "output_toks": 1, "arrival_time_ns": 0, "input_tok_ids": [1]}`, "", "line 1: 1 input_tok_ids for 2 tokens"},
		{"no answer", `{"prompt": "x"}`, "", "line 1: no output_tokens or completion"},
		{"empty prompt", `{"prompt": "", "output_tokens": 1}`, "", "line 1: an empty prompt"},
		{"no text", `{"prompt": [1, 2], "output_tokens": 1}`, "", "line 1: prompt [1, 2]: not a string"},
		{"no messages", `[{"conversations": 5}]`, "", "line 1: conversations: not a list of messages"},
		{"nothing answered", `[{"conversations": []}]`, "", "holds no requests"},
		{"another version", `{"schema":"infera.trace/v2"}`, "", `line 1: schema "infera.trace/v2", want infera.trace/v1`},
		{"header key", `{"schema":"infera.trace/v1","model":"x"}`, "", `line 1: header: json: unknown field "model"`},
		{"own key", own + `{"id":0,"arrival_ns":0,"input":1,"output":1,"model":1}`, "", "line 2: unknown key model"},
		{"own rows missing", `{"schema":"infera.trace/v1","requests":2}` + "\n" + `{"id":0,"arrival_ns":0,"input":1,"output":1}`, "", "after 1 of 2 requests"},
		{"own content", own + `{"id":0,"arrival_ns":0,"input":5,"output":1,"content":[1,2]}`, "", "line 2: content: 3 tokens less than the prompt"},
		{"own content, long", own + `{"id":0,"arrival_ns":0,"input":5,"output":1,"content":[1,6]}`, "", "line 2: content: a segment of 6 tokens where 5"},
		{"own content, odd", own + `{"id":0,"arrival_ns":0,"input":5,"output":1,"content":[1,5,2]}`, "", "line 2: content: an identity without tokens"},
		{"own class", own + `{"id":0,"arrival_ns":0,"input":5,"output":1,"class":1}`, "", "line 2: class 1: want 0 to 0"},
		{"own identity", own + `{"id":0,"arrival_ns":0,"input":5,"output":1,"session":1.5}`, "", "line 2: session 1.5: not a whole number"},
		{"escape sequences", "\x1b[31mred\n", "", "begins with  [31mred,"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tt.text), Options{Format: tt.format})
			if !errors.Is(err, ErrTrace) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one of kind ErrTrace with %q", err, tt.want)
			}
		})
	}
}

func TestBlockSize(t *testing.T) {
	const text = `{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2, 3]}`
	x := read(t, text, Options{BlockSize: 256})
	if d := cmp.Diff(seg(1, 256, 2, 256, 3, 88), x.Requests[0].Content); x.BlockSize != 256 || d != "" {
		t.Errorf("blocks of %d (-want +got):\n%s", x.BlockSize, d)
	}
	if _, err := Read(strings.NewReader("arrival,isl,osl\n0,1,1\n"), Options{BlockSize: 16}); !errors.Is(err, ErrTrace) {
		t.Errorf("a block size without blocks: %v", err)
	}
}

// endless is a file without an end or a line.
type endless struct{ start string }

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.start)
	e.start = e.start[n:]
	for i := n; i < len(p); i++ {
		p[i] = '1'
	}
	return len(p), nil
}

func TestEndless(t *testing.T) {
	for _, start := range []string{`{"timestamp": 1`, `[{"timestamp": 1`, "arrival,isl,osl\n1", `{"schema":"infera.trace/v1","requests":1`} {
		if _, err := Read(&endless{start}, Options{}); !errors.Is(err, ErrTrace) {
			t.Errorf("%q without an end: %v", start, err)
		}
	}
}

// broken is a file that fails after its text.
type broken struct{ strings.Reader }

func (b *broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil {
		err = errDisk
	}
	return n, err
}

var errDisk = errors.New("disk")

func TestReadFails(t *testing.T) {
	row := `{"timestamp": 1000, "input_length": 10, "output_length": 5, "hash_ids": [1]}`
	long := strings.Repeat(row+"\n", 20_000) // more than is peeked
	for _, text := range []string{"", long, "[" + strings.Repeat(row+",", 20_000), "arrival,isl,osl\n" + strings.Repeat("1,1,1\n", 200_000)} {
		if _, err := Read(&broken{*strings.NewReader(text)}, Options{}); !errors.Is(err, errDisk) || errors.Is(err, ErrTrace) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func TestTimestamp(t *testing.T) {
	for _, tt := range []struct {
		text string
		unit unit
		want units.Time
		ok   bool
	}{
		{"0", seconds, 0, true},
		{"61.114", seconds, 61_114_000_000, true},
		{"1.5e3", milliseconds, 1_500_000_000, true},
		{"15E-1", milliseconds, 1_500_000, true},
		{"0.1", nanoseconds, 0, true},
		{"0.5", nanoseconds, 1, true},
		{"1700000000.123456789", seconds, 1_700_000_000_123_456_789, true},
		{"0.12345678901234567890123", seconds, 123_456_789, true},
		{"1e400", seconds, 0, false},
		{"0e400", seconds, 0, true},
		{"1e-400", seconds, 0, true},
		{"99999999999999999999999999", nanoseconds, 0, false},
		{"1e", seconds, 0, false}, {"1e+", seconds, 0, false}, {"1x", seconds, 0, false}, {".", seconds, 0, false}, {"", seconds, 0, false},
		{"1.2.3", seconds, 0, false}, {"NaN", seconds, 0, false}, {"Inf", seconds, 0, false}, {"-0", seconds, 0, false}, {"0x10", seconds, 0, false},
	} {
		got, err := timestamp([]byte(tt.text), tt.unit)
		if (err == nil) != tt.ok || got != tt.want {
			t.Errorf("timestamp(%q, %s) = %d, %v, want %d", tt.text, tt.unit, got, err, tt.want)
		}
	}
	for _, tt := range []struct {
		at   units.Time
		unit unit
		want string
	}{{0, seconds, "0"}, {46_926_808, milliseconds, "46.926808"}, {1_500_000_000, seconds, "1.5"}, {7, seconds, "0.000000007"}, {7, nanoseconds, "7"}} {
		if got := decimal(tt.at, tt.unit); got != tt.want {
			t.Errorf("decimal(%d, %s) = %s, want %s", tt.at, tt.unit, got, tt.want)
		}
	}
}
