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
	touched bool // journal.settle has set replayed
	kinds   memoryKinds

	live, inUse, requested, cached, cooling, blocks int64
	idle                                            int64 // of cached

	creates, hits uint64
	exposed       uint64
	early         Early
	misses        reasonCounts
	peak          uint64
	replayed      int64 // inUse at the change that journal.settle looks at
	pace          pace
	trend         trend
	free          []FreeClass // in the last snapshot; nil: the free list has changed since
}

func newCallSites(h *heap.Heap, c *clock, seed uint64, noTrends bool) callSites {
	s := callSites{heap: h, clock: c, seed: seed, noTrends: noTrends, named: map[string]*site{}, ages: newAges()}
	s.untagged = s.add(0)
	s.untagged.name = callsite.Untagged
	s.named[s.untagged.name] = s.untagged
	return s
}

// final returns the one that counts: this one, or the one that it was folded into.
func (s *processSite) final() *processSite {
	for s.into != nil {
		if s.into.into != nil {
			s.into = s.into.into
		}
		s = s.into
	}
	return s
}

// title returns the name of a site, or its number before the name is known.
func (s *site) title() string {
	if s.name == "" {
		return fmt.Sprintf("tag %d", s.id)
	}
	return s.name
}

// settled reports whether a site has its last name.
func (s *site) settled() bool { return s.folded || s.name != "" && !s.provisional }

// sharesFigures reports whether the figures are those of the site: no other process has had the site.
func (s *processSite) sharesFigures() bool { return s.siteFigures == &s.site.siteFigures }

// each yields the figures that an event in a process counts in: those of the site and those of the process. Shared figures, of
// which there may be 100,000, are counted once.
func (s *processSite) each(yield func(*siteFigures) bool) {
	if yield(&s.site.siteFigures) && !s.sharesFigures() {
		yield(s.siteFigures)
	}
}

// siteOf returns what a process has of the site of a tag. The site is added on first mention. Tags beyond sitesMax share the site of
// memory without a tag.
func (cs *callSites) siteOf(p *process, tag uint32) *processSite {
	if s := p.tags[tag]; s != nil {
		return s.final()
	}
	if tag != 0 && cs.count >= sitesMax {
		cs.exceeded = true
		return cs.siteOf(p, 0)
	}
	cs.count++
	all := cs.untagged
	if tag != 0 {
		all = cs.add(tag)
	}
	s := &processSite{siteFigures: &all.siteFigures, site: all, process: p, classes: table.Table{Seed: cs.seed}}
	if len(all.processes) > 0 || all.trend.born != cs.clock.second { // untagged is older than its first process
		cs.separate(all)
		own := cs.newFigures()
		s.siteFigures = &own
	}
	all.processes = append(all.processes, s)
	p.sites = append(p.sites, s)
	p.tags[tag] = s
	return s
}

func (cs *callSites) add(id uint32) *site {
	s := &site{id: id, siteFigures: cs.newFigures()}
	cs.list = append(cs.list, s)
	return s
}

func (cs *callSites) newFigures() siteFigures {
	return siteFigures{unseen: true, trend: trend{kept: !cs.noTrends, born: cs.clock.second, second: cs.clock.second}}
}

// separate gives the process that shares the figures of a site a copy, before something happens in only one of the two.
func (cs *callSites) separate(s *site) {
	if len(s.processes) == 0 || !s.processes[0].sharesFigures() {
		return
	}
	own := s.siteFigures
	own.trend.separate()
	own.misses.each = copyOf(own.misses.each)
	s.processes[0].siteFigures = &own
	if own.quiet {
		cs.carried = append(cs.carried, &own)
	}
}

func copyOf[T any](of *T) *T {
	if of == nil {
		return nil
	}
	c := *of
	return &c
}

// created counts a new object at its call site.
func (cs *callSites) created(p *process, o *heap.Object, b *heap.Block) *processSite {
	s := cs.siteOf(p, o.Tag)
	*noteAt(&cs.objects, o.Place) = s
	if b != nil {
		noteAt(&cs.blocks, b.Place).site = s
	}
	for f := range s.each {
		if o.CarriedOver {
			cs.carry(f)
		} else {
			f.create(o, cs.clock.slot)
		}
	}
	if o.Owns {
		cs.hold(s, int64(o.Granted), int64(o.Size))
	}
	return s
}

// released counts an object that the program gave up.
func (cs *callSites) released(o *heap.Object) {
	for f := range cs.creator(o).each {
		f.live--
	}
}

// expose counts an object that a kernel may have read before any command wrote to it.
func (cs *callSites) expose(o *heap.Object) {
	for f := range cs.creator(o).each {
		f.exposed++
	}
}

// freed takes the memory of an object off its call site.
func (cs *callSites) freed(o *heap.Object) { cs.hold(cs.creator(o), -int64(o.Granted), -int64(o.Size)) }

// creator returns the call site of a live object.
func (cs *callSites) creator(o *heap.Object) *processSite { return cs.objects[o.Place].final() }

// hold adds the memory of an object to its call site, or takes it off.
func (cs *callSites) hold(s *processSite, granted, requested int64) {
	for f := range s.each {
		f.hold(granted, requested, cs.clock.second)
	}
	cs.journal.note(s, granted)
}

// carryOver begins to change call sites without their peaks.
func (cs *callSites) carryOver() {
	if !cs.quiet {
		cs.journal.note(nil, 1)
	}
	cs.quiet = true
}

// carry counts an object that was there before the first record.
func (cs *callSites) carry(f *siteFigures) {
	if !f.quiet {
		f.quiet = true
		cs.carried = append(cs.carried, f)
	}
	f.unseen = false
	f.live++
}

// carriedAll ends a run of records that were carried over.
func (cs *callSites) carriedAll() {
	cs.quiet = false
	cs.journal.note(nil, 0)
	for _, f := range cs.carried {
		f.quiet = false
		f.raise()
	}
	cs.carried = cs.carried[:0]
}

func (f *siteFigures) create(o *heap.Object, slot uint64) {
	f.unseen = false
	f.kinds |= 1 << o.Memory
	f.creates++
	f.live++
	f.pace.add(slot)
	switch o.Judged() {
	case wire.OutcomeHit:
		f.hits++
	case wire.OutcomeMiss:
		f.misses.add(reason(uint8(o.Reason)), 1)
	default: // never eligible for the pool
	}
}

func (f *siteFigures) hold(granted, requested int64, second uint64) {
	f.trend.advance(second, heap.Amount(f.inUse))
	f.inUse += granted
	f.requested += requested
	f.raise()
	f.trend.raise(heap.Amount(f.inUse))
}

// raise notes a new peak.
func (f *siteFigures) raise() {
	if !f.quiet {
		f.peak = max(f.peak, heap.Amount(f.inUse))
	}
}
