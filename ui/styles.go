package ui

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
)

// style is the meaning of a cell; the theme knows what it looks like.
type style uint8

const (
	plain style = iota
	dim
	strong
	titleStyle
	frameStyle
	focusStyle
	keyStyle
	inUseStyle
	cachedStyle
	coolingStyle
	freeStyle
	goodStyle
	warnStyle
	badStyle
	trendStyle
	hitChartStyle
	cursorStyle
	cursorTrendStyle
	headStyle
	bannerStyle
	styleCount
)

// ink is the colour of a style's text and of what is behind it: #rrggbb or the number of an ANSI colour; empty: the terminal's
// own.
type ink struct{ text, behind string }

// bold and filled say which styles are bold, and which have a colour behind their text. Colour is never the only sign: the
// cursor has its mark, cached memory its pattern, a warning its symbol.
var (
	bold = [styleCount]bool{
		strong: true, titleStyle: true, keyStyle: true, warnStyle: true, badStyle: true, cursorStyle: true, headStyle: true, bannerStyle: true,
	}
	filled = [styleCount]bool{cursorStyle: true, cursorTrendStyle: true, bannerStyle: true}
)

// fewDark and fewLight are for terminals of the 16 ANSI colours: of those only few can be read on any terminal's background.
const (
	fewDark  = AnyBackground + 1
	fewLight = AnyBackground + 2
)

// palettes are the colours of the themes. What is important has the terminal's own colour, in bold.
var palettes = [...][styleCount]ink{
	Dark: {
		dim: {text: "#8f98a7"}, headStyle: {text: "#98a6ba"}, frameStyle: {text: "#465061"}, focusStyle: {text: "#5fb3ff"}, keyStyle: {text: "#5fb3ff"},
		inUseStyle: {text: "#4aa8ff"}, cachedStyle: {text: "#e0a63a"}, coolingStyle: {text: "#c084fc"}, freeStyle: {text: "#4b5563"},
		goodStyle: {text: "#5fd38d"}, warnStyle: {text: "#f5b942"}, badStyle: {text: "#ff6b6b"}, trendStyle: {text: "#45a0a0"},
		hitChartStyle: {text: "#4f9764"}, cursorTrendStyle: {"#56d4dd", "#1f3a5a"}, cursorStyle: {"#eaf2ff", "#1f3a5a"},
		bannerStyle: {"#1a1300", "#f5b942"},
	},
	Light: {
		dim: {text: "#606775"}, headStyle: {text: "#4b5563"}, frameStyle: {text: "#b6bdc9"}, focusStyle: {text: "#1b69c6"}, keyStyle: {text: "#1b69c6"},
		inUseStyle: {text: "#1769c4"}, cachedStyle: {text: "#8f5a00"}, coolingStyle: {text: "#8b34d6"}, freeStyle: {text: "#9aa3b0"},
		goodStyle: {text: "#137a3e"}, warnStyle: {text: "#8a5700"}, badStyle: {text: "#c81e1e"}, trendStyle: {text: "#1f8787"},
		hitChartStyle: {text: "#1f8a3a"}, cursorTrendStyle: {"#096a72", "#d6e6fa"}, cursorStyle: {"#0b1220", "#d6e6fa"},
		bannerStyle: {"#fffbeb", "#8a5700"},
	},
	HighContrast: {
		focusStyle: {text: "#00ffff"}, keyStyle: {text: "#00ffff"}, inUseStyle: {text: "#6cb6ff"}, cachedStyle: {text: "#ffd75f"},
		coolingStyle: {text: "#ff9cff"}, goodStyle: {text: "#5fff87"}, warnStyle: {text: "#ffff5f"}, badStyle: {text: "#ff9a9a"},
		cursorTrendStyle: {"#000000", "#ffffff"}, cursorStyle: {"#000000", "#ffffff"}, bannerStyle: {"#000000", "#ffff5f"},
	},
	HighContrastLight: {
		focusStyle: {text: "#00408a"}, keyStyle: {text: "#00408a"}, inUseStyle: {text: "#003f9e"}, cachedStyle: {text: "#6b3f00"},
		coolingStyle: {text: "#5a00a0"}, goodStyle: {text: "#00521e"}, warnStyle: {text: "#6b3f00"}, badStyle: {text: "#a00000"},
		cursorTrendStyle: {"#ffffff", "#000000"}, cursorStyle: {"#ffffff", "#000000"}, bannerStyle: {"#ffffff", "#6b3f00"},
	},
	Mono: {},
	AnyBackground: { // contrast 4.5 on both leaves one brightness
		dim: {text: "#757575"}, headStyle: {text: "#67778c"}, frameStyle: {text: "#8a8f98"}, focusStyle: {text: "#0c75dd"}, keyStyle: {text: "#0c75dd"},
		inUseStyle: {text: "#0c75dd"}, cachedStyle: {text: "#a56800"}, coolingStyle: {text: "#a347e5"}, freeStyle: {text: "#8a8f98"},
		goodStyle: {text: "#188746"}, warnStyle: {text: "#a56800"}, badStyle: {text: "#e12b2b"}, trendStyle: {text: "#218282"},
		hitChartStyle: {text: "#39844c"}, cursorTrendStyle: {"#ffffff", "#1b5f9e"}, cursorStyle: {"#ffffff", "#1b5f9e"},
		bannerStyle: {"#ffffff", "#8a5700"},
	},
	fewDark: {
		frameStyle: {text: "8"}, focusStyle: {text: "14"}, keyStyle: {text: "14"}, inUseStyle: {text: "14"}, cachedStyle: {text: "11"},
		coolingStyle: {text: "13"}, freeStyle: {text: "8"}, goodStyle: {text: "10"}, warnStyle: {text: "11"}, badStyle: {text: "9"},
		trendStyle: {text: "6"}, hitChartStyle: {text: "2"}, cursorTrendStyle: {"14", "4"}, cursorStyle: {"15", "4"}, bannerStyle: {"0", "11"},
	},
	fewLight: {
		frameStyle: {text: "8"}, focusStyle: {text: "4"}, keyStyle: {text: "4"}, inUseStyle: {text: "4"}, cachedStyle: {text: "5"},
		freeStyle: {text: "8"}, badStyle: {text: "1"}, cursorTrendStyle: {"15", "4"}, cursorStyle: {"15", "4"}, bannerStyle: {"15", "4"},
	},
}

// theme holds the colours and the escape sequences of every style. The painter turns the colours into those that the terminal has.
type theme struct {
	name   Theme
	inks   [shadeCount][styleCount]ink
	open   [shadeCount][styleCount]string
	charts Charts
}

// newTrueColorTheme returns a theme of all colours.
func newTrueColorTheme(name Theme, charts Charts) *theme {
	return themeOf(&Options{Theme: name, Charts: charts, Colors: colorprofile.TrueColor})
}

// themeOf returns the theme that the options ask for.
func themeOf(o *Options) *theme {
	t := &theme{name: o.Theme, charts: o.Charts}
	inks := palettes[o.Theme]
	if o.Colors == colorprofile.ANSI {
		inks = palettes[map[Theme]Theme{Dark: fewDark, HighContrast: fewDark, Light: fewLight, HighContrastLight: fewLight, AnyBackground: fewDark, Mono: Mono}[o.Theme]]
	}
	o.Own.applyColors(&inks)
	for k := range t.inks {
		t.inks[k] = inks
	}
	if o.Colors != colorprofile.ANSI && o.Theme != AnyBackground {
		t.shadeCharts()
	}
	for k := range t.inks {
		for i, c := range t.inks[k] {
			t.open[k][i] = c.sequenceOfStyle(style(i))
		}
	}
	return t
}

// shadeCount is how many shades a chart has, from its bottom, in the colour of its style, to its top.
const shadeCount = 4

// charted are the styles of charts.
var charted = []style{inUseStyle, cachedStyle, coolingStyle, trendStyle, hitChartStyle}

// shadeCharts makes charts stand out more the higher they are. The palettes have colours for charts whose shades keep their
// hue among 256 colours.
func (t *theme) shadeCharts() {
	end := lipgloss.Color("#ffffff")
	if t.name == Light || t.name == HighContrastLight {
		end = lipgloss.Color("#000000")
	}
	for _, st := range charted {
		begin := t.inks[0][st].text
		if begin == "" {
			continue
		}
		for k, c := range lipgloss.Blend1D(3*shadeCount-1, lipgloss.Color(begin), end)[:shadeCount] {
			red, green, blue, _ := c.RGBA()
			t.inks[k][st].text = fmt.Sprintf("#%02x%02x%02x", red>>8, green>>8, blue>>8)
		}
	}
}

// sequenceOfStyle returns the opening sequence of a style with these colours, from a rendered letter.
func (i ink) sequenceOfStyle(st style) string {
	// Terminals draw bold black as grey.
	s := lipgloss.NewStyle().Bold(bold[st] && i.text != "0").Reverse(filled[st] && i.behind == "")
	if c := i.text; c != "" {
		s = s.Foreground(lipgloss.Color(c))
	}
	if c := i.behind; c != "" {
		s = s.Background(lipgloss.Color(c))
	}
	open, _, _ := strings.Cut(s.Render("x"), "x")
	return open
}

// themeForBackground returns the theme of that kind for a dark background, or for a light one.
func (name Theme) themeForBackground(dark bool) Theme {
	switch name {
	case Dark, Light, AnyBackground:
		return map[bool]Theme{true: Dark, false: Light}[dark]
	case HighContrast, HighContrastLight:
		return map[bool]Theme{true: HighContrast, false: HighContrastLight}[dark]
	}
	return name
}

// isBlankVisible reports whether a blank in this style differs from one without style.
func (t *theme) isBlankVisible(st style) bool { return filled[st] }
