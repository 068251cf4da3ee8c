package doctor

import (
	"maps"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// tool tells of gpumemtop itself.
func (r *Report) tool(o Options) {
	r.say(areaTool, Fact, "", "%s", strings.TrimSpace(o.Version))
	r.say(areaTool, Fact, "", "policies: %s", strings.Join(o.Policies, ", "))
	r.say(areaTool, Fact, "", "recordings go where -o says, by default to ./gpumemtop.PROGRAM.PID.gmt; there are no other files, and no file of settings")
}

const variablePrefix = "GPUMEMTOP_"

// settings tells what the environment sets.
func (r *Report) settings(s *System, o Options) {
	found := false
	for _, entry := range slices.Sorted(slices.Values(s.Environ)) {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variablePrefix) {
			continue
		}
		found = true
		flag, known := o.Settings[name]
		switch {
		case name == wire.SessionEnv:
			r.say(areaSettings, Warning, "leave the session, or: unset "+name, "%s is set: this runs under gpumemtop", name)
		case name == wire.ProbeEnv:
			r.say(areaSettings, Warning, "unset "+name, "%s is set: programs would be probed instead of watched", name)
		case !known:
			r.say(areaSettings, Warning, nearest(name, o.Settings), "%s sets nothing: gpumemtop knows no such variable", name)
		case value == "":
			r.say(areaSettings, Fact, "", "%s is empty, and so is not looked at", name)
		default:
			r.say(areaSettings, Fact, "", "%s sets --%s to %s", name, flag, value)
		}
	}
	if !found {
		r.say(areaSettings, OK, "", "no %s… variable is set: all settings are as gpumemtop --help says", variablePrefix)
	}
	if err := o.Check(); err != nil {
		r.say(areaSettings, Problem, "correct or unset the variable", "these settings do not work: %v", err)
	}
}

// nearest says which variable was meant, if one is near.
func nearest(name string, settings map[string]string) string {
	if best := Nearest(name, slices.Sorted(maps.Keys(settings))); best != "" {
		return "did you mean " + best + "?"
	}
	return "see the table of settings in gpumemtop --help; or unset " + name
}

// Nearest returns the first of the known words that differ from a word in the fewest letters: in fewer than 4, and fewer
// than half of its own. It returns "" when there is none.
func Nearest(word string, known []string) string {
	best, least := "", min(4, (len(word)+1)/2)
	for _, candidate := range known {
		if d := distance(word, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts the letters to insert, remove or replace (Levenshtein).
func distance(a, b string) int {
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

// folders tells where a session would put what the program needs.
func (r *Report) folders(s *System) {
	taken := false
	for _, place := range s.Folders() {
		switch {
		case place.Err != nil:
			r.say(areaFolder, Fact, "", "not in %v", place.Err)
		case !taken:
			taken = true
			r.say(areaFolder, OK, "", "sessions use %s: writable, and libraries can be loaded from it", place.Path)
		default:
			r.say(areaFolder, Fact, "", "%s would do, too", place.Path)
		}
	}
	if !taken {
		r.say(areaFolder, Problem, "set XDG_RUNTIME_DIR to a private folder that is not mounted noexec", "there is no place for a session's folder")
	}
	if err := s.Memfd(); err != nil {
		r.say(areaFolder, Problem, "allow memfd_create(2) in this container or sandbox", "no memory can be shared with programs: %v", err)
	}
	if n := s.OpenFiles(); n > 0 && n < 256 {
		r.say(areaFolder, Warning, "ulimit -n 1024", "a process may have %d open files: programs of many processes may not all be watched", n)
	}
}
