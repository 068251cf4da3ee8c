package archtest

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Floors are the folders of the shim, from the ground up: what lies on one uses only those before it, and itself.
var Floors = []string{"base", "registry", "order", "pool", "spill", "entry", "hooks"}

// Dispatcher is the one file that refers to functions above it: dispatch.c takes the addresses of all hooks.
const Dispatcher = "base/dispatch.c"

// CFile is what the rules need to know of one file of the shim.
type CFile struct {
	Path     string   // relative to shim/, with slashes
	Includes []string // with quotes, relative to shim/; "../" leads out of it
	Declares []string // gmt_* functions and variables that a header declares
	Defines  []string // those that a source file defines for others
	Uses     []string // all gmt_* names in the code except tags of structs and enums
}

// Floor returns the folder of the file.
func (f *CFile) Floor() string { return path.Dir(f.Path) }

// PathWithoutEnding returns the path without its ending: a source file and its header are one unit.
func (f *CFile) PathWithoutEnding() string { return strings.TrimSuffix(f.Path, path.Ext(f.Path)) }

var (
	cComment  = regexp.MustCompile(`(?s)/\*.*?\*/`)
	cString   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	cInclude  = regexp.MustCompile(`(?m)^#include "([^"]+)"`)
	cTag      = regexp.MustCompile(`\b(?:struct|enum|union)\s+gmt_\w+`)
	cName     = regexp.MustCompile(`\bgmt_[a-z0-9_]+\b`)
	cFunction = regexp.MustCompile(`(?m)^(?:[\w*]+[ *]+)+(gmt_[a-z0-9_]+)\(`)
	cVariable = regexp.MustCompile(`(?m)^(?:[\w()*]+[ *]+)+(gmt_[a-z0-9_]+)(?: __attribute__\(\(.*?\)\)\))?(?: =.*)?;`)
)

// ParseC reads one file's text.
func ParseC(name, text string) CFile {
	file := CFile{Path: name}
	for _, match := range cInclude.FindAllStringSubmatch(text, -1) {
		file.Includes = append(file.Includes, path.Join(path.Dir(name), match[1]))
	}
	code := cString.ReplaceAllString(cComment.ReplaceAllString(text, ""), `""`)
	code = strings.ReplaceAll(code, "struct gmt_functions gmt_driver", "")
	file.Uses = sortUnique(cName.FindAllString(cTag.ReplaceAllString(code, ""), -1))
	flat := cTag.ReplaceAllString(code, "T")
	for _, match := range slices.Concat(cFunction.FindAllStringSubmatch(flat, -1), cVariable.FindAllStringSubmatch(flat, -1)) {
		switch {
		case strings.HasPrefix(match[0], "static") || strings.HasPrefix(match[0], "typedef"):
		case path.Ext(name) == ".h":
			file.Declares = append(file.Declares, match[1])
		default:
			file.Defines = append(file.Defines, match[1])
		}
	}
	file.Declares, file.Defines = sortUnique(file.Declares), sortUnique(file.Defines)
	return file
}

func sortUnique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// LoadShimFiles parses every source file and header on the floors of the shim in folder.
func LoadShimFiles(folder string) ([]CFile, error) {
	var files []CFile
	for _, floor := range Floors {
		names, err := filepath.Glob(filepath.Join(folder, floor, "*.[ch]"))
		if err != nil {
			return nil, fmt.Errorf("list the floor %s: %w", floor, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("read source: %w", err)
			}
			files = append(files, ParseC(path.Join(floor, filepath.Base(name)), string(text)))
		}
	}
	return files, nil
}

// CheckShimFiles returns what breaks the rules: an include that leads up; a function or variable that the header of its own source
// file does not declare, or that another header declares; units that use each other in a circle.
func CheckShimFiles(files []CFile) []string {
	units := map[string]bool{}
	declared := map[string]string{} // name to unit
	var findings []string
	for _, file := range files {
		units[file.PathWithoutEnding()] = true
		if path.Ext(file.Path) != ".h" {
			continue
		}
		for _, name := range file.Declares {
			if other, twice := declared[name]; twice {
				findings = append(findings, fmt.Sprintf("%s: %s is declared in %s.h, too", file.Path, name, other))
			}
			declared[name] = file.PathWithoutEnding()
		}
	}
	uses := map[string]map[string]bool{} // unit to units
	for _, file := range files {
		findings = append(findings, findUpwardIncludes(&file)...)
		findings = append(findings, findDeclarationMismatches(&file, declared, files)...)
		if file.Path == Dispatcher {
			file.Uses = nil
		}
		add := func(unit string) {
			if unit == file.PathWithoutEnding() || !units[unit] {
				return
			}
			if uses[file.PathWithoutEnding()] == nil {
				uses[file.PathWithoutEnding()] = map[string]bool{}
			}
			uses[file.PathWithoutEnding()][unit] = true
		}
		for _, include := range file.Includes {
			add(strings.TrimSuffix(include, path.Ext(include)))
		}
		for _, name := range file.Uses {
			add(declared[name])
		}
	}
	return append(findings, findIncludeCircles(uses)...)
}

func findUpwardIncludes(file *CFile) []string {
	var findings []string
	height := slices.Index(Floors, file.Floor())
	for _, include := range file.Includes {
		other := slices.Index(Floors, path.Dir(include))
		if other > height {
			findings = append(findings, fmt.Sprintf("%s: %s lies above it", file.Path, include))
		}
		if other < 0 && include != "../internal/wire/event.h" && include != "../internal/wire/event_access.h" &&
			include != "../internal/wire/eligible.h" && include != "../internal/wire/flight.h" {
			findings = append(findings, fmt.Sprintf("%s: %s lies on no floor", file.Path, include))
		}
	}
	return findings
}

// findDeclarationMismatches checks the definitions of a source file against its header, and the reverse.
func findDeclarationMismatches(file *CFile, declared map[string]string, files []CFile) []string {
	var findings []string
	for _, name := range file.Defines {
		if declared[name] != file.PathWithoutEnding() {
			findings = append(findings, fmt.Sprintf("%s: %s belongs in %s.h", file.Path, name, file.PathWithoutEnding()))
		}
	}
	source := slices.IndexFunc(files, func(other CFile) bool { return other.Path == file.PathWithoutEnding()+".c" })
	for _, name := range file.Declares {
		if source < 0 || !slices.Contains(files[source].Defines, name) {
			findings = append(findings, fmt.Sprintf("%s: %s.c does not define %s", file.Path, file.PathWithoutEnding(), name))
		}
	}
	return findings
}

// findIncludeCircles removes units that use none of those that are left, until none can go. What stays is in a circle or above one.
func findIncludeCircles(uses map[string]map[string]bool) []string {
	for removed := true; removed; {
		removed = false
		for unit, others := range uses {
			maps.DeleteFunc(others, func(other string, _ bool) bool { return len(uses[other]) == 0 })
			if len(others) == 0 {
				delete(uses, unit)
				removed = true
			}
		}
	}
	var findings []string
	for _, unit := range slices.Sorted(maps.Keys(uses)) {
		findings = append(findings, fmt.Sprintf("%s: in a circle, or above one, with %s", unit,
			strings.Join(slices.Sorted(maps.Keys(uses[unit])), ", ")))
	}
	return findings
}
