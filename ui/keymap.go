package ui

// action is what a key does.
type action uint8

const (
	actQuit action = iota
	actHelp
	actFreeze
	actNext
	actPrevious
	actZoom
	actBack
	actEnter
	actUp
	actDown
	actTop
	actBottom
	actPageUp
	actPageDown
	actSort
	actReverse
	actLess
	actMore
	actHalve
	actDouble
	actOutput
	actProcess
	actProcesses
	actPolicies
	actGhosts
	actAdopt
	actCurve
	actFailures
	actTransfers
	actObjects
	actHeap
	actPoints
	actFilter
	actPalette
	actGroup
	actLeft
	actRight
	actSpan
	actMark
	actNextEvent
	actPreviousEvent
	actValue
	actUndo
	actSave
	actType
	actBaseline
	actScreen
	actExport
	actRecord
	actCopy
	actFit
	actInterrupt
	actRedraw
	actSuspend
	actBackward
	actForward
	actBackwardMore
	actForwardMore
	actBackwardMost
	actForwardMost
	actFirst
	actLast
	actTime
)

// command is one line of the keymap, from which the dispatcher, the key line and the help are made.
type command struct {
	modes   modes
	action  action
	section string // of the help
	short   string // in the key line; empty: not there
	shown   string // how the help writes the keys; empty: another line covers them, or they only say why they do nothing
	help    string
	keys    []string // as Bubble Tea names them
}

// modes is a set of modes.
type modes uint8

const (
	inRun modes = 1 << iota
	inAttach
	inView
	inLive = inRun | inAttach
	inAll  = inLive | inView
)

// The sections of the help, in order.
const (
	sectionScreen = "screen"
	sectionTime   = "time"
	sectionMove   = "move"
	sectionLimits = "limits and policy"
	sectionWhatIf = "what if"
	sectionApp    = "program"
)

var sections = []string{sectionScreen, sectionTime, sectionMove, sectionLimits, sectionWhatIf, sectionApp}

const nextHelp = "show one process: the first, the next, and after the last all again"

// keymap has all keys, in the order of the key line.
var keymap = []command{
	{inRun, actQuit, sectionScreen, "quit", "q", "quit; asks what to do with a program that still runs", []string{"q"}},
	{inAttach, actQuit, sectionScreen, "detach", "q", "detach and quit; the programs go on (also ctrl+c)", []string{"q", "ctrl+c"}},
	{inView, actQuit, sectionScreen, "quit", "q", "quit (also ctrl+c)", []string{"q", "ctrl+c"}},
	{inAll, actHelp, sectionScreen, "help", "?", "help for the pane, and again for everything", []string{"?"}},
	{inLive, actBackward, sectionTime, "", "← →", "what was shown a moment before or after; esc returns to the present (shift: ten moments)", []string{"left"}},
	{inLive, actForward, sectionTime, "", "", "", []string{"right"}},
	{inLive, actBackwardMore, sectionTime, "", "", "", []string{"shift+left"}},
	{inLive, actForwardMore, sectionTime, "", "", "", []string{"shift+right"}},
	{inAll, actSpan, sectionTime, "", "z", "charts of all time, 10 s, 60 s or 10 min", []string{"z"}},
	{inAll, actNextEvent, sectionTime, "", "< >", "the event before or after: ▲ a limit changed, ! a message, ■ an end, ● a mark", []string{">"}},
	{inAll, actPreviousEvent, sectionTime, "", "", "", []string{"<"}},
	{inAll, actMark, sectionTime, "", "M", "mark this time", []string{"M"}},
	{inView, actBackward, sectionTime, "", "", "", []string{"left"}},
	{inView, actForward, sectionTime, "time", "← →", "one kept instant back or forward", []string{"right"}},
	{inView, actTime, sectionTime, "go to", "t", "go to a time, such as 12.5, 1m30s or 1:30", []string{"t"}},
	{inAll, actPoints, sectionScreen, "findings", "!", "list of what stands out; enter goes to the call site, y does what is suggested", []string{"!"}},
	{inAll, actFilter, sectionMove, "filter", "/", "show only rows or lines with a text; !text: without it; re: a regular expression; esc shows all", []string{"/"}},
	{inAll, actSort, sectionMove, "sort", "s", "sort the tags by the next column", []string{"s"}},
	{inAll, actNext, sectionScreen, "pane", "tab", "next pane", []string{"tab"}},
	{inRun, actZoom, sectionScreen, "zoom", "1-7", "zoom a pane; the same key or esc goes back", []string{"1", "2", "3", "4", "5", "6", "7"}},
	{inAttach | inView, actZoom, sectionScreen, "zoom", "1-6", "zoom a pane; the same key or esc goes back", []string{"1", "2", "3", "4", "5", "6"}},
	{inLive, actFreeze, sectionScreen, "freeze", "f", "freeze the screen; recording goes on (also space)", []string{"f", " "}},
	{inRun, actLess, sectionLimits, "", "[", "lower the chosen limit: half of a size, one step of a number, the previous word", []string{"["}},
	{inRun, actMore, sectionLimits, "limit", "]", "raise the chosen limit: twice a size, one step of a number, the next word", []string{"]"}},
	{inLive, actGhosts, sectionWhatIf, "what if", "w", "what other policies would have done so far, simulated beside the run (ghosts)", []string{"w"}},
	{inView, actCurve, sectionWhatIf, "curve", "c", "hit rate at other limits of cached bytes, of the whole recording", []string{"c"}},
	{inLive, actProcess, sectionApp, "process", "p", nextHelp, []string{"p"}},
	{inView, actProcess, sectionScreen, "process", "p", nextHelp, []string{"p"}},
	{inLive, actProcesses, sectionApp, "", "P", "list of the processes; enter shows one", []string{"P"}},
	{inView, actProcesses, sectionScreen, "", "P", "list of the processes; enter shows one", []string{"P"}},
	{inRun, actAdopt, sectionWhatIf, "", "y", "do what is suggested: change the limit, or switch to the ghost that leads; shows it first", []string{"y"}},
	{inAttach | inView, actAdopt, sectionWhatIf, "", "", "", []string{"y"}},
	{inLive, actCurve, sectionWhatIf, "curve", "c", "hit rate at other limits of cached bytes", []string{"c"}},
	{inRun, actPolicies, sectionLimits, "policy", "a", "list of the allocator's policies; enter switches to one while the program runs", []string{"a"}},
	{inRun, actOutput, sectionApp, "output", "o", "output of the program on the whole screen", []string{"o"}},
	{inRun, actType, sectionApp, "", "i", "type into the program; ctrl+\\ ends", []string{"i"}},
	{inRun, actInterrupt, sectionApp, "interrupt", "ctrl+c", "SIGINT to the program; again within 2 s SIGTERM, then SIGKILL", []string{"ctrl+c"}},
	{inAll, actFailures, sectionScreen, "", "m", "post-mortem: why a call failed for lack of memory, and what to try", []string{"m"}},
	{inAll, actTransfers, sectionScreen, "", "b", "transfers: bytes between host and device, by direction and call site", []string{"b"}},
	{inAll, actObjects, sectionScreen, "", "n", "objects: how many contexts, queues, programs, kernels, events and so on are live, and who creates them", []string{"n"}},
	{inRun | inView, actHeap, sectionScreen, "", "H", "heap map: what lies where in each slab, and the holes between", []string{"H"}},
	{inView, actBackwardMore, sectionTime, "", "shift+←", "ten kept instants back", []string{"shift+left"}},
	{inView, actForwardMore, sectionTime, "", "shift+→", "ten kept instants forward", []string{"shift+right"}},
	{inView, actBackwardMost, sectionTime, "", "ctrl+←", "fifty kept instants back", []string{"ctrl+left"}},
	{inView, actForwardMost, sectionTime, "", "ctrl+→", "fifty kept instants forward", []string{"ctrl+right"}},
	{inView, actFirst, sectionTime, "", "home", "to the start", []string{"home"}},
	{inView, actLast, sectionTime, "", "end", "to the end", []string{"end"}},
	{inAll, actPalette, sectionScreen, "commands", ":", "all commands, searched by their letters", []string{":"}},
	{inLive, actGroup, sectionMove, "group", "t", "group call sites by file, function, module, size, kind of memory, thread, device, kernel and process (also T)", []string{"t", "T"}},
	{inView, actGroup, sectionMove, "group", "T", "group call sites by file, function, module, size, kind of memory, thread, device, kernel and process", []string{"T"}},
	{inAll, actLeft, sectionMove, "", "h l", "names and lines to the left and right", []string{"h"}},
	{inAll, actRight, sectionMove, "", "", "", []string{"l"}},
	{inRun, actReverse, sectionMove, "", "S", "reverse the order; in the output: save it", []string{"S"}},
	{inAttach | inView, actReverse, sectionMove, "", "S", "reverse the order", []string{"S"}},
	{inAll, actUp, sectionMove, "", "k ↑", "up in the focused pane", []string{"k", "up"}},
	{inAll, actDown, sectionMove, "", "j ↓", "down", []string{"j", "down"}},
	{inLive, actTop, sectionMove, "", "g", "to the top", []string{"g", "home"}},
	{inLive, actBottom, sectionMove, "", "G", "to the bottom", []string{"G", "end"}},
	{inView, actTop, sectionMove, "", "g", "to the top", []string{"g"}},
	{inView, actBottom, sectionMove, "", "G", "to the bottom", []string{"G"}},
	{inAll, actPageUp, sectionMove, "", "pgup", "a page up", []string{"pgup", "ctrl+b"}},
	{inAll, actPageDown, sectionMove, "", "pgdn", "a page down", []string{"pgdown", "ctrl+f"}},
	{inRun | inView, actEnter, sectionMove, "", "enter", "free list and call stack of the chosen tag", []string{"enter"}},
	{inAttach, actEnter, sectionMove, "", "enter", "call stack of the chosen tag", []string{"enter"}},
	{inAll, actPrevious, sectionScreen, "", "shift+tab", "previous pane", []string{"shift+tab"}},
	{inAll, actBack, sectionScreen, "", "esc", "back", []string{"esc"}},
	{inAll, actRedraw, sectionScreen, "", "ctrl+l", "draw everything again", []string{"ctrl+l"}},
	{inRun, actSuspend, sectionScreen, "", "ctrl+z", "stop this and the program; the shell's fg continues both", []string{"ctrl+z"}},
	{inAttach, actSuspend, sectionScreen, "", "ctrl+z", "stop this: calls are lost meanwhile; the shell's fg continues it", []string{"ctrl+z"}},
	{inView, actSuspend, sectionScreen, "", "ctrl+z", "stop this; the shell's fg continues it", []string{"ctrl+z"}},
	{inRun, actHalve, sectionLimits, "", "{", "halve the chosen limit", []string{"{"}},
	{inRun, actDouble, sectionLimits, "", "}", "double the chosen limit", []string{"}"}},
	{inRun, actValue, sectionLimits, "", "=", "type a value of the chosen limit, such as 96M, 30s or on", []string{"="}},
	{inRun, actUndo, sectionLimits, "", "u", "undo the latest change of a limit or of the policy", []string{"u"}},
	{inRun, actSave, sectionLimits, "", "W", "save policy and limits as a file for --config", []string{"W"}},
	{inRun | inView, actFit, sectionMove, "", "F", "would a size that you type fit now, and where", []string{"F"}},
	{inLive, actBaseline, sectionTime, "", "B", "counts and hit rates from now on; again: from the start", []string{"B"}},
	{inAll, actScreen, sectionScreen, "", "x", "save the screen as a picture (SVG) and as text", []string{"x"}},
	{inAll, actExport, sectionScreen, "", "e", "export what is shown: a profile for go tool pprof, a summary (JSON) or the call sites (CSV)", []string{"e"}},
	{inRun, actRecord, sectionScreen, "", "r", "record from now on into a new file in this folder; again: end it", []string{"r"}},
	{inAttach, actRecord, sectionScreen, "", "", "", []string{"r"}},
	{inAll, actCopy, sectionMove, "", "Y", "copy the chosen row, if the terminal allows it (OSC 52)", []string{"Y"}},
	{inView, actPolicies, sectionLimits, "", "", "", []string{"a"}},
	{inView, actGhosts, sectionWhatIf, "", "", "", []string{"w"}},
	{inAttach | inView, actLess, sectionWhatIf, "", "[ ]", "on the curve: try half of the limit, or twice", []string{"[", "{"}},
	{inAttach | inView, actMore, sectionWhatIf, "", "", "", []string{"]", "}"}},
}

// keymapFor returns the keys of a mode.
func keymapFor(m modes) (keys []command) {
	for _, c := range keymap {
		if c.modes&m != 0 {
			keys = append(keys, c)
		}
	}
	return keys
}

// adjusts reports whether a command changes a limit.
func (a action) adjusts() bool { return a >= actLess && a <= actDouble }

// needsPanes reports whether a command shows nothing where there is no room for panes.
func (a action) needsPanes() bool {
	switch a {
	case actNext, actPrevious, actZoom, actEnter, actUp, actDown, actTop, actBottom, actPageUp, actPageDown, actSort, actReverse, actOutput,
		actProcesses, actPolicies, actGhosts, actCurve, actFailures, actTransfers, actObjects, actHeap, actPoints, actFilter, actGroup, actLeft,
		actRight, actSpan:
		return true
	}
	return false
}

// travels reports whether a command moves the time cursor.
func (a action) travels() bool { return a >= actBackward }
