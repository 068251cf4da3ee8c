package ui

import (
	"os"
	"slices"
	"syscall"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

func TestSuspend(t *testing.T) {
	var c calls
	o := c.options()
	o.JobControl = true
	d := newTest(o, 120, 36, sampleSnapshot())
	if cmd := press(d, "ctrl+z"); cmd == nil || !slices.Equal(c.signals, []os.Signal{syscall.SIGSTOP}) {
		t.Errorf("command %v, signals %v", cmd != nil, c.signals)
	}
	d.Update(resumeMsg{})
	if want := []os.Signal{syscall.SIGSTOP, syscall.SIGCONT}; !slices.Equal(c.signals, want) {
		t.Errorf("signals %v, want %v", c.signals, want)
	}
	d.Update(frameMsg{now: testStart, app: App{State: stats.Exited}, hasApp: true})
	if _, cmd := d.Update(suspendMsg{}); cmd == nil || len(c.signals) != 2 {
		t.Errorf("after the end: command %v, signals %v", cmd != nil, c.signals)
	}
}

// TestSuspendWhileAsked: whatever is open is so again afterwards, with what was typed.
func TestSuspendWhileAsked(t *testing.T) {
	for open, want := range map[string]string{"/": "/create_", ":": ":create_", "=": " = create_", "?": "keys: move", "q": "[t]erminate"} {
		var c calls
		o := c.options()
		o.JobControl = true
		d := newTest(o, 120, 36, sampleSnapshot())
		press(d, open)
		if d.prompt != nil {
			press(d, "c", "r", "e", "a", "t", "e")
		}
		shows(t, d, want)
		before := frameText(d)
		if cmd := press(d, "ctrl+z"); cmd == nil || !slices.Equal(c.signals, []os.Signal{syscall.SIGSTOP}) {
			t.Errorf("%s: command %v, signals %v", open, cmd != nil, c.signals)
		}
		if d.Update(resumeMsg{}); frameText(d) != before {
			t.Errorf("%s: the screen is another afterwards:\n%s", open, frameText(d))
		}
	}
}

// TestSuspendWithoutShell: nothing could continue us.
func TestSuspendWithoutShell(t *testing.T) {
	var c calls
	d := newTest(c.options(), 120, 36, sampleSnapshot())
	if cmd := press(d, "ctrl+z"); cmd != nil || len(c.signals) != 0 {
		t.Errorf("command %v, signals %v", cmd != nil, c.signals)
	}
	shows(t, d, "no shell waits here")
}

// TestTimeStopsWithTheProgram: charts and the header's time end where it ended.
func TestTimeStopsWithTheProgram(t *testing.T) {
	s := sampleSnapshot()
	last := s.History[len(s.History)-1].Time
	for i := range s.Processes {
		s.Processes[i].State, s.Processes[i].Ended = stats.Exited, last-30e9
	}
	d := newTest((&calls{}).options(), 120, 36, s)
	d.Update(frameMsg{now: testStart, app: App{State: stats.Exited}, hasApp: true})
	got := d.timeline(s)
	if n := len(got.samples); !got.over || n == len(s.History) || got.until < last-30e9 || got.until > last-30e9+2e8 {
		t.Errorf("%d of %d samples, until %d before the last", n, len(s.History), last-got.until)
	}
	shows(t, d, "end│")
	hides(t, d, "now│")
	if got, want := d.runTimeOfProgram(s), last-30e9-s.Started; got != want {
		t.Errorf("the header says %d, want %d", got, want)
	}
	s.Processes, s.Finished = nil, last-40e9 // it never called OpenCL
	if got, want := d.runTimeOfProgram(s), last-40e9-s.Started; got != want {
		t.Errorf("without OpenCL the header says %d, want %d", got, want)
	}
}
