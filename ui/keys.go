package ui

import (
	"os"
	"slices"
	"syscall"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// interruptWindow is the time in which another ctrl+c sends a stronger signal.
const interruptWindow = 2 * time.Second

// pressKeys handles a message of Bubble Tea, which packs letters that arrive together into one. It takes pasted text only where text is typed.
func (d *dashboard) pressKeys(msg tea.KeyMsg) tea.Cmd {
	switch {
	case d.typing:
		d.typeInto(msg)
		return nil
	case msg.Paste && d.prompt != nil:
		d.typeKey(msg)
		return nil
	case msg.Paste:
		return nil
	}
	if msg.Type != tea.KeyRunes || len(msg.Runes) == 1 {
		return d.press(msg)
	}
	var commands []tea.Cmd
	for i := range msg.Runes {
		commands = append(commands, d.press(tea.KeyMsg{Type: tea.KeyRunes, Runes: msg.Runes[i : i+1]}))
		if d.leaving {
			break
		}
	}
	return tea.Batch(commands...)
}

// everywhere reports whether a key does the same in prompts and dialogs, as in a shell's line.
func everywhere(msg tea.KeyMsg) bool { return msg.Type == tea.KeyCtrlC || msg.Type == tea.KeyCtrlZ }

func (d *dashboard) press(msg tea.KeyMsg) tea.Cmd {
	if d.prompt != nil && !everywhere(msg) {
		d.typeKey(msg)
		command := d.palette.command
		d.palette.command = nil
		return command
	}
	if d.overlay == quitOverlay && !everywhere(msg) {
		return d.answerQuit(msg.String())
	}
	pressed := msg.String()
	for i := range d.mode.keys {
		c := &d.mode.keys[i]
		switch {
		case !slices.Contains(c.keys, pressed):
			continue
		case d.overlay == helpOverlay && c.action != actInterrupt && c.action != actSuspend:
			d.moveHelp(c.action)
			return nil
		}
		return d.do(c.action, pressed)
	}
	if d.overlay == noOverlay {
		d.say(dim, "no command has the key "+pressed+"; ? shows the keys")
	}
	return nil
}

func (d *dashboard) do(a action, pressed string) tea.Cmd {
	switch {
	case a.needsPanes() && sizeOf(d.w, d.h) < compact:
		d.say(warnStyle, "the terminal is too small for that: it takes 60×12")
		return nil
	case a.adjusts():
		d.adjust(a)
		return nil
	case a.travels():
		d.travel(a)
		return nil
	}
	switch a {
	case actQuit:
		return d.askQuit()
	case actInterrupt:
		return d.interrupt()
	case actRedraw:
		return tea.ClearScreen
	case actSuspend:
		return d.suspend()
	case actHelp:
		d.overlay, d.helpTop, d.helpAll = helpOverlay, 0, false
	case actFreeze:
		d.freeze()
	case actNext:
		d.turnFocus(1)
	case actPrevious:
		d.turnFocus(-1)
	case actZoom:
		d.zoomOn(paneID(pressed[0] - '0'))
	case actOutput:
		d.zoomOn(paneOutput)
	case actProcess:
		d.processes.next()
	case actProcesses:
		d.processes.open()
	case actPolicies:
		d.policies.open()
	case actGhosts:
		d.openGhosts()
	case actAdopt:
		d.doSuggestion()
	case actCurve:
		d.curve.open()
	case actFailures:
		d.zoomOn(paneFailures)
	case actFilter:
		d.askFilter()
	case actPalette:
		d.openPalette()
	case actGroup:
		d.tags.groupBy(d.tags.groups.after(d.processes.single(d.shown())))
	case actLeft:
		d.side = max(0, d.side-sideStep)
	case actRight:
		d.side = min(d.side+sideStep, sideMax)
	case actSpan:
		d.nextSpan()
	case actMark:
		d.markNow()
	case actNextEvent:
		d.nextEvent(true)
	case actPreviousEvent:
		d.nextEvent(false)
	case actValue:
		d.limits.askValue()
	case actUndo:
		d.ledger.undo()
	case actScreen:
		d.saveScreen()
	case actExport:
		d.askExport()
	case actRecord:
		d.record()
	case actCopy:
		return d.copyRow()
	case actBaseline:
		d.toggleBaseline()
	case actType:
		d.beginTyping()
	case actFit:
		d.askSize()
	case actSave:
		d.askSave()
	case actPoints:
		d.zoomOn(panePoints)
	case actTransfers:
		d.zoomOn(paneTransfers)
	case actHeap:
		d.zoomOn(paneHeap)
	case actObjects:
		d.zoomOn(paneObjects)
	case actEnter:
		d.panes[d.focus].enter()
	case actBack:
		d.back()
	case actSort:
		d.tags.nextSort()
	case actReverse:
		if d.focus == paneOutput {
			d.output.askFile()
		} else {
			d.tags.reverseSort()
		}
	default:
		d.panes[d.focus].move(a)
	}
	return nil
}

// askQuit asks what to do with a running program, or quits if there is nothing to ask.
func (d *dashboard) askQuit() tea.Cmd {
	if d.mode.watches && !d.ended() {
		return d.leave(Detached)
	}
	if d.ended() || d.o.Detach == nil && d.o.Terminate == nil {
		return d.leave(Quit)
	}
	d.overlay = quitOverlay
	return nil
}

func (d *dashboard) answerQuit(pressed string) tea.Cmd {
	switch {
	case pressed == "d" && d.o.Detach != nil:
		d.o.Detach()
		return d.leave(Detached)
	case pressed == "t" && d.o.Terminate != nil:
		d.o.Terminate()
		return d.leave(Terminated)
	case pressed == "esc" || pressed == "q":
		d.overlay = noOverlay
	}
	return nil
}

// interrupt passes ctrl+c on as a signal, a stronger one each time that it follows quickly.
func (d *dashboard) interrupt() tea.Cmd {
	if d.o.Signal == nil || d.ended() {
		return d.leave(Quit)
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
	d.say(warnStyle, step.text)
	return nil
}

func (d *dashboard) back() {
	switch p := d.filterPane(); {
	case d.filters[p].text != "":
		d.setFilter(p, filter{})
	case d.zoom != noPane:
		d.zoomOn(d.zoom)
	case d.frozen != nil:
		d.freeze()
	case d.processes.number != 0:
		d.processes.show(0)
	}
}

func (d *dashboard) moveHelp(a action) {
	switch a {
	case actHelp, actBack, actQuit:
		if a == actHelp && !d.helpAll {
			d.helpAll, d.helpTop = true, 0
			return
		}
		d.overlay = noOverlay
	default:
		d.helpTop = max(0, min(d.helpTop+step(a, max(1, d.h-4)), len(d.helpLines())-1))
	}
}

// adjust changes the chosen limit. While the curve is shown that is the limit of cached bytes, or one to try.
func (d *dashboard) adjust(a action) {
	switch {
	case d.zoom == paneCurve && d.curve.tries():
		d.curve.adjust(a)
		return
	case d.zoom == paneCurve:
		d.limits.chosen = stats.MaxCachedBytes
	}
	d.limits.adjust(a)
}
