package doctor

import (
	"strconv"
	"strings"
)

// The least size of a terminal that shows panes, and the one for all of them (ui).
const (
	panesW, panesH = 60, 12
	allW, allH     = 100, 30
)

// terminal tells what the dashboard would find.
func (r *Report) terminal(s *System) {
	cols, rows, ok := s.Terminal()
	term := s.variable("TERM")
	switch {
	case !ok:
		r.say(areaTerminal, Warning, "", "there is no terminal: programs run without a dashboard, and view cannot be used")
		return
	case term == "" || term == "dumb":
		r.say(areaTerminal, Warning, "set TERM to the terminal's kind", "TERM is %q: no dashboard", term)
	case cols < panesW || rows < panesH:
		r.say(areaTerminal, Warning, "make it larger: "+sizeText(panesW, panesH)+", better "+sizeText(allW, allH), "the terminal has %s cells: the dashboard shows numbers only", sizeText(cols, rows))
	default:
		r.say(areaTerminal, OK, "", "TERM is %s, %s cells, %s", term, sizeText(cols, rows), s.colours(term))
	}
	if ci := s.variable("CI"); ci != "" && ci != "false" && ci != "0" {
		r.say(areaTerminal, Warning, "unset CI", "CI is set: no dashboard")
	}
	if locale := s.locale(); !strings.Contains(strings.ReplaceAll(strings.ToLower(locale), "-", ""), "utf8") {
		r.say(areaTerminal, Warning, "use --ascii, or a locale such as C.UTF-8", "the locale %q is not UTF-8: lines and charts may be garbled", locale)
	} else {
		r.say(areaTerminal, OK, "", "the locale %s is UTF-8", locale)
	}
}

func sizeText(cols, rows int) string { return strconv.Itoa(cols) + "x" + strconv.Itoa(rows) }

// locale is the one that decides how text is written (locale(7)).
func (s *System) locale() string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := s.variable(name); v != "" {
			return v
		}
	}
	return "C"
}

// colours says which colours are used, as the variables tell.
func (s *System) colours(term string) string {
	colorterm := s.variable("COLORTERM")
	switch {
	case s.variable("NO_COLOR") != "":
		return "no colours (NO_COLOR)"
	case colorterm == "truecolor" || colorterm == "24bit":
		return "16 million colours"
	case strings.Contains(term, "256color"):
		return "256 colours"
	}
	return "16 colours"
}
