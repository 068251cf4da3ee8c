package ui

import "github.com/charmbracelet/bubbles/key"

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
	actInterrupt
	actRedraw
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
	sectionLimits = "limits"
	sectionApp    = "program"
)

// newKeymap returns all keys, in the order in which the key line shows them.
func newKeymap() []command {
	return []command{
		bind(actQuit, sectionScreen, "quit", "q", "quit; asks what becomes of a program that still runs", "q"),
		bind(actHelp, sectionScreen, "help", "?", "this help", "?"),
		bind(actSort, sectionMove, "sort", "s", "sort the tags by the next column", "s"),
		bind(actNext, sectionScreen, "pane", "tab", "next pane", "tab"),
		bind(actZoom, sectionScreen, "zoom", "1-7", "zoom a pane; the same key or esc goes back", "1", "2", "3", "4", "5", "6", "7"),
		bind(actFreeze, sectionScreen, "freeze", "f", "freeze the screen; collecting goes on (also space)", "f", " "),
		bindLimit(actLess, "", "[", "lower the chosen limit: half of a size, one step of a number, the word before", "["),
		bindLimit(actMore, "limit", "]", "raise the chosen limit: twice a size, one step of a number, the next word", "]"),
		bind(actOutput, sectionApp, "output", "o", "output of the program on the whole screen", "o"),
		bind(actProcess, sectionApp, "process", "p", "look at one process: the first, the next, and after the last all again", "p"),
		bind(actProcesses, sectionApp, "", "P", "list of the processes; enter looks at one", "P"),
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

// shownKeys is what the key line prints for a command.
func (c *command) shownKeys() string { return c.binding.Help().Key }
