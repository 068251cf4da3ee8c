package lives

import (
	"path"
	"regexp"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// Choice says which call sites an export is about. The zero value takes all.
type Choice struct {
	names   *life.Names
	pattern *regexp.Regexp
	known   map[siteKey]bool
}

type siteKey struct{ process, tag uint32 }

// NewChoice returns the call sites whose names match a pattern; nil: all.
func NewChoice(names *life.Names, pattern *regexp.Regexp) *Choice {
	return &Choice{names: names, pattern: pattern, known: map[siteKey]bool{}}
}

// Has reports whether a call site of a process was asked for.
func (c *Choice) Has(process, tag uint32) bool {
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

// FrameName is what a frame is called: without a symbol that is its place in the module.
func FrameName(f *model.Frame) string {
	switch {
	case f.Function != "":
		return f.Function
	case f.Module != "":
		return path.Base(f.Module) + "+0x" + strconv.FormatUint(f.Offset, 16)
	}
	return "(unknown)"
}
