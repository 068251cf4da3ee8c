package ui

import (
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// drawHeader draws the first line: what runs at the left, how it is at the right.
func (d *dashboard) drawHeader(r region, s *model.Snapshot) {
	x := r.text(1, 0, "gpumemtop", keyStyle) + 2
	gap := 3
	if r.w < fullW {
		gap = 2
	}
	if d.o.Attached && (r.w >= fullW || r.w >= compactW && !d.viewing()) { // the time that is shown needs the room
		x = r.text(x, 0, "attached to ", dim)
	}
	right := fit(d.headerItems(s), r.w-x-min(24, r.w/4)-2, gap)
	n := gap * max(0, len(right)-1)
	for i := range right {
		n += spansWidth(right[i].spans)
	}
	r.textIn(x, 0, r.w-x-n-3, commandLine(s), strong)
	r.lineOf(r.w-1-n, 0, gap, right)
}

// commandLine names the program without its folder: the line is short.
func commandLine(s *model.Snapshot) string {
	name := s.Program
	if i := strings.LastIndexByte(name, '/'); i+1 < len(name) {
		name = name[i+1:]
	}
	if len(s.Arguments) == 0 {
		return name
	}
	args := s.Arguments
	if args[0] == s.Program {
		args = args[1:]
	}
	return strings.TrimSpace(name + " " + strings.Join(args, " "))
}

func (d *dashboard) headerItems(s *model.Snapshot) []item {
	var items []item
	if d.frozen != nil {
		items = append(items, item{0, []span{{d.frozenText(), bannerStyle}}})
	}
	if d.single(s) {
		items = append(items, item{0, []span{{d.one.text(), keyStyle}}})
	}
	if d.viewing() {
		items = append(items, d.momentItems(s)...)
		if !d.replay.moment.Rough {
			items = append(items, item{2, []span{d.stateSpan(s)}})
		}
	} else {
		items = append(items, item{0, []span{d.stateSpan(s)}}, item{2, []span{{clock(d.wall(s)), plain}}})
	}
	if pid := d.pidText(s); pid != "" {
		items = append(items, item{4, []span{{"pid ", dim}, {pid, plain}}})
	}
	if s.Device.Name != "" {
		name := s.Device.Name
		if width(name) > 24 {
			name = cut(name, 23) + "…"
		}
		spans := []span{{name, plain}}
		if s.Device.Global > 0 {
			spans = append(spans, span{" " + bytesText(s.Device.Global), dim})
		}
		items = append(items, item{6, spans})
	}
	if s.Policy != "" {
		items = append(items, policyItem(s))
	}
	if s.Recording.Path != "" {
		items = append(items, item{3, []span{{"REC ", badStyle}, {bytesText(s.Recording.Bytes), plain}}})
	}
	if len(s.Findings) > 0 {
		items = append(items, item{1, []span{{strings.ToUpper(mistakeCount(s)), badStyle}}})
	}
	if s.Lost > 0 {
		items = append(items, item{1, []span{{"LOST " + count(s.Lost) + " events", badStyle}}})
	}
	return items
}

// policyItem names the policy in force. Where the session chooses it, that is the last but one to give way.
func policyItem(s *model.Snapshot) item {
	if s.Auto != nil && s.Auto.Steers {
		return item{1, []span{{"auto: ", keyStyle}, {s.Policy, plain}}}
	}
	return item{5, []span{{"policy ", dim}, {s.Policy, plain}}}
}

func (d *dashboard) frozenText() string {
	behind := since(d.frozen.Time, d.live.Time)
	return " FROZEN " + strconv.FormatUint(behind/1e9, 10) + " s, " + count(since(d.frozen.Events, d.live.Events)) + " events behind "
}

// stateSpan says in a word how the program is.
func (d *dashboard) stateSpan(s *model.Snapshot) span {
	app := d.app
	if !d.hasApp || d.single(s) {
		app = stateOf(s)
	}
	if d.attached() && !d.single(s) {
		return d.watchSpan(s)
	}
	switch {
	case app.State == model.Running && !d.hasApp && len(s.Processes) == 0 && d.viewing() && s.Time >= d.replay.moment.Until:
		return span{"○ NO CALLS", dim}
	case app.State == model.Running && !d.hasApp && len(s.Processes) == 0:
		return span{"○ STARTING", dim}
	case app.State == model.Running:
		return span{"● RUNNING", goodStyle}
	case app.State == model.Signaled:
		return span{"✗ " + signalName(app.Status), badStyle}
	case app.Status < 0:
		return span{"● EXITED", plain}
	case app.Status == 0:
		return span{"✓ EXITED 0", goodStyle}
	}
	return span{"✗ EXITED " + strconv.Itoa(app.Status), badStyle}
}

// stateOf derives the state of the whole from its processes: running while one runs, else that of the first.
func stateOf(s *model.Snapshot) App {
	for i := range s.Processes {
		if p := &s.Processes[i]; p.State == model.Running {
			return App{PID: p.PID}
		}
	}
	if len(s.Processes) == 0 {
		return App{}
	}
	p := &s.Processes[0]
	return App{PID: p.PID, State: p.State, Status: p.Status}
}

// wall returns how long the program has run, in ns.
func (d *dashboard) wall(s *model.Snapshot) uint64 {
	end := s.Time
	if (d.ended() || d.single(s)) && len(s.Processes) > 0 {
		end = 0
		for i := range s.Processes {
			end = max(end, s.Processes[i].Ended)
		}
		if end == 0 {
			end = s.Time
		}
	}
	return since(s.Started, end)
}

func (d *dashboard) pidText(s *model.Snapshot) string {
	pid := d.app.PID
	if (pid == 0 || d.single(s)) && len(s.Processes) > 0 {
		pid = s.Processes[0].PID
	}
	if pid <= 0 {
		return ""
	}
	text := strconv.Itoa(pid)
	if n := len(s.Processes); n > 1 {
		text += " +" + count(uint64(n-1))
	}
	return text
}
