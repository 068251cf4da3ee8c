package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/exp/golden"
)

// goldenSizes are terminals from a large screen to the smallest.
var goldenSizes = [][2]int{{200, 60}, {140, 42}, {120, 36}, {80, 24}, {60, 20}, {40, 6}}

// styleLetters are what a golden file has for the style of a cell.
const styleLetters = ".dstfFkicoFgwbTHCcheB"

// TestStylesGolden: which style each cell has. What is on the screen is the same in all themes, which only say what styles
// look like.
func TestStylesGolden(t *testing.T) {
	for _, size := range goldenSizes {
		t.Run(itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
			d := newTest((&calls{}).options(), size[0], size[1], sampleSnapshot())
			want := screen(d)
			var b strings.Builder
			b.WriteString(want + "\n\n")
			for y := range d.canvas.h {
				var line strings.Builder
				for _, cell := range d.canvas.cells[y*d.canvas.w : (y+1)*d.canvas.w] {
					letter := styleLetters[cell.style]
					if cell.text == " " && !filled[cell.style] {
						letter = ' '
					}
					line.WriteByte(letter)
				}
				b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
			}
			golden.RequireEqual(t, b.String())
			for _, theme := range []Theme{Dark, Light, HighContrast, Mono} {
				o := (&calls{}).options()
				o.Theme = theme
				d := newTest(o, size[0], size[1], sampleSnapshot())
				checkFrame(t, d.View().Content, size[0], size[1])
				if got := screen(d); got != want {
					t.Errorf("theme %d shows\n%s", theme, got)
				}
			}
		})
	}
}

// TestThemesGolden: what each style looks like in each theme, with all, 256 and 16 colours.
func TestThemesGolden(t *testing.T) {
	var b strings.Builder
	for _, profile := range []colorprofile.Profile{colorprofile.TrueColor, colorprofile.ANSI256, colorprofile.ANSI} {
		for theme, name := range map[Theme]string{Dark: "dark", Light: "light", HighContrast: "high contrast", Mono: "mono"} {
			for st, open := range newTheme(theme, false).open {
				var shown strings.Builder
				if _, err := (&colorprofile.Writer{Forward: &shown, Profile: profile}).WriteString(open); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "%s, %s: style %2d %q\n", profile, name, st, shown.String())
			}
		}
	}
	lines := strings.Split(b.String(), "\n")
	slices.Sort(lines)
	golden.RequireEqual(t, strings.Join(lines, "\n"))
}
