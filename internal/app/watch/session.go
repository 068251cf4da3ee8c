package watch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/remote"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// found is a session that runs.
type found struct {
	client    *remote.Client
	processes []stats.Process
}

// findTime is how long all sessions together may take to be found.
const findTime = 5 * time.Second

// findSessions connects to all sessions of this user, side by side. Those of the process ids in silent are there, but do not
// answer in time, as they are stopped, or are of another version.
func findSessions() (list []found, silent []string) {
	paths, until := session.ViewSockets(), time.Now().Add(findTime)
	list, silent = make([]found, len(paths)), make([]string, len(paths))
	var all sync.WaitGroup
	for i, path := range paths {
		all.Go(func() {
			client, err := remote.Dial(path, until)
			if err != nil {
				if !isSessionOver(err) {
					silent[i] = session.OwnerPID(path)
				}
				return
			}
			list[i].client = client
			if s := client.AskForState(); s != nil {
				list[i].processes = s.Processes
			}
		})
	}
	all.Wait()
	return slices.DeleteFunc(list, func(f found) bool { return f.client == nil }), slices.DeleteFunc(silent, func(pid string) bool { return pid == "" })
}

// isSessionOver reports whether a session is over that gave an error.
func isSessionOver(err error) bool {
	return slices.ContainsFunc([]error{unix.ECONNREFUSED, unix.ENOENT, unix.ECONNRESET, io.EOF}, func(e error) bool { return errors.Is(err, e) })
}

// sessionName names a session.
func (f *found) sessionName() string {
	text := fmt.Sprintf("%d %s", f.client.About.PID, callsite.BaseName(f.client.About.Program))
	if f.client.About.Child != 0 {
		text += fmt.Sprintf(" (pid %d)", f.client.About.Child)
	}
	return text
}

// watchesPID reports whether the session watches a process, or did so until that ended.
func (f *found) watchesPID(pid int) bool {
	return f.client.About.Child == pid || slices.ContainsFunc(f.processes, func(p stats.Process) bool { return p.PID == pid })
}

// runsPID reports whether a running process is the session's. born is its start (Place.Born), because the kernel gives the ids of ended
// processes to new ones.
func (f *found) runsPID(pid int, born string) bool {
	return f.client.About.Child == pid && f.client.State().State == stats.Running ||
		slices.ContainsFunc(f.processes, func(p stats.Process) bool {
			return p.PID == pid && p.State == stats.Running && p.Place.Born == born
		})
}

// isNamed reports whether the session has a name: that of the program, or a process id of its own or of the program.
func (f *found) isNamed(name string) bool {
	if pid, err := strconv.Atoi(name); err == nil {
		return f.client.About.PID == pid || f.watchesPID(pid)
	}
	return callsite.BaseName(f.client.About.Program) == name
}

// chooseSession returns the session of a name, or the only one for "". silent are others, for the error.
func chooseSession(list []found, silent []string, name string) (*found, error) {
	var fit []*found
	for i := range list {
		if name == "" || list[i].isNamed(name) {
			fit = append(fit, &list[i])
		}
	}
	if len(fit) == 1 {
		return fit[0], nil
	}
	others := ""
	if len(silent) > 0 {
		others = fmt.Sprintf(" (no answer within %v, or another version: pid %s)", findTime, strings.Join(silent, ", "))
	}
	switch {
	case len(list)+len(silent) == 0:
		return nil, errors.New("no session of this user runs here: gpumemtop --headless ./app starts one")
	case len(list) == 0:
		return nil, errors.New("no session can be shown" + others)
	}
	var names []string
	for i := range list {
		names = append(names, list[i].sessionName())
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("no session is %q, only: %s%s", name, strings.Join(names, ", "), others)
	}
	return nil, fmt.Errorf("several sessions run: name one by its number, as in --session %d: %s", fit[0].client.About.PID, strings.Join(names, ", "))
}

// otherSession is a source: a session of another terminal.
type otherSession struct {
	onlyShown
	name     string
	readOnly bool
	list     []found
	chosen   *found
}

// ShowSession shows the dashboard of a session that runs elsewhere, by the name of its program or a process id; "" is the only
// one.
func ShowSession(name string, readOnly bool, o *DashboardOptions) error {
	s := &otherSession{name: name, readOnly: readOnly}
	s.noScreen = "--session needs a terminal, in the foreground, without TERM=dumb, CI and --headless: --listen at the session's start gives figures without one"
	return FollowSource(&Options{Dashboard: *o}, s)
}

// Check implements Source.
func (s *otherSession) Check(w *Watch) (err error) {
	var silent []string
	s.Watch = w
	s.list, silent = findSessions()
	s.chosen, err = chooseSession(s.list, silent, s.name)
	return err
}

// ShowDashboard implements Source.
func (s *otherSession) ShowDashboard() {
	s.showDashboardUntilSignal(sessionViewerOptions(s.chosen.client, s.readOnly))
}

// Close implements Source.
func (s *otherSession) Close() {
	for i := range s.list {
		s.list[i].client.Close()
	}
}

// sessionViewerOptions connect the dashboard with a session.
func sessionViewerOptions(c *remote.Client, readOnly bool) ui.Options {
	o := ui.Options{
		Viewer: true, Source: c.AskForState, Attached: c.About.Attached, ReadOnly: readOnly || c.About.Fixed,
		App: func() ui.App {
			s := c.State()
			return ui.App{PID: s.PID, State: s.State, Status: s.Status}
		},
	}
	if c.About.Captures {
		o.Output = c.Output
	}
	if c.About.Curve {
		o.Curve = c.Curve
	}
	if o.Attached || o.ReadOnly {
		return o
	}
	o.ParseLimit, o.Save, o.Policies = parseLimitValue, saveLimitsFile, policiesToSwitchTo()
	o.SetLimit = func(name, value string) (uint64, error) { return c.RequestChange("limit " + name + " " + value) }
	o.SetPolicy = func(name string) (uint64, error) { return c.RequestChange("policy " + name) }
	o.Record = func() (string, error) {
		text, err := c.ToggleRecording()
		return text + " (the session's folder)", err
	}
	o.Measure = c.ToggleExperiment
	o.Adopt = func(name string) (uint64, error) { return c.RequestChange("adopt " + name) }
	return o
}

// alreadyWatchedError says which session started a process that is to be watched: its calls are served by a pool, and a probe sees
// hardly any.
func alreadyWatchedError(processes []process) error {
	if len(processes) == 0 {
		return nil
	}
	list, _ := findSessions()
	for i := range list {
		defer list[i].client.Close()
	}
	for i := range processes {
		born := untrusted.ReadProcessPlace(fmt.Sprintf("/proc/%d", processes[i].pid)).Born
		for k := range list {
			if about := &list[k].client.About; !about.Attached && about.PID != os.Getpid() && list[k].runsPID(processes[i].pid, born) {
				return fmt.Errorf("%s (pid %d) runs under gpumemtop already: gpumemtop attach --session %d shows its dashboard",
					processes[i].comm, processes[i].pid, about.PID)
			}
		}
	}
	return nil
}
