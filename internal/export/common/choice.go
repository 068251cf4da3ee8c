// Package common holds what several exports share: the choice of call sites, and addresses for memory that has none in a
// recording.
package common

import (
	"path"
	"regexp"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
)

// Choice selects the call sites of an export.
type Choice struct {
	names   *callsite.Names
	pattern *regexp.Regexp
	known   map[siteKey]bool
}

type siteKey struct{ process, tag uint32 }

// ChooseSites selects the call sites whose names match a pattern; nil: all.
func ChooseSites(names *callsite.Names, pattern *regexp.Regexp) *Choice {
	return &Choice{names: names, pattern: pattern, known: map[siteKey]bool{}}
}

// ReadNamesAndChooseSites is ChooseSites with the names of a source, which it reads only if there is a pattern.
func ReadNamesAndChooseSites(src recording.Source, pattern *regexp.Regexp) (*Choice, error) {
	names := callsite.NewNames()
	if pattern != nil {
		var err error
		if names, err = callsite.ReadNames(src); err != nil {
			return nil, err
		}
	}
	return ChooseSites(names, pattern), nil
}

// IncludesSite reports whether a call site of a process is selected.
func (c *Choice) IncludesSite(process, tag uint32) bool {
	if c.pattern == nil {
		return true
	}
	key := siteKey{process, tag}
	has, known := c.known[key]
	if !known {
		has = c.pattern.MatchString(c.names.Process(process).Site(tag).Name)
		c.known[key] = has
	}
	return has
}

// FrameName returns the name of a frame: without a symbol its place in the module.
func FrameName(f *callsite.Frame) string {
	switch {
	case f.Function != "":
		return f.Function
	case f.Module != "":
		return path.Base(f.Module) + "+0x" + strconv.FormatUint(f.Offset, 16)
	}
	return "(unknown)"
}
