package ui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
)

// TestColorsOf: tmux takes all colours, Screen 256, wherever it runs, except in a terminal that may have 8.
func TestColorsOf(t *testing.T) {
	for _, test := range []struct {
		environ []string
		want    colorprofile.Profile
	}{
		{[]string{"TERM=tmux-256color", "TMUX=/tmp/s"}, colorprofile.TrueColor},
		{[]string{"TERM=screen", "STY=1.x", "COLORTERM=truecolor"}, colorprofile.ANSI256},
		{[]string{"TERM=screen", "STY=1.x", "TMUX=/tmp/s"}, colorprofile.ANSI256},
		{[]string{"TERM=screen.xterm-256color", "STY=1.x"}, colorprofile.ANSI256},
		{[]string{"TERM=screen", "STY=1.x"}, colorprofile.ANSI},
		{[]string{"TERM=screen"}, colorprofile.ANSI256},
	} {
		if got := ColorsOf(test.environ); got != test.want {
			t.Errorf("%v: %v", test.environ, got)
		}
	}
}

func TestChartsOf(t *testing.T) {
	for _, test := range []struct {
		term, all, lang string
		want            Charts
	}{
		{"xterm", "", "", Braille}, {"xterm", "C.UTF-8", "C", Braille}, {"xterm", "", "de_DE.utf8", Braille}, {"xterm", "", "C", ASCII},
		{"xterm", "C", "en_US.UTF-8", ASCII}, {"linux", "C.UTF-8", "", HalfBlocks}, {"linux", "C", "", ASCII}, {"vt220", "C.UTF-8", "", ASCII},
	} {
		if got := ChartsOf([]string{"TERM=" + test.term, "LC_ALL=" + test.all, "LC_CTYPE=", "LANG=" + test.lang}); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// consoleFont are the characters above ASCII of the font that the kernel has for its console (drivers/tty/vt/cp437.uni) that
// may be drawn.
const consoleFont = "─│┌┐└┘├┤┬┴┼█▓▒░▄▀▌▐■·•◆♦○◙▲▼►◄±÷≈≤≥≡µ∞√↑↓→←↕↔²°¶"

// TestCharts: blocks have no dots, and half blocks only what the console's font has; in both a full chart is full.
func TestCharts(t *testing.T) {
	for sign := range asciiFor {
		if got := HalfBlocks.shownCluster(sign); !strings.ContainsAny(got, consoleFont) && got[0] >= 0x80 || textWidth(got) != 1 {
			t.Errorf("%s is %q on the console", sign, got)
		}
	}
	for charts, want := range map[Charts]string{Blocks: "▃▅▆▇", HalfBlocks: "▄"} {
		d := newTest(Options{Charts: charts}, 140, 60, sampleSnapshot())
		for _, keys := range []string{"", "?", "c", "w", "m"} {
			press(d, keys)
			frame := frameText(d)
			checkFrame(t, frame, 140, 60)
			for _, r := range frame {
				if r >= brailleBase && r < brailleBase+256 || charts == HalfBlocks && r >= 0x80 && !strings.ContainsRune(consoleFont, r) {
					t.Fatalf("charts %d, %q: %c", charts, keys, r)
				}
			}
			if keys == "" && !strings.ContainsAny(frame, want) {
				t.Errorf("charts %d: no %s in\n%s", charts, want, frame)
			}
		}
	}
	c := newCanvas(4, 2)
	c.charts = Blocks
	full := column{layers: [3]float64{1}}
	c.wholeRegion().drawStacked([]column{full, full, {layers: [3]float64{0.25, 0.75}}, {}, {layers: [3]float64{1e-9}}, {}, {absent: true}, {absent: true}}, memLayers)
	if got := c.encodeForTerminal(&theme{charts: Blocks}); got != "█▒\n██▁" {
		t.Errorf("got\n%s", got)
	}
}
