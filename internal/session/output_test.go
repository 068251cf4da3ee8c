package session

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

func TestOutputLosesNothing(t *testing.T) {
	racetest.Slow(t)
	rapid.Check(t, func(t *rapid.T) {
		var got [2]bytes.Buffer
		var want [2]bytes.Buffer
		o := newOutput(&got[0], &got[1])
		chunks := rapid.IntRange(0, 40).Draw(t, "chunks")
		revealAt := rapid.IntRange(0, 40).Draw(t, "reveal")
		for i := range chunks {
			if i == revealAt {
				if err := o.endCapture(true); err != nil {
					t.Fatal(err)
				}
			}
			stream := rapid.IntRange(0, 1).Draw(t, "stream")
			size := rapid.SampledFrom([]int{1, 10, 5000, 300_000}).Draw(t, "size")
			chunk := bytes.Repeat([]byte{byte('a' + i%26)}, size)
			want[stream].Write(chunk)
			o.takeOutputChunk(stream, chunk)
		}
		if err := o.endCapture(true); err != nil {
			t.Fatal(err)
		}
		for stream := range got {
			if !bytes.Equal(got[stream].Bytes(), want[stream].Bytes()) {
				t.Fatalf("stream %d: %s", stream, difference(got[stream].String(), want[stream].String()))
			}
		}
	})
}

func TestOutputKeepsOrderAcrossStreams(t *testing.T) {
	racetest.Slow(t)
	var both bytes.Buffer
	o := newOutput(&both, &both)
	want := ""
	for i := range 3000 { // beyond what is kept in memory
		text := fmt.Sprintf("%d %s\n", i, strings.Repeat("x", 1000))
		o.takeOutputChunk(i%2, []byte(text))
		want += text
	}
	if o.spool.file == nil {
		t.Error("3 MB were kept in memory")
	}
	if err := o.endCapture(true); err != nil || both.String() != want {
		t.Errorf("%v; %s", err, difference(both.String(), want))
	}
}

func TestOutputWithoutDiskIsKeptInMemory(t *testing.T) {
	t.Setenv("TMPDIR", "/no/such/folder")
	var both bytes.Buffer
	o := newOutput(&both, &both)
	for range 3 {
		o.takeOutputChunk(stdout, bytes.Repeat([]byte("x"), 700_000))
	}
	if err := o.endCapture(true); err != nil || both.Len() != 2_100_000 {
		t.Errorf("%d bytes, %v; want 2100000", both.Len(), err)
	}
}

func TestOutputOneStreamClosed(t *testing.T) {
	r, w := io.Pipe()
	_ = r.Close()
	var errors bytes.Buffer
	o := newOutput(w, &errors)
	o.takeOutputChunk(stdout, []byte("lost\n"))
	o.takeOutputChunk(stderr, []byte("kept\n"))
	if err := o.endCapture(true); err == nil || errors.String() != "kept\n" {
		t.Errorf("stderr got %q, error %v", errors.String(), err)
	}
}

func TestOutputLines(t *testing.T) {
	o := newOutput(io.Discard, io.Discard)
	next := uint64(0)
	look := func(want ...view.OutputLine) {
		t.Helper()
		var lines []view.OutputLine
		if lines, next = o.linesFrom(next); !slices.Equal(lines, want) {
			t.Errorf("lines %v, want %v", lines, want)
		}
	}
	open := func(text string) view.OutputLine { return view.OutputLine{Text: text, Open: true} }
	o.takeOutputChunk(stdout, []byte("one\ntw"))
	o.takeOutputChunk(stderr, []byte("bad\n"))
	look(view.OutputLine{Text: "one"}, view.OutputLine{Text: "bad", Stderr: true}, open("tw"))
	o.takeOutputChunk(stdout, []byte("o? "))
	o.takeOutputChunk(stderr, []byte("w"))
	look(open("two? "), view.OutputLine{Text: "w", Stderr: true, Open: true})
	look(open("two? "), view.OutputLine{Text: "w", Stderr: true, Open: true})
	o.takeOutputChunk(stdout, []byte("\n"))
	o.takeOutputChunk(stderr, []byte("\n"))
	look(view.OutputLine{Text: "two? "}, view.OutputLine{Text: "w", Stderr: true})
	o.takeOutputChunk(stdout, bytes.Repeat([]byte("y"), lineMax+1))
	o.takeOutputChunk(stdout, []byte("\n"))
	if lines, _ := o.linesFrom(next); len(lines) != 2 || len(lines[0].Text) != lineMax {
		t.Errorf("%d lines of a long one, want 2", len(lines))
	}
	for range linesMax + 5 {
		o.takeOutputChunk(stdout, []byte("z\n"))
	}
	if lines, next := o.linesFrom(0); len(lines) != linesMax || next != uint64(linesMax)+11 {
		t.Errorf("%d lines up to %d, want %d up to %d", len(lines), next, linesMax, linesMax+11)
	}
}

// TestProgressIsOneLine: what a carriage return overwrites is no line of its own, however it is cut into chunks.
func TestProgressIsOneLine(t *testing.T) {
	for _, chunks := range [][]string{
		{"10 %\r20 %\r", "30 %\r", "done\r\nnext"}, {"10 %", "\r20 %", "\rdone", "\r", "\nnext"}, {"\r10 %\r\rdone\nne", "xt"},
	} {
		o := newOutput(io.Discard, io.Discard)
		for _, chunk := range chunks {
			o.takeOutputChunk(stdout, []byte(chunk))
		}
		lines, next := o.linesFrom(0)
		if len(lines) != 2 || strings.Trim(lines[0].Text, "\r") != "done" || lines[1].Text != "next" || next != 1 {
			t.Errorf("%q: lines %v", chunks, lines)
		}
	}
	o := newOutput(io.Discard, io.Discard)
	for i := range 100_000 {
		o.takeOutputChunk(stdout, fmt.Appendf(nil, "\r%d %%", i))
	}
	if lines, next := o.linesFrom(0); next != 0 || len(lines) != 1 || lines[0].Text != "99999 %" {
		t.Errorf("%d lines, the last %q", next, lines[0].Text)
	}
}

// TestFullScreen: programs that take the alternate screen are noticed, however their output is cut.
func TestFullScreen(t *testing.T) {
	for text, want := range map[string]bool{
		"plain": false, "\x1b[?1049h\x1b[2Jtop": true, "\x1b[?1049hvim\x1b[?1049l": false, "\x1b[?47h": true, "\x1b[?1047hx\x1b[31m": true, "\x1b[?25l": false,
		"\x1b[?1049": false, "\x1b[?1049hx\x1b[?1049lx\x1b[?1049h": true,
	} {
		for cut := range len(text) + 1 {
			o := newOutput(io.Discard, io.Discard)
			for _, chunk := range []string{text[:cut], text[cut:]} {
				if chunk != "" {
					o.takeOutputChunk(stdout, []byte(chunk))
				}
			}
			if o.isFullScreen() != want {
				t.Errorf("%q cut at %d: %v", text, cut, !want)
			}
		}
	}
	o := newOutput(io.Discard, io.Discard)
	o.takeOutputChunk(stderr, []byte("\x1b[?1049h"))
	if o.isFullScreen() {
		t.Error("stderr takes the screen")
	}
}
