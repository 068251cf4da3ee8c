package stats

import (
	"hash/fnv"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// handleTag handles TAG. A tag for a size or a thread has its name at once; the name of a call site comes with SITE.
func (cs *callSites) handleTag(p *process, r *wire.Record) {
	if name := callsite.TagNameOf(r); name != "" {
		cs.nameTag(p, r.DefinedTag(), name, nil)
		return
	}
	cs.journal.beginAwaitingName(cs.siteOfTag(p, r.DefinedTag()).site, cs.quiet)
}

// provisionalMax bounds the sites of a process that stay apart until they have their last name, as session does.
const provisionalMax = 4096

// nameTag gives a tag its name and its call stack, as SITE has it. If another site has that name, the tag is folded into that
// one. A tag keeps its first name, unless its stack has code that the program generates and names later.
func (cs *callSites) nameTag(p *process, tag uint32, name string, stack []byte) {
	if name == "" {
		return
	}
	s := cs.siteOfTag(p, tag)
	if s.site.name != "" && !s.site.provisional {
		return
	}
	defer cs.journal.noteNamed()
	if s.site.provisional = s.site.name == "" && p.provisional < provisionalMax && callsite.HasUnnamedCode(stack); s.site.provisional {
		p.provisional++
		s.site.name, s.site.stack, s.site.module = name, callsite.StackTexts(stack), callsite.NamingModule(stack)
		return
	}
	known := cs.named[name]
	if known == nil {
		s.site.name, s.site.stack, s.site.module = name, callsite.StackTexts(stack), callsite.NamingModule(stack)
		s.site.noteCallers(stack)
		cs.named[name] = s.site
		return
	}
	switch frames := callsite.StackTexts(stack); {
	case known.unseen && !s.site.unseen:
		known.stack, known.module = frames, callsite.NamingModule(stack) // rather of a site with memory than of one with other objects
	case !s.site.unseen:
		known.stack = framesUpToFork(known.stack, frames)
	}
	known.noteCallers(stack)
	cs.foldSite(s, known)
	if s.into != nil {
		p.tags[tag] = s.into
	}
}

// framesUpToFork returns a stack up to the frame at which another stack of the same site leaves it: callers beyond may be none of those
// whose buffers a row counts.
func framesUpToFork(stack, other []string) []string {
	for i, frame := range stack {
		at := slices.Index(other, frame)
		if at < 0 {
			continue // a library's frame, before the frame that names the site
		}
		end := i
		for ; end < len(stack) && at < len(other) && stack[end] == other[at]; end, at = end+1, at+1 {
		}
		return stack[:end]
	}
	return stack
}

// noteCallers notes who calls the function that creates memory here, at each of its call stacks.
func (s *site) noteCallers(stack []byte) {
	function, caller := callsite.CreatorAndCaller(stack)
	if function == "" {
		return
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(caller)) // never fails
	if s.caller != 0 && s.caller != hash.Sum64() {
		s.wrapper = function
	}
	s.caller = hash.Sum64()
}

// foldSite folds a site without a name, which only one process has, into another site.
func (cs *callSites) foldSite(s *processSite, to *site) {
	cs.journal.folded = true
	same := to.findInProcess(s.process)
	once := same != nil && same.sharesFigures() && s.sharesFigures()
	if !once {
		cs.copySharedFigures(to)
	}
	cs.mergeFigures(&s.site.siteFigures, &to.siteFigures)
	s.site.folded, s.site, to.free = true, to, nil
	if same == nil {
		to.processes = append(to.processes, s)
		return
	}
	cs.mergeFreeLists(s, same)
	if s.into = same; !once {
		cs.mergeFigures(s.siteFigures, same.siteFigures)
	}
}

// findInProcess returns what a process has of a site; nil: the process has nothing of it.
func (s *site) findInProcess(p *process) *processSite {
	if len(p.sites) < len(s.processes) {
		return findProcessSite(p.sites, func(own *processSite) bool { return own.site == s && own.into == nil })
	}
	return findProcessSite(s.processes, func(own *processSite) bool { return own.process == p })
}

func findProcessSite(list []*processSite, is func(*processSite) bool) *processSite {
	if at := slices.IndexFunc(list, is); at >= 0 {
		return list[at]
	}
	return nil
}

// mergeFigures adds figures to others, except for the free lists. The journal knows the peak of their sum.
func (cs *callSites) mergeFigures(from, to *siteFigures) {
	for _, f := range [2]*siteFigures{from, to} {
		f.trend.advanceToSecond(cs.clock.second, heap.NonNegative(f.inUse))
	}
	to.trend.addTrend(&from.trend)
	to.pace.addCountsOf(&from.pace)
	to.live += from.live
	to.inUse += from.inUse
	to.requested += from.requested
	to.cached += from.cached
	to.cooling += from.cooling
	to.idle += from.idle
	to.blocks += from.blocks
	to.creates += from.creates
	to.hits += from.hits
	to.exposed += from.exposed
	to.early.addEarly(from.early)
	for i, n := range from.misses.countsByReason() {
		to.misses.addForReason(uint8(i), n)
	}
	to.peak = max(to.peak, from.peak)
	if !cs.quiet {
		to.raisePeak()
	}
	to.unseen = to.unseen && from.unseen
	to.kinds |= from.kinds
}

// dropProcessSites gives up the processSites of processes that make room. The sites keep their figures. A site without another process
// keeps one processSite.
func (cs *callSites) dropProcessSites(list []*process) {
	touched := map[*site]struct{}{}
	for _, p := range list {
		cs.count -= len(p.tags)
		for _, s := range p.sites {
			if s.process = nil; s.into == nil {
				cs.count++
				touched[s.site] = struct{}{}
			}
		}
		p.tags, p.sites = nil, nil
	}
	for s := range touched {
		first, before := s.processes[0], len(s.processes)
		s.processes = slices.DeleteFunc(s.processes, func(own *processSite) bool { return own.process == nil })
		if len(s.processes) == 0 {
			s.processes = append(s.processes, first)
		}
		cs.count -= before - len(s.processes)
	}
	cs.dropFolded()
}

// dropFolded forgets the sites that were folded into others.
func (cs *callSites) dropFolded() {
	cs.list = slices.DeleteFunc(cs.list, func(s *site) bool { return s.folded })
}
