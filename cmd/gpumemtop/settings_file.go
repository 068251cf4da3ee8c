package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/doctor"
	"codeberg.org/gpumemtop/gpumemtop/internal/document"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// settingsFileMax bounds a settings file, bytes.
const settingsFileMax = 64 << 10

// settingsFile is the file that --config names, or else the user's.
type settingsFile struct {
	path    string
	users   bool
	entries []entry // in the order of the file
}

// entry is a setting of the file.
type entry struct {
	setting *setting
	line    int
	values  []valueAt // as the flag takes them; several for a flag that can be given several times
}

type valueAt struct {
	text string
	line int
}

type lineError struct {
	line int
	text string
}

// Error implements error.
func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.text) }

func readSettingsFile(path string) (*settingsFile, error) {
	text, err := files.ReadBoundedFile(path, settingsFileMax)
	if err != nil {
		return nil, fmt.Errorf("%w: want a settings file in TOML", err)
	}
	entries, err := parseSettings(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s, %w", path, err)
	}
	return &settingsFile{path: path, entries: entries}, nil
}

// userSettingsPath returns the path of the user's settings file (XDG Base Directory Specification), empty without a home.
func userSettingsPath(lookup func(string) (string, bool)) string {
	folder, _ := lookup("XDG_CONFIG_HOME")
	if !filepath.IsAbs(folder) {
		home, _ := lookup("HOME")
		if !filepath.IsAbs(home) {
			return ""
		}
		folder = filepath.Join(home, ".config")
	}
	return filepath.Join(folder, "gpumemtop", "config.toml")
}

// existingUserSettingsPath returns the path of the user's settings file, empty if it does not exist.
func existingUserSettingsPath(lookup func(string) (string, bool)) string {
	path := userSettingsPath(lookup)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// readUserSettings reads the user's settings file, nil if there is none. A file that another user owns, as root may find it after
// su, is an error.
func readUserSettings(lookup func(string) (string, bool)) (*settingsFile, error) {
	path := existingUserSettingsPath(lookup)
	var info unix.Stat_t
	if path == "" || unix.Stat(path, &info) != nil {
		return nil, nil
	}
	if owner := int(info.Uid); owner != 0 && owner != os.Geteuid() {
		return nil, fmt.Errorf("%s belongs to user %d: --config FILE names another file, and --config '' none", path, owner)
	}
	file, err := readSettingsFile(path)
	if file != nil {
		file.users = true
	}
	return file, err
}

// entryOfSetting returns the entry of a setting, nil if there is none.
func (f *settingsFile) entryOfSetting(name string) *entry {
	if f == nil {
		return nil
	}
	i := slices.IndexFunc(f.entries, func(e entry) bool { return e.setting.name == name })
	if i < 0 {
		return nil
	}
	return &f.entries[i]
}

func (f *settingsFile) fileAndLine(line int) string { return fmt.Sprintf("%s, line %d", f.path, line) }

// parseSettings reads settings in TOML: keys are the names of flags that have a variable. Errors are lineErrors.
func parseSettings(text string) ([]entry, error) {
	var all map[string]any
	keys, err := document.DecodeTOML(text, &all)
	var bad *document.Error
	if errors.As(err, &bad) {
		return nil, &lineError{bad.Line, strings.TrimSuffix(bad.Text, ".") + ": want TOML, with lines such as policy = \"slab\""}
	}
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, key := range keys {
		name := key.Parts[0]
		if slices.ContainsFunc(entries, func(e entry) bool { return e.setting.name == name }) {
			continue // a value in a table
		}
		e, err := parseEntry(keys, name, all[name], key.Line)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func parseEntry(keys []document.Key, name string, value any, line int) (entry, error) {
	e := entry{line: line}
	wrong := func(err error) (entry, error) { return e, &lineError{e.line, err.Error()} }
	var err error
	if e.setting, err = findSettingOfKey(name); err != nil {
		return wrong(err)
	}
	if _, several := e.setting.newValueField().(*[]string); several {
		e.values, err = parseAssignments(keys, name, value, e.line)
	} else {
		var text string
		text, err = e.setting.flagText(value)
		e.values = []valueAt{{text, e.line}}
	}
	var placed *lineError
	if errors.As(err, &placed) {
		return e, err
	}
	if err == nil {
		err = e.setting.checkValuesOnFlag(e.values)
	}
	if err != nil {
		return wrong(err)
	}
	return e, nil
}

// findSettingOfKey finds the setting of a key.
func findSettingOfKey(name string) (*setting, error) {
	known, flagOnly := settingNamesOfFile(), false
	for i := range settings {
		s := &settings[i]
		if s.name == name && s.mayBeInFile() {
			return s, nil
		}
		flagOnly = flagOnly || s.name == name
	}
	if flagOnly {
		return nil, fmt.Errorf("a settings file cannot set %s: give --%s on the command line", name, name)
	}
	if near := doctor.NearestWord(name, known); near != "" {
		return nil, fmt.Errorf("unknown setting %s: did you mean %s?", units.Clean(strconv.Quote(name)), near)
	}
	return nil, fmt.Errorf("unknown setting %s: want one of %s", units.Clean(strconv.Quote(name)), strings.Join(known, ", "))
}

// settingNamesOfFile are the names of the settings that a file can have.
func settingNamesOfFile() []string {
	var names []string
	for i := range settings {
		if s := &settings[i]; s.mayBeInFile() && !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	return names
}

// newValueField returns an empty field for a setting of a file; its type follows from the value's name in help.
func (s *setting) newValueField() any {
	switch s.value {
	case "":
		return new(bool)
	case "N":
		return new(int)
	case "TIME":
		return new(time.Duration)
	case "LIMIT=VALUE", "NAME=VALUE":
		return new([]string)
	}
	return new(string)
}

// flagText writes a value as the flag takes it.
func (s *setting) flagText(value any) (string, error) {
	text, isText := value.(string)
	want := "a text in quotes"
	switch s.newValueField().(type) {
	case *bool:
		if b, ok := value.(bool); ok {
			return strconv.FormatBool(b), nil
		}
		want = "true or false"
	case *int:
		if n, ok := value.(int64); ok {
			return strconv.FormatInt(n, 10), nil
		}
		want = "a whole number"
	case *time.Duration:
		if isText {
			return text, nil
		}
		want = "a time in quotes, such as \"1.5s\""
	default:
		if isText {
			return text, nil
		}
		if n, ok := value.(int64); ok && s.value == "SIZE" {
			return strconv.FormatInt(n, 10), nil
		}
	}
	return "", fmt.Errorf("%s is %s: want %s", s.name, describeValue(value), want)
}

func describeValue(value any) string {
	switch v := value.(type) {
	case string:
		return "the text " + units.Clean(strconv.Quote(v))
	case bool, int64, float64:
		return fmt.Sprint(v)
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}

// limitName matches names of limits. They contain no comma, which separates limits.
var limitName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

// parseAssignments reads a table of names and values, or a list of "NAME=VALUE".
func parseAssignments(keys []document.Key, name string, value any, line int) ([]valueAt, error) {
	var list []valueAt
	switch all := value.(type) {
	case []any:
		for _, one := range all {
			text, ok := one.(string)
			if !ok {
				return nil, fmt.Errorf("%s has %s in its list: want texts, such as \"max_age=30s\"", name, describeValue(one))
			}
			list = append(list, valueAt{text, line})
		}
		return list, nil
	case map[string]any:
		what := strings.Replace(name, "set", "limit", 1)
		for _, key := range keys {
			if len(key.Parts) != 2 || key.Parts[0] != name {
				continue
			}
			at, limit := key.Line, key.Parts[1]
			text, err := parseAssignment(what, limit, all[limit])
			if err != nil {
				return nil, &lineError{at, err.Error()}
			}
			list = append(list, valueAt{text, at})
		}
		return list, nil
	}
	return nil, fmt.Errorf("%s is %s: want a table, as in [%s] with lines such as max_age = \"30s\", or a list of texts", name, describeValue(value), name)
}

// parseAssignment reads one value of such a table.
func parseAssignment(what, name string, value any) (string, error) {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case bool:
		text = strconv.FormatBool(v)
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return "", fmt.Errorf("%s %s is %s: want a text in quotes, a number, true or false", what, units.Clean(name), describeValue(value))
	}
	if !limitName().MatchString(name) {
		hint := "gpumemtop policies lists them"
		if what != "limit" {
			hint = "want letters, digits and _"
		}
		return "", fmt.Errorf("%s is not the name of a %s: %s", units.Clean(strconv.Quote(name)), what, hint)
	}
	if strings.Contains(text, ",") {
		return "", fmt.Errorf("%s %s is %s: want one value, without a comma", what, name, describeValue(text))
	}
	return name + "=" + text, nil
}

// checkValuesOnFlag tries the values on a separate flag.
func (s *setting) checkValuesOnFlag(values []valueAt) error {
	flags := pflag.NewFlagSet(s.name, pflag.ContinueOnError)
	s.bindFlag(flags, s.newValueField())
	for _, value := range values {
		if flags.Set(s.name, value.text) != nil {
			return fmt.Errorf("bad value %s for %s: want what --%s takes", units.Clean(strconv.Quote(value.text)), s.name, s.name)
		}
	}
	return nil
}
