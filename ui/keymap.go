package ui

import (
	"slices"

	"github.com/charmbracelet/bubbles/key"
)

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
	actInterrupt
	actRedraw
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

// command is one line of the keymap. The dispatcher, the key line and the help are all made from it.
type command struct {
	action  action
	binding key.Binding
	short   string // in the key line; empty: not there
	section string // of the help
	limits  bool   // changes a limit
}

func bind(a action, section, short, shown, help string, keys ...string) command {
	return command{a, key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, help)), short, section, false}
}

func bindLimit(a action, short, shown, help string, keys ...string) command {
	c := bind(a, sectionLimits, short, shown, help, keys...)
	c.limits = true
	return c
}

// The sections of the help, in its order.
const (
	sectionScreen = "screen"
	sectionMove   = "move"
	sectionLimits = "limits and policy"
	sectionWhatIf = "what if"
	sectionApp    = "program"
	sectionTime   = "time"
)

// travels reports whether a command moves the time cursor.
func (c *command) travels() bool { return c.section == sectionTime }

// keymapOf returns all keys, in the order in which the key line shows them.
func keymapOf(o *Options) []command {
	switch {
	case o.Moment != nil:
		return viewKeymap()
	case o.Attached:
		return attachedKeymap()
	}
	return liveKeymap()
}

// attachedKeymap returns the keys for programs that were not started here: none that would change one.
func attachedKeymap() []command {
	keys := slices.DeleteFunc(liveKeymap(), func(c command) bool {
		return c.limits || c.action == actPolicies || c.action == actOutput || c.action == actInterrupt
	})
	for i := range keys {
		switch keys[i].action {
		case actQuit:
			keys[i] = bind(actQuit, sectionScreen, "detach", "q", "detach and quit; the programs go on (also ctrl+c)", "q", "ctrl+c")
		case actZoom:
			keys[i] = bindZoom("1-6", "1", "2", "3", "4", "5", "6")
		case actEnter:
			keys[i] = bind(actEnter, sectionMove, "", "enter", "call stack of the chosen tag", "enter")
		case actAdopt: // says why not
			keys[i] = bindSilent(keys[i])
		}
	}
	return append(keys, bindSupposing()...)
}

// bindZoom binds the numbers of the panes.
func bindZoom(shown string, keys ...string) command {
	return bind(actZoom, sectionScreen, "zoom", shown, "zoom a pane; the same key or esc goes back", keys...)
}

// bindSilent binds the keys of a command that only says why it cannot be: neither the key line nor the help has it.
func bindSilent(c command) command { return bind(c.action, c.section, "", "", "", c.binding.Keys()...) }

// bindSupposing binds the keys that change limits where there is nothing to change: on the curve they move a mark,
// elsewhere they say why they do nothing.
func bindSupposing() []command {
	keys := []command{
		bindLimit(actLess, "", "[ ]", "on the curve: look at half of the limit, or twice", "[", "{"), bindLimit(actMore, "", "", "", "]", "}"),
	}
	for i := range keys {
		keys[i].section = sectionWhatIf
	}
	return keys
}

// liveKeymap returns the keys for a program that was started here.
func liveKeymap() []command {
	return []command{
		bind(actQuit, sectionScreen, "quit", "q", "quit; asks what becomes of a program that still runs", "q"),
		bind(actHelp, sectionScreen, "help", "?", "this help", "?"),
		bind(actSort, sectionMove, "sort", "s", "sort the tags by the next column", "s"),
		bind(actNext, sectionScreen, "pane", "tab", "next pane", "tab"),
		bindZoom("1-7", "1", "2", "3", "4", "5", "6", "7"),
		bind(actFreeze, sectionScreen, "freeze", "f", "freeze the screen; collecting goes on (also space)", "f", " "),
		bindLimit(actLess, "", "[", "lower the chosen limit: half of a size, one step of a number, the word before", "["),
		bindLimit(actMore, "limit", "]", "raise the chosen limit: twice a size, one step of a number, the next word", "]"),
		bind(actGhosts, sectionWhatIf, "what if", "w", "what other policies would have done so far, simulated beside the run (ghosts)", "w"),
		bind(actProcess, sectionApp, "process", "p", "look at one process: the first, the next, and after the last all again", "p"),
		bind(actProcesses, sectionApp, "", "P", "list of the processes; enter looks at one", "P"),
		bind(actAdopt, sectionWhatIf, "", "y", "go over to the ghost that leads; shows the list first", "y"),
		bind(actCurve, sectionWhatIf, "curve", "c", "hit rate at other limits of cached bytes", "c"),
		bind(actPolicies, sectionLimits, "policy", "a", "list of the allocator's policies; enter goes over to one while the program runs", "a"),
		bind(actOutput, sectionApp, "output", "o", "output of the program on the whole screen", "o"),
		bind(actInterrupt, sectionApp, "interrupt", "ctrl+c", "SIGINT to the program; again within 2 s SIGTERM, then SIGKILL", "ctrl+c"),
		bind(actReverse, sectionMove, "", "S", "reverse the order", "S"),
		bind(actUp, sectionMove, "", "k ↑", "up in the focused pane", "k", "up"),
		bind(actDown, sectionMove, "", "j ↓", "down", "j", "down"),
		bind(actTop, sectionMove, "", "g", "to the top", "g", "home"),
		bind(actBottom, sectionMove, "", "G", "to the bottom", "G", "end"),
		bind(actPageUp, sectionMove, "", "pgup", "a page up", "pgup", "ctrl+b"),
		bind(actPageDown, sectionMove, "", "pgdn", "a page down", "pgdown", "ctrl+f"),
		bind(actEnter, sectionMove, "", "enter", "free list and call stack of the chosen tag", "enter"),
		bind(actPrevious, sectionScreen, "", "shift+tab", "previous pane", "shift+tab"),
		bind(actBack, sectionScreen, "", "esc", "back", "esc"),
		bind(actRedraw, sectionScreen, "", "ctrl+l", "draw everything again", "ctrl+l"),
		bindLimit(actHalve, "", "{", "halve the chosen limit", "{"),
		bindLimit(actDouble, "", "}", "double the chosen limit", "}"),
	}
}

// viewKeymap returns the keys for a recording: none that needs a live program.
func viewKeymap() []command {
	return append([]command{
		bind(actQuit, sectionScreen, "quit", "q", "quit (also ctrl+c)", "q", "ctrl+c"),
		bind(actHelp, sectionScreen, "help", "?", "this help", "?"),
		bind(actBackward, sectionTime, "", "", "", "left"),
		bind(actForward, sectionTime, "time", "← →", "one kept instant back or on", "right"),
		bind(actTime, sectionTime, "go to", "t", "go to a time, such as 12.5, 1m30s or 1:30", "t"),
		bind(actSort, sectionMove, "sort", "s", "sort the tags by the next column", "s"),
		bind(actNext, sectionScreen, "pane", "tab", "next pane", "tab"),
		bindZoom("1-6", "1", "2", "3", "4", "5", "6"),
		bind(actCurve, sectionWhatIf, "curve", "c", "hit rate at other limits of cached bytes, of the whole recording", "c"),
		bind(actProcess, sectionScreen, "process", "p", "look at one process: the first, the next, and after the last all again", "p"),
		bind(actProcesses, sectionScreen, "", "P", "list of the processes; enter looks at one", "P"),
		bind(actBackwardMore, sectionTime, "", "shift+←", "ten kept instants back", "shift+left"),
		bind(actForwardMore, sectionTime, "", "shift+→", "ten kept instants on", "shift+right"),
		bind(actBackwardMost, sectionTime, "", "ctrl+←", "fifty kept instants back", "ctrl+left"),
		bind(actForwardMost, sectionTime, "", "ctrl+→", "fifty kept instants on", "ctrl+right"),
		bind(actFirst, sectionTime, "", "home", "to the start", "home"),
		bind(actLast, sectionTime, "", "end", "to the end", "end"),
		bind(actReverse, sectionMove, "", "S", "reverse the order", "S"),
		bind(actUp, sectionMove, "", "k ↑", "up in the focused pane", "k", "up"),
		bind(actDown, sectionMove, "", "j ↓", "down", "j", "down"),
		bind(actTop, sectionMove, "", "g", "to the top", "g"),
		bind(actBottom, sectionMove, "", "G", "to the bottom", "G"),
		bind(actPageUp, sectionMove, "", "pgup", "a page up", "pgup", "ctrl+b"),
		bind(actPageDown, sectionMove, "", "pgdn", "a page down", "pgdown", "ctrl+f"),
		bind(actEnter, sectionMove, "", "enter", "free list and call stack of the chosen tag", "enter"),
		bind(actPrevious, sectionScreen, "", "shift+tab", "previous pane", "shift+tab"),
		bind(actBack, sectionScreen, "", "esc", "back", "esc"),
		bind(actRedraw, sectionScreen, "", "ctrl+l", "draw everything again", "ctrl+l"),
		bind(actPolicies, sectionLimits, "", "", "", "a"), // these say where else there is that
		bind(actGhosts, sectionWhatIf, "", "", "", "w"),
		bind(actAdopt, sectionWhatIf, "", "", "", "y"),
	}, bindSupposing()...)
}

// shownKeys is what the key line and the help print for a command, empty where another one's line tells of it.
func (c *command) shownKeys() string { return c.binding.Help().Key }
