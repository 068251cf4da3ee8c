package session

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

func TestOutputLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got [2]bytes.Buffer
		var want [2]bytes.Buffer
		o := newOutput(&got[0], &got[1])
		chunks := rapid.IntRange(0, 40).Draw(t, "chunks")
		revealAt := rapid.IntRange(0, 40).Draw(t, "reveal")
		for i := range chunks {
			if i == revealAt {
				if err := o.reveal(true); err != nil {
					t.Fatal(err)
				}
			}
			stream := rapid.IntRange(0, 1).Draw(t, "stream")
			size := rapid.SampledFrom([]int{1, 10, 5000, 300_000}).Draw(t, "size")
			chunk := bytes.Repeat([]byte{byte('a' + i%26)}, size)
			want[stream].Write(chunk)
			o.write(stream, chunk)
		}
		if err := o.reveal(true); err != nil {
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
	var both bytes.Buffer
	o := newOutput(&both, &both)
	want := ""
	for i := range 3000 { // beyond what is kept in memory
		text := fmt.Sprintf("%d %s\n", i, strings.Repeat("x", 1000))
		o.write(i%2, []byte(text))
		want += text
	}
	if o.spool.file == nil {
		t.Error("3 MB were kept in memory")
	}
	if err := o.reveal(true); err != nil || both.String() != want {
		t.Errorf("%v; %s", err, difference(both.String(), want))
	}
}

func TestOutputWithoutDiskIsKeptInMemory(t *testing.T) {
	t.Setenv("TMPDIR", "/no/such/folder")
	var both bytes.Buffer
	o := newOutput(&both, &both)
	for range 3 {
		o.write(stdout, bytes.Repeat([]byte("x"), 700_000))
	}
	if err := o.reveal(true); err != nil || both.Len() != 2_100_000 {
		t.Errorf("%d bytes, %v; want 2100000", both.Len(), err)
	}
}

func TestOutputOneStreamClosed(t *testing.T) {
	r, w := io.Pipe()
	_ = r.Close()
	var errors bytes.Buffer
	o := newOutput(w, &errors)
	o.write(stdout, []byte("lost\n"))
	o.write(stderr, []byte("kept\n"))
	if err := o.reveal(true); err == nil || errors.String() != "kept\n" {
		t.Errorf("stderr got %q, error %v", errors.String(), err)
	}
}

func TestOutputLines(t *testing.T) {
	o := newOutput(io.Discard, io.Discard)
	o.write(stdout, []byte("one\ntw"))
	o.write(stderr, []byte("bad\n"))
	lines, next := o.since(0)
	if want := []view.OutputLine{{Text: "one"}, {Text: "bad", Stderr: true}}; !slices.Equal(lines, want) {
		t.Errorf("lines %v, want %v", lines, want)
	}
	o.write(stdout, []byte("o? "))
	if lines, next = o.since(next); len(lines) != 0 {
		t.Errorf("a line that grows is shown: %v", lines)
	}
	if lines, next = o.since(next); !slices.Equal(lines, []view.OutputLine{{Text: "two? "}}) {
		t.Errorf("a prompt that stands is not shown: %v", lines)
	}
	o.write(stdout, bytes.Repeat([]byte("y"), lineMax+1))
	o.write(stdout, []byte("\n"))
	if lines, _ = o.since(next); len(lines) != 2 || len(lines[0].Text) != lineMax {
		t.Errorf("%d lines of a long one, want 2", len(lines))
	}
	for range linesMax + 5 {
		o.write(stdout, []byte("z\n"))
	}
	if lines, next = o.since(0); len(lines) != linesMax || next != uint64(linesMax)+10 {
		t.Errorf("%d lines up to %d, want %d up to %d", len(lines), next, linesMax, linesMax+10)
	}
}
