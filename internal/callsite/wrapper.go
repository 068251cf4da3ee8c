package callsite

import (
	"cmp"
	"regexp"
	"slices"
)

// Wrapper is a function of the program that creates memory for several callers, all under the name of one call site.
type Wrapper struct {
	Function string
	Name     string // of the call site
	Callers  int    // number of places that call it
}

// creator is a function that creates memory, as call sites show it.
type creator struct {
	name    string
	several bool // it creates memory at several places, whose names distinguish more than its callers would
	callers map[string]bool
}

// FunctionsWithSeveralCallers returns the functions that create memory at one place, for more than one caller, ordered by that call site.
// SetWrapperPattern names their callers instead.
func (n *Names) FunctionsWithSeveralCallers() []Wrapper {
	creators := map[[2]string]*creator{} // by file and function
	for _, p := range n.processes {
		for _, s := range p.sites {
			own, caller := s.creatorAndCallerFrames()
			if own == nil || own.Function == "" {
				continue
			}
			key := [2]string{cmp.Or(own.File, own.Module), own.Function}
			c := creators[key]
			if c == nil {
				c = &creator{name: s.Name, callers: map[string]bool{}}
				creators[key] = c
			}
			c.several = c.several || c.name != s.Name
			if caller != nil {
				c.callers[caller.callerPlaceText()] = true
			}
		}
	}
	var found []Wrapper
	for key, c := range creators {
		if !c.several && len(c.callers) > 1 {
			found = append(found, Wrapper{Function: key[1], Name: c.name, Callers: len(c.callers)})
		}
	}
	slices.SortFunc(found, func(a, b Wrapper) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// callerPlaceText names a caller by file and line, where these are known, because an unrolled loop has several addresses.
func (f *Frame) callerPlaceText() string {
	if f.File == "" {
		return f.moduleAndOffset()
	}
	return f.Function + f.sourceText(f.File)
}

// creatorAndCallerFrames returns the program's frame that names a call site, and the nearest frame of another function, which
// calls it. Either may be nil.
func (s *Site) creatorAndCallerFrames() (own, caller *Frame) {
	for i := range s.Frames {
		switch f := &s.Frames[i]; {
		case own == nil && !f.isLibrary() && !f.isWrapper():
			own = f
		case own != nil && (f.Function != own.Function || f.File != own.File):
			return own, f
		}
	}
	return own, nil
}

// CreatorAndCaller returns the program's function that creates memory at the call site of a SITE payload, and the place that calls it.
// Both are empty if either is unknown.
func CreatorAndCaller(payload []byte) (function, caller string) {
	site := Site{Frames: FramesAfterWrappers(payload)}
	own, from := site.creatorAndCallerFrames()
	if own == nil || from == nil || own.Function == "" {
		return "", ""
	}
	return own.Function, from.callerPlaceText()
}

// WrapperOption is the option that names call sites after the callers of a function.
func WrapperOption(function string) string { return "--wrapper '^" + regexp.QuoteMeta(function) + "$'" }
