package ui

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// files are what a dashboard has written.
type files map[string]string

func (f files) write(path string, content []byte) error {
	if _, there := f[path]; there {
		return errors.New(path + " exists: type another name")
	}
	f[path] = string(content)
	return nil
}

// textsOf returns the texts of a picture, and fails if it is no XML.
func textsOf(t *testing.T, picture string) string {
	t.Helper()
	var b strings.Builder
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			b.Write(text)
		}
	}
}

func TestScreenIsSaved(t *testing.T) {
	for theme, want := range map[Theme]string{Dark: "#0f1318", Light: "#ffffff", HighContrast: "#000000", Mono: "#0f1318"} {
		written := files{}
		o := (&calls{}).options()
		o.Write, o.Theme = written.write, theme
		s := sampleSnapshot()
		s.Tags[0].Name = `a<b>.c:1 "&f"`
		d := newTest(o, 120, 36, s)
		before := screen(d)
		press(d, "x")
		shows(t, d, "✓ the screen is in gpumemtop-20260102-030405.svg and .txt")
		picture, text := written["gpumemtop-20260102-030405.svg"], written["gpumemtop-20260102-030405.txt"]
		if len(written) != 2 || strings.TrimSpace(text) != strings.TrimSpace(before) {
			t.Errorf("%d files; the text is\n%s\nnot\n%s", len(written), text, before)
		}
		if got := textsOf(t, picture); !strings.Contains(got, `a<b>.c:1 "&f"`) || !strings.Contains(picture, want) || strings.Contains(picture, "http://www.w3.org/1999") {
			t.Errorf("theme %d: %s", theme, got)
		}
		press(d, "x")
		shows(t, d, "✗ gpumemtop-20260102-030405.svg exists")
	}
	d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	press(d, "x")
	shows(t, d, "nowhere to save")
}

// TestRecordIsSwitched: r records and stops, and says why where it cannot.
func TestRecordIsSwitched(t *testing.T) {
	o := (&calls{}).options()
	texts := []string{"recording into x.gmt; r ends it", "recorded 2.00s: x.gmt", ""}
	o.Record = func() (text string, err error) {
		if text, texts = texts[0], texts[1:]; text == "" {
			err = errors.New("x.gmt exists")
		}
		return text, err
	}
	d := newTest(o, 120, 36, sampleSnapshot())
	for _, want := range []string{"✓ recording into x.gmt", "✓ recorded 2.00s: x.gmt", "✗ x.gmt exists"} {
		press(d, "r")
		shows(t, d, want)
	}
	d = newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	press(d, "r")
	shows(t, d, "-o names its file")
}

// TestPictureOfTheReadme: docs/dashboard.svg shows the panes, columns and keys of today ("make screenshot" renews it).
func TestPictureOfTheReadme(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "dashboard.svg"))
	if err != nil {
		t.Fatal(err)
	}
	texts := textsOf(t, string(b))
	o := (&calls{}).options()
	o.Write, o.SetPolicy = files{}.write, func(string) (uint64, error) { return 1, nil }
	d := newTest(o, 120, 36, sampleSnapshot())
	l := d.arrangePanes()
	want := []string{tagColumns[nameColumn].title, tagColumns[sortHeld].title, hitTitle, trendTitle} // the others fold away where all rows have the same
	for i := range l.panes {
		title, _ := d.panes[l.panes[i].pane].title(sampleSnapshot())
		want = append(want, strings.TrimSpace(title[0].text))
	}
	for i := range d.mode.keys[:8] {
		want = append(want, d.mode.keys[i].short)
	}
	for _, word := range want {
		if !strings.Contains(texts, word) {
			t.Errorf("docs/dashboard.svg has no %q: run make screenshot", word)
		}
	}
}

func TestRowsAreCopied(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, sampleSnapshot())
	press(d, "j")
	if got := fmt.Sprint(press(d, "Y")()); !strings.HasPrefix(got, "conv.c:203 im2col") {
		t.Errorf("copied %q", got)
	}
	shows(t, d, "copied, if the terminal allows it: conv.c:203 im2col  HOLDS 412.0M")
	if got := fmt.Sprint(press(d, "o", "Y")()); !strings.HasPrefix(got, "iter 213/500") {
		t.Errorf("copied %q", got)
	}
	press(d, "esc", "!")
	if press(d, "Y") != nil {
		t.Error("something was copied")
	}
	shows(t, d, "there is no row to copy")
}

func TestExportIsAsked(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, sampleSnapshot())
	press(d, "e")
	shows(t, d, "nothing to export")
	var paths []string
	d.o.Export = func(path string, s *stats.Snapshot) error {
		paths = append(paths, path)
		if s != d.shownSnapshot() || len(paths) > 1 {
			return errors.New("no room")
		}
		return nil
	}
	press(d, "e")
	shows(t, d, "export what is shown as: gpumemtop.pb.gz_", ".csv call sites")
	press(d, "enter")
	shows(t, d, "✓ exported: gpumemtop.pb.gz")
	press(d, "e", "ctrl+u", "a", "enter")
	shows(t, d, "✗ no room")
	press(d, "e", "ctrl+u", "enter", "e", "esc")
	if strings.Join(paths, " ") != "gpumemtop.pb.gz a" {
		t.Errorf("exported %v", paths)
	}
}

// TestLongLinesAreWrapped: alone on the screen all of a line can be read, sideways too; the output can be saved.
func TestLongLinesAreWrapped(t *testing.T) {
	written := files{}
	o := (&calls{}).options()
	o.Write = written.write
	d := newTest(o, 80, 24, sampleSnapshot())
	long := "error: " + strings.Repeat("x", 100) + " the end"
	d.Update(frameMsg{now: testStart, lines: []view.OutputLine{{Text: long, Stderr: true}, {Text: "after"}}, next: 6})
	hides(t, d, "the end")
	press(d, "o")
	shows(t, d, "the end\n after", "▌error: xxx")
	press(d, "l", "l", "l", "l", "l")
	shows(t, d, "xxx the end")
	press(d, "S", "enter")
	shows(t, d, "✓ 6 lines saved in output.txt")
	if got := written["output.txt"]; !strings.HasSuffix(got, "iter 213/500    12.1 ms\n"+long+"\nafter\n") {
		t.Errorf("saved %q", got)
	}
	press(d, "/", "a", "f", "t", "enter", "S", "enter")
	shows(t, d, "✗ output.txt exists")
	press(d, "esc", "esc", "tab", "tab", "S")
	if !d.tags.reverse {
		t.Error("S does not reverse the order of the tags")
	}
}

// TestAnotherTerminal: from another terminal no key reaches the program but changes of limits and policy, and leaving asks
// nothing.
func TestAnotherTerminal(t *testing.T) {
	var c calls
	o := Options{Viewer: true, SetLimit: c.options().SetLimit}
	d := newTest(o, 140, 42, sampleSnapshot())
	shows(t, d, "session of blur", "q leave")
	hides(t, d, "output", "interrupt")
	press(d, "o", "7", "]")
	if d.zoom != noPane || len(c.limits) != 1 {
		t.Errorf("zoom %d, asked for %v", d.zoom, c.limits)
	}
	press(d, "?", "?")
	hides(t, d, "SIGINT", "stop this and the program")
	press(d, "esc")
	for _, key := range []string{"q", "ctrl+c"} {
		if !quits(press(d, key)) || d.overlay == quitOverlay {
			t.Errorf("%s does not leave", key)
		}
		d.leaving = false
	}
	o.Output = func(uint64) ([]view.OutputLine, uint64) { return nil, 0 }
	shows(t, newTest(o, 140, 42, sampleSnapshot()), "iter 213/500", "o output")
}
