package callsite

import (
	"regexp"
	"slices"
	"sync"
)

// bottoms matches modules in which threads start: a stack that ends there is complete.
var bottoms = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(libc|libpthread|ld)[-.]`) })

// SitesEndingInLibraries returns the most frames of call stacks, and the names of call sites whose stacks have that many and only frames of
// libraries: with more frames they might reach the program.
func (n *Names) SitesEndingInLibraries() (depth int, sites []string) {
	whole := map[string]bool{} // by name; false: all its stacks end too early
	for _, p := range n.processes {
		for _, frames := range p.depths {
			depth = max(depth, frames)
		}
	}
	for _, p := range n.processes {
		for tag, site := range p.sites {
			whole[site.Name] = whole[site.Name] || p.depths[tag] < depth || !site.endsInLibrary()
		}
	}
	for name, whole := range whole {
		if !whole {
			sites = append(sites, name)
		}
	}
	return depth, sites
}

// endsInLibrary reports whether a stack has only frames of libraries and may continue.
func (s *Site) endsInLibrary() bool {
	if len(s.Frames) == 0 || slices.ContainsFunc(s.Frames, func(f Frame) bool { return !f.isLibrary() && !isStripped(s.Frames, &f) }) {
		return false
	}
	last := &s.Frames[len(s.Frames)-1]
	return last.Module != "" && !bottoms().MatchString(BaseName(last.Module))
}
