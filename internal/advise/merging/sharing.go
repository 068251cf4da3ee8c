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
	thread  int64  // the one that uses them; noUser or many else
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
				known: a.hostRead(0, b.Created) + 1, thread: noUser,
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
			if !s.equal { // the size of the next one is unknown
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

// share is sites that could have one block for all their buffers, in all runs.
type share struct {
	sites   []string
	saved   uint64 // bytes that the peak of a run falls by
	count   int    // buffers that need no create of their own
	runs    int    // that have all of the sites
	grows   bool   // sizes of a site differ: the first may not be the largest
	crossed bool   // several threads use them in a run
}

// sharing is sites that are being given one block, in all runs.
type sharing struct {
	runs   []map[string]*siteRun
	loads  []*load
	limits []uint64 // of each run: its peak before
	blocks []hold   // of each run: what the sites share; no spans when it has none of them
	sites  []string
}

func beginSharing(runs []map[string]*siteRun, loads []*load) *sharing {
	g := &sharing{runs: runs, loads: loads, blocks: make([]hold, len(runs))}
	for _, l := range loads {
		g.limits = append(g.limits, l.peak())
	}
	return g
}

// take gives sites the block, too, unless that takes the peak of a run above what it was before any had it. It takes
// time for what the program held for these sites, not for that of those before.
func (g *sharing) take(sites ...string) bool {
	before := slices.Clone(g.blocks)
	fits := true
	for i := range g.runs {
		g.join(i, sites)
		fits = fits && g.loads[i].peak() <= g.limits[i]
	}
	if fits {
		g.sites = append(g.sites, sites...)
		return true
	}
	for i := range g.runs {
		g.leave(i, sites, before[i])
	}
	return false
}

// join puts the block in the place of what a run held for sites.
func (g *sharing) join(run int, sites []string) {
	block := g.blocks[run]
	for _, part := range g.parts(run, sites) {
		if block.spans == nil {
			block = part
		} else {
			block = join(block, part)
		}
		g.loads[run].add(part, -1)
	}
	g.exchange(run, block)
}

// leave undoes a join.
func (g *sharing) leave(run int, sites []string, before hold) {
	for _, part := range g.parts(run, sites) {
		g.loads[run].add(part, 1)
	}
	g.exchange(run, before)
}

// parts returns what a run held for sites.
func (g *sharing) parts(run int, sites []string) []hold {
	var parts []hold
	for _, name := range sites {
		if s := g.runs[run][name]; s != nil {
			parts = append(parts, s.holds...)
		}
	}
	return parts
}

func (g *sharing) exchange(run int, block hold) {
	g.loads[run].add(g.blocks[run], -1)
	g.loads[run].add(block, 1)
	g.blocks[run] = block
}

// accept splits a group of sites where one block for them would be held for so long that a run's peak rises. A site
// alone is a group when it creates more than once: it could keep its buffer.
func accept(runs []map[string]*siteRun, loads []*load, sites []string) []share {
	var out []share
	g := beginSharing(runs, loads)
	if g.take(sites...) { // all at once: one for fewer may be one more
		return g.end(out)
	}
	for _, site := range sites {
		if g.take(site) {
			continue
		}
		out = g.end(out)
		g = beginSharing(runs, loads)
		g.take(site)
	}
	return g.end(out)
}

// end keeps what the sites save.
func (g *sharing) end(out []share) []share {
	sh := share{sites: g.sites}
	for i, run := range g.runs {
		sh.saved = max(sh.saved, g.limits[i]-g.loads[i].peak())
		n, have, thread := 0, 0, int64(noUser)
		for _, name := range g.sites {
			if s := run[name]; s != nil {
				n += len(s.buffers)
				sh.grows = sh.grows || !s.equal
				thread = mix(thread, s.thread)
				have++
			}
		}
		sh.crossed = sh.crossed || thread == many
		sh.count += max(n-1, 0)
		if have == len(g.sites) {
			sh.runs++
		}
	}
	if sh.count == 0 {
		return out
	}
	return append(out, sh)
}

// turn is one buffer of a site that is used.
type turn struct {
	span Span // from its first use to its last
	hold hold // what the program holds for it
}

// rotation is a site that could keep a few buffers and use them in turn.
type rotation struct {
	site    string
	blocks  int  // the most that any run needs
	same    bool // all runs need as many
	saved   int  // creates, in all runs
	crossed bool // several threads use them in a run
	runs    int
}

// rotations finds sites with several buffers in use at a time that create more than these, where keeping so few makes no
// run's peak larger. What is found is made so in the loads.
func rotations(runs []map[string]*siteRun, loads []*load) []rotation {
	names := map[string]bool{}
	for _, run := range runs {
		for name, s := range run {
			keep, seen := names[name]
			names[name] = (keep || !seen) && s.plain && s.equal
		}
	}
	maps.DeleteFunc(names, func(_ string, keep bool) bool { return !keep })
	var out []rotation
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if r, ok := rotate(runs, loads, name); ok {
			out = append(out, r)
		}
	}
	return out
}

func rotate(runs []map[string]*siteRun, loads []*load, name string) (r rotation, ok bool) {
	r = rotation{site: name, same: true}
	var undo []func()
	for i, run := range runs {
		s := run[name]
		if s == nil {
			continue
		}
		groups := takeTurns(s.turns)
		r.same = r.same && (r.blocks == 0 || r.blocks == len(groups))
		r.blocks, r.runs = max(r.blocks, len(groups)), r.runs+1
		r.saved += len(s.turns) - len(groups)
		r.crossed = r.crossed || s.thread == many
		before := loads[i].peak()
		undo = append(undo, loads[i].keep(groups))
		if loads[i].peak() > before {
			r.saved = 0
			break
		}
	}
	if ok = r.blocks > 1 && r.saved > 0; !ok {
		for _, back := range undo {
			back()
		}
	}
	return r, ok
}

// takeTurns divides buffers into as few groups as can be, in each of which they are used one after the other.
func takeTurns(turns []turn) [][]turn {
	turns = slices.SortedStableFunc(slices.Values(turns), func(x, y turn) int { return cmp.Compare(x.span.From, y.span.From) })
	ending := make([]int, len(turns))
	for i := range ending {
		ending[i] = i
	}
	slices.SortStableFunc(ending, func(x, y int) int { return cmp.Compare(turns[x].span.To, turns[y].span.To) })
	var groups [][]turn
	var free []int
	in := make([]int, len(turns)) // which group
	for i, t := range turns {
		for turns[ending[0]].span.To <= t.span.From { // it began before: t itself has not ended
			free = append(free, in[ending[0]])
			ending = ending[1:]
		}
		if n := len(free); n > 0 {
			in[i], free = free[n-1], free[:n-1]
			groups[in[i]] = append(groups[in[i]], t)
			continue
		}
		in[i] = len(groups)
		groups = append(groups, []turn{t})
	}
	return groups
}

// keep puts one block in the place of all that was held for each group, and returns what undoes it.
func (l *load) keep(groups [][]turn) (undo func()) {
	change := func(sign int64) {
		for _, g := range groups {
			both := g[0].hold
			for _, t := range g { // all are of one size
				l.add(t.hold, -sign)
				both = join(both, t.hold)
			}
			l.add(both, sign)
		}
	}
	change(1)
	return func() { change(-1) }
}
