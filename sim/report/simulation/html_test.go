package simulation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"infera/internal/golden"
	"infera/sim/cluster"
)

var browser = flag.String("browser", "", "a Chromium binary to show the HTML report in, such as chromium")

func html(t *testing.T, r *cluster.Result) []byte {
	t.Helper()
	return golden.Render(t, func(w io.Writer) error { return HTML(w, r) })
}

var (
	tag     = regexp.MustCompile(`(?s)<[a-zA-Z][^>]*>`)
	loading = regexp.MustCompile(`(?i)\s(src|srcset|href|action|data|poster)\s*=|^<(iframe|object|embed|link|base)\b`)
	payload = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)
)

// checkPage says whether a page loads anything, holds its data and escapes its
// texts.
func checkPage(t *testing.T, data []byte, r *cluster.Result) {
	t.Helper()
	shell := data
	for _, script := range []string{chartScript, pageScript} {
		without := bytes.Replace(shell, []byte(script), nil, 1)
		if len(without) == len(shell) {
			t.Error("a script is not in the page as it is")
		}
		shell = without
	}
	for _, x := range tag.FindAll(shell, -1) {
		if s := string(x); loading.MatchString(s) && s != `<link rel="icon" href="data:,">` {
			t.Errorf("the page loads something: %s", s)
		}
	}
	if s := chartCSS + pageCSS; strings.Contains(s, "@import") || strings.Contains(s, "url(") {
		t.Error("a style sheet loads something")
	}
	m := payload.FindSubmatch(data)
	if m == nil {
		t.Fatal("no data in the page")
	}
	want, err := json.Marshal(JSON(r))
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := json.Unmarshal(m[1], &a); err != nil {
		t.Fatalf("data: %v", err)
	}
	if err := json.Unmarshal(want, &b); err != nil {
		t.Fatal(err)
	}
	if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y {
		t.Errorf("data in the page:\n%s\nwant\n%s", x, y)
	}
	if bytes.Contains(shell, []byte("<b>'")) {
		t.Error("a text is not escaped")
	}
	if n := bytes.Count(data, []byte("<script")); n != 3 {
		t.Errorf("%d scripts, want 3", n)
	}
}

func TestHTML(t *testing.T) {
	for name, r := range results() {
		t.Run(name, func(t *testing.T) { checkPage(t, html(t, r), r) })
	}
	full := string(html(t, sample()))
	for _, want := range []string{
		"<title>Simulation of gpt_oss_120B</title>", `id="sweep-latency"`, `id="time-requests"`, `id="histogram"`, `id="instances"`, "Request 42 on instance 3",
		"assumed &amp; not verified", "interactive",
	} {
		if !strings.Contains(full, want) {
			t.Errorf("no %s in the page", want)
		}
	}
	if strings.Contains(full, "operating point") {
		t.Error("a sound result is called saturated")
	}
	if !strings.Contains(string(html(t, saturated())), `<strong>Saturated: not an operating point.</strong>`) {
		t.Error("saturation is not said")
	}
}

// The vendored files are those that their README names.
func TestChartLibraryChecksums(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("uplot", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"uPlot.iife.min.js": chartScript, "uPlot.min.css": chartCSS} {
		sum := sha256.Sum256([]byte(data))
		if line := fmt.Sprintf("| `%s` | `dist/%s` | `%s` |", name, name, hex.EncodeToString(sum[:])); !strings.Contains(string(text), line) {
			t.Errorf("uplot/README.md has no line %s", line)
		}
	}
	if strings.Contains(chartScript, "</script") || strings.Contains(pageScript, "</script") || strings.Contains(chartCSS+pageCSS, "</style") {
		t.Error("an embedded file ends its own element")
	}
}

// exercise uses the page as a reader would and reports what went wrong.
const exercise = `<script>
for (const s of document.querySelectorAll("select")) for (const o of s.options) { s.value = o.value; s.dispatchEvent(new Event("change")); }
for (const u of document.querySelectorAll(".u-over")) u.dispatchEvent(new MouseEvent("mousemove", { clientX: 80, clientY: 60, bubbles: true }));
for (const p of document.querySelectorAll(".plot")) if (p.querySelectorAll("canvas").length !== 1) console.error("no chart in " + p.id);
if (document.documentElement.scrollWidth > innerWidth) console.error("wider than the window: " + document.documentElement.scrollWidth + " of " + innerWidth);
document.body.dataset.exercised = "yes";
</script>`

// With -browser chromium, every chart is drawn without a message on the
// browser's console.
func TestBrowser(t *testing.T) {
	if *browser == "" {
		t.Skip("-browser names no Chromium")
	}
	name, err := exec.LookPath(*browser)
	if err != nil {
		t.Fatal(err)
	}
	for kind, r := range results() {
		path := filepath.Join(t.TempDir(), kind+".html")
		page := bytes.Replace(html(t, r), []byte("</body>"), []byte(exercise+"</body>"), 1)
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{500, 1600} { // Chromium's windows have at least 500 columns
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, name, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0", "--virtual-time-budget=3000",
				fmt.Sprintf("--window-size=%d,900", width), "--user-data-dir="+t.TempDir(), "--dump-dom", "file://"+path)
			var dom, messages bytes.Buffer
			cmd.Stdout, cmd.Stderr = &dom, &messages
			if err := cmd.Run(); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, messages.String())
			}
			for _, l := range strings.Split(messages.String(), "\n") {
				if strings.Contains(l, "CONSOLE") {
					t.Errorf("%s at %d: %s", kind, width, l)
				}
			}
			if !strings.Contains(dom.String(), `data-exercised="yes"`) {
				t.Errorf("%s at %d: the page was not shown", kind, width)
			}
		}
	}
}
