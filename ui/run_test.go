package ui

import (
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// terminal is a pty with everything that was written to it. It says that it can show a frame at once (mode 2026).
type terminal struct {
	master, slave *os.File
	before        unix.Termios
	done          chan struct{}
	answered      chan struct{} // closed when it has said so
	written       bytes.Buffer  // valid after close
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(slave, &pty.Winsize{Cols: 120, Rows: 36}); err != nil {
		t.Fatal(err)
	}
	modes, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{master: master, slave: slave, before: *modes, done: make(chan struct{}), answered: make(chan struct{})}
	go func() {
		defer close(term.done)
		for piece := make([]byte, 64<<10); ; {
			n, err := master.Read(piece)
			if err != nil { // EIO
				return
			}
			term.written.Write(piece[:n])
			if bytes.Contains(piece[:n], []byte("\x1b[?2026$p")) {
				_, _ = io.WriteString(master, "\x1b[?2026;2$y")
				close(term.answered)
			}
		}
	}()
	return term
}

// check closes the terminal and looks whether it was left as it was found.
func (term *terminal) check(t *testing.T) string {
	t.Helper()
	after, err := unix.IoctlGetTermios(int(term.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if *after != term.before {
		t.Errorf("terminal modes %+v, before %+v", *after, term.before)
	}
	_ = term.slave.Close()
	<-term.done
	_ = term.master.Close()
	out := term.written.String()
	for _, pair := range [][2]string{{"\x1b[?1049h", "\x1b[?1049l"}, {"\x1b[?25l", "\x1b[?25h"}, {"\x1b[?2004h", "\x1b[?2004l"}} {
		if strings.LastIndex(out, pair[0]) >= strings.LastIndex(out, pair[1]) {
			t.Errorf("%q is not undone", pair[0])
		}
	}
	if strings.Contains(out, "\x1b]11") {
		t.Error("the terminal was asked for its background")
	}
	if n, m := strings.Count(out, "\x1b[?2026h"), strings.Count(out, "\x1b[?2026l"); n != m {
		t.Errorf("%d frames begin, %d end", n, m)
	}
	return out
}

func runOn(ctx context.Context, term *terminal, source func() *stats.Snapshot) (Result, error) {
	c := &calls{}
	o := c.options()
	o.Colors = colorprofile.TrueColor
	o.Input, o.Terminal, o.Refresh = term.slave, term.slave, time.Millisecond
	o.Source = source
	return Run(ctx, o)
}

func TestRunRestoresTheTerminal(t *testing.T) {
	for _, test := range []struct {
		name   string
		source func(term *terminal, stop func()) func() *stats.Snapshot
		result Result
		err    string
	}{
		{"keys", func(term *terminal, _ func()) func() *stats.Snapshot {
			var once sync.Once // the first look comes when the terminal is set up
			return func() *stats.Snapshot {
				once.Do(func() {
					<-term.answered
					_, _ = io.WriteString(term.master, "jqd")
				})
				return sampleSnapshot()
			}
		}, Detached, ""},
		{"context", func(_ *terminal, stop func()) func() *stats.Snapshot {
			return func() *stats.Snapshot { stop(); return nil }
		}, Quit, "context canceled"},
		{"panic in a source", func(*terminal, func()) func() *stats.Snapshot {
			return func() *stats.Snapshot { panic("broken source") }
		}, Quit, "broken source"},
	} {
		t.Run(test.name, func(t *testing.T) {
			term := newTerminal(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			result, err := runOn(ctx, term, test.source(term, stop))
			if result != test.result {
				t.Errorf("result %v, want %v", result, test.result)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if out := term.check(t); test.result == Detached && !strings.Contains(out, "\x1b[?2026h") {
				t.Error("frames do not come in one piece")
			}
		})
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	g := &guarded{inner: newDashboard(Options{}, newTrueColorTheme(Dark, Braille))}
	g.inner.w, g.inner.h, g.inner.dirty = 80, 24, true
	g.inner.canvas = &canvas{w: 80, h: 24}                      // too small a grid: drawing panics
	if got := g.View().Content; got != "" || g.failure == nil { // the painter is not asked
		t.Fatalf("view %q, failure %v", got, g.failure)
	}
	if _, cmd := g.Update(nil); !quits(cmd) {
		t.Error("a broken dashboard goes on")
	}
}

func TestNoTerminal(t *testing.T) {
	if _, err := Run(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "--headless") {
		t.Errorf("error %v", err)
	}
}

// colorful finds a sequence with a colour.
var colorful = regexp.MustCompile("\x1b\\[(1;)?[349]")

func TestNoColor(t *testing.T) {
	d := newDashboard(Options{}, newTrueColorTheme(Mono, Braille))
	d.resizeTo(120, 36)
	d.Update(frameMsg{now: testStart, snap: sampleSnapshot()})
	if got := screen(d); colorful.MatchString(frameText(d)) || !strings.Contains(got, "▸ blur.c:88") {
		t.Errorf("frame without colours:\n%s", got)
	}
}

// TestASCIIKeys: without arrows, keys have names, which can be clicked; no sign is missing.
func TestASCIIKeys(t *testing.T) {
	d := newTest(Options{Charts: ASCII}, 140, 60, sampleSnapshot())
	shows(t, d, "left right time  < > event")
	clickOn(t, d, "left right")
	if d.frozen == nil {
		t.Error("a click on a key's name does nothing")
	}
	press(d, "?", "?")
	shows(t, d, "* a message, # an end, M a mark")
}

// TestWindowTitle: the terminal's window names the program, without what a terminal would obey.
func TestWindowTitle(t *testing.T) {
	s := sampleSnapshot()
	d := newTest((&calls{}).options(), 120, 36, s)
	if got := d.View(); got.WindowTitle != "gpumemtop blur 4096 --iters 500" || got.ProgressBar != nil {
		t.Errorf("title %q, progress %v", got.WindowTitle, got.ProgressBar)
	}
	s.Arguments = []string{"\x1b]0;x\a\n" + strings.Repeat("y", 200)}
	if got := d.View().WindowTitle; got != "gpumemtop blur "+strings.Repeat("y", 65) {
		t.Errorf("title %q", got)
	}
	s.Arguments = []string{"👩\u200d👧"} // tmux, which gives it 2 columns, would write its line of titles wider than its terminal
	if got := d.View().WindowTitle; got != "gpumemtop blur 👩 👧" {
		t.Errorf("title %q", got)
	}
}

func BenchmarkView(b *testing.B) {
	for _, size := range [][2]int{{80, 24}, {120, 36}, {200, 60}} {
		b.Run(itoa(size[0])+"x"+itoa(size[1]), func(b *testing.B) {
			d := newTest((&calls{}).options(), size[0], size[1], sampleSnapshot())
			b.ReportAllocs()
			for b.Loop() {
				d.dirty = true
				_ = frameText(d)
			}
		})
	}
}

// BenchmarkFrame is a whole tick with a new snapshot of a thousand tags.
func BenchmarkFrame(b *testing.B) {
	snaps := [2]*stats.Snapshot{sampleSnapshot(), sampleSnapshot()}
	for _, s := range snaps {
		for i := range 1000 {
			s.Tags = append(s.Tags, stats.Tag{ID: uint32(1000 + i), Name: "x.c:" + itoa(i), InUse: uint64(i * 7919 % 1000)})
		}
	}
	d := newTest((&calls{}).options(), 120, 36, snaps[0])
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Update(frameMsg{now: testStart, snap: snaps[i%2], next: 4})
		_ = frameText(d)
	}
}

// TestThemesHaveTheSameText: each looks different, has the same text, and keeps a sign for the cursor; mono has no colours.
func TestThemesHaveTheSameText(t *testing.T) {
	seen := map[string]Theme{}
	for _, name := range []Theme{Dark, Light, HighContrast, HighContrastLight, AnyBackground, Mono} {
		d := newTest(Options{Theme: name}, 120, 36, sampleSnapshot())
		frame := frameText(d)
		if other, known := seen[frame]; known {
			t.Errorf("themes %d and %d look alike", name, other)
		}
		seen[frame] = name
		if got := colorful.MatchString(frame); got != (name != Mono) {
			t.Errorf("theme %d: colours %v", name, got)
		}
		shows(t, d, "▸ blur.c:88")
	}
}

// TestSlowTerminal: where a terminal takes nothing for a while, frames are not kept for it: what is written before a key's effect
// is less than what came meanwhile.
func TestSlowTerminal(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(slave, &pty.Winsize{Cols: 200, Rows: 60}); err != nil {
		t.Fatal(err)
	}
	frame := uint64(0)
	source := func() *stats.Snapshot { // each frame differs in all rows
		frame++
		s := sampleSnapshot()
		s.Time += frame * 1e6
		for i := range s.Tags {
			s.Tags[i].Name = strings.Repeat(string(rune('a'+frame%26)), 60) + itoa(i)
		}
		return s
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	over := make(chan struct{})
	go func() {
		_, _ = runOn(ctx, &terminal{slave: slave}, source)
		close(over)
	}()
	time.Sleep(time.Second / 2) // the terminal takes nothing
	if _, err := io.WriteString(master, "?"); err != nil {
		t.Fatal(err)
	}
	var seen []byte
	for piece := make([]byte, 4096); !bytes.Contains(seen, []byte("scroll")); {
		n, err := master.Read(piece)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, piece[:n]...)
	}
	if len(seen) > 200<<10 {
		t.Errorf("%d bytes came before the key's effect", len(seen))
	}
	go func() { _, _ = io.Copy(io.Discard, master) }()
	stop()
	<-over
	_, _ = slave.Close(), master.Close()
}
