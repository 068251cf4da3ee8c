package ui

import (
	"strings"

	"charm.land/lipgloss/v2"
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

// look is how a style appears on dark and on light backgrounds. Colour is never the only sign: the cursor has its mark,
// cached memory its pattern, a warning its symbol.
type look struct {
	dark, light string // #rrggbb; empty: the terminal's own
	bold        bool
	onDark      string // background
	onLight     string
}

var looks = [styleCount]look{
	plain:            {},
	dim:              {dark: "#7c8594", light: "#6b7280"},
	strong:           {dark: "#f3f4f6", light: "#111827", bold: true},
	titleStyle:       {dark: "#c8d0dc", light: "#1f2937", bold: true},
	frameStyle:       {dark: "#3d4655", light: "#b6bdc9"},
	focusStyle:       {dark: "#5fb3ff", light: "#1d6fd1"},
	keyStyle:         {dark: "#5fb3ff", light: "#1d6fd1", bold: true},
	inUseStyle:       {dark: "#4aa8ff", light: "#1769c4"},
	cachedStyle:      {dark: "#e0a63a", light: "#a86a00"},
	coolingStyle:     {dark: "#c084fc", light: "#8b34d6"},
	freeStyle:        {dark: "#4b5563", light: "#b3bac5"},
	goodStyle:        {dark: "#5fd38d", light: "#137a3e"},
	warnStyle:        {dark: "#f5b942", light: "#9a6200", bold: true},
	badStyle:         {dark: "#ff6b6b", light: "#c81e1e", bold: true},
	trendStyle:       {dark: "#2f7f88", light: "#5aa9b0"},
	hitChartStyle:    {dark: "#3b8f60", light: "#4fa877"},
	cursorTrendStyle: {dark: "#56d4dd", light: "#0b7a83", onDark: "#1f3a5a", onLight: "#d6e6fa"},
	cursorStyle:      {dark: "#ffffff", light: "#0b1220", bold: true, onDark: "#1f3a5a", onLight: "#d6e6fa"},
	headStyle:        {dark: "#93a1b5", light: "#4b5563", bold: true},
	bannerStyle:      {dark: "#1a1300", light: "#ffffff", bold: true, onDark: "#f5b942", onLight: "#9a6200"},
}

// bright are the ANSI colours of the styles that have one with high contrast; the others have the terminal's own.
var bright = map[style]string{
	focusStyle: "14", keyStyle: "14", inUseStyle: "12", cachedStyle: "11", coolingStyle: "13", goodStyle: "10", warnStyle: "11", badStyle: "9",
	cursorStyle: "0", cursorTrendStyle: "0", bannerStyle: "0",
}

// theme holds the escape sequences of every style. Bubble Tea turns their colours into those that the terminal has.
type theme struct {
	open  [styleCount]string
	reset string
	ascii bool
}

// newTheme extracts the opening sequence of each style from a rendered letter.
func newTheme(name Theme, ascii bool) *theme {
	t := &theme{ascii: ascii, reset: "\x1b[0m"}
	if name == Mono {
		return t
	}
	for i := range looks {
		t.open[i], _, _ = strings.Cut(styleOf(style(i), name).Render("x"), "x")
	}
	return t
}

func styleOf(st style, name Theme) lipgloss.Style {
	l := &looks[st]
	s := lipgloss.NewStyle().Bold(l.bold)
	foreground, background := l.dark, l.onDark
	switch name {
	case Light:
		foreground, background = l.light, l.onLight
	case HighContrast:
		foreground = bright[st]
		if background != "" {
			background = "15"
		}
	default:
	}
	if foreground != "" {
		s = s.Foreground(lipgloss.Color(foreground))
	}
	if background != "" {
		s = s.Background(lipgloss.Color(background))
	}
	return s
}

// visibleBlank reports whether a blank in this style differs from one without style.
func (t *theme) visibleBlank(st style) bool { return looks[st].onDark != "" && t.open[st] != "" }
