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

// share is sites that could have one block for all their buffers, in all runs.
type share struct {
	sites   []string
	saved   uint64 // bytes that the peak of a run falls by
	count   int    // buffers that need no create of their own
	runs    int    // that have all of the sites
	grows   bool   // sizes of a site differ: the first may not be the largest
	crossed bool   // several threads use them in a run
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

// accept splits a group of sites where one block for them would be held for so long that a run's peak rises. A site
// alone is a group when it creates more than once: it could keep its buffer.
func accept(runs []map[string]*siteRun, loads []*load, sites []string) []share {
	var out []share
	if fitsRuns(runs, loads, sites) { // all at once: one for fewer may be one more
		return appendShare(out, runs, loads, sites)
	}
	var group []string
	for _, site := range sites {
		if fitsRuns(runs, loads, append(slices.Clone(group), site)) {
			group = append(group, site)
			continue
		}
		out = appendShare(out, runs, loads, group)
		group = nil
		if fitsRuns(runs, loads, []string{site}) {
			group = []string{site}
		}
	}
	return appendShare(out, runs, loads, group)
}

// fitsRuns reports whether no run's peak rises when sites share a block.
func fitsRuns(runs []map[string]*siteRun, loads []*load, sites []string) bool {
	for i, run := range runs {
		before := loads[i].peak()
		undo := loads[i].share(run, sites)
		after := loads[i].peak()
		undo()
		if after > before {
			return false
		}
	}
	return true
}

// share puts one block in the place of all that a run held for sites, and returns what undoes it.
func (l *load) share(run map[string]*siteRun, sites []string) (undo func()) {
	var both hold
	var parts []hold
	for _, name := range sites {
		if s := run[name]; s != nil {
			parts = append(parts, s.holds...)
		}
	}
	for i, p := range parts {
		if i == 0 {
			both = p
		}
		both = join(both, p)
	}
	if both.spans == nil {
		return func() {}
	}
	change := func(sign int64) {
		for _, p := range parts {
			l.add(p, -sign)
		}
		l.add(both, sign)
	}
	change(1)
	return func() { change(-1) }
}

// appendShare keeps what a group saves and makes it so in all runs.
func appendShare(out []share, runs []map[string]*siteRun, loads []*load, sites []string) []share {
	sh := share{sites: sites}
	for i, run := range runs {
		before := loads[i].peak()
		loads[i].share(run, sites)
		sh.saved = max(sh.saved, before-loads[i].peak())
		n, have, thread := 0, 0, int64(nobody)
		for _, name := range sites {
			if s := run[name]; s != nil {
				n += len(s.buffers)
				sh.grows = sh.grows || !s.equal
				thread = mix(thread, s.thread)
				have++
			}
		}
		sh.crossed = sh.crossed || thread == many
		sh.count += max(n-1, 0)
		if have == len(sites) {
			sh.runs++
		}
	}
	if sh.count == 0 {
		return out
	}
	return append(out, sh)
}
