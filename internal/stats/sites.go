package stats

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap/table"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// callSites counts memory by the call site that created it, in all processes (site) and in each (processSite), and keeps the
// free list of each call site. A tag is a call site of its own until its name comes: tags with the same name are then folded
// into one. The counters and gauges of a site are the sums over its processes, with those that were folded.
type callSites struct {
	heap     *heap.Heap
	clock    *clock
	seed     uint64
	noTrends bool

	list     []*site
	count    int // sites; a site counts once for each of its processes
	exceeded bool
	named    map[string]*site
	untagged *site
	journal  journal

	objects []*processSite // the creators of objects, by the places of objects in the heap
	blocks  []freeBlock    // by the places of blocks in the heap
	classes table.Arena[class]
	ages    ages

	quiet   bool           // the present record was carried over: see totals.quiet
	carried []*siteFigures // whose peaks wait until the last such record
}

// site is one row of the table of call sites, with the figures of all processes.
type site struct {
	siteFigures
	processes []*processSite

	id      uint32 // the first tag
	awaited bool   // it was defined without a name
	folded  bool   // into another site, which has the figures of both

	name        string // empty until it is known
	provisional bool   // another name may follow: the stack has code without a name
	stack       []string
	module      string
	caller      uint64 // of the function that creates memory here, as a hash; 0: unknown
	wrapper     string // that function, if it has several callers
}

// processSite is what one process has of a call site, with its free list.
type processSite struct {
	*siteFigures // those of the site, as long as the two are equal: see separate
	site         *site
	process      *process     // nil: the process was folded
	into         *processSite // this one was folded into that one, which has the figures of both
	classes      table.Table  // block sizes with free blocks, to places in callSites.classes
}

// siteFigures are what a call site shows. Gauges are signed for the reason given at heap.Gauges.
type siteFigures struct {
	unseen  bool // the site was only mentioned so far: it is shown once it creates memory
	quiet   bool // the figures are in callSites.carried
	touched bool // journal.raiseSummedPeaks has set replayed
	kinds   memoryKinds

	live, inUse, requested, cached, cooling, blocks int64
	idle                                            int64 // of cached

	creates, hits uint64
	exposed       uint64
	early         Early
	misses        reasonCounts
	peak          uint64
	replayed      int64 // inUse at the change that journal.raiseSummedPeaks looks at
	pace          pace
	trend         trend
	free          []FreeClass // in the last snapshot; nil: the free list has changed since
}

func newCallSites(h *heap.Heap, c *clock, seed uint64, noTrends bool) callSites {
	s := callSites{heap: h, clock: c, seed: seed, noTrends: noTrends, named: map[string]*site{}, ages: newAges()}
	s.untagged = s.addSite(0)
	s.untagged.name = callsite.Untagged
	s.named[s.untagged.name] = s.untagged
	return s
}

// finalSite returns the site that counts: this site, or the site that it was folded into.
func (s *processSite) finalSite() *processSite {
	for s.into != nil {
		if s.into.into != nil {
			s.into = s.into.into
		}
		s = s.into
	}
	return s
}

// siteTitle returns the name of a site, or its number before the name is known.
func (s *site) siteTitle() string {
	if s.name == "" {
		return fmt.Sprintf("tag %d", s.id)
	}
	return s.name
}

// hasFinalName reports whether a site has its last name.
func (s *site) hasFinalName() bool { return s.folded || s.name != "" && !s.provisional }

// sharesFigures reports whether the figures are those of the site: no other process has had the site.
func (s *processSite) sharesFigures() bool { return s.siteFigures == &s.site.siteFigures }

// eachFigures yields the figures that an event in a process counts in: those of the site and those of the process. Shared figures, of
// which there may be 100,000, are counted once.
func (s *processSite) eachFigures(yield func(*siteFigures) bool) {
	if yield(&s.site.siteFigures) && !s.sharesFigures() {
		yield(s.siteFigures)
	}
}

// siteOfTag returns what a process has of the site of a tag. The site is added on first mention. Tags beyond sitesMax share the site of
// memory without a tag.
func (cs *callSites) siteOfTag(p *process, tag uint32) *processSite {
	if s := p.tags[tag]; s != nil {
		return s.finalSite()
	}
	if tag != 0 && cs.count >= sitesMax {
		cs.exceeded = true
		return cs.siteOfTag(p, 0)
	}
	cs.count++
	all := cs.untagged
	if tag != 0 {
		all = cs.addSite(tag)
	}
	s := &processSite{siteFigures: &all.siteFigures, site: all, process: p, classes: table.Table{Seed: cs.seed}}
	if len(all.processes) > 0 || all.trend.born != cs.clock.second { // untagged is older than its first process
		cs.copySharedFigures(all)
		own := cs.newFigures()
		s.siteFigures = &own
	}
	all.processes = append(all.processes, s)
	p.sites = append(p.sites, s)
	p.tags[tag] = s
	return s
}

func (cs *callSites) addSite(id uint32) *site {
	s := &site{id: id, siteFigures: cs.newFigures()}
	cs.list = append(cs.list, s)
	return s
}

func (cs *callSites) newFigures() siteFigures {
	return siteFigures{unseen: true, trend: trend{kept: !cs.noTrends, born: cs.clock.second, second: cs.clock.second}}
}

// copySharedFigures gives the process that shares the figures of a site a copy, before something happens in only one of the two.
func (cs *callSites) copySharedFigures(s *site) {
	if len(s.processes) == 0 || !s.processes[0].sharesFigures() {
		return
	}
	own := s.siteFigures
	own.trend.detachCopy()
	own.misses.each = pointerToCopy(own.misses.each)
	s.processes[0].siteFigures = &own
	if own.quiet {
		cs.carried = append(cs.carried, &own)
	}
}

func pointerToCopy[T any](of *T) *T {
	if of == nil {
		return nil
	}
	c := *of
	return &c
}

// countCreated counts a new object at its call site.
func (cs *callSites) countCreated(p *process, o *heap.Object, b *heap.Block) *processSite {
	s := cs.siteOfTag(p, o.Tag)
	*elementAt(&cs.objects, o.Place) = s
	if b != nil {
		elementAt(&cs.blocks, b.Place).site = s
	}
	for f := range s.eachFigures {
		if o.CarriedOver {
			cs.countCarriedOver(f)
		} else {
			f.countCreate(o, cs.clock.slot)
		}
	}
	if o.Owns {
		cs.changeHeld(s, int64(o.Granted), int64(o.Size))
	}
	return s
}

// countReleased counts an object that the program gave up.
func (cs *callSites) countReleased(o *heap.Object) {
	for f := range cs.creatorOf(o).eachFigures {
		f.live--
	}
}

// countExposed counts an object that a kernel may have read before any command wrote to it.
func (cs *callSites) countExposed(o *heap.Object) {
	for f := range cs.creatorOf(o).eachFigures {
		f.exposed++
	}
}

// removeObject takes the memory of an object off its call site.
func (cs *callSites) removeObject(o *heap.Object) {
	cs.changeHeld(cs.creatorOf(o), -int64(o.Granted), -int64(o.Size))
}

// creatorOf returns the call site of a live object.
func (cs *callSites) creatorOf(o *heap.Object) *processSite { return cs.objects[o.Place].finalSite() }

// changeHeld adds the memory of an object to its call site, or takes it off.
func (cs *callSites) changeHeld(s *processSite, granted, requested int64) {
	for f := range s.eachFigures {
		f.changeHeld(granted, requested, cs.clock.second)
	}
	cs.journal.noteChange(s, granted)
}

// beginCarriedOver begins to change call sites without their peaks.
func (cs *callSites) beginCarriedOver() {
	if !cs.quiet {
		cs.journal.noteChange(nil, 1)
	}
	cs.quiet = true
}

// countCarriedOver counts an object that was there before the first record.
func (cs *callSites) countCarriedOver(f *siteFigures) {
	if !f.quiet {
		f.quiet = true
		cs.carried = append(cs.carried, f)
	}
	f.unseen = false
	f.live++
}

// endCarriedOver ends a run of records that were carried over.
func (cs *callSites) endCarriedOver() {
	cs.quiet = false
	cs.journal.noteChange(nil, 0)
	for _, f := range cs.carried {
		f.quiet = false
		f.raisePeak()
	}
	cs.carried = cs.carried[:0]
}

func (f *siteFigures) countCreate(o *heap.Object, slot uint64) {
	f.unseen = false
	f.kinds |= 1 << o.Memory
	f.creates++
	f.live++
	f.pace.countAt(slot)
	switch o.PresentOutcome() {
	case wire.OutcomeHit:
		f.hits++
	case wire.OutcomeMiss:
		f.misses.addForReason(indexOfReason(uint8(o.Reason)), 1)
	default: // never eligible for the pool
	}
}

func (f *siteFigures) changeHeld(granted, requested int64, second uint64) {
	f.trend.advanceToSecond(second, heap.NonNegative(f.inUse))
	f.inUse += granted
	f.requested += requested
	f.raisePeak()
	f.trend.raiseCurrent(heap.NonNegative(f.inUse))
}

// raisePeak notes a new peak.
func (f *siteFigures) raisePeak() {
	if !f.quiet {
		f.peak = max(f.peak, heap.NonNegative(f.inUse))
	}
}
