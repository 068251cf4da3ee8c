package ui

import (
	tea "charm.land/bubbletea/v2"

	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// command is one line of a keymap: keys and what they do. The dispatcher, the key line, the help and the palette are made
// from these lines.
type command struct {
	modes   modes
	keys    keys
	section string // of the help
	short   string // in the key line; empty: not there
	shown   string // how the help writes the keys; empty: another line covers them, or they only say why they do nothing
	help    string
	rules   rules
	do      func(d *dashboard, pressed string) tea.Cmd
}

// keys are named as Bubble Tea names them.
type keys []string

// modes is a set of modes.
type modes uint8

const (
	inRun modes = 1 << iota
	inAttach
	inView
	inOther       // another terminal's dashboard of a run
	inOtherQuiet  // the same, of a session that does not keep the program's output
	inOtherAttach // another terminal's dashboard of programs that are only watched
	inOthers      = inOther | inOtherQuiet | inOtherAttach
	inPool        = inRun | inOther | inOtherQuiet
	inWatch       = inAttach | inOtherAttach
	inLive        = inPool | inWatch
	inAll         = inLive | inView
)

// rules say when a command can be used.
type rules struct {
	panes    bool                    // it shows nothing where there is no room for panes
	offered  func(*dashboard) bool   // in the key line and in the palette; nil: always
	obstacle func(*dashboard) string // why it can do nothing now, empty if it can; nil: it always can
	unlisted bool                    // the palette has no line for it
	line     string                  // the keys in the key line; empty: those of the help
}

// The rules of the commands below.
var (
	always        = rules{}
	withPanes     = rules{panes: true}
	zoomRules     = rules{panes: true, unlisted: true}
	paletteRules  = rules{unlisted: true}
	withCurve     = rules{panes: true, offered: func(d *dashboard) bool { return d.o.Curve != nil }}
	withProcesses = rules{offered: func(d *dashboard) bool { return d.live != nil && len(d.live.Processes) > 1 }}
	withLimits    = rules{offered: canAdjustLimits, obstacle: adjustObstacle}
	limitRules    = rules{offered: canAdjustLimits, obstacle: adjustObstacle, line: "[ ]"}
	withValue     = rules{obstacle: func(d *dashboard) string { return d.limits.obstacleText() }}
	withGhosts    = rules{
		panes: true, offered: func(d *dashboard) bool { return d.ghosts.simulatedGhosts() != nil },
		obstacle: func(d *dashboard) string { return textIf(d.ghosts.simulatedGhosts() == nil, d.mode.noGhosts) },
	}
	withPolicies = rules{
		panes: true, offered: func(d *dashboard) bool { return d.mode.fixedPolicy == "" },
		obstacle: func(d *dashboard) string { return d.policies.obstacleText() },
	}
	withTyping  = rulesWhileMissing(func(d *dashboard) bool { return d.o.Type == nil }, "nothing can be typed into the program here")
	withExport  = rulesWhileMissing(func(d *dashboard) bool { return d.o.Export == nil }, "there is nothing to export here")
	withRecord  = rulesWhileMissing(func(d *dashboard) bool { return d.o.Record == nil }, "a recording starts with the session here: -o names its file")
	withMeasure = rulesWhileMissing(func(d *dashboard) bool { return d.o.Measure == nil }, "nothing can be measured here")
	withWrite   = rulesWhileMissing(func(d *dashboard) bool { return d.o.Write == nil || d.canvas == nil },
		"there is nowhere to save here")
	withSettings = rules{obstacle: func(d *dashboard) string { return d.limits.whyUnsavable() }}
	withPool     = rules{obstacle: func(d *dashboard) string { return textIf(!d.mode.pool, d.mode.noBlocks) }}
)

// rulesWhileMissing returns the rules of a command that is not offered, and only says why, while something is missing.
func rulesWhileMissing(missing func(*dashboard) bool, text string) rules {
	return rules{obstacle: func(d *dashboard) string { return textIf(missing(d), text) }}
}

func textIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

func canAdjustLimits(d *dashboard) bool { return d.mode.fixedLimits == "" }

// adjustObstacle says why no limit can be changed. On the curve a limit can be tried without one in force.
func adjustObstacle(d *dashboard) string {
	return textIf(!d.triesLimitsOnCurve(), d.limits.obstacleText())
}

// actionOf, commandOf and the functions below return the action of a command.
func actionOf(f func(*dashboard)) func(*dashboard, string) tea.Cmd {
	return func(d *dashboard, _ string) tea.Cmd {
		f(d)
		return nil
	}
}

func commandOf(f func(*dashboard) tea.Cmd) func(*dashboard, string) tea.Cmd {
	return func(d *dashboard, _ string) tea.Cmd { return f(d) }
}

func zoomAction(p paneID) func(*dashboard, string) tea.Cmd {
	return actionOf(func(d *dashboard) { d.showPaneAlone(p) })
}

func zoomOnNumber(d *dashboard, pressed string) tea.Cmd {
	d.showPaneAlone(paneID(pressed[0] - '0'))
	return nil
}

func moveAction(m motion) func(*dashboard, string) tea.Cmd {
	return actionOf(func(d *dashboard) { d.panes[d.focus].move(m) })
}

func scrollSidewaysAction(columns int) func(*dashboard, string) tea.Cmd {
	return actionOf(func(d *dashboard) { d.side = max(0, min(d.side+columns, sideMax)) })
}

func adjustAction(s limitStep) func(*dashboard, string) tea.Cmd {
	return actionOf(func(d *dashboard) { d.stepLimit(s) })
}

func travelAction(instants int) func(*dashboard, string) tea.Cmd {
	return actionOf(func(d *dashboard) { d.travelInstants(instants) })
}

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
	{inRun, keys{"q"}, sectionScreen, "quit", "q", "quit; asks what to do with a program that still runs", always, commandOf((*dashboard).askOrQuit)},
	{inOthers, keys{"q", "ctrl+c"}, sectionScreen, "leave", "q", "leave; the session goes on (also ctrl+c)", always, commandOf((*dashboard).askOrQuit)},
	{inAttach, keys{"q", "ctrl+c"}, sectionScreen, "detach", "q", "detach and quit; the programs go on (also ctrl+c)", always, commandOf((*dashboard).askOrQuit)},
	{inView, keys{"q", "ctrl+c"}, sectionScreen, "quit", "q", "quit (also ctrl+c)", always, commandOf((*dashboard).askOrQuit)},
	{inAll, keys{"?"}, sectionScreen, "help", "?", "help for the pane, and again for everything", always, actionOf(func(d *dashboard) { d.help.openHelp() })},
	{inLive, keys{"left"}, sectionTime, "", "← →", "what was shown a moment before or after; esc returns to the present (shift: ten moments)", always, travelAction(-smallStep)},
	{inLive, keys{"right"}, sectionTime, "", "", "", always, travelAction(smallStep)},
	{inLive, keys{"shift+left"}, sectionTime, "", "", "", always, travelAction(-mediumStep)},
	{inLive, keys{"shift+right"}, sectionTime, "", "", "", always, travelAction(mediumStep)},
	{inAll, keys{"z"}, sectionTime, "", "z", "charts of all time, 10 s, 60 s or 10 min", withPanes, actionOf((*dashboard).showNextSpan)},
	{inAll, keys{">"}, sectionTime, "", "< >", "the event before or after: Δ a limit changed, • a message, ■ an end, ★ a mark", always, actionOf(func(d *dashboard) { d.showNextEvent(true) })},
	{inAll, keys{"<"}, sectionTime, "", "", "", always, actionOf(func(d *dashboard) { d.showNextEvent(false) })},
	{inAll, keys{"M"}, sectionTime, "", "M", "mark this time", always, actionOf((*dashboard).markShownTime)},
	{inView, keys{"left"}, sectionTime, "", "", "", always, travelAction(-smallStep)},
	{inView, keys{"right"}, sectionTime, "time", "← →", "one kept instant back or forward", always, travelAction(smallStep)},
	{inView, keys{"t"}, sectionTime, "go to", "t", "go to a time, such as 12.5, 1m30s or 1:30", always, actionOf(func(d *dashboard) { d.cursor.askTime() })},
	{inAll, keys{"!"}, sectionScreen, "findings", "!", "list of findings; enter goes to the call site, y does what is suggested", withPanes, zoomAction(panePoints)},
	{inAll, keys{"/"}, sectionMove, "filter", "/", "show only rows or lines with a text; !text: without it; re: a regular expression; esc shows all", withPanes, actionOf((*dashboard).askFilter)},
	{inAll, keys{"s"}, sectionMove, "sort", "s", "sort the tags by the next column", withPanes, actionOf(func(d *dashboard) { d.tags.sortByNextColumn() })},
	{inAll, keys{"tab"}, sectionScreen, "pane", "tab", "next pane", withPanes, actionOf(func(d *dashboard) { d.focusNextPane(1) })},
	{inRun | inOther, keys{"1", "2", "3", "4", "5", "6", "7"}, sectionScreen, "zoom", "1-7", "zoom a pane; the same key or esc goes back", zoomRules, zoomOnNumber},
	{inOtherQuiet | inWatch | inView, keys{"1", "2", "3", "4", "5", "6"}, sectionScreen, "zoom", "1-6", "zoom a pane; the same key or esc goes back", zoomRules, zoomOnNumber},
	{inLive, keys{"f", "space"}, sectionScreen, "freeze", "f", "freeze the screen; recording goes on (also space)", always, actionOf((*dashboard).toggleFreeze)},
	{inPool, keys{"["}, sectionLimits, "", "[", "lower the chosen limit: half of a size, one step of a number, the previous word", withLimits, adjustAction(stepLess)},
	{inPool, keys{"]"}, sectionLimits, "limit", "]", "raise the chosen limit: twice a size, one step of a number, the next word", limitRules, adjustAction(stepMore)},
	{inLive, keys{"w"}, sectionWhatIf, "what if", "w", "what other policies would have done so far, simulated beside the run (ghosts)", withGhosts, zoomAction(paneGhosts)},
	{inPool, keys{"E"}, sectionWhatIf, "", "E", "experiment: measure what the pool is worth, with parts of the run without it; again: end it", withMeasure, actionOf((*dashboard).toggleExperiment)},
	{inView, keys{"c"}, sectionWhatIf, "curve", "c", "hit rate at other limits of cached bytes, of the whole recording", withCurve, zoomAction(paneCurve)},
	{inLive, keys{"p"}, sectionApp, "process", "p", nextHelp, withProcesses, actionOf(func(d *dashboard) { d.processes.selectNextProcess() })},
	{inView, keys{"p"}, sectionScreen, "process", "p", nextHelp, withProcesses, actionOf(func(d *dashboard) { d.processes.selectNextProcess() })},
	{inLive, keys{"P"}, sectionApp, "", "P", "list of the processes; enter shows one", withPanes,
		actionOf(func(d *dashboard) { d.processes.showProcessList() })},
	{inView, keys{"P"}, sectionScreen, "", "P", "list of the processes; enter shows one", withPanes,
		actionOf(func(d *dashboard) { d.processes.showProcessList() })},
	{inPool, keys{"y"}, sectionWhatIf, "", "y", "do what is suggested: change the limit, or switch to the ghost that leads; shows it first", always, actionOf((*dashboard).applySuggestion)},
	{inWatch | inView, keys{"y"}, sectionWhatIf, "", "", "", always, actionOf((*dashboard).applySuggestion)},
	{inLive, keys{"c"}, sectionWhatIf, "curve", "c", "hit rate at other limits of cached bytes; with proportion, outgrown or max_age chosen, at other values of that", withCurve, zoomAction(paneCurve)},
	{inPool, keys{"a"}, sectionLimits, "policy", "a", "list of the allocator's policies; enter switches to one while the program runs",
		withPolicies, actionOf(func(d *dashboard) { d.policies.showPolicyList() })},
	{inRun | inOther, keys{"o"}, sectionApp, "output", "o", "output of the program on the whole screen", withPanes, zoomAction(paneOutput)},
	{inRun, keys{"i"}, sectionApp, "", "i", "type into the program; ctrl+\\ ends", withTyping, actionOf((*dashboard).beginTyping)},
	{inRun, keys{"ctrl+c"}, sectionApp, "interrupt", "ctrl+c", "SIGINT to the program; again within 2 s SIGTERM, then SIGKILL", always, commandOf((*dashboard).interruptProgram)},
	{inAll, keys{"m"}, sectionScreen, "", "m", "post-mortem: why a call failed for lack of memory, and what to try", withPanes, zoomAction(paneFailures)},
	{inAll, keys{"b"}, sectionScreen, "", "b", "transfers: bytes between host and device, by direction and call site", withPanes, zoomAction(paneTransfers)},
	{inAll, keys{"n"}, sectionScreen, "", "n", "objects: how many contexts, queues, programs, kernels, events and so on are live, and who creates them", withPanes, zoomAction(paneObjects)},
	{inPool | inView, keys{"H"}, sectionScreen, "", "H", "heap map: what lies where in each slab, and the holes between", withPanes, zoomAction(paneHeap)},
	{inView, keys{"shift+left"}, sectionTime, "", "shift+←", "ten kept instants back", always, travelAction(-mediumStep)},
	{inView, keys{"shift+right"}, sectionTime, "", "shift+→", "ten kept instants forward", always, travelAction(mediumStep)},
	{inView, keys{"ctrl+left"}, sectionTime, "", "ctrl+←", "fifty kept instants back", always, travelAction(-largeStep)},
	{inView, keys{"ctrl+right"}, sectionTime, "", "ctrl+→", "fifty kept instants forward", always, travelAction(largeStep)},
	{inView, keys{"home"}, sectionTime, "", "home", "to the start", always, actionOf(func(d *dashboard) { d.cursor.goToTime(d.cursor.moment.From) })},
	{inView, keys{"end"}, sectionTime, "", "end", "to the end", always, actionOf(func(d *dashboard) { d.cursor.goToTime(view.LastMoment) })},
	{inAll, keys{":"}, sectionScreen, "commands", ":", "all commands, searched by their letters", paletteRules, actionOf(func(d *dashboard) { d.palette.askCommand() })},
	{inLive, keys{"T", "t"}, sectionMove, "group", "T", "group call sites by file, function, module, size, kind of memory, thread, device, kernel and process (also t)", withPanes, actionOf((*dashboard).groupInNextWay)},
	{inView, keys{"T"}, sectionMove, "group", "T", "group call sites by file, function, module, size, kind of memory, thread, device, kernel and process", withPanes, actionOf((*dashboard).groupInNextWay)},
	{inAll, keys{"h"}, sectionMove, "", "h l", "names and lines to the left and right", withPanes, scrollSidewaysAction(-sideStep)},
	{inAll, keys{"l"}, sectionMove, "", "", "", withPanes, scrollSidewaysAction(sideStep)},
	{inPool, keys{"S"}, sectionMove, "", "S", "reverse the order; in the output: save it", withPanes, actionOf((*dashboard).reverseTagsOrSaveOutput)},
	{inWatch | inView, keys{"S"}, sectionMove, "", "S", "reverse the order", withPanes, actionOf((*dashboard).reverseTagsOrSaveOutput)},
	{inAll, keys{"k", "up"}, sectionMove, "", "k ↑", "up in the focused pane", withPanes, moveAction(moveUp)},
	{inAll, keys{"j", "down"}, sectionMove, "", "j ↓", "down", withPanes, moveAction(moveDown)},
	{inLive, keys{"g", "home"}, sectionMove, "", "g", "to the top", withPanes, moveAction(moveTop)},
	{inLive, keys{"G", "end"}, sectionMove, "", "G", "to the bottom", withPanes, moveAction(moveBottom)},
	{inView, keys{"g"}, sectionMove, "", "g", "to the top", withPanes, moveAction(moveTop)},
	{inView, keys{"G"}, sectionMove, "", "G", "to the bottom", withPanes, moveAction(moveBottom)},
	{inAll, keys{"pgup", "ctrl+b"}, sectionMove, "", "pgup", "a page up", withPanes, moveAction(movePageUp)},
	{inAll, keys{"pgdown", "ctrl+f"}, sectionMove, "", "pgdn", "a page down", withPanes, moveAction(movePageDown)},
	{inPool | inView, keys{"enter"}, sectionMove, "", "enter", "free list and call stack of the chosen tag", withPanes, actionOf(func(d *dashboard) { d.panes[d.focus].handleEnter() })},
	{inWatch, keys{"enter"}, sectionMove, "", "enter", "call stack of the chosen tag", withPanes, actionOf(func(d *dashboard) { d.panes[d.focus].handleEnter() })},
	{inAll, keys{"L"}, sectionScreen, "", "L", "the next layout: all panes, memory, tuning, findings", withPanes, actionOf((*dashboard).showNextPreset)},
	{inAll, keys{"v"}, sectionScreen, "", "v", "hide and show panes by their numbers", withPanes, actionOf((*dashboard).askPanesToShow)},
	{inAll, keys{"+"}, sectionScreen, "", "+ -", "draw the screen more often, or less often", always, actionOf(func(d *dashboard) { d.changeRefresh(-1) })},
	{inAll, keys{"-"}, sectionScreen, "", "", "", always, actionOf(func(d *dashboard) { d.changeRefresh(1) })},
	{inAll, keys{"shift+tab"}, sectionScreen, "", "shift+tab", "previous pane", withPanes, actionOf(func(d *dashboard) { d.focusNextPane(-1) })},
	{inAll, keys{"esc"}, sectionScreen, "", "esc", "back", always, actionOf((*dashboard).clearFilterOrUnzoom)},
	{inAll, keys{"ctrl+l"}, sectionScreen, "", "ctrl+l", "draw everything again", always, commandOf(func(*dashboard) tea.Cmd { return func() tea.Msg { return redrawMsg{} } })},
	{inRun, keys{"ctrl+z"}, sectionScreen, "", "ctrl+z", "stop this and the program; the shell's fg continues both", always, commandOf((*dashboard).stopToShell)},
	{inAttach, keys{"ctrl+z"}, sectionScreen, "", "ctrl+z", "stop this: calls are lost meanwhile; the shell's fg continues it", always, commandOf((*dashboard).stopToShell)},
	{inOthers | inView, keys{"ctrl+z"}, sectionScreen, "", "ctrl+z", "stop this; the shell's fg continues it", always, commandOf((*dashboard).stopToShell)},
	{inPool, keys{"{"}, sectionLimits, "", "{", "halve the chosen limit", withLimits, adjustAction(stepHalve)},
	{inPool, keys{"}"}, sectionLimits, "", "}", "double the chosen limit", withLimits, adjustAction(stepDouble)},
	{inPool, keys{"="}, sectionLimits, "", "=", "type a value of the chosen limit, such as 96M, 30s or on", withValue,
		actionOf(func(d *dashboard) { d.limits.askLimitValue() })},
	{inPool, keys{"u"}, sectionLimits, "", "u", "undo the latest change of a limit or of the policy", always,
		actionOf(func(d *dashboard) { d.ledger.undoLatestChange() })},
	{inPool, keys{"W"}, sectionLimits, "", "W", "save policy and limits as a file for --config", withSettings,
		actionOf(func(d *dashboard) { d.limits.askFileForLimits() })},
	{inPool | inView, keys{"F"}, sectionMove, "", "F", "would a size that you type fit now, and where", withPool, actionOf(func(d *dashboard) { d.free.askSize() })},
	{inLive, keys{"B"}, sectionTime, "", "B", "counts and hit rates from now on; again: from the start", always, actionOf((*dashboard).toggleBaseline)},
	{inAll, keys{"x"}, sectionScreen, "", "x", "save the screen as a picture (SVG) and as text", withWrite, actionOf((*dashboard).saveScreen)},
	{inAll, keys{"e"}, sectionScreen, "", "e", "export what is shown: a profile for go tool pprof, a summary (JSON) or the call sites (CSV)", withExport, actionOf((*dashboard).askExportFile)},
	{inPool, keys{"r"}, sectionScreen, "", "r", "record from now on into a new file in this folder; again: end it", withRecord, actionOf((*dashboard).toggleRecording)},
	{inWatch, keys{"r"}, sectionScreen, "", "", "", withRecord, actionOf((*dashboard).toggleRecording)},
	{inAll, keys{"Y"}, sectionMove, "", "Y", "copy the chosen row, if the terminal allows it (OSC 52)", always, commandOf((*dashboard).copyChosenRow)},
	{inView, keys{"a"}, sectionLimits, "", "", "", withPolicies, actionOf(func(d *dashboard) { d.policies.showPolicyList() })},
	{inView, keys{"w"}, sectionWhatIf, "", "", "", withGhosts, zoomAction(paneGhosts)},
	{inWatch | inView, keys{"[", "{"}, sectionWhatIf, "", "[ ]", "on the curve: try half of the limit, or twice", withLimits, adjustAction(stepLess)},
	{inWatch | inView, keys{"]", "}"}, sectionWhatIf, "", "", "", withLimits, adjustAction(stepMore)},
}

// helpKeymap has the keys while the help is shown, promptKeymap those while something is typed, quitKeymap those of the
// question before quitting.
var (
	helpKeymap = []command{
		{modes: inAll, keys: keys{"?"}, do: actionOf(func(d *dashboard) { d.help.showNextHelpPage() })},
		{modes: inAll, keys: keys{"esc", "q"}, do: actionOf((*dashboard).closeOverlay)},
		{modes: inAll &^ inRun, keys: keys{"ctrl+c"}, do: actionOf((*dashboard).closeOverlay)},
		{modes: inAll, keys: keys{"k", "up"}, do: helpMoveAction(moveUp)},
		{modes: inAll, keys: keys{"j", "down"}, do: helpMoveAction(moveDown)},
		{modes: inAll, keys: keys{"pgup", "ctrl+b"}, do: helpMoveAction(movePageUp)},
		{modes: inAll, keys: keys{"pgdown", "ctrl+f"}, do: helpMoveAction(movePageDown)},
		{modes: inAll, keys: keys{"g", "home"}, do: helpMoveAction(moveTop)},
		{modes: inAll, keys: keys{"G", "end"}, do: helpMoveAction(moveBottom)},
	}
	promptKeymap = []command{
		{modes: inAll, keys: keys{"esc"}, do: actionOf((*dashboard).cancelPrompt)},
		{modes: inAll, keys: keys{"enter"}, do: commandOf((*dashboard).acceptPrompt)},
		{modes: inAll, keys: keys{"backspace"}, do: actionOf(func(d *dashboard) { d.prompt.removeLastRune() })},
		{modes: inAll, keys: keys{"ctrl+u"}, do: actionOf(func(d *dashboard) { d.prompt.setText("") })},
		{modes: inAll, keys: keys{"up"}, do: promptMoveAction(moveUp)},
		{modes: inAll, keys: keys{"down"}, do: promptMoveAction(moveDown)},
		{modes: inAll, keys: keys{"pgup"}, do: promptMoveAction(movePageUp)},
		{modes: inAll, keys: keys{"pgdown"}, do: promptMoveAction(movePageDown)},
	}
	quitKeymap = []command{
		{modes: inAll, keys: keys{"d"}, do: commandOf((*dashboard).detachAndQuit)},
		{modes: inAll, keys: keys{"t"}, do: commandOf((*dashboard).terminateAndQuit)},
		{modes: inAll, keys: keys{"esc", "q"}, do: actionOf((*dashboard).closeOverlay)},
	}
)

// commandsOfMode returns the keys of a keymap in a mode.
func (m modes) commandsOfMode(keymap []command) (list []command) {
	for _, c := range keymap {
		if c.modes&m != 0 {
			list = append(list, c)
		}
	}
	return list
}
