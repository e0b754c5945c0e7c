package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// Progress is how far a long piece of work has come. Both methods may be
// called from several goroutines.
type Progress interface {
	Add(n int) // n more units are done
	Done()     // the work has ended; the bar is removed
}

// Progress starts a bar on standard error for total units of work (0: not
// known). It draws only on a terminal: in a pipe nothing is written.
func (r *Run) Progress(label string, total int) Progress {
	if !r.State.StderrTTY {
		return silent{}
	}
	b := &bar{w: r.State.Stderr, now: r.State.Now, width: min(r.State.Width, PipeWidth), label: label, total: total, start: r.State.Now()}
	b.draw(b.start)
	return b
}

type silent struct{}

func (silent) Add(int) {}
func (silent) Done()   {}

// barInterval is the least time between two drawings.
const barInterval = 100 * time.Millisecond

type bar struct {
	mu          sync.Mutex
	w           io.Writer
	now         func() time.Time
	width       int
	label       string
	done, total int
	start, last time.Time
	over        bool
}

func (b *bar) Add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done += n
	if now := b.now(); !b.over && now.Sub(b.last) >= barInterval {
		b.draw(now)
	}
}

func (b *bar) Done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.over = true
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

// draw writes one line over the last one: label, bar, count, time left.
func (b *bar) draw(now time.Time) {
	b.last = now
	text := fmt.Sprintf("%s %d", b.label, b.done)
	if b.total > 0 {
		share := min(float64(b.done)/float64(b.total), 1)
		tail := fmt.Sprintf(" %3.0f%% %d/%d%s", share*100, b.done, b.total, left(now.Sub(b.start), share))
		text = b.label + tail
		if room := b.width - 1 - len(tail) - twwidth.Width(b.label) - 3; room >= 10 {
			full := int(share * float64(room))
			text = b.label + " [" + strings.Repeat("=", full) + strings.Repeat(" ", room-full) + "]" + tail
		}
	}
	fmt.Fprint(b.w, "\r\x1b[K"+twwidth.Truncate(text, b.width-1))
}

// left estimates the time to go once enough is done to tell.
func left(spent time.Duration, share float64) string {
	if share < 0.01 || share >= 1 || spent < time.Second {
		return ""
	}
	return " " + (time.Duration(float64(spent) * (1 - share) / share)).Round(time.Second).String()
}
