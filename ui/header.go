package ui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// drawHeader draws the first line: what runs at the left, its state at the right.
func (d *dashboard) drawHeader(r region, s *stats.Snapshot) {
	x := r.writeText(1, 0, "gpumemtop", keyStyle) + 2
	gap := 3
	if r.w < fullW {
		gap = 2
	}
	if r.w >= d.mode.prefixWidth && s.Program != "" {
		x = r.writeText(x, 0, d.mode.prefix, dim)
	}
	room := r.w - x - min(24, r.w/4) - 2
	steady, alarms := fitItems(d.headerItems(s), room, gap), append(alarmingItems(s), d.bannerItems(s)...)
	right := fitItems(alarms, r.w-x-commandLeast-itemsWidth(steady, gap)-2*gap, gap)
	if len(right) < len(alarms) && r.w < fullW || len(right) == 0 {
		right = fitItems(append(alarms, d.headerItems(s)...), room, gap)
	} else {
		right = append(right, steady...)
	}
	n := itemsWidth(right, gap)
	r.writeTextInColumns(x, 0, r.w-x-n-3, commandLine(s), strong)
	r.writeAllItems(r.w-1-n, 0, gap, right)
}

// commandLeast is how many columns alarms and banners leave to the command line.
const commandLeast = 12

// commandLine is the program without its folder, and its arguments.
func commandLine(s *stats.Snapshot) string {
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

// windowTitle names the program for the terminal's window.
func (d *dashboard) windowTitle() string {
	return cutToColumns(units.Clean(cleanOutputLine("gpumemtop "+commandLine(cmp.Or(d.shownSnapshot(), nothing)))), titleWide)
}

// titleWide is how long the title of a window is at most, in columns.
const titleWide = 80

// bannerItems say that the screen shows another time, or that an experiment runs. Its result is in the fourth line, if there
// is one.
func (d *dashboard) bannerItems(s *stats.Snapshot) []item {
	var items []item
	if m := s.Measured.RunningResult(); m != nil {
		text := m.Text()
		if sizeOfTerminal(d.w, d.h) == full {
			text, _, _ = strings.Cut(strings.TrimSuffix(text, " so far"), ", ")
		}
		items = append(items, item{2, []span{{" " + text + " ", bannerStyle}}})
	}
	if d.frozen != nil {
		items = append(items, item{0, []span{{d.frozenText(), bannerStyle}}})
	}
	if d.baseline.at != nil {
		items = append(items, item{0, []span{{d.baseline.sinceBaselineText(), bannerStyle}}})
	}
	return items
}

// headerItems are the parts of the header that every run has.
func (d *dashboard) headerItems(s *stats.Snapshot) []item {
	var items []item
	if d.processes.isOneOfSeveral(s) {
		items = append(items, item{0, []span{{d.processes.whichProcessText(), keyStyle}}})
	}
	if d.mode.recording {
		items = append(items, d.cursor.headerItems(s)...)
		if !d.cursor.moment.Rough {
			items = append(items, item{2, []span{d.stateSpan(s)}})
		}
	} else {
		items = append(items, item{0, []span{d.stateSpan(s)}}, item{2, []span{{units.FormatClock(d.runTimeOfProgram(s)), plain}}})
	}
	if pid := d.pidText(s); pid != "" {
		items = append(items, item{4, []span{{"pid ", dim}, {pid, plain}}})
	}
	if s.Device.Name != "" {
		name := s.Device.Name
		if textWidth(name) > 24 {
			name = cutToColumns(name, 23) + "…"
		}
		spans := []span{{name, plain}}
		if n := s.Device.Devices; n > 1 {
			spans = append(spans, span{" +" + strconv.Itoa(n-1), dim})
		}
		if s.Device.Global > 0 {
			spans = append(spans, span{" " + bytesText(s.Device.Global), dim})
		}
		items = append(items, item{6, spans})
	}
	if s.Policy != "" {
		items = append(items, policyItem(s))
	}
	if s.Recording.Path != "" {
		items = append(items, item{3, padSpans([]span{{"REC ", badStyle}, {bytesText(s.Recording.Bytes), plain}}, textWidth("REC 999.9M"))})
	}
	return items
}

// padSpans adds blanks up to a width, so that the items left of the spans do not move.
func padSpans(spans []span, w int) []span {
	return append(spans, span{strings.Repeat(" ", max(0, w-spansWidth(spans))), plain})
}

// alarmingItems say what most runs never have: failures, mistakes, losses. They lie left of the other items, which keep their
// places.
func alarmingItems(s *stats.Snapshot) []item {
	var items []item
	failed, last := "", uint64(0)
	for i := range s.PostMortems {
		switch p := &s.PostMortems[i]; {
		case p.MayLackMemory():
			failed, last = "OUT OF MEMORY", max(last, p.Time)
		case p.Verdict != stats.VerdictKilled && failed == "":
			failed, last = "CALL FAILED", p.Time
		}
	}
	if failed != "" {
		items = append(items, item{1, []span{{failed, styleOfEventAge(s, last)}}})
	}
	if len(s.Findings) > 0 {
		latest := slices.MaxFunc(s.Findings, func(a, b stats.Finding) int { return cmp.Compare(a.Last, b.Last) })
		items = append(items, item{1, []span{{strings.ToUpper(mistakeCount(s)), styleOfEventAge(s, latest.Last)}}})
	}
	if s.Lost > 0 {
		items = append(items, item{1, []span{{"LOST " + formatCount(s.Lost) + " events", badStyle}}})
	}
	if s.LeftOut != "" {
		items = append(items, item{1, []span{{"LEFT OUT " + s.LeftOut, badStyle}}})
	}
	return items
}

// policyItem names the policy in force. A narrow header keeps it longer where the session chooses the policy.
func policyItem(s *stats.Snapshot) item {
	if s.Auto != nil && s.Auto.Steers {
		return item{1, padSpans([]span{{"auto: ", keyStyle}, {s.Policy, plain}}, textWidth("auto: futhark-2018"))}
	}
	return item{5, padSpans([]span{{"policy ", dim}, {s.Policy, plain}}, textWidth("policy futhark-2018"))}
}

func (d *dashboard) frozenText() string {
	behind := differenceOrZero(d.frozen.Time, d.live.Time)
	return " FROZEN " + strconv.FormatUint(behind/1e9, 10) + " s, " + formatCount(differenceOrZero(d.frozen.Events, d.live.Events)) + " events behind "
}

// stateSpan names the state of the program.
func (d *dashboard) stateSpan(s *stats.Snapshot) span {
	app, single := d.app, d.processes.isOneOfSeveral(s)
	if !d.hasApp || single {
		app = stateOfProgram(s)
	}
	running := app.State == stats.Running
	switch {
	case d.mode.watches && !single && d.hasProgramEnded():
		return span{"○ ENDED", dim}
	case d.mode.watches && !single && len(s.Processes) == 0:
		return span{"○ WAITING", dim}
	case d.mode.watches && !single:
		return span{"● WATCHING", goodStyle}
	case running && !d.hasApp && len(s.Processes) == 0 && d.mode.recording && s.Time >= d.cursor.moment.Until:
		return span{"○ NO CALLS", dim}
	case running && !d.hasApp && len(s.Processes) == 0:
		return span{"○ STARTING", dim}
	case running:
		return span{"● RUNNING", goodStyle}
	case app.State == stats.Signaled:
		return span{"✗ " + signalName(app.Status), badStyle}
	case app.Status < 0:
		return span{"● EXITED", plain}
	case app.Status == 0:
		return span{"✓ EXITED 0", goodStyle}
	}
	return span{"✗ EXITED " + strconv.Itoa(app.Status), badStyle}
}

// stateOfProgram derives the state of the program from its processes: running while one runs, else that of the first.
func stateOfProgram(s *stats.Snapshot) App {
	for i := range s.Processes {
		if p := &s.Processes[i]; p.State == stats.Running {
			return App{PID: p.PID}
		}
	}
	if len(s.Processes) == 0 {
		return App{}
	}
	p := &s.Processes[0]
	if signal := p.SignalNumber(); signal > 0 {
		return App{PID: p.PID, State: stats.Signaled, Status: signal}
	}
	return App{PID: p.PID, State: p.State, Status: p.Status}
}

// runTimeOfProgram returns how long the program has run, in ns.
func (d *dashboard) runTimeOfProgram(s *stats.Snapshot) uint64 {
	if d.hasProgramEnded() || d.processes.isOneOfSeveral(s) {
		return s.WallNS()
	}
	return differenceOrZero(s.Started, s.Time)
}

func (d *dashboard) pidText(s *stats.Snapshot) string {
	pid := d.app.PID
	if (pid == 0 || d.processes.isOneOfSeveral(s)) && len(s.Processes) > 0 {
		pid = s.Processes[0].PID
	}
	if pid <= 0 {
		return ""
	}
	text := strconv.Itoa(pid)
	if n := s.ProcessCount(); n > 1 {
		text += " +" + formatCount(uint64(n-1))
	}
	return text
}
