package ui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/charmbracelet/colorprofile"
)

// environmentVariable returns the value of a variable in an environment, empty if it has none.
func environmentVariable(environ []string, name string) string {
	for _, entry := range environ {
		if value, is := strings.CutPrefix(entry, name+"="); is {
			return value
		}
	}
	return ""
}

// ColorsOf returns the colours that a terminal has, as an environment tells. tmux takes all, and shows those that its own terminal has;
// GNU Screen, which may run in tmux, or tmux in it, does not. In a terminal of 8 it has no better name than "screen".
func ColorsOf(environ []string) colorprofile.Profile {
	profile, inTmux := colorprofile.Env(environ), environmentVariable(environ, "TMUX") != ""
	switch {
	case profile == colorprofile.ANSI256 && inTmux && environmentVariable(environ, "STY") == "":
		return colorprofile.TrueColor
	case isScreen(environ) && !inTmux && environmentVariable(environ, "TERM") == "screen" && environmentVariable(environ, "COLORTERM") == "":
		return min(profile, colorprofile.ANSI)
	}
	return profile
}

// isScreen reports whether the terminal is GNU Screen. It erases without colour, and while it reports the mouse, it holds esc until the next key.
func isScreen(environ []string) bool {
	return environmentVariable(environ, "STY") != "" && strings.HasPrefix(environmentVariable(environ, "TERM"), "screen")
}

// Charts are the characters that the dashboard draws with: those of charts, and of frames and signs where a terminal has few.
type Charts uint8

// The characters of charts.
const (
	Braille    Charts = iota // eight dots in a cell
	Blocks                   // eighths of a cell, and shades
	HalfBlocks               // halves of a cell, and shades: what the kernel's font for the Linux console has
	ASCII                    // nothing else, in the whole dashboard
)

// ChartsOf returns the characters that an environment asks for: ASCII where its locale is not of UTF-8.
func ChartsOf(environ []string) Charts {
	term, locale := environmentVariable(environ, "TERM"), strings.ToLower(cmp.Or(environmentVariable(environ, "LC_ALL"), environmentVariable(environ, "LC_CTYPE"), environmentVariable(environ, "LANG")))
	switch {
	case locale != "" && !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8"), slices.Contains([]string{"vt100", "vt102", "vt220"}, term):
		return ASCII
	case term == "linux":
		return HalfBlocks
	}
	return Braille
}
