package ui

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
)

// mode says what the dashboard can do, and with which words: for a program that gpumemtop started, for programs that it only watches, and for
// recordings of both.
type mode struct {
	recording bool // a time cursor takes the place of a live program
	watches   bool // the programs are live and were not started here
	pool      bool // the programs may have a pool

	keys     []command
	help     []command // the keys while the help is shown
	panes    []word    // what the help says about each pane
	words    []word    // the terms that the help explains
	lastPane paneID    // the last pane with a number

	// Why limits or the policy cannot change; empty: they can.
	fixedLimits, fixedPolicy string

	prefix      string // precedes the program in the header,
	prefixWidth int    // if the terminal has this width
	limitsHint  string // in the frame of the limits, instead of the keys
	limitName   string // of the limit in force, on the curve
	tagOpens    string // what enter opens in the tags
	// What panes say if they are empty.
	noGhosts, noLimits, noBlocks, noMisses string
	// What the message line says before there is anything to show, without allocations, and after the end.
	waiting, silent, over string
}

// keymapMode returns the mode for the options.
func keymapMode(o *Options) *mode {
	recording, attached, which := o.Moment != nil, o.Attached, modeOfOptions(o)
	m := &mode{
		recording: recording, watches: attached && !recording, pool: !attached, lastPane: paneOutput,
		keys: which.commandsOfMode(keymap), help: which.commandsOfMode(helpKeymap), words: slices.Concat(words, poolWords),
		limitName: "now", tagOpens: " free list ",
		noGhosts: "no policies are simulated beside this run (--ghosts usual)",
		noLimits: "this policy has no limits", noBlocks: "nothing cached", noMisses: "no misses",
		waiting: "waiting for the program", silent: "no OpenCL allocation seen yet",
		over: "the program has ended: q quits, all figures are still there",
	}
	if o.ReadOnly || o.SetPolicy == nil {
		m.fixedPolicy = "the policy cannot be changed here"
	}
	if o.ReadOnly || o.SetLimit == nil {
		m.fixedLimits, m.limitsHint = "limits cannot be changed here", " read only "
	}
	if attached {
		m.lastPane, m.words, m.tagOpens = paneLimits, slices.Concat(words, attachWords), " call stack "
		m.prefix, m.prefixWidth = "attached to ", compactW
		m.fixedLimits = "limits cannot be changed from outside (gpumemtop ./app gives a pool)"
		m.noLimits, m.noBlocks, m.noMisses = m.fixedLimits, "no pool that could keep anything", "no pool: every allocation goes to the driver"
		m.waiting, m.silent = "waiting for processes to watch", "no allocation seen since attach"
		m.over = "nothing is left to watch: q quits, all figures are still there"
	}
	if o.Viewer { // of another terminal: no key reaches the program
		m.prefix, m.prefixWidth = "session of ", compactW
	}
	if which == inOtherQuiet {
		m.lastPane = paneLimits
	}
	if recording {
		m.lastPane, m.prefixWidth = paneLimits, fullW // the time needs the room
		m.fixedLimits, m.fixedPolicy = "this is a recording: its limits cannot change", "this is a recording: its policy cannot change"
		m.limitsHint, m.limitName, m.noLimits = " as recorded ", "set", "this policy has no limits"
		m.noGhosts = "this is a recording: gpumemtop tune and gpumemtop replay show what other policies would have done"
		m.waiting, m.silent = "reading the recording", "no OpenCL allocation up to this time"
	}
	m.panes = panesFor(attached, recording)
	return m
}

// modeOfOptions returns which mode of the keymap the options make.
func modeOfOptions(o *Options) modes {
	switch {
	case o.Moment != nil:
		return inView
	case o.Viewer && o.Attached:
		return inOtherAttach
	case o.Viewer && o.Output == nil:
		return inOtherQuiet
	case o.Viewer:
		return inOther
	case o.Attached:
		return inAttach
	}
	return inRun
}

// word is a term with its meaning. docs/METRICS.md has the formulas, with worked examples.
type word struct{ term, meaning string }

// signs are what the dashboard draws, each with its one meaning.
var signs = []word{
	{"✗", "wrong, failed or refused"},
	{"!", "could be better"},
	{"✓", "fine, done or acknowledged"},
	{"red, amber", "of the last ten seconds; what is of the whole run is dim while the run goes on"},
	{"Δ", "a limit or the policy changed; HIT%Δ: since then"},
	{"•", "a message of the program or of this one"},
	{"■", "a process ended"},
	{"★", "your mark"},
	{"●", "in force, or running"},
	{"▸", "chosen"},
	{"↑ ↓", "the column that rows are sorted by, upwards or downwards"},
	{"▲ ◆", "on the curve: the knee, and what is exact"},
	{"╌", "in the chart: red the device's memory, amber what is in use with all that may be cached"},
	{"▌", "printed on stderr"},
	{"▏", "less than half of a cell"},
	{"≈ ≥ ≤ —", "estimated, at least, at most; no value"},
	{"K M G", "of bytes: times 1024; k of what is counted: times 1000"},
}

var words = []word{
	{"buffer", "a memory object of the program"},
	{"tag", "the call site: the place in the program that allocates"},
	wordOfFigure(figures.Requested, ""),
	wordOfFigure(figures.InUse, ", now"),
	wordOfFigure(figures.Held, ": of loops, which hold nothing between two iterations"),
	{"holds", "the most that a tag had in use in the last second; its trend shows the same of each second"},
	{"mistakes", "of the program, such as releasing a buffer twice; each counts once here, the report lists them all"},
	{"lost", figures.LostEvents.Meaning},
}

// wordOfFigure returns the name of a figure with its meaning, to which the dashboard may add.
func wordOfFigure(f *figures.Figure, more string) word { return word{f.Name, f.Meaning + more} }

// poolWords are the terms that only make sense with a pool.
var poolWords = []word{
	{"block", "what the allocator holds: one driver object"},
	{"slab", "a large block that is cut into sub-allocations; its free ranges are in the row (slabs)"},
	{"class", "context, flags and alignment: blocks serve only requests of their class"},
	{"hit, miss", "a request served without a driver allocation, or with one"},
	{"steady", figures.SteadyHitRate.Meaning},
	wordOfFigure(figures.Cached, ""),
	wordOfFigure(figures.Idle, ""),
	wordOfFigure(figures.Cooling, ""),
	wordOfFigure(figures.Reserved, ""),
	wordOfFigure(figures.Waste, ""),
	{"fragmentation", figures.ExternalFragmentation.Meaning},
	{"avoided", "requests served without the driver; the time saved is an estimate where it is clear: usual driver calls of that size, less the pool's own time, without first touches"},
	{"cold", "miss: no block of this class was free before"},
	{"too small", "miss: all free blocks are smaller"},
	{"too wasteful", "miss: a free block is large enough, but the policy refuses it: over max_waste_ratio, or of another tag or bucket"},
	{"other class", "miss: a block that fits belongs to another class"},
	{"limit", "miss: a block that fitted was evicted by max_cached_bytes or max_cached_fraction"},
	{"tag cap", "miss: a block that fitted was evicted by a per-tag or per-bucket cap"},
	{"drained", "miss: a block that fitted was given back: to make room, when asked to, or to time its release"},
	{"policy", "miss: the policy does not cache"},
}

// attachWords are the terms that only make sense with attach.
var attachWords = []word{
	{"attached", "the program was already running: buffers that it created before appear when it uses or releases them, under the tag " +
		"\"unknown before attach\", with the size that the use implies"},
}

// absent is the meaning of a pane that a mode lacks.
const absent = "-"

// paneHelp says which question each pane answers, in words that a mode may replace.
var paneHelp = []struct{ term, run, attach, view string }{
	{
		"1 memory", "what happened? in use, cached and cooling on top of each other; Δ a limit changed, • a message",
		"what happened? what is in use; • a message",
		"what happened? in use, cached and cooling on top of each other, over the whole run; │ is the time that all panes show",
	},
	{
		"2 rates", "is the pool working? hit rate, allocations per second, time in the driver",
		"how busy is the driver? allocations per second, and their time including the probes", "",
	},
	{"3 tags", "who? one row per place that allocates; ! or ✗: a finding is about it, or many of its requests miss of late; HIT% is of the run, dim where that is past", "who? one row per place that allocates", ""},
	{
		"4 pool", "what does the pool hold of each size and those up to twice as large, and how much of it in slabs? after enter: free list, latest misses and call stack of the chosen tag",
		"what is in use, by size; after enter, the call stack of the chosen tag", "",
	},
	{
		"5 misses", "why was the driver called? reasons for all tags and for the chosen one, and the last 20 misses",
		"nothing: without a pool every allocation goes to the driver", "",
	},
	{
		"6 limits", "what can I change now? amber … is pending, ✓ is acknowledged by the program; live even when frozen",
		"nothing to change: limits belong to a pool, which a program has only if gpumemtop starts it",
		"what was set? the policy's limits at that time; a recording's cannot change",
	},
	{"7 output", "what does the program print? ▌ marks stderr", absent, absent},
	{
		"P processes", "which one? all that made OpenCL calls; limits, ghosts, curve, device and output cover all of them",
		"which one? all watched ones that made OpenCL calls; the device covers all of them",
		"which one? all that made OpenCL calls; limits and device cover all of them",
	},
	{
		"w ghosts", "what if another policy had served the program? all are simulated from its start, also the one in force (●); ✗ stopped, + started late",
		"what would a pool have done? pools are simulated; ● is the present state: none", absent,
	},
	{
		"c curve", "how much cache pays? the hit rate at every limit of cached bytes: ◆ exact, elsewhere estimated (≈); ▲ the knee, the least within 2 points of the best, │ the limit now, ┊ one to try",
		"which hit rate would a pool have? at every limit of cached bytes, simulated with the named policy: ◆ exact, elsewhere estimated; ▲ the knee, the least within 2 points of the best, ┊ the limit that [ ] choose",
		"how much cache would have paid? the hit rate at limits of cached bytes, ◆, each simulated over the whole recording while this pane is open; ▲ the knee, the least within 2 points of the best, │ the limit at the time shown, ┊ the one that [ ] choose",
	},
	{
		"! findings", "is all well? ✗ wrong, ! could be better, ✓ fine: problems in the last 10 to 20 s, and better policies if any are simulated; watching: not judged for 10 s",
		"", "is all well? mistakes, failures, leaks and growth up to this time",
	},
	{"b transfers", "what is copied? bytes each way, how fast, and from which call", "", ""},
	{"n objects", "which objects pile up? kernels, events and so on, by type and call site; +MINUTE is how many more are live than half a minute to a minute ago", "", ""},
	{
		"H heap map", "is it fragmentation or too little memory? what lies where in each slab, the most scattered free memory first; F says whether a size fits; a… is an arena of a plan",
		absent, "",
	},
	{"m post-mortem", "why did it fail? each kind of lack of memory: the verdict, what to try, who held what", "", ""},
	{
		"a policies", "which other policy could serve the program? blocks that suit the new policy stay, the others go back",
		absent, absent,
	},
}

// panesFor returns the panes of a mode with their meanings.
func panesFor(attached, recording bool) (list []word) {
	for _, p := range paneHelp {
		meaning := p.run
		if attached && p.attach != "" {
			meaning = p.attach
		}
		if recording && p.view != "" {
			meaning = p.view
		}
		if meaning != absent {
			list = append(list, word{p.term, meaning})
		}
	}
	return list
}
