package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// When the line appears, and how long it stays as it is.
const (
	appearsAfter = time.Second
	drawnEvery   = 125 * time.Millisecond
)

// Line is the line. Any goroutine may call its methods, also on a nil Line, which shows nothing.
type Line struct {
	out   io.Writer
	width func() int
	now   func() time.Time

	mu      sync.Mutex
	begun   time.Time // of all the work; zero before
	started time.Time // of what the label names
	drawn   time.Time
	label   string
	shown   bool
	hidden  bool
}

// NewProgressLine returns a line that is written to out, at most width() columns wide.
func NewProgressLine(out io.Writer, width func() int, now func() time.Time) *Line {
	return &Line{out: out, width: width, now: now}
}

// newTerminalLine returns a line on a terminal. It returns nil if the file is no terminal, with TERM=dumb, and under CI. lookup is
// os.LookupEnv except in tests.
func newTerminalLine(file *os.File, lookup func(string) (string, bool)) *Line {
	if term, _ := lookup("TERM"); term == "" || term == "dumb" {
		return nil
	}
	if ci, _ := lookup("CI"); ci != "" && ci != "false" && ci != "0" {
		return nil
	}
	if _, ok := terminalColumns(file); !ok {
		return nil
	}
	return NewProgressLine(file, func() int { n, _ := terminalColumns(file); return n }, time.Now)
}

// usualWidth is the width of terminals that do not know their own, such as serial lines and some in containers.
const usualWidth = 80

// terminalColumns returns the width of a terminal, false if the file is none.
func terminalColumns(file *os.File) (int, bool) {
	s, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	switch {
	case err != nil:
		return 0, false
	case s.Col == 0:
		return usualWidth, true
	}
	return int(s.Col), true
}

// ShowProgress shows that done of total bytes have been processed. It is cheap; a call every few milliseconds is enough. A new label
// starts a new estimate of the time left.
func (l *Line) ShowProgress(label string, done, total int64) {
	share := 1.0
	if done = max(0, min(done, total)); total > 0 {
		share = float64(done) / float64(total)
	}
	l.showWork(label, work{share: share, amount: units.Format(uint64(done)) + " of " + units.Format(uint64(max(0, total))) + ", "})
}

// ShowShare is Set for work that is not counted in bytes. share is 0 to 1.
func (l *Line) ShowShare(label string, share float64) {
	l.showWork(label, work{share: max(0, min(share, 1))})
}

// ShowTimeSpent shows that work has taken spent of the total that it may take; total 0: unlimited.
func (l *Line) ShowTimeSpent(label string, spent, total time.Duration) {
	if total <= 0 {
		l.showWork(label, work{endless: true})
		return
	}
	spent = max(0, min(spent, total))
	l.showWork(label, work{share: float64(spent) / float64(total), left: (total - spent).Round(time.Second).String() + " left"})
}

// work is the progress of some work.
type work struct {
	share        float64 // 0 to 1
	amount, left string  // in words; an empty left is estimated
	endless      bool    // none of these is known
}

func (l *Line) showWork(label string, w work) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.begun.IsZero() {
		l.begun = now
	}
	if l.label != label || l.started.IsZero() {
		l.label, l.started = label, now
	}
	if l.hidden || now.Sub(l.begun) < appearsAfter || l.shown && now.Sub(l.drawn) < drawnEvery {
		return
	}
	l.drawn, l.shown = now, true
	// A line that cannot be written is not worth an error.
	_, _ = io.WriteString(l.out, "\r"+l.progressText(now, w)+"\x1b[K")
}

// Clear removes the line before anything else is written. Set shows it again.
func (l *Line) Clear() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clearIfShown()
}

func (l *Line) clearIfShown() {
	if l.shown {
		_, _ = io.WriteString(l.out, "\r\x1b[K")
	}
	l.shown = false
}

// HideForGood removes the line for good, because something else is written to the terminal.
func (l *Line) HideForGood() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clearIfShown()
	l.hidden = true
}

// barWidth is the width of the bar, if there is room for one.
const barWidth = 20

// progressText returns the line. It is one column narrower than the terminal, so that it never wraps.
func (l *Line) progressText(now time.Time, w work) string {
	percent := fmt.Sprintf("%3d %%", int(100*w.share))
	filled := int(w.share * barWidth)
	bar := "[" + strings.Repeat("=", filled) + strings.Repeat(" ", barWidth-filled) + "]"
	label, left, short := units.Clean(l.label)+"  ", w.left, percent+"  "+bar
	if left == "" {
		left = l.timeLeftText(now, w.share)
	}
	room := max(0, l.width()-1)
	if label := strings.TrimRight(label, " "); w.endless && ansi.StringWidth(label) <= room {
		return label
	}
	for _, line := range []string{
		label + short + "  " + w.amount + left, label + short + "  " + left, label + short, short, percent,
	} {
		line = strings.TrimRight(line, " ,")
		if ansi.StringWidth(line) <= room {
			return line
		}
	}
	return percent[:min(room, len(percent))]
}

// timeLeftText estimates the time left, "" if it is too early for that.
func (l *Line) timeLeftText(now time.Time, share float64) string {
	spent := now.Sub(l.started)
	if share < 0.001 || spent < drawnEvery {
		return ""
	}
	left := time.Duration(float64(spent) * (1 - share) / share)
	return left.Round(time.Second).String() + " left"
}
