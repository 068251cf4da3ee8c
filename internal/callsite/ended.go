package callsite

import (
	"regexp"
	"slices"
	"sync"
)

// bottoms are modules from which threads start: a stack that ends there is whole.
var bottoms = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(libc|libpthread|ld)[-.]`) })

// Ended returns the number of frames at which call stacks end, and the names of call sites whose stacks end there, and which have frames
// of libraries alone: more frames might reach the program.
func (n *Names) Ended() (depth int, sites []string) {
	whole := map[string]bool{} // by name; false: all stacks end
	for _, p := range n.processes {
		for _, frames := range p.depths {
			depth = max(depth, frames)
		}
	}
	for _, p := range n.processes {
		for tag, site := range p.sites {
			whole[site.Name] = whole[site.Name] || p.depths[tag] < depth || !site.ended()
		}
	}
	for name, whole := range whole {
		if !whole {
			sites = append(sites, name)
		}
	}
	return depth, sites
}

// ended reports whether a stack ends in a library, and has only frames of libraries.
func (s *Site) ended() bool {
	if len(s.Frames) == 0 || slices.ContainsFunc(s.Frames, func(f Frame) bool { return !f.library() && !stripped(s.Frames, &f) }) {
		return false
	}
	last := &s.Frames[len(s.Frames)-1]
	return last.Module != "" && !bottoms().MatchString(Base(last.Module))
}
