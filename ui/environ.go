package ui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/charmbracelet/colorprofile"
)

// variable returns the value of a variable in an environment, empty if it has none.
func variable(environ []string, name string) string {
	for _, entry := range environ {
		if value, is := strings.CutPrefix(entry, name+"="); is {
			return value
		}
	}
	return ""
}

// ColorsOf returns the colours that a terminal has, as an environment tells. tmux takes all, and shows those that its own terminal has;
// GNU Screen, which may run in tmux, or tmux in it, does not.
func ColorsOf(environ []string) colorprofile.Profile {
	profile := colorprofile.Env(environ)
	if profile == colorprofile.ANSI256 && variable(environ, "TMUX") != "" && variable(environ, "STY") == "" {
		return colorprofile.TrueColor
	}
	return profile
}

// ASCIIOnly reports whether the locale of an environment is not of UTF-8, or its terminal is one that lacks most of Unicode.
func ASCIIOnly(environ []string) bool {
	if slices.Contains([]string{"linux", "vt100", "vt102", "vt220"}, variable(environ, "TERM")) {
		return true
	}
	locale := strings.ToLower(cmp.Or(variable(environ, "LC_ALL"), variable(environ, "LC_CTYPE"), variable(environ, "LANG")))
	return locale != "" && !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
}
