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
				checkFrame(t, frameText(d), size[0], size[1])
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
		for theme, name := range map[Theme]string{Dark: "dark", Light: "light", HighContrast: "high contrast", AnyBackground: "any background", Mono: "mono"} {
			shaded := newTrueColorTheme(theme, Braille)
			if profile == colorprofile.ANSI {
				shaded = themeOf(&Options{Theme: theme, Colors: profile})
			}
			for at, open := range slices.Concat(shaded.open[0][:], shaded.open[shadeCount-1][:]) {
				st := at % int(styleCount)
				if at >= int(styleCount) && !slices.Contains(charted, style(st)) {
					continue
				}
				var shown strings.Builder
				if _, err := (&colorprofile.Writer{Forward: &shown, Profile: profile}).WriteString(open); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "%s, %s: style %2d%s %q\n", profile, name, st, textIf(at != st, ", top"), shown.String())
			}
		}
	}
	lines := strings.Split(b.String(), "\n")
	slices.Sort(lines)
	golden.RequireEqual(t, strings.Join(lines, "\n"))
}

// TestNothingAfterAFill: blanks after text with a colour behind it have none.
func TestNothingAfterAFill(t *testing.T) {
	c, th := newCanvas(7, 1), newTrueColorTheme(Dark, Braille)
	c.wholeRegion().writeSpans(0, 0, span{" A ", bannerStyle}, span{"   x", plain})
	if got, want := c.encodeForTerminal(th), th.open[0][bannerStyle]+" A "+reset+"   x"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestChartsHaveShades: from the style's own colour at the bottom on, each shade stands out more; with 16 colours and without
// any, all are one.
func TestChartsHaveShades(t *testing.T) {
	for _, name := range []Theme{Dark, Light} {
		_, behind := pictureColors(name)
		inks := newTrueColorTheme(name, Braille).inks
		for _, st := range charted {
			if inks[0][st] != palettes[name][st] {
				t.Errorf("theme %d, %s: the bottom has %v", name, styleNames[st], inks[0][st])
			}
			for k := 1; k < shadeCount; k++ {
				if contrast(inks[k][st].text, behind) <= contrast(inks[k-1][st].text, behind) {
					t.Errorf("theme %d, %s: shade %d does not stand out", name, styleNames[st], k)
				}
			}
		}
	}
	for _, th := range []*theme{newTrueColorTheme(Mono, Braille), themeOf(&Options{Colors: colorprofile.ANSI})} {
		if th.open[shadeCount-1] != th.open[0] {
			t.Errorf("theme %d has shades", th.name)
		}
	}
	d := newTest((&calls{}).options(), 140, 42, sampleSnapshot())
	_ = screen(d)
	seen := map[cell]bool{}
	for _, c := range d.canvas.cells {
		seen[cell{style: c.style, shade: c.shade}] = true
	}
	for k := range uint8(shadeCount) {
		if !seen[cell{style: hitChartStyle, shade: k}] {
			t.Errorf("no chart has shade %d", k)
		}
	}
	if svg := d.canvas.drawSVG(newTrueColorTheme(Dark, Braille), "x"); !strings.Contains(svg, `class="s15-3 s15"`) || !strings.Contains(svg, "\n.s15-3{fill:#") {
		t.Error("the picture has no shades")
	}
}
