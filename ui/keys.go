package ui

import (
	"os"
	"slices"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// interruptWindow is the time in which another ctrl+c sends a stronger signal.
const interruptWindow = 2 * time.Second

// pasteText takes pasted text where text is typed.
func (d *dashboard) pasteText(text string) {
	switch {
	case d.typing:
		d.typeIntoProgram(text)
	case d.prompt != nil:
		d.prompt.appendTyped(text)
	}
}

// worksInPrompts reports whether a key does the same in prompts and dialogs, as in a shell's line.
func worksInPrompts(key string) bool { return key == "ctrl+c" || key == "ctrl+z" }

// presentCommands returns the keys of what is on the screen: a prompt, a dialog or the panes.
func (d *dashboard) presentCommands() []command {
	switch {
	case d.prompt != nil:
		return promptKeymap
	case d.overlay == quitOverlay:
		return quitKeymap
	case d.overlay == helpOverlay:
		return d.mode.help
	}
	return d.mode.keys
}

func (d *dashboard) handleKey(msg tea.KeyPressMsg) tea.Cmd {
	if d.typing {
		d.typeKey(msg)
		return nil
	}
	pressed := msg.String()
	typed := d.prompt != nil && msg.Text != ""
	c := commandOfKey(d.presentCommands(), pressed)
	if c == nil && worksInPrompts(pressed) {
		c = commandOfKey(d.mode.keys, pressed)
	}
	switch {
	case typed:
		d.prompt.appendTyped(msg.Text)
	case c != nil:
		return c.runCommand(d, pressed)
	case d.prompt == nil && d.overlay == noOverlay:
		d.sayMessage(dim, "no command has the key "+pressed+"; ? shows the keys")
	}
	return nil
}

// commandOfKey returns the command of a key, nil if there is none.
func commandOfKey(keymap []command, key string) *command {
	for i := range keymap {
		if slices.Contains(keymap[i].keys, key) {
			return &keymap[i]
		}
	}
	return nil
}

// runCommand does what the command does, or says why it cannot.
func (c *command) runCommand(d *dashboard, pressed string) tea.Cmd {
	if c.rules.panes && sizeOfTerminal(d.w, d.h) < compact {
		d.sayMessage(warnStyle, "the terminal is too small for that: it takes 60×12")
		return nil
	}
	if c.rules.obstacle != nil {
		if why := c.rules.obstacle(d); why != "" {
			d.sayMessage(warnStyle, why)
			return nil
		}
	}
	return c.do(d, pressed)
}

// isUsable reports whether the key line and the palette offer the command now.
func (c *command) isUsable(d *dashboard) bool {
	return (!c.rules.panes || sizeOfTerminal(d.w, d.h) >= compact) && (c.rules.offered == nil || c.rules.offered(d))
}

// askOrQuit asks what to do with a running program, or quits if there is nothing to ask.
func (d *dashboard) askOrQuit() tea.Cmd {
	if d.mode.watches && !d.hasProgramEnded() {
		return d.closeDashboard(Detached)
	}
	if d.hasProgramEnded() || d.o.Detach == nil && d.o.Terminate == nil {
		return d.closeDashboard(Quit)
	}
	d.overlay = quitOverlay
	return nil
}

// detachAndQuit and terminate answer that question.
func (d *dashboard) detachAndQuit() tea.Cmd {
	if d.o.Detach == nil {
		return nil
	}
	d.o.Detach()
	return d.closeDashboard(Detached)
}

func (d *dashboard) terminateAndQuit() tea.Cmd {
	if d.o.Terminate == nil {
		return nil
	}
	d.o.Terminate()
	return d.closeDashboard(Terminated)
}

func (d *dashboard) closeOverlay() { d.overlay = noOverlay }

// interruptProgram passes ctrl+c on as a signal, a stronger one each time that it follows quickly.
func (d *dashboard) interruptProgram() tea.Cmd {
	if d.o.Signal == nil || d.hasProgramEnded() {
		return d.closeDashboard(Quit)
	}
	if d.interrupts > 0 && d.now.Sub(d.interrupted) > interruptWindow {
		d.interrupts = 0
	}
	steps := [...]struct {
		signal os.Signal
		text   string
	}{
		{syscall.SIGINT, "SIGINT sent to the program; ctrl+c again within 2 s sends SIGTERM"},
		{syscall.SIGTERM, "SIGTERM sent to the program; ctrl+c again within 2 s sends SIGKILL"},
		{syscall.SIGKILL, "SIGKILL sent to the program"},
	}
	step := steps[min(d.interrupts, len(steps)-1)]
	d.interrupts++
	d.interrupted = d.now
	d.o.Signal(step.signal)
	d.sayMessage(warnStyle, step.text)
	return nil
}

func (d *dashboard) clearFilterOrUnzoom() {
	switch p := d.searchedPane(); {
	case d.filters[p].text != "":
		d.setFilter(p, filter{})
	case d.zoom != noPane:
		d.showPaneAlone(d.zoom)
	case d.frozen != nil:
		d.toggleFreeze()
	case d.processes.number != 0:
		d.processes.selectProcess(0)
	}
}

// stepLimit changes the chosen limit. While the curve is shown that is the limit of cached bytes, or one to try; while
// values of another limit are replayed there, that one.
func (d *dashboard) stepLimit(s limitStep) {
	switch {
	case d.triesLimitsOnCurve():
		d.curve.stepTriedLimit(s)
		return
	case d.zoom == paneCurve && d.curve.replayedLimit() == nil:
		d.limits.chosen = stats.MaxCachedBytes
	}
	d.limits.stepChosenLimit(s)
}

// triesLimitsOnCurve reports whether the keys for limits move a mark on the curve.
func (d *dashboard) triesLimitsOnCurve() bool {
	return d.zoom == paneCurve && d.curve.replayedLimit() == nil && d.curve.triesLimits()
}

// reverseTagsOrSaveOutput reverses the order of the tags, or saves the output if that is in focus.
func (d *dashboard) reverseTagsOrSaveOutput() {
	if d.focus == paneOutput {
		d.output.askFile()
	} else {
		d.tags.reverseSort()
	}
}

// groupInNextWay groups the tags in the next way.
func (d *dashboard) groupInNextWay() {
	d.tags.groupBy(d.tags.groups.groupingAfterThis(d.processes.isOneOfSeveral(d.shownSnapshot())))
}
