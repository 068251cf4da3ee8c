package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// story is what a recording has of each process, without what differs between runs: times, costs, process and
// thread ids.
type story struct {
	processes []uint64 // numbers, in the order of their first events
	events    map[uint64][]string
	places    map[uint64]map[string]int // where commands work in memory, as far as that is known, and how often
}

// storyIn reads a recording's export as lines of JSON. Where threads race, the numbers that objects get are left out, too.
func storyIn(t *testing.T, text []byte, racy bool) *story {
	t.Helper()
	teller := teller{t: t, racy: racy, names: map[string]string{}, story: story{events: map[uint64][]string{}, places: map[uint64]map[string]int{}}}
	for line := range bytes.Lines(text) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		teller.hear(&e)
	}
	return &teller.story
}

// textOf is a recording as lines of JSON.
func textOf(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(tool(t, "export", "--format", "ndjson", file))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// event is a record; numbers of the same name mean something else in each kind.
type event struct {
	Kind, Outcome, Reason, Text string
	Op                          any // a word, or the number of one that has no word
	Process                     uint64
	Flags, Scope, Access        uint64
	Status                      int
	Tag, Object, Size           uint64
	Granted, Link               uint64
	Offset                      uint64
	Duration                    uint64
	Argument                    *uint64 // of a kernel
	Frames                      []struct{ Module, Offset uint64 }
}

type teller struct {
	t     *testing.T
	racy  bool
	names map[string]string // of modules, kernels and tags, by process and number
	story story
}

func (l *teller) key(e *event, kind string, number uint64) string {
	return fmt.Sprint(e.Process, kind, number)
}

// hear takes an event. Those that are left out are not known to both: facts about the machine and process ids.
func (l *teller) hear(e *event) {
	switch e.Kind {
	case "process":
		l.story.processes = append(l.story.processes, e.Process)
		return
	case "module":
		l.names[l.key(e, "module", e.Object)] = strings.SplitN(e.Text, "\x00", 2)[0]
		return
	case "tag":
		var frames []string
		for _, f := range e.Frames {
			frames = append(frames, l.names[l.key(e, "module", f.Module)]+"+"+strconv.FormatUint(f.Offset, 16))
		}
		l.names[l.key(e, "tag", e.Tag)] = strings.Join(frames, " ")
		return
	case "", "site", "device", "thread", "exit", "await", "machine", "object", "spill", "transfer": // lists of events are not read from outside; the first and the last line have no kind
		return
	case "diag":
		// Only the library tries the driver, and sees other calls than creates fail. A place has the start of its own process.
		if e.Op == "whole blocks" || e.Op == "call failed" || e.Op == "place" {
			return
		}
	case "sync":
		if e.Op == "wait" && e.Duration == 0 { // the program has learned of an end without a wait, which is not seen from outside
			return
		}
	case "kernel":
		l.names[l.key(e, "kernel", e.Object)] = e.Text
	case "use":
		if e.Object == 0 { // not seen: from outside that is more, and the first replays of command buffers are missed
			return
		}
		e.Text = l.names[l.key(e, "kernel", e.Granted)]
		e.Granted = 0
		if e.Op == "kernel" {
			e.Flags &^= wire.FlagReads | wire.FlagWrites // declarations are not seen from outside
			e.Text += fmt.Sprintf(" argument %d", *e.Argument)
		}
	case "context", "queue":
		e.Link = 0 // a device, which is not seen from outside
	}
	if l.racy {
		e.Object, e.Link, e.Scope = 0, 0, 0
	}
	scattered := e.Flags&wire.FlagScattered != 0
	e.Flags &^= wire.FlagScattered
	line := fmt.Sprintf("%s %v %s %s %q flags %d scope %d access %x status %d object %d size %d granted %d link %d by %s", e.Kind, e.Op,
		e.Outcome, e.Reason, e.Text, e.Flags, e.Scope, e.Access, e.Status, e.Object, e.Size, e.Granted, e.Link,
		l.names[l.key(e, "tag", e.Tag)])
	l.story.events[e.Process] = append(l.story.events[e.Process], line)
	if e.Kind == "use" && !scattered {
		if l.story.places[e.Process] == nil {
			l.story.places[e.Process] = map[string]int{}
		}
		l.story.places[e.Process][fmt.Sprintf("%s at %d", line, e.Offset)]++
	}
}

var status = regexp.MustCompile(` status -\d+`)

// withoutStatuses leaves out why calls failed: from outside that is unknown where the program does not ask, where the
// error is more than six arguments away, and of releases, which are recorded before the driver sees them.
func (s *story) withoutStatuses() {
	for _, lines := range s.events {
		for i, line := range lines {
			lines[i] = status.ReplaceAllString(line, " status 0")
		}
	}
}

// counted are the events of a process, each with its count.
func (s *story) counted(process uint64) map[string]int {
	counts := map[string]int{}
	for _, line := range s.events[process] {
		counts[line]++
	}
	return counts
}

// onlyStacksDiffer reports whether two stories are the same except for call stacks.
func onlyStacksDiffer(want, got *story) bool {
	if len(want.processes) != len(got.processes) {
		return false
	}
	differ := false
	for i := range want.processes {
		a, b := want.counted(want.processes[i]), got.counted(got.processes[i])
		differ = differ || !maps.Equal(a, b)
		if !maps.Equal(withoutStacks(a), withoutStacks(b)) {
			return false
		}
	}
	return differ
}

func withoutStacks(counts map[string]int) map[string]int {
	all := map[string]int{}
	for line, n := range counts {
		event, _, _ := strings.Cut(line, " by ")
		all[event] += n
	}
	return all
}

// compareStories says what two recordings tell differently. Where threads race the order is not compared.
func compareStories(t *testing.T, want, got *story, racy bool) {
	t.Helper()
	if len(want.processes) != len(got.processes) {
		t.Errorf("%d processes, want %d", len(got.processes), len(want.processes))
		return
	}
	for i := range want.processes {
		compareProcesses(t, want, got, want.processes[i], got.processes[i], racy)
	}
}

func compareProcesses(t *testing.T, want, got *story, wanted, found uint64, racy bool) {
	t.Helper()
	a, b := want.counted(wanted), got.counted(found)
	var differences []string
	for line, n := range a {
		if b[line] != n {
			differences = append(differences, fmt.Sprintf("%d times, want %d: %s", b[line], n, line))
		}
	}
	for line, n := range b {
		if a[line] == 0 {
			differences = append(differences, fmt.Sprintf("%d times, want none: %s", n, line))
		}
	}
	for place, n := range got.places[found] { // from outside those of rectangles are not known
		if want.places[wanted][place] < n {
			differences = append(differences, fmt.Sprintf("%d times, want %d: %s", n, want.places[wanted][place], place))
		}
	}
	slices.Sort(differences)
	const shown = 12
	if n := len(differences); n > 0 {
		t.Errorf("%d kinds of event differ:\n%s", n, strings.Join(differences[:min(n, shown)], "\n"))
		return
	}
	if racy {
		return
	}
	for i, line := range want.events[wanted] {
		if other := got.events[found][i]; other != line {
			t.Errorf("event %d is\n%s\nwant\n%s", i, other, line)
			return
		}
	}
}
