package console

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"pgregory.net/rapid"
)

type handClock struct{ now time.Time }

func (c *handClock) Now() time.Time { return c.now }

func newTest(width int) (*Line, *bytes.Buffer, *handClock) {
	var out bytes.Buffer
	clock := &handClock{time.Unix(100, 0)}
	return NewProgressLine(&out, func() int { return width }, clock.Now), &out, clock
}

// What is not counted in bytes is shown by its share alone, which stays within bounds.
func TestShareStaysWithinBounds(t *testing.T) {
	l, out, clock := newTest(80)
	l.ShowShare("measuring", 0)
	clock.now = clock.now.Add(time.Second)
	l.ShowShare("measuring", 0.5)
	if want := "\rmeasuring   50 %  [==========          ]  1s left\x1b[K"; out.String() != want {
		t.Errorf("wrote %q, want %q", out, want)
	}
	for share, want := range map[float64]string{-1: "  0 %", 7: "100 %"} {
		out.Reset()
		clock.now = clock.now.Add(time.Second)
		if l.ShowShare("measuring", share); !strings.Contains(out.String(), want) {
			t.Errorf("share %v: wrote %q", share, out)
		}
	}
}

func TestShortWorkShowsNothing(t *testing.T) {
	l, out, clock := newTest(80)
	for i := range int64(10) {
		l.ShowProgress("reading", i, 10)
		clock.now = clock.now.Add(99 * time.Millisecond)
	}
	l.Clear()
	if out.Len() != 0 {
		t.Errorf("wrote %q", out)
	}
}

func TestLongWorkShowsALine(t *testing.T) {
	l, out, clock := newTest(80)
	l.ShowProgress("reading x.gmt", 0, 4<<20)
	clock.now = clock.now.Add(time.Second)
	l.ShowProgress("reading x.gmt", 1<<20, 4<<20)
	want := "\rreading x.gmt   25 %  [=====               ]  1.00M of 4.00M, 3s left\x1b[K"
	if out.String() != want {
		t.Errorf("wrote %q, want %q", out, want)
	}
	out.Reset()
	for range 100 { // no more than ten a second
		clock.now = clock.now.Add(10 * time.Millisecond)
		l.ShowProgress("reading x.gmt", 2<<20, 4<<20)
	}
	if n := strings.Count(out.String(), "\r"); n < 5 || n > 10 {
		t.Errorf("%d lines in a second", n)
	}
	out.Reset()
	l.Clear()
	l.Clear()
	if out.String() != "\r\x1b[K" {
		t.Errorf("cleared by %q", out)
	}
	out.Reset()
	l.ShowProgress("pass 2", 1<<20, 4<<20)
	if got := out.String(); !strings.Contains(got, "pass 2") || strings.Contains(got, "left") {
		t.Errorf("the next pass begins with %q", got)
	}
}

// The widest of our lines fits the usual terminal: it names the pass.
func TestTheLineNamesThePass(t *testing.T) {
	l, out, clock := newTest(80)
	l.ShowProgress("reading long.gmt, pass 2", 0, 1<<30)
	clock.now = clock.now.Add(time.Second)
	l.ShowProgress("reading long.gmt, pass 2", 600<<20, 1<<30)
	if !strings.Contains(out.String(), "pass 2   58 %  [===========         ]  1s left") {
		t.Errorf("wrote %q", out)
	}
}

func TestNoLine(t *testing.T) {
	var l *Line
	l.ShowProgress("x", 1, 2)
	l.Clear()
}

// No line is wider than the terminal, or tells it anything but text.
func TestLinesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(0, 200).Draw(t, "width")
		l, out, clock := newTest(width)
		label := rapid.String().Draw(t, "label")
		l.ShowProgress(label, 0, 1)
		clock.now = clock.now.Add(time.Duration(rapid.Int64Range(1e9, 1e15).Draw(t, "ns")))
		l.ShowProgress(label, rapid.Int64().Draw(t, "done"), rapid.Int64Min(0).Draw(t, "total"))
		line := strings.TrimSuffix(strings.TrimPrefix(out.String(), "\r"), "\x1b[K")
		if n := ansi.StringWidth(line); n > max(0, width-1) || strings.ContainsAny(line, "\r\n\x1b\u009b") {
			t.Fatalf("%d columns at %d: %q", n, width, line)
		}
	})
}

func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func TestOnlyOnTerminals(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close() //nolint:errcheck // a pty
	defer slave.Close()  //nolint:errcheck // a pty
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // a pipe
	defer w.Close() //nolint:errcheck // a pipe
	for _, test := range []struct {
		name string
		file *os.File
		env  []string
		want bool
	}{
		{"terminal", slave, []string{"TERM", "xterm"}, true},
		{"terminal without CI", slave, []string{"TERM", "xterm", "CI", "false"}, true},
		{"pipe", w, []string{"TERM", "xterm"}, false},
		{"CI", slave, []string{"TERM", "xterm", "CI", "true"}, false},
		{"dumb", slave, []string{"TERM", "dumb"}, false},
		{"no TERM", slave, nil, false},
	} {
		if l := newTerminalLine(test.file, environment(test.env...)); (l != nil) != test.want {
			t.Errorf("%s: a line %v, want %v", test.name, l != nil, test.want)
		}
	}
}

// A terminal that does not know its size gets a line, too.
func TestTerminalWithoutSize(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close() //nolint:errcheck // a pty
	defer slave.Close()  //nolint:errcheck // a pty
	if n, ok := terminalColumns(slave); n != usualWidth || !ok {
		t.Errorf("%d columns, %v", n, ok)
	}
}

func TestTheLineReachesTheTerminal(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close() //nolint:errcheck // a pty
	if err := pty.Setsize(slave, &pty.Winsize{Cols: 40, Rows: 5}); err != nil {
		t.Fatal(err)
	}
	l := newTerminalLine(slave, environment("TERM", "xterm"))
	clock := &handClock{time.Unix(100, 0)}
	l.now = clock.Now
	l.ShowProgress("reading", 0, 100)
	clock.now = clock.now.Add(2 * time.Second)
	l.ShowProgress("reading", 50, 100)
	l.Clear()
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(master) // ends with EIO
	if want := "\rreading   50 %  [==========          ]\x1b[K\r\x1b[K"; string(got) != want {
		t.Errorf("the terminal got %q, want %q", got, want)
	}
}

// Work that is bounded by time shows the time, not bytes.
func TestTimeThatIsSpent(t *testing.T) {
	l, out, clock := newTest(80)
	l.ShowTimeSpent("12 B", 0, 4*time.Second)
	clock.now = clock.now.Add(time.Second)
	l.ShowTimeSpent("12 B", time.Second, 4*time.Second)
	if want := "\r12 B   25 %  [=====               ]  3s left\x1b[K"; out.String() != want {
		t.Errorf("wrote %q, want %q", out, want)
	}
	out.Reset()
	clock.now = clock.now.Add(time.Second)
	l.ShowTimeSpent("12 B", 2*time.Second, 0)
	if want := "\r12 B\x1b[K"; out.String() != want {
		t.Errorf("without a limit: wrote %q, want %q", out, want)
	}
}
