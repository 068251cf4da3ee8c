package ui

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// luminance is that of WCAG 2.
func luminance(color string) float64 {
	sum := 0.0
	for i, weight := range [3]float64{0.2126, 0.7152, 0.0722} {
		part, _ := strconv.ParseUint(color[1+2*i:3+2*i], 16, 8)
		c := float64(part) / 255
		if c <= 0.03928 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func contrast(a, b string) float64 {
	one, other := luminance(hexColor(a)), luminance(hexColor(b))
	return (max(one, other) + 0.05) / (min(one, other) + 0.05)
}

// TestTextHasContrast: text of every style of every theme can be read on the backgrounds of usual terminals (WCAG 2: 4.5), or
// on what the theme puts behind it. Charts are no text: 3 suffices, and lines and empty places only have to be seen. No text
// is white, or black, but on a background of the theme's.
func TestTextHasContrast(t *testing.T) {
	least := map[style]float64{trendStyle: 3, hitChartStyle: 3, freeStyle: 1.5, frameStyle: 1.5}
	dark, light := []string{"#000000", "#0f1318", "#1e1e1e", "#282a36"}, []string{"#ffffff", "#fdf6e3"}
	for theme, backgrounds := range map[Theme][]string{
		Dark: dark, HighContrast: dark, fewDark: dark[:1], Light: light, HighContrastLight: light, fewLight: light[:1], AnyBackground: {"#000000", "#ffffff"},
	} {
		inks := slices.Clone(palettes[theme][:])
		if theme < fewDark { // and the shades of charts
			for _, shaded := range newTrueColorTheme(theme, Braille).inks[1:] {
				inks = append(inks, shaded[:]...)
			}
		}
		for at, ink := range inks {
			st := style(at % int(styleCount))
			want := 4.5
			if chart, is := least[st]; is {
				want = chart
			}
			behind := backgrounds
			switch {
			case ink.text == "":
				continue
			case ink.behind != "":
				behind = []string{ink.behind}
			case strings.Count(ink.text, "f")+strings.Count(ink.text, "e") == 6 || ink.text == "15" || ink.text == "7" || ink.text == "#000000" || ink.text == "0":
				t.Errorf("theme %d, %s: %s is white or black", theme, styleNames[st], ink.text)
			}
			if filled[st] != (ink.behind != "") {
				t.Errorf("theme %d, %s: background %q", theme, styleNames[st], ink.behind)
			}
			for _, b := range behind {
				if got := contrast(ink.text, b); got < want {
					t.Errorf("theme %d, %s: %s on %s has a contrast of %.2f", theme, styleNames[st], ink.text, b, got)
				}
			}
		}
	}
}

// TestThemeFollowsTheTerminal: what the terminal says of its background decides, if it was asked.
func TestThemeFollowsTheTerminal(t *testing.T) {
	for _, test := range []struct {
		theme Theme
		ask   bool
		color string
		want  Theme
	}{
		{Dark, true, "#ffffff", Light}, {Light, true, "#101010", Dark}, {Dark, true, "#101010", Dark}, {Dark, false, "#ffffff", Dark},
		{AnyBackground, true, "#ffffff", Light}, {AnyBackground, true, "#101010", Dark},
		{HighContrast, true, "#ffffff", HighContrastLight}, {HighContrastLight, true, "#000000", HighContrast}, {Mono, true, "#ffffff", Mono},
	} {
		d := newTest(Options{Theme: test.theme, AskTheme: test.ask, Colors: colorprofile.TrueColor}, 120, 36, sampleSnapshot())
		d.Update(tea.BackgroundColorMsg{Color: ansi.HexColor(test.color)})
		if got := frameText(d); d.theme.name != test.want || got != frameText(newTest(Options{Theme: test.want}, 120, 36, sampleSnapshot())) {
			t.Errorf("%+v: theme %d", test, d.theme.name)
		}
	}
}

// TestMonoKeepsBoldAndReverse: without colours the cursor is reversed, and what is important is bold.
func TestMonoKeepsBoldAndReverse(t *testing.T) {
	m := newTrueColorTheme(Mono, Braille)
	for st, open := range m.open[shadeCount-1] {
		if strings.Contains(open, "3") || strings.Contains(open, "4") {
			t.Errorf("%s has a colour: %q", styleNames[st], open)
		}
	}
	if open := m.open[0]; open[strong] != "\x1b[1m" || open[cursorTrendStyle] != "\x1b[7m" || open[cursorStyle] != "\x1b[1;7m" {
		t.Errorf("%q", open)
	}
}

func TestParseColors(t *testing.T) {
	c, err := ParseColors("base = \"light\"\n[text]\nbad = \"#ff00aa\" # mine\n[background]\ncursor = \"#000001\"\ndim = \"#000002\"\n")
	if err != nil {
		t.Fatal(err)
	}
	own := themeOf(&Options{Theme: Light, Own: c, Colors: colorprofile.TrueColor})
	if own.inks[0][badStyle].text != "#ff00aa" || own.inks[0][cursorStyle] != (ink{"#0b1220", "#000001"}) || own.inks[0][dim] != palettes[Light][dim] {
		t.Errorf("%+v", own.inks[0])
	}
	for text, want := range map[string]string{
		"[text]\n\ndim = \"red\"":          "line 3: bad colour \"red\": want #rrggbb",
		"[text]\nbad = \"#fff\"":           "line 2: bad colour",
		"base = \"dark\"\n[text]\nx = 1":   "line 3",
		"[text]\nshine = \"#000000\"":      "line 2: no style \"shine\"",
		"[text]\n[inks]\ndim = \"#0\"\n":   "inks",
		"\n[text":                          "line 2",
		strings.Repeat("[", 99):            "line 1",
		"text = 3":                         "line 1",
		"[background]\ncursor = { a = 1 }": "line 2",
	} {
		if _, err := ParseColors(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseColors(f *testing.F) {
	f.Add("base = \"light\"\n[text]\nbad = \"#ff00aa\"\n[background]\ncursor = \"#000001\"\n")
	f.Add("[text]\nx.y = \"#000000\"")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseColors(text)
		if (c == nil) == (err == nil) {
			t.Errorf("%v, %v", c, err)
		}
		themeOf(&Options{Own: c})
	})
}
