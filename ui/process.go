package ui

import (
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// oneProcess is the process that the screen is about, and the list to choose it from.
type oneProcess struct {
	number uint32 // in the session; 0: all processes together

	from, view *model.Snapshot // what was made of which; the same where the process is not in it
	place, all int             // of the process in from, and how many there are

	at, top, page int // of the list, where row 0 stands for all
}

// take returns the snapshot as it is of the chosen process alone.
func (o *oneProcess) take(s *model.Snapshot) *model.Snapshot {
	if o.number == 0 || s == nil {
		return s
	}
	if o.from == s {
		return o.view
	}
	o.from, o.view = s, s
	if i := o.find(s); i >= 0 && len(s.Processes) > 1 {
		o.view, o.place, o.all = viewOf(s, i), i, len(s.Processes)
	}
	return o.view
}

// find returns the place of the chosen process, -1 when it is not there.
func (o *oneProcess) find(s *model.Snapshot) int {
	for i := range s.Processes {
		if s.Processes[i].Number == o.number {
			return i
		}
	}
	return -1
}

// ofAll marks what is of all processes where one is looked at.
func (d *dashboard) ofAll() string {
	if d.one.number == 0 {
		return ""
	}
	return " of all processes"
}

// text says which process of how many it is.
func (o *oneProcess) text() string {
	return "process " + strconv.Itoa(o.place+1) + "/" + strconv.Itoa(o.all)
}

// viewOf returns a snapshot with the figures of one process in the place of those of all. Policy, limits, device,
// recording, marks and losses are of the session.
func viewOf(s *model.Snapshot, i int) *model.Snapshot {
	p := &s.Processes[i]
	view := *s
	view.Started, view.Program, view.Arguments = p.Started, p.Program, p.Arguments
	view.Processes = s.Processes[i : i+1 : i+1]
	view.Totals, view.Window, view.History, view.Tags = p.Totals, p.Window, p.History, p.Tags
	return &view
}

// single reports whether a snapshot is the view of one process of several.
func (d *dashboard) single(s *model.Snapshot) bool {
	return d.one.number != 0 && s == d.one.view && s != d.one.from
}

// lookAt puts a process on the screen, or all with 0.
func (d *dashboard) lookAt(number uint32) {
	d.one.number, d.one.from, d.one.view = number, nil, nil
	d.freeTop = 0
	d.tags.take(d.shown())
}

// nextProcess goes from all to the first process, on to the next, and from the last to all again.
func (d *dashboard) nextProcess() {
	s := d.whole()
	if s == nil || len(s.Processes) < 2 {
		d.say(dim, "there are no other processes with OpenCL calls")
		return
	}
	next := 0
	if d.one.number != 0 {
		next = d.one.find(s) + 1
	}
	if next == len(s.Processes) {
		d.lookAt(0)
		return
	}
	d.lookAt(s.Processes[next].Number)
}

// listProcesses shows the list, with the cursor at what is on the screen.
func (d *dashboard) listProcesses() {
	d.one.at = 0
	if s := d.whole(); s != nil && d.one.number != 0 {
		d.one.at = d.one.find(s) + 1
	}
	d.zoomOn(paneProcesses)
}

// moveProcess moves the cursor of the list down by n rows.
func (d *dashboard) moveProcess(n int) {
	if s := d.whole(); s != nil {
		d.one.at = max(0, min(d.one.at+n, len(s.Processes)))
	}
}

// chooseProcess leaves the list for the process at the cursor.
func (d *dashboard) chooseProcess() {
	number := uint32(0)
	if s := d.whole(); s != nil && d.one.at > 0 && d.one.at <= len(s.Processes) {
		number = s.Processes[d.one.at-1].Number
	}
	d.zoomOn(paneProcesses)
	d.lookAt(number)
}
