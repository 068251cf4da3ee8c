package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// slowly makes reading seem slow: each look at the clock finds it 700 ms later. The progress line goes to the buffer.
func slowly(t *testing.T) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	now := time.Unix(100, 0)
	line := console.NewProgressLine(&out, func() int { return 80 }, func() time.Time {
		now = now.Add(700 * time.Millisecond)
		return now
	})
	before := console.Meter
	console.Meter = func() *console.Line { return line }
	t.Cleanup(func() { console.Meter = before })
	return &out
}

// syncs writes a recording of n events.
func syncs(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.gmt")
	list := make([]wire.Record, n)
	for i := range list {
		list[i] = wire.Record{Process: 1, Event: wire.Event{Time: 1e9 + uint64(i)*1000, Kind: wire.KindSync}}
	}
	header := recording.Header{Program: "app", Policy: "none", ClockNS: 1e9}
	labtest.Write(t, path, header, list, recording.Footer{EndedNS: 1e9 + uint64(n)*1000})
	return path
}

func runCommand(t *testing.T, out io.Writer, args ...string) {
	t.Helper()
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(out)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
}

// The progress line is there while a recording is read, and gone before anything else is written.
func TestLongReadingIsShown(t *testing.T) {
	path := syncs(t, 8*files.ProgressEvery)
	for _, args := range [][]string{{"report", path}, {"replay", path}, {"export", "-o", filepath.Join(t.TempDir(), "x.json"), path}} {
		out := slowly(t)
		runCommand(t, out, args...)
		at := strings.LastIndex(out.String(), "\r\x1b[K") // the last of several passes
		lines, rest := out.String()[:max(at, 0)], out.String()[at+1:]
		if at < 0 || !strings.Contains(lines, "\rreading x.gmt  ") || !strings.Contains(lines, " %  [") {
			t.Errorf("%s: no line, or it stays: %q", args[0], out)
		}
		if args[0] != "export" && (len(rest) < 20 || strings.Contains(rest, "reading")) {
			t.Errorf("%s: after the line comes %q", args[0], rest)
		}
	}
}

// Commands that make recordings show how far they have come, too.
func TestLongWritingIsShown(t *testing.T) {
	dir := t.TempDir()
	paths, lines := [2]string{syncs(t, 8*files.ProgressEvery), syncs(t, 8*files.ProgressEvery)}, filepath.Join(dir, "x.ndjson")
	runCommand(t, slowly(t), "export", "--format", "ndjson", "-o", lines, paths[0])
	for _, test := range []struct {
		label string
		args  []string
	}{
		{"\rreading x.gmt  ", []string{"merge", "-o", filepath.Join(dir, "m"), paths[0], paths[1]}},
		{"\rmerging 2 recordings  ", []string{"merge", "-f", "-o", filepath.Join(dir, "m"), paths[0], paths[1]}},
		{"\rreading x.gmt  ", []string{"trim", "-o", filepath.Join(dir, "t"), paths[0]}},
		{"\rreading x.ndjson  ", []string{"import", "-o", filepath.Join(dir, "i"), lines}},
	} {
		out := slowly(t)
		runCommand(t, out, test.args...)
		if !strings.Contains(out.String(), test.label) || !strings.HasSuffix(out.String(), "\r\x1b[K") {
			t.Errorf("%s: no line %q, or it stays: %q", test.args[0], test.label, out)
		}
	}
}

func TestEveryPassIsShown(t *testing.T) {
	reader, err := recording.Open(syncs(t, 8*files.ProgressEvery))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // only read
	out := slowly(t)
	source := files.TrackReading(reader, "x.gmt")
	var record wire.Record
	for range 2 {
		if err := source.Rewind(); err != nil {
			t.Fatal(err)
		}
		for source.Next(&record) == nil {
		}
	}
	first, second, _ := strings.Cut(out.String(), "\r\x1b[K")
	if strings.Contains(first, "pass") || !strings.Contains(second, "x.gmt, pass 2 ") || !strings.HasSuffix(second, "\r\x1b[K") {
		t.Errorf("first %q, then %q", first, second)
	}
}

func TestMessagesClearTheLine(t *testing.T) {
	out := slowly(t)
	for i := range int64(3) {
		console.Meter().ShowProgress("reading", i, 3)
	}
	console.SayLineTo(out, "something is wrong")
	if !strings.HasSuffix(out.String(), "\r\x1b[Kgpumemtop: something is wrong\n") {
		t.Errorf("wrote %q", out)
	}
}

func TestToTerminal(t *testing.T) {
	file := syncs(t, 1)
	for output, want := range map[string]bool{file: false, file + ".new": false, os.DevNull: false, "/dev/tty": true} {
		if got := console.IsTerminal(output); got != want {
			t.Errorf("%s is a terminal: %v", output, got)
		}
	}
}
