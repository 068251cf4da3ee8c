package merging

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// siteRun is what one run did at one call site.
type siteRun struct {
	buffers    []int
	spans      []Span      // of all its buffers, in the form asked for
	held       []heldBlock // what the program held for each buffer
	size       uint64      // the largest
	class      uint32
	equal      bool        // all buffers have one size
	filled     bool        // a create brings data
	plain      bool        // all buffers have memory of their own, are of one class, and are created without data
	uses       []bufferUse // of the buffers that are used
	thread     int64       // the one thread that uses them; noUser or severalUsers otherwise
	oneAtATime bool        // no two of its buffers interfere, and they could be one buffer
	created    int
	known      int // the step at which the size of its first buffer was known
}

// siteRunsByName returns what one run did at each call site, by name, with the given lifetimes and without the buffers that
// coalescing removes.
func (a *Analysis) siteRunsByName(removed map[int]bool, l *Lifetimes) map[string]*siteRun {
	api := a.Lifetimes(API)
	out := map[string]*siteRun{}
	for i := range a.Program.Buffers {
		if !a.isRoot(i) || removed[i] {
			continue
		}
		b := &a.Program.Buffers[i]
		name := a.Program.NameOfSite(b.Site)
		s := out[name]
		if s == nil {
			s = &siteRun{
				class: b.Class, equal: true, oneAtATime: true, plain: true, created: b.Created, size: b.Size,
				known: a.lastHostRead(0, b.Created) + 1, thread: noUser,
			}
			out[name] = s
		}
		s.equal = s.equal && b.Size == s.size
		s.size = max(s.size, b.Size)
		s.plain = s.plain && b.Pinned == Free && b.Class == s.class
		s.filled = s.filled || a.isFilledByCreate(i)
		s.thread = commonUser(s.thread, a.threads[i])
		s.buffers = append(s.buffers, i)
		s.spans = append(s.spans, l.Spans[i]...)
		if len(api.Spans[i]) > 0 {
			s.held = append(s.held, heldBlock{b.Size, api.Spans[i]})
			if n := len(l.Spans[i]); n > 0 {
				s.uses = append(s.uses, bufferUse{Span{l.Spans[i][0].From, l.Spans[i][n-1].To}, heldBlock{b.Size, api.Spans[i]}})
			}
		}
	}
	for _, s := range out {
		s.oneAtATime = s.plain && (!s.filled || len(s.buffers) == 1)
		s.plain = s.plain && !s.filled
		slices.SortFunc(s.spans, func(x, y Span) int { return cmp.Compare(x.From, y.From) })
		for i := 1; i < len(s.spans); i++ {
			s.oneAtATime = s.oneAtATime && s.spans[i-1].To <= s.spans[i].From
		}
	}
	return out
}

// findShares finds call sites whose buffers never interfere in any run. Nothing is shared that would raise the peak of a
// run.
func findShares(runs []map[string]*siteRun, loads []*load, grow bool) ([]share, error) {
	names := sitesWithOneBuffer(runs)
	p := siteProblem(runs, names, grow)
	plan := p.FindBestGrouping(Bound{}, false)
	if err := p.checkGrouping(plan); err != nil {
		return nil, err
	}
	var out []share
	for _, group := range plan.Groups {
		out = append(out, splitShares(runs, loads, p, names, group)...)
	}
	return out, nil
}

// mostSites bounds how many sites are planned together: those with the largest buffers.
const mostSites = 1024

// sitesWithOneBuffer returns the sites that have one buffer at a time in all runs, in the order of their first creates.
func sitesWithOneBuffer(runs []map[string]*siteRun) []string {
	first, size := map[string]int{}, map[string]uint64{}
	for _, run := range runs {
		for name, s := range run {
			size[name] = max(size[name], s.size)
			if created, seen := first[name]; !s.oneAtATime || seen && created < 0 {
				first[name] = -1
			} else if !seen {
				first[name] = s.created
			}
		}
	}
	maps.DeleteFunc(first, func(_ string, created int) bool { return created < 0 })
	names := slices.SortedFunc(maps.Keys(first), func(x, y string) int {
		return cmp.Or(cmp.Compare(size[y], size[x]), cmp.Compare(x, y))
	})
	names = names[:min(len(names), mostSites)]
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(first[x], first[y]), cmp.Compare(x, y))
	})
	return names
}

// siteProblem returns a problem with sites as blocks. An edge joins two sites that any run keeps from sharing.
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
			if !s.equal { // the size of the next buffer is unknown
				b.Known = math.MaxInt
			}
		}
	}
	for x := range names {
		for y := range x {
			if slices.ContainsFunc(runs, func(run map[string]*siteRun) bool { return mustNotShare(run[names[x]], run[names[y]], grow) }) {
				p.Edges[x][y], p.Edges[y][x] = true, true
			}
		}
	}
	return p
}

// mustNotShare reports whether a run keeps two sites from sharing. A run without one of the sites does not.
func mustNotShare(x, y *siteRun, grow bool) bool {
	if x == nil || y == nil {
		return false
	}
	sizes := !grow && (x.size != y.size || !x.equal || !y.equal)
	return sizes || x.class != y.class || haveOverlap(x.spans, y.spans)
}

// share is a set of call sites whose buffers share one block in turn.
type share struct {
	sites          []string
	saved          uint64 // bytes by which the peak of a run falls
	count          int    // buffers that need no create of their own
	runs           int    // runs that have all of the sites
	grows          bool   // the sizes differ: the first buffer may not be the largest
	severalThreads bool   // several threads use them in a run
}

// sharing is a set of sites that is being given one block, in all runs.
type sharing struct {
	runs   []map[string]*siteRun
	loads  []*load
	limits []uint64    // by run: its peak before
	blocks []heldBlock // by run: the shared block; without spans if the run has none of the sites
	sites  []string
}

func newSharing(runs []map[string]*siteRun, loads []*load) *sharing {
	g := &sharing{runs: runs, loads: loads, blocks: make([]heldBlock, len(runs))}
	for _, l := range loads {
		g.limits = append(g.limits, l.peakBytes())
	}
	return g
}

// tryShare gives sites the shared block as well, unless that raises the peak of a run above its first value. It takes
// time for these sites, not for the sites added before.
func (g *sharing) tryShare(sites ...string) bool {
	before := slices.Clone(g.blocks)
	fits := true
	for i := range g.runs {
		g.joinSites(i, sites)
		fits = fits && g.loads[i].peakBytes() <= g.limits[i]
	}
	if fits {
		g.sites = append(g.sites, sites...)
		return true
	}
	for i := range g.runs {
		g.undoJoin(i, sites, before[i])
	}
	return false
}

// joinSites puts the shared block in the place of what a run held for sites.
func (g *sharing) joinSites(run int, sites []string) {
	block := g.blocks[run]
	for _, part := range g.heldFor(run, sites) {
		if block.spans == nil {
			block = part
		} else {
			block = blockServingBoth(block, part)
		}
		g.loads[run].addBlock(part, -1)
	}
	g.replaceSharedBlock(run, block)
}

// undoJoin undoes joinSites.
func (g *sharing) undoJoin(run int, sites []string, before heldBlock) {
	for _, part := range g.heldFor(run, sites) {
		g.loads[run].addBlock(part, 1)
	}
	g.replaceSharedBlock(run, before)
}

// heldFor returns what a run held for sites.
func (g *sharing) heldFor(run int, sites []string) []heldBlock {
	var parts []heldBlock
	for _, name := range sites {
		if s := g.runs[run][name]; s != nil {
			parts = append(parts, s.held...)
		}
	}
	return parts
}

func (g *sharing) replaceSharedBlock(run int, block heldBlock) {
	g.loads[run].addBlock(g.blocks[run], -1)
	g.loads[run].addBlock(block, 1)
	g.blocks[run] = block
}

// splitShares splits a group of sites where one block for them would be held for so long that a run's peak rises. A
// single site is a group if it creates more than once, because it could keep its buffer.
func splitShares(runs []map[string]*siteRun, loads []*load, p *Problem, names []string, group []int) []share {
	var sites []string
	for _, x := range group {
		sites = append(sites, names[x])
	}
	var out []share
	g := newSharing(runs, loads)
	if g.tryShare(sites...) { // all at once: a block for fewer sites may be one more
		return g.appendSavings(out)
	}
	first := 0
	for i, site := range sites {
		if p.canShare(group[first:i+1]) && g.tryShare(site) {
			continue
		}
		out = g.appendSavings(out)
		g, first = newSharing(runs, loads), i
		g.tryShare(site)
	}
	return g.appendSavings(out)
}

// appendSavings appends what the sites save.
func (g *sharing) appendSavings(out []share) []share {
	sh := share{sites: g.sites}
	for i, run := range g.runs {
		sh.saved = max(sh.saved, g.limits[i]-g.loads[i].peakBytes())
		n, have, thread := 0, 0, int64(noUser)
		for _, name := range g.sites {
			if s := run[name]; s != nil {
				n += len(s.buffers)
				sh.grows = sh.grows || !s.equal || s.size != g.blocks[i].size
				thread = commonUser(thread, s.thread)
				have++
			}
		}
		sh.severalThreads = sh.severalThreads || thread == severalUsers
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

// bufferUse is one buffer of a site that is used.
type bufferUse struct {
	span Span      // from its first use to its last
	held heldBlock // what the program holds for it
}

// rotation is a site that could keep a few buffers and use them in turn.
type rotation struct {
	site           string
	blocks         int  // the most that any run needs
	same           bool // all runs need equally many
	saved          int  // creates, in all runs
	severalThreads bool // several threads use them in a run
	runs           int
}

// findRotations finds sites that have several buffers in use at one time and create more than these, if keeping that few
// does not raise the peak of any run. It applies what it finds to the loads.
func findRotations(runs []map[string]*siteRun, loads []*load) []rotation {
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
		if r, ok := tryRotation(runs, loads, name); ok {
			out = append(out, r)
		}
	}
	return out
}

func tryRotation(runs []map[string]*siteRun, loads []*load, name string) (r rotation, ok bool) {
	r = rotation{site: name, same: true}
	var undo []func()
	for i, run := range runs {
		s := run[name]
		if s == nil {
			continue
		}
		groups := groupSequentialUses(s.uses)
		r.same = r.same && (r.blocks == 0 || r.blocks == len(groups))
		r.blocks, r.runs = max(r.blocks, len(groups)), r.runs+1
		r.saved += len(s.uses) - len(groups)
		r.severalThreads = r.severalThreads || s.thread == severalUsers
		before := loads[i].peakBytes()
		undo = append(undo, loads[i].mergeGroups(groups))
		if loads[i].peakBytes() > before {
			r.saved = 0
			break
		}
	}
	if ok = r.blocks > 1 && r.saved > 0; !ok {
		for _, restore := range undo {
			restore()
		}
	}
	return r, ok
}

// groupSequentialUses divides buffers into as few groups as possible; the buffers of a group are used one after the other.
func groupSequentialUses(uses []bufferUse) [][]bufferUse {
	uses = slices.SortedStableFunc(slices.Values(uses), func(x, y bufferUse) int { return cmp.Compare(x.span.From, y.span.From) })
	ending := make([]int, len(uses))
	for i := range ending {
		ending[i] = i
	}
	slices.SortStableFunc(ending, func(x, y int) int { return cmp.Compare(uses[x].span.To, uses[y].span.To) })
	var groups [][]bufferUse
	var free []int
	groupOf := make([]int, len(uses)) // which group
	for i, use := range uses {
		for uses[ending[0]].span.To <= use.span.From { // ending is not empty: use itself has not ended
			free = append(free, groupOf[ending[0]])
			ending = ending[1:]
		}
		if n := len(free); n > 0 {
			groupOf[i], free = free[n-1], free[:n-1]
			groups[groupOf[i]] = append(groups[groupOf[i]], use)
			continue
		}
		groupOf[i] = len(groups)
		groups = append(groups, []bufferUse{use})
	}
	return groups
}

// mergeGroups puts one block in the place of all that was held for each group, and returns a function that undoes
// that.
func (l *load) mergeGroups(groups [][]bufferUse) (undo func()) {
	change := func(sign int64) {
		for _, g := range groups {
			both := g[0].held
			for _, use := range g { // all are of one size
				l.addBlock(use.held, -sign)
				both = blockServingBoth(both, use.held)
			}
			l.addBlock(both, sign)
		}
	}
	change(1)
	return func() { change(-1) }
}
