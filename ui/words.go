package ui

import (
	"maps"
	"slices"
)

// word is a term with its meaning. The formulas with worked examples are in docs/METRICS.md.
type word struct{ term, meaning string }

var words = []word{
	{"buffer", "a memory object of the program"},
	{"tag", "the place in the program that allocates"},
	{"requested", "bytes that the program asked for, of what it holds"},
	{"in use", "bytes granted to the program"},
	{"mistakes", "of the program, such as releasing a buffer twice; each is counted once here, the report lists them all"},
	{"lost", "events that did not fit: numbers are too low by as many"},
}

// poolWords are the terms that only mean something where there is a pool.
var poolWords = []word{
	{"block", "what the allocator holds: one driver object"},
	{"slab", "a large block of which buffers are parts; what no part covers is free, and in the row (slabs)"},
	{"class", "context, flags and alignment: blocks serve only requests of their class"},
	{"hit, miss", "a request served without a driver create, or not"},
	{"steady", "hit rate of the later half of the requests, without the cold start"},
	{"cached", "free in the pool"},
	{"cooling", "free, but queued commands still use it"},
	{"reserved", "in use + cached + cooling: what the device has given"},
	{"waste", "(granted - requested) / granted"},
	{"fragmentation", "1 - largest free block or range in a slab / all free bytes"},
	{"avoided", "creates served without the driver; the time saved is an estimate: measured driver create of that size × creates avoided"},
	{"cold", "miss: no block of this class was free before"},
	{"too small", "miss: all free blocks are smaller"},
	{"too wasteful", "miss: a free block is large enough, but the policy refuses it: over max_waste_ratio, or of another tag or bucket"},
	{"other class", "miss: a block that fits belongs to another class"},
	{"limit", "miss: a block that fitted was evicted by max_cached_bytes or max_cached_fraction"},
	{"tag cap", "miss: a block that fitted was evicted by a per-tag or per-bucket cap"},
	{"drained", "miss: a block that fitted was given back to make room"},
	{"policy", "miss: the policy does not cache"},
}

// paneHelp says which question each pane answers.
var paneHelp = []word{
	{"1 memory", "what happened? in use, cached and cooling on top of each other; ▲ a limit changed, ! a message"},
	{"2 rates", "is the pool working? hit rate, allocations per second, time in the driver"},
	{"3 tags", "who? one row per place that allocates; ! means that many of its requests miss"},
	{"4 free list", "what does the chosen tag keep? blocks by size, cooling ones, the oldest"},
	{"5 misses", "why was the driver called? reasons for all tags and for the chosen one"},
	{"6 limits", "what can I change now? amber … is on its way, ✓ is acknowledged by the program; live even when frozen"},
	{"7 output", "what does the program say? stderr is marked"},
	{"P processes", "which one? all that made OpenCL calls; limits, ghosts, curve, device and output are of all of them"},
	{"w ghosts", "what if another policy had served the program? all are simulated from its start, the one in force (●), too; ✗ stopped, + came late"},
	{"c curve", "how much cache pays? the hit rate at every limit of cached bytes: ◆ exact, elsewhere estimated (≈); ▲ the knee, beyond which memory gains less, │ the limit now, ┊ one to look at"},
	{"a policies", "which other allocator could serve the program? blocks that the new policy would have made stay, the others go back"},
}

// viewHelp are the panes that are other in a look at a recording; those without a meaning are not there.
var viewHelp = map[string]string{
	"1 memory":    "what happened? in use, cached and cooling on top of each other, over the whole run; │ is the time that all panes show",
	"6 limits":    "what was set? the policy's limits at that time; a recording's cannot be changed",
	"7 output":    "",
	"a policies":  "",
	"w ghosts":    "",
	"c curve":     "how much cache would have paid? the hit rate at limits of cached bytes, ◆, which the whole recording is played at while this is looked at; ▲ the knee, beyond which memory gains less, │ the limit at the time that is shown, ┊ the one that [ ] choose",
	"P processes": "which one? all that made OpenCL calls; limits and device are of all of them",
}

// attachedHelp are the panes that are other where the programs were not started here.
var attachedHelp = map[string]string{
	"1 memory":    "what happened? what is in use; ! a message",
	"2 rates":     "what is asked of the driver? creates per second, and their time, with the probes' own in it",
	"3 tags":      "who? one row per place that allocates",
	"4 free list": "nothing: blocks are kept by a pool; enlarged, the call stack of the chosen tag",
	"5 misses":    "nothing: without a pool every create goes to the driver",
	"6 limits":    "nothing to change: limits are of a pool, which a program has only when gpumemtop starts it",
	"7 output":    "",
	"a policies":  "",
	"c curve":     "which hit rate would a pool have? at every limit of cached bytes, as simulated with the policy that is named: ◆ is exact, between them it is estimated; ▲ the knee, beyond which memory gains less, ┊ the limit that [ ] choose",
	"w ghosts":    "what would a pool have done? pools are simulated; ● is what there is: none",
	"P processes": "which one? all that are watched and made OpenCL calls; the device is of all of them",
}

// attachedWords are the terms that only mean something where programs were not started here.
var attachedWords = []word{
	{"attached", "the program ran already: what it created before is seen when it is used or released, under the tag " +
		"\"unknown before attach\", with the size that the use tells"},
}

// wordHelp returns the terms that the help explains.
func (d *dashboard) wordHelp() []word {
	if d.o.Attached {
		return slices.Concat(words, attachedWords)
	}
	return slices.Concat(words, poolWords)
}

// paneHelp returns what the help says of the panes.
func (d *dashboard) paneHelp() []word {
	others := map[string]string{}
	if d.o.Attached {
		maps.Copy(others, attachedHelp)
	}
	if d.viewing() {
		maps.Copy(others, viewHelp)
	}
	var list []word
	for _, p := range paneHelp {
		if meaning, other := others[p.term]; other {
			p.meaning = meaning
		}
		if p.meaning != "" {
			list = append(list, p)
		}
	}
	return list
}
