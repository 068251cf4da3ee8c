package ui

import (
	"os"
	"syscall"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// interruptWindow is how soon the next ctrl+c must follow to be a stronger one.
const interruptWindow = 2 * time.Second

// takeKeys takes a message of Bubble Tea, which packs letters that arrive together into one; pasted text is not meant
// for a dashboard.
func (d *dashboard) takeKeys(msg tea.KeyMsg) tea.Cmd {
	if msg.Paste {
		return nil
	}
	if msg.Type != tea.KeyRunes || len(msg.Runes) == 1 {
		return d.takeKey(msg)
	}
	var commands []tea.Cmd
	for i := range msg.Runes {
		commands = append(commands, d.takeKey(tea.KeyMsg{Type: tea.KeyRunes, Runes: msg.Runes[i : i+1]}))
		if d.leaving {
			break
		}
	}
	return tea.Batch(commands...)
}

func (d *dashboard) takeKey(msg tea.KeyMsg) tea.Cmd {
	if d.replay.typing && msg.Type != tea.KeyCtrlC {
		d.typeTime(msg)
		return nil
	}
	if d.overlay == quitOverlay && msg.Type != tea.KeyCtrlC {
		return d.answerQuit(msg.String())
	}
	for i := range d.keys {
		if !key.Matches(msg, d.keys[i].binding) {
			continue
		}
		if d.overlay == helpOverlay && d.keys[i].action != actInterrupt {
			d.moveHelp(d.keys[i].action)
			return nil
		}
		return d.do(&d.keys[i], msg.String())
	}
	return nil
}

func (d *dashboard) do(c *command, pressed string) tea.Cmd {
	if c.limits {
		d.adjust(c.action)
		return nil
	}
	if c.travels() {
		d.travel(c.action)
		return nil
	}
	switch c.action {
	case actQuit:
		return d.askQuit()
	case actInterrupt:
		return d.interrupt()
	case actRedraw:
		return tea.ClearScreen
	case actHelp:
		d.overlay, d.helpTop = helpOverlay, 0
	case actFreeze:
		d.freeze()
	case actNext:
		d.turnFocus(1)
	case actPrevious:
		d.turnFocus(-1)
	case actZoom:
		d.zoomOn(pane(pressed[0] - '0'))
	case actOutput:
		d.zoomOn(paneOutput)
	case actProcess:
		d.nextProcess()
	case actProcesses:
		d.listProcesses()
	case actPolicies:
		d.listPolicies()
	case actGhosts:
		d.listGhosts()
	case actAdopt:
		d.adoptLeader()
	case actCurve:
		d.showCurve()
	case actEnter:
		d.enter()
	case actBack:
		d.back()
	case actSort:
		d.tags.nextSort(d.shown())
	case actReverse:
		d.tags.flip(d.shown())
	default:
		d.move(c.action)
	}
	return nil
}

// askQuit quits where nothing depends on the answer.
func (d *dashboard) askQuit() tea.Cmd {
	if d.attached() && !d.ended() {
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

// interrupt passes ctrl+c on, each time in quick succession with more weight.
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

func (d *dashboard) freeze() {
	if d.frozen != nil {
		d.frozen = nil
	} else {
		d.frozen = d.live
	}
	d.tags.take(d.shown())
}

func (d *dashboard) back() {
	switch {
	case d.zoom != noPane:
		d.zoomOn(d.zoom)
	case d.frozen != nil:
		d.freeze()
	case d.one.number != 0:
		d.lookAt(0)
	}
}

func (d *dashboard) enter() {
	switch d.zoom {
	case paneProcesses:
		d.chooseProcess()
	case panePolicies:
		d.choosePolicy()
	default:
		d.zoomOn(paneFree)
	}
}

// zoomOn shows one pane alone, or all again when it already is alone.
func (d *dashboard) zoomOn(p pane) {
	if d.zoom == p {
		d.zoom = noPane
		if !d.visible(d.focus) {
			d.focus = paneTags
		}
	} else {
		d.zoom, d.focus = p, p
	}
	d.output.back, d.freeTop = 0, 0
}

// turnFocus goes to the next pane on the screen; zoomed, it zooms the next. Those without a number are not among them.
func (d *dashboard) turnFocus(step int) {
	if d.zoom.unnumbered() {
		return
	}
	panes := d.panes()
	if d.zoom != noPane {
		last := d.lastPane()
		d.zoom = pane((int(d.zoom)-1+step+int(last))%int(last) + 1)
		d.focus = d.zoom
		return
	}
	if len(panes) == 0 {
		return
	}
	at := 0
	for i, p := range panes {
		if p == d.focus {
			at = i
		}
	}
	d.focus = panes[(at+step+len(panes))%len(panes)]
}

func (d *dashboard) visible(p pane) bool {
	for _, q := range d.panes() {
		if p == q {
			return true
		}
	}
	return false
}

// move moves in the pane that has the focus; panes without rows leave it to the tags.
func (d *dashboard) move(a action) {
	page := max(1, d.tags.page-1)
	switch d.focus {
	case paneOutput:
		d.output.back = max(0, min(d.output.back-step(a, max(1, d.output.page-1)), len(d.output.lines)-d.output.page))
	case paneFree:
		d.freeTop = max(0, min(d.freeTop, far)+step(a, page)) // drawing bounds it
	case paneProcesses:
		d.moveProcess(step(a, max(1, d.one.page-1)))
	case panePolicies:
		d.policies.move(len(d.o.Policies), step(a, max(1, d.policies.page-1)))
	case paneLimits:
		if s := d.live; s != nil {
			d.limits.move(s.Limits, step(a, page))
		}
	default:
		d.tags.move(d.shown(), step(a, page))
	}
}

// far is further than any list is long.
const far = 1 << 30

// step returns how many rows a movement goes down.
func step(a action, page int) int {
	switch a {
	case actUp:
		return -1
	case actDown:
		return 1
	case actPageUp:
		return -page
	case actPageDown:
		return page
	case actTop:
		return -far
	case actBottom:
		return far
	}
	return 0
}

func (d *dashboard) moveHelp(a action) {
	switch a {
	case actHelp, actBack, actQuit:
		d.overlay = noOverlay
	default:
		d.helpTop = max(0, min(d.helpTop+step(a, max(1, d.h-4)), len(d.helpLines())-1))
	}
}

// adjust asks for a new value of the chosen limit.
func (d *dashboard) adjust(a action) {
	if d.zoom == paneCurve && d.supposes() {
		d.suppose(a)
		return
	}
	if d.zoom == paneCurve {
		d.limits.chosen = model.MaxCachedBytes // which the curve is about
	}
	switch {
	case d.viewing():
		d.say(warnStyle, "this is a recording: its limits are what they were")
	case d.o.Attached:
		d.say(warnStyle, noPool)
	case d.o.ReadOnly || d.o.SetLimit == nil:
		d.say(warnStyle, "limits cannot be changed here")
	case d.ended():
		d.say(warnStyle, "the program has ended: its limits cannot be changed any more")
	case d.live == nil || len(d.live.Limits) == 0:
		d.say(warnStyle, "the program has not told its limits yet")
	default:
		l := d.limits.chosenOf(d.live.Limits)
		if l.Kind == model.LimitSizes {
			d.say(dim, l.Name+" is "+l.Text+": a list cannot be changed here")
		} else if value, ok := d.limits.ask(l, a, d.live); ok {
			d.o.SetLimit(l.Name, value)
		} else {
			d.say(dim, l.Name+" is at the end of its range")
		}
	}
}
