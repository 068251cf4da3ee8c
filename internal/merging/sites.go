package merging

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// siteRun is what one run did at one site.
type siteRun struct {
	buffers []int
	spans   []Span // of all its buffers in the form asked for
	holds   []hold // what the program held for each
	size    uint64 // the largest
	class   uint32
	equal   bool   // all have one size
	filled  bool   // its one buffer comes with data
	plain   bool   // all have memory of their own, of one class, and come without data
	turns   []turn // those that are used
	thread  int64  // the one that uses them; nobody or many else
	alone   bool   // no two of its buffers interfere, and all are plain, of one class and, if several, without data
	created int
	known   int // when the size of its first was
}

// sites returns what one run did at each site, by name, with the lifetimes of what is not gone.
func (a *Analysis) sites(gone map[int]bool, l *Lifetimes) map[string]*siteRun {
	api := a.Lifetimes(API)
	out := map[string]*siteRun{}
	for i := range a.Program.Buffers {
		if !a.root(i) || gone[i] {
			continue
		}
		b := &a.Program.Buffers[i]
		name := a.Program.Name(b.Site)
		s := out[name]
		if s == nil {
			s = &siteRun{
				class: b.Class, equal: true, alone: true, plain: true, created: b.Created, size: b.Size,
				known: a.hostRead(0, b.Created) + 1, thread: nobody,
			}
			out[name] = s
		}
		s.equal = s.equal && b.Size == s.size
		s.size = max(s.size, b.Size)
		s.plain = s.plain && b.Pinned == Free && b.Class == s.class
		s.filled = s.filled || a.filled(i)
		s.thread = mix(s.thread, a.threads[i])
		s.buffers = append(s.buffers, i)
		s.spans = append(s.spans, l.Spans[i]...)
		if len(api.Spans[i]) > 0 {
			s.holds = append(s.holds, hold{b.Size, api.Spans[i]})
			if n := len(l.Spans[i]); n > 0 {
				s.turns = append(s.turns, turn{Span{l.Spans[i][0].From, l.Spans[i][n-1].To}, hold{b.Size, api.Spans[i]}})
			}
		}
	}
	for _, s := range out {
		s.alone = s.plain && (!s.filled || len(s.buffers) == 1)
		s.plain = s.plain && !s.filled
		slices.SortFunc(s.spans, func(x, y Span) int { return cmp.Compare(x.From, y.From) })
		for i := 1; i < len(s.spans); i++ {
			s.alone = s.alone && s.spans[i-1].To <= s.spans[i].From
		}
	}
	return out
}

// shares finds sites whose buffers never interfere in any run. Nothing is taken that makes the peak of a run larger.
func shares(runs []map[string]*siteRun, loads []*load, grow bool) ([]share, error) {
	names := candidates(runs)
	p := siteProblem(runs, names, grow)
	plan := p.Solve(Bound{}, false)
	if err := p.verify(plan); err != nil {
		return nil, err
	}
	var out []share
	for _, group := range plan.Groups {
		var sites []string
		for _, x := range group {
			sites = append(sites, names[x])
		}
		out = append(out, accept(runs, loads, sites)...)
	}
	return out, nil
}

// mostSites is how many sites are planned together: those with the largest buffers.
const mostSites = 1024

// candidates returns the sites that have one buffer at a time in all runs, in the order of their first creates.
func candidates(runs []map[string]*siteRun) []string {
	first, size := map[string]int{}, map[string]uint64{}
	for _, run := range runs {
		for name, s := range run {
			size[name] = max(size[name], s.size)
			if at, seen := first[name]; !s.alone || seen && at < 0 {
				first[name] = -1
			} else if !seen {
				first[name] = s.created
			}
		}
	}
	maps.DeleteFunc(first, func(_ string, at int) bool { return at < 0 })
	names := slices.SortedFunc(maps.Keys(first), func(x, y string) int {
		return cmp.Or(cmp.Compare(size[y], size[x]), cmp.Compare(x, y))
	})
	names = names[:min(len(names), mostSites)]
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(first[x], first[y]), cmp.Compare(x, y))
	})
	return names
}

// siteProblem has sites for blocks. An edge stands for all that keeps two of them apart in any run.
func siteProblem(runs []map[string]*siteRun, names []string, grow bool) *Problem {
	p := &Problem{Max: grow, Blocks: make([]Block, len(names)), Edges: make([]map[int]bool, len(names))}
	for x, name := range names {
		p.Edges[x] = map[int]bool{}
		p.Blocks[x].Created = math.MaxInt
		for _, run := range runs {
			s := run[name]
			if s == nil {
				continue
			}
			b := &p.Blocks[x]
			b.Fixed = b.Fixed || s.filled
			b.Size, b.Created, b.Known = max(b.Size, s.size), min(b.Created, s.created), max(b.Known, s.known)
			if !s.equal { // nobody knows how large the next one is
				b.Known = math.MaxInt
			}
		}
	}
	for x := range names {
		for y := range x {
			if slices.ContainsFunc(runs, func(run map[string]*siteRun) bool { return apart(run[names[x]], run[names[y]], grow) }) {
				p.Edges[x][y], p.Edges[y][x] = true, true
			}
		}
	}
	return p
}

// apart reports whether a run keeps two sites apart. A run that lacks one of them does not.
func apart(x, y *siteRun, grow bool) bool {
	if x == nil || y == nil {
		return false
	}
	sizes := !grow && (x.size != y.size || !x.equal || !y.equal)
	return sizes || x.class != y.class || overlap(x.spans, y.spans)
}
