package doctor

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/colorprofile"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/rights"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// reportGpumemtop reports gpumemtop itself.
func (r *Report) reportGpumemtop(o Options) {
	r.addLine(areaTool, Fact, "", "%s", o.Version)
	r.addLine(areaTool, Fact, "", "policies: %s", strings.Join(o.Policies, ", "))
	r.addLine(areaTool, Fact, "", "recordings go where -o says, by default to ./gpumemtop.PROGRAM.PID.gmt")
}

const variablePrefix = "GPUMEMTOP_"

// reportSettings reports what the environment and the user's file set.
func (r *Report) reportSettings(s *System, o Options) {
	found := o.SettingsFile != ""
	if found {
		r.addLine(areaSettings, Fact, "", "%s is read", o.SettingsFile)
	}
	for _, entry := range slices.Sorted(slices.Values(s.Environ)) {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variablePrefix) {
			continue
		}
		found = true
		flag, known := o.Settings[name]
		switch {
		case name == wire.SessionEnv:
			r.addLine(areaSettings, Warning, "leave the session, or: unset "+name, "%s is set: this runs under gpumemtop", name)
		case name == wire.ProbeEnv:
			r.addLine(areaSettings, Warning, "unset "+name, "%s is set: programs would be probed instead of watched", name)
		case name == wire.LogEnv || name == wire.LabelEnv:
			r.addLine(areaSettings, Fact, "", "%s is %s, for flight logs: see gpumemtop library --help", name, value)
		case name == wire.USDTEnv:
			r.addLine(areaSettings, Fact, "", "%s is %s, for tools that listen to the library's static probes", name, value)
		case !known:
			r.addLine(areaSettings, Warning, suggestedVariableText(name, o.Settings), "%s sets nothing: gpumemtop knows no such variable", name)
		case value == "":
			r.addLine(areaSettings, Fact, "", "%s is empty, and so is not looked at", name)
		default:
			r.addLine(areaSettings, Fact, "", "%s sets --%s to %s", name, flag, value)
		}
	}
	if !found {
		r.addLine(areaSettings, OK, "", "no %s… variable is set, and there is no file of settings: all settings are as gpumemtop --help says", variablePrefix)
	}
	if err := o.Check(); err != nil {
		r.addLine(areaSettings, Problem, "correct or remove it", "these settings do not work: %v", err)
	}
}

// suggestedVariableText says which variable was meant, if one is near.
func suggestedVariableText(name string, settings map[string]string) string {
	if best := NearestWord(name, slices.Sorted(maps.Keys(settings))); best != "" {
		return "did you mean " + best + "?"
	}
	return "see the table of settings in gpumemtop --help; or unset " + name
}

// NearestWord returns the first of the known words that differ from a word in the fewest letters: in fewer than 4, and
// fewer than half of its own. It returns "" when there is none.
func NearestWord(word string, known []string) string {
	best, least := "", min(4, (len(word)+1)/2)
	for _, candidate := range known {
		if d := editDistance(word, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// editDistance counts the letters to insert, remove or replace (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// checkFolders checks where a session would put what the program needs.
func (r *Report) checkFolders(s *System) {
	taken := false
	for _, place := range s.Folders() {
		switch {
		case place.Err != nil:
			r.addLine(areaFolder, Fact, "", "not in %v", place.Err)
		case !taken:
			taken = true
			r.addLine(areaFolder, OK, "", "sessions use %s: writable, and libraries can be loaded from it", place.Path)
		default:
			r.addLine(areaFolder, Fact, "", "%s would do, too", place.Path)
		}
	}
	if !taken {
		r.addLine(areaFolder, Problem, "set XDG_RUNTIME_DIR to a private folder that is not mounted noexec", "there is no place for a session's folder")
	}
	if err := s.Memfd(); err != nil {
		r.addLine(areaFolder, Problem, "allow memfd_create(2) in this container or sandbox", "no memory can be shared with programs: %v", err)
	}
	if n := s.OpenFiles(); n > 0 && n < 256 {
		r.addLine(areaFolder, Warning, "ulimit -n 1024", "a process may have %d open files: programs of many processes may not all be watched", n)
	}
}

// checkAttaching checks whether running programs can be watched, and what that depends on. Without it programs can
// still be run under gpumemtop, so that nothing of this is a problem.
func (r *Report) checkAttaching(s *System) {
	report := s.Rights()
	lost := Warning
	if report.Obstacle != "" {
		r.addLine(areaAttaching, Warning, report.Advice, "programs that run already cannot be watched: %s", report.Obstacle)
		// What else is missing matters only once that is settled.
		lost = Fact
	} else {
		r.addLine(areaAttaching, OK, "", "programs that run already can be watched: gpumemtop attach")
	}
	for _, f := range report.Features {
		level := Fact
		switch f.State {
		case rights.Yes:
			level = OK
		case rights.No:
			level = lost
		}
		r.addLine(areaAttaching, level, f.Advice, "%s", f.Detail)
	}
}

// The least size of a terminal that shows panes, and the one for all of them (ui).
const (
	panesW, panesH = 60, 12
	allW, allH     = 100, 30
)

// checkTerminal checks what the dashboard would find.
func (r *Report) checkTerminal(s *System) {
	cols, rows, ok := s.Terminal()
	term := s.envVariable("TERM")
	switch {
	case !ok:
		r.addLine(areaTerminal, Warning, "", "there is no terminal: programs run without a dashboard, and view cannot be used")
		return
	case term == "" || term == "dumb":
		r.addLine(areaTerminal, Warning, "set TERM to the terminal's kind", "TERM is %q: no dashboard", term)
	case cols < panesW || rows < panesH:
		r.addLine(areaTerminal, Warning, "make it larger: "+columnsByRows(panesW, panesH)+", better "+columnsByRows(allW, allH), "the terminal has %s cells: the dashboard shows numbers only", columnsByRows(cols, rows))
	default:
		r.addLine(areaTerminal, OK, "", "TERM is %s, %s cells, %s", term, columnsByRows(cols, rows), s.coloursText())
	}
	if ci := s.envVariable("CI"); ci != "" && ci != "false" && ci != "0" {
		r.addLine(areaTerminal, Warning, "unset CI", "CI is set: no dashboard")
	}
	locale, charts := s.textLocale(), ui.ChartsOf(s.Environ)
	switch utf8 := strings.Contains(strings.ReplaceAll(strings.ToLower(locale), "-", ""), "utf8"); {
	case utf8 && charts == ui.HalfBlocks:
		r.addLine(areaTerminal, OK, "", "the locale %s is UTF-8; on a Linux console the dashboard draws with half blocks, or with ASCII where its font has none", locale)
	case utf8 && charts == ui.ASCII:
		r.addLine(areaTerminal, OK, "", "the locale %s is UTF-8; with this TERM the dashboard draws with ASCII", locale)
	case utf8:
		r.addLine(areaTerminal, OK, "", "the locale %s is UTF-8", locale)
	case charts == ui.ASCII:
		r.addLine(areaTerminal, Warning, "use a locale such as C.UTF-8", "the locale %q is not UTF-8: the dashboard draws with ASCII", locale)
	default:
		r.addLine(areaTerminal, Warning, "use --ascii, or a locale such as C.UTF-8", "no locale is set: lines and charts may be garbled")
	}
}

func columnsByRows(cols, rows int) string { return strconv.Itoa(cols) + "x" + strconv.Itoa(rows) }

// textLocale returns the locale that decides how text is written (locale(7)).
func (s *System) textLocale() string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := s.envVariable(name); v != "" {
			return v
		}
	}
	return "C"
}

// coloursText says which colours the dashboard uses.
func (s *System) coloursText() string {
	switch profile := ui.ColorsOf(s.Environ); {
	case s.envVariable("NO_COLOR") != "":
		return "no colours (NO_COLOR)"
	case profile == colorprofile.TrueColor:
		return "16 million colours"
	case profile == colorprofile.ANSI256:
		return "256 colours"
	}
	return "16 colours"
}
