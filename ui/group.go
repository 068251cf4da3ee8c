package ui

import (
	"hash/fnv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// grouping is what a row of the tags stands for.
type grouping uint8

const (
	bySite grouping = iota
	byFile
	byFunction
	byModule
	bySize
	byKind
	byThread
	byDevice
	byKernel
	byProcess
	groupings
)

var groupNames = [groupings]string{"", "file", "function", "module", "size", "kind", "thread", "device", "kernel", "process"}

// groups is a snapshot's tags, grouped.
type groups struct {
	by   grouping
	from *stats.Snapshot // the snapshot that has these tags
	tags []stats.Tag
}

// rowsOfSnapshot returns the rows for a snapshot. It makes them once for each.
func (g *groups) rowsOfSnapshot(s *stats.Snapshot) []stats.Tag {
	if g.by == bySite {
		return s.Tags
	}
	if g.from != s {
		g.from, g.tags = s, groupTags(s, g.by)
	}
	return g.tags
}

// areRowsSums reports whether rows are sums of call sites.
func (g *groups) areRowsSums() bool { return g.by >= byFile && g.by <= byModule }

// groupingAfterThis returns the next way to group. The ways after modules need figures that exist for all processes together only.
func (g *groups) groupingAfterThis(single bool) grouping {
	next := (g.by + 1) % groupings
	if single && next > byModule {
		return bySite
	}
	return next
}

func groupTags(s *stats.Snapshot, by grouping) []stats.Tag {
	switch by {
	case bySize:
		return tagsOfSizes(s.Buckets)
	case byKind:
		return tagsOfKinds(s.Kinds)
	case byThread:
		return tagsOfNamed(s.Threads)
	case byDevice:
		return tagsOfNamed(s.Devices)
	case byKernel:
		return tagsOfNamed(s.Kernels)
	case byProcess:
		return tagsOfProcesses(s.Processes)
	}
	places := map[string]int{}
	var list []stats.Tag
	for i := range s.Tags {
		t := &s.Tags[i]
		name := groupOfSite(t, by)
		at, known := places[name]
		if !known {
			at = len(list)
			places[name] = at
			list = append(list, stats.Tag{ID: idOfRow(name), Name: name})
		}
		addSiteToGroup(&list[at], t)
	}
	return list
}

// groupOfSite returns the group of a call site: "file.c:88 function" has both parts, "module+0x1234" only the first.
func groupOfSite(t *stats.Tag, by grouping) string {
	place, function, known := strings.Cut(t.Name, " ")
	if by == byModule && t.Module != "" {
		return t.Module
	}
	if by == byFunction && known && !t.Slabs {
		return function
	}
	if i := strings.LastIndexAny(place, ":+"); i > 0 && !t.Slabs {
		return place[:i]
	}
	return t.Name
}

// idOfRow returns an ID that a row keeps from snapshot to snapshot.
func idOfRow(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()
}

// addSiteToGroup adds a call site to a group. The peak of a group is the sum of its sites' peaks, an upper bound: sites may peak at
// different times.
func addSiteToGroup(g, t *stats.Tag) {
	for _, c := range []struct{ to, from *uint64 }{
		{&g.Live, &t.Live}, {&g.InUse, &t.InUse}, {&g.Requested, &t.Requested}, {&g.Cached, &t.Cached}, {&g.Idle, &t.Idle}, {&g.Cooling, &t.Cooling},
		{&g.CachedCount, &t.CachedCount}, {&g.Hits, &t.Hits}, {&g.Misses, &t.Misses}, {&g.Creates, &t.Creates}, {&g.Window, &t.Window},
		{&g.PeakInUse, &t.PeakInUse}, {&g.Held, &t.Held},
	} {
		*c.to = saturatingSum(*c.to, *c.from)
	}
	for i := range t.MissReasons {
		g.MissReasons[i] = saturatingSum(g.MissReasons[i], t.MissReasons[i])
	}
	g.Free = append(g.Free, t.Free...)
	g.Stack = append(g.Stack, t.Name)
	g.Trend = g.Trend.SumWith(t.Trend)
}

func tagOfShare(name string, s *stats.Share) stats.Tag {
	return stats.Tag{
		ID: idOfRow(name), Name: name, Live: s.Live, InUse: s.InUse, Requested: s.Requested, Held: s.Held, PeakInUse: s.PeakInUse,
		Cached: s.Cached, Cooling: s.Cooling, CachedCount: s.Blocks, Hits: s.Hits, Misses: s.Misses, Creates: s.Creates, Window: s.Window,
	}
}

func tagsOfSizes(buckets []stats.Bucket) []stats.Tag {
	tags := make([]stats.Tag, 0, len(buckets))
	for i := range buckets {
		b := &buckets[i]
		tags = append(tags, tagOfShare(bytesText(b.Smallest)+" to "+bytesText(b.Largest), &b.Share))
	}
	return tags
}

func tagsOfKinds(kinds []stats.Kind) []stats.Tag {
	tags := make([]stats.Tag, 0, len(kinds))
	for i := range kinds {
		tags = append(tags, tagOfShare(kinds[i].Memory.WordsForCreated(), &kinds[i].Share))
	}
	return tags
}

func tagsOfNamed(list []stats.Named) []stats.Tag {
	tags := make([]stats.Tag, 0, len(list))
	for i := range list {
		tags = append(tags, tagOfShare(list[i].Name, &list[i].Share))
	}
	return tags
}

func tagsOfProcesses(processes []stats.Process) []stats.Tag {
	tags := make([]stats.Tag, 0, len(processes))
	for i := range processes {
		p := &processes[i]
		t := &p.Totals
		tags = append(tags, stats.Tag{
			ID: p.Number, Name: strings.TrimSpace(pidText(p) + " " + commandLine(&stats.Snapshot{Program: p.Program, Arguments: p.Arguments})),
			Live: t.LiveBuffers, InUse: t.InUse, Requested: t.Requested, Cached: t.Cached, Idle: t.Idle, Cooling: t.Cooling, CachedCount: t.CachedBlocks,
			Hits: t.Hits, Misses: t.Misses, MissReasons: t.MissReasons, Creates: t.Creates, Window: p.Window.Creates, PeakInUse: t.PeakInUse, Held: t.Held,
		})
	}
	return tags
}
