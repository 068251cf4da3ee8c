package remote

import (
	"bytes"
	"encoding/gob"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/quick"
	"time"

	oldrand "math/rand"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// session is a host whose state a test sets.
type session struct {
	shown   atomic.Pointer[stats.Snapshot]
	ended   atomic.Bool
	changes chan string
	server  *Server
	path    string
}

func newSession(t *testing.T, about About) *session {
	t.Helper()
	s := &session{changes: make(chan string, 100), path: filepath.Join(t.TempDir(), "view")}
	s.shown.Store(&stats.Snapshot{Events: 1})
	host := Host{
		About: about, Snapshot: s.shown.Load,
		State: func() State {
			if s.ended.Load() {
				return State{PID: 7, State: stats.Exited, Status: 3}
			}
			return State{PID: 7}
		},
		Output: func(since uint64) ([]view.OutputLine, uint64) {
			return []view.OutputLine{{Text: "line " + string(rune('0'+since)), Stderr: true}}, since + 1
		},
		Curve:    func() *view.Curve { return &view.Curve{Requests: 5} },
		Record:   func() (string, error) { return "recording", nil },
		Measure:  func() (string, error) { return "measuring", nil },
		SetLimit: func(name, value string) (uint64, error) { s.changes <- name + "=" + value; return 5, nil },
		SetPolicy: func(name string) (uint64, error) {
			if name == "none" {
				return 0, os.ErrPermission
			}
			s.changes <- name
			return 6, nil
		},
	}
	var err error
	if s.server, err = Serve(s.path, host); err != nil {
		t.Fatal(err)
	}
	return s
}

func dial(t *testing.T, s *session) *Client {
	t.Helper()
	c, err := Dial(s.path, time.Now().Add(answerTime))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestClientsSeeTheSame: several clients see the same and may change it, each at its own place in the output; the last state is theirs.
func TestClientsSeeTheSame(t *testing.T) {
	s := newSession(t, About{Program: "./blur", Child: 7, Captures: true})
	if info, err := os.Stat(s.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has mode %v: %v", info.Mode(), err)
	}
	a, b := dial(t, s), dial(t, s)
	if a.About != (About{Version: version, PID: os.Getpid(), Program: "./blur", Child: 7, Captures: true, Curve: true}) {
		t.Errorf("about %+v", a.About)
	}
	for want := range uint64(3) {
		if got := a.AskForState(); got.Events != 1 {
			t.Errorf("snapshot %+v", got)
		}
		lines, next := a.Output(want)
		if next != want+1 || len(lines) != 1 || lines[0].Text != "line "+string(rune('0'+want)) || !lines[0].Stderr {
			t.Errorf("output %v, next %d", lines, next)
		}
	}
	first := a.AskForState()
	if a.AskForState() != first {
		t.Error("an unchanged snapshot was sent again")
	}
	s.shown.Store(&stats.Snapshot{Events: 2})
	if b.Curve() != nil || b.AskForState().Events != 2 || b.Curve().Requests != 5 {
		t.Error("no curve, or an old snapshot")
	}
	if lines, next := b.Output(0); next != 1 || lines[0].Text != "line 0" {
		t.Errorf("the other's output %v, next %d", lines, next)
	}
	if n, err := a.RequestChange("limit max_age 30"); err != nil || <-s.changes != "max_age=30" || n != 5 {
		t.Error(n, err)
	}
	if n, err := b.RequestChange("policy slab"); err != nil || <-s.changes != "slab" || n != 6 {
		t.Error(n, err)
	}
	if text, err := a.ToggleRecording(); err != nil || text != "recording" {
		t.Errorf("record: %q, %v", text, err)
	}
	if text, err := a.ToggleExperiment(); err != nil || text != "measuring" {
		t.Errorf("measure: %q, %v", text, err)
	}
	for line, want := range map[string]string{
		"policy none": "permission denied", "adopt slab": "no pool to change", "limit": "lacks a name", "look x": "bad request", "dance": "bad request",
	} {
		if _, err := a.RequestChange(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	s.ended.Store(true)
	done := make(chan struct{})
	go func() { s.server.SendLastAndClose(); close(done) }()
	time.Sleep(20 * time.Millisecond)
	a.AskForState()
	if got := a.State(); got != (State{PID: 7, State: stats.Exited, Status: 3}) {
		t.Errorf("the last state is %+v", got)
	}
	if got := a.AskForState(); got == nil || got.Events != 2 || a.State().Status != 3 {
		t.Errorf("after the end %+v, %+v", got, a.State())
	}
	<-done
	if b.AskForState(); b.State() != (State{PID: 7, State: stats.Exited, Status: -1}) {
		t.Errorf("who did not look sees %+v", b.State())
	}
	if _, err := b.RequestChange("policy slab"); err == nil {
		t.Error("a change after the end")
	}
	if _, err := Dial(s.path, time.Now().Add(answerTime)); err == nil {
		t.Error("the socket still answers")
	}
}

// TestSessionMayLetOthersLookOnly: a session may let others look only.
func TestSessionMayLetOthersLookOnly(t *testing.T) {
	s := newSession(t, About{Fixed: true})
	defer s.server.SendLastAndClose()
	if _, err := dial(t, s).RequestChange("limit max_age 3"); err == nil || len(s.changes) > 0 {
		t.Errorf("changed: %v", err)
	}
}

// TestHostileClients: what is no request ends in an error or the connection, and takes no room from others.
func TestHostileClients(t *testing.T) {
	s := newSession(t, About{})
	for _, text := range []string{strings.Repeat("x", 3*lineMax), "\n\x00\xff\n", "look 99999999999999999999999\n", "look 1"} {
		conn, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(text))
		_ = conn.Close()
	}
	var idle []net.Conn
	for range 3 * clientsMax {
		conn, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, conn)
	}
	time.Sleep(50 * time.Millisecond)
	s.server.mu.Lock()
	n := len(s.server.conns)
	s.server.mu.Unlock()
	if n > clientsMax {
		t.Errorf("%d clients", n)
	}
	for _, conn := range idle {
		_ = conn.Close()
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if c, err := Dial(s.path, time.Now().Add(answerTime)); err == nil {
			c.Close()
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	began := time.Now()
	s.server.SendLastAndClose()
	if took := time.Since(began); took > 5*farewell {
		t.Errorf("it takes %v to close", took)
	}
}

// TestWholeSnapshots: nothing of a snapshot is lost on the way.
func TestWholeSnapshots(t *testing.T) {
	s := newSession(t, About{})
	defer s.server.SendLastAndClose()
	c := dial(t, s)
	for range 20 {
		value, ok := quick.Value(reflect.TypeFor[stats.Snapshot](), oldrand.New(oldrand.NewSource(rand.Int64())))
		if !ok {
			t.Fatal("no snapshot")
		}
		want := value.Interface().(stats.Snapshot)
		s.shown.Store(&want)
		if diff := cmp.Diff(&want, c.AskForState(), cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); diff != "" {
			t.Fatal(diff)
		}
	}
}

// TestOtherVersions are refused in words.
func TestOtherVersions(t *testing.T) {
	s := newSession(t, About{})
	defer s.server.SendLastAndClose()
	other := filepath.Join(t.TempDir(), "view")
	listener, err := net.Listen("unix", other)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the test ends
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_ = gob.NewEncoder(conn).Encode(About{Version: version + 1, PID: 4711})
		}
	}()
	if _, err := Dial(other, time.Now().Add(answerTime)); err == nil || !strings.Contains(err.Error(), "the session (pid 4711) is of another version") {
		t.Error(err)
	}
	if _, err := Serve(s.path, Host{}); err == nil {
		t.Error("two servers at one path")
	}
}

// TestAnswersAreBounded: what says more than a session does is left.
func TestAnswersAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "view")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the test ends
	for _, program := range []int{aboutMax / 2, 2 * aboutMax} {
		go func() {
			if conn, err := listener.Accept(); err == nil {
				_ = gob.NewEncoder(conn).Encode(About{Version: version, Program: strings.Repeat("x", program)})
			}
		}()
		c, err := Dial(path, time.Now().Add(answerTime))
		if (err == nil) != (program < aboutMax) {
			t.Errorf("a name of %d bytes: %v", program, err)
		}
		if err == nil {
			c.Close()
		}
	}
}

// TestForgedRows: answers of few bytes that would take much memory are not read. Any session's is.
func TestForgedRows(t *testing.T) {
	racetest.Slow(t)
	many := make([]stats.Tag, rowsMax)
	for name, c := range map[string]struct {
		answer Answer
		ok     bool
	}{
		"call sites": {Answer{Snapshot: &stats.Snapshot{Tags: many[:100_001]}}, true},
		"rows of all kinds": {Answer{Snapshot: &stats.Snapshot{
			Tags: []stats.Tag{{ID: 1, Name: "a", Stack: []string{"a"}, Creates: 7}}, PostMortems: []stats.PostMortem{{PID: 7, Call: "clCreateBuffer", Given: 8}},
			Processes: []stats.Process{{PID: 7, Program: "app", Tags: []stats.Tag{{ID: 1, Name: "a"}}, Totals: stats.Totals{Hits: 9}}, {Number: 2}},
		}}, true},
		"too many call sites":       {Answer{Snapshot: &stats.Snapshot{Tags: many, Processes: make([]stats.Process, 1)}}, false},
		"call sites in a process":   {Answer{Snapshot: &stats.Snapshot{Tags: many[1:], Processes: []stats.Process{{Tags: many[:1]}}}}, false},
		"processes":                 {Answer{Snapshot: &stats.Snapshot{Processes: make([]stats.Process, rowsMax+1)}}, false},
		"lines without end":         {Answer{Lines: make([]view.OutputLine, zerosMax+1)}, false},
		"a text longer than answer": {Answer{Text: strings.Repeat("x", answerMax)}, false},
	} {
		var said bytes.Buffer
		sends := gob.NewEncoder(&said)
		if err := errors.Join(sends.Encode(About{Program: "app"}), sends.Encode(c.answer)); err != nil {
			t.Fatal(err)
		}
		client := newClient(&said)
		var got Answer
		err := client.receiveAnswer(&client.About, aboutMax)
		if err != nil || client.About.Program != "app" {
			t.Errorf("%s: %v", name, err)
		}
		if err = client.receiveAnswer(&got, answerMax); (err == nil) != c.ok || !c.ok && !errors.Is(err, errTooMuch) {
			t.Errorf("%s: %v", name, err)
		}
		if c.ok && !reflect.DeepEqual(got, c.answer) {
			t.Errorf("%s: another came", name)
		}
	}
}

// largest returns the size of the largest struct that an answer has many of, other than rows.
func largest(of reflect.Type, seen map[reflect.Type]bool) (most uintptr) {
	if seen[of] {
		return 0
	}
	seen[of] = true
	switch of.Kind() {
	case reflect.Struct:
		for i := range of.NumField() {
			most = max(most, largest(of.Field(i).Type, seen))
		}
	case reflect.Slice, reflect.Map, reflect.Pointer:
		switch of.Elem() {
		case reflect.TypeFor[stats.Process](), reflect.TypeFor[stats.PostMortem](), reflect.TypeFor[stats.Tag](), reflect.TypeFor[stats.Snapshot]():
		default:
			most = of.Elem().Size()
		}
		most = max(most, largest(of.Elem(), seen))
	case reflect.Array:
		most = largest(of.Elem(), seen)
	}
	return most
}

// TestMemoryOfAnswers: what an answer may have takes at most 1 GiB.
func TestMemoryOfAnswers(t *testing.T) {
	rest := largest(reflect.TypeFor[Answer](), map[reflect.Type]bool{})
	if all := 3*answerMax + rowsMax*reflect.TypeFor[stats.Process]().Size() + zerosMax*rest; all > 1<<30 {
		t.Errorf("answers take up to %d bytes, with structs of up to %d", all, rest)
	}
}

func FuzzRequest(f *testing.F) {
	for _, line := range []string{"look 0", "look 12 curve", "limit max_age 30", "policy slab", "adopt slab max_part=1M", "", "look", "look -1 x", "limit  "} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		r, err := parseRequest(line)
		if err == nil && r.verb != "look" && r.verb != "record" && r.verb != "measure" && r.name == "" {
			t.Errorf("%q is a request without a name", line)
		}
	})
}

// FuzzAnswer: whatever a session says, a client fails or shows it.
func FuzzAnswer(f *testing.F) {
	for _, a := range []Answer{
		{Final: true, Error: "no"},
		{Snapshot: &stats.Snapshot{Events: 1, Tags: make([]stats.Tag, 3), Processes: []stats.Process{{PID: 7}}}, Curve: &view.Curve{Requests: 5}},
		{Lines: []view.OutputLine{{Text: "line", Stderr: true}}, Next: 4, Sequence: 9, Text: "recording"},
	} {
		var said bytes.Buffer
		sends := gob.NewEncoder(&said)
		if err := errors.Join(sends.Encode(About{Version: version, Program: "app"}), sends.Encode(a), sends.Encode(a)); err != nil {
			f.Fatal(err)
		}
		f.Add(said.Bytes())
	}
	f.Fuzz(func(_ *testing.T, said []byte) {
		c := newClient(bytes.NewReader(said))
		err := c.receiveAnswer(&c.About, aboutMax)
		for err == nil {
			var a Answer
			if err = c.receiveAnswer(&a, answerMax); err == nil && a.Snapshot != nil {
				for i := range a.Snapshot.Tags {
					_ = a.Snapshot.Tags[i].Trend.SumWith(a.Snapshot.Tags[0].Trend).Points()
				}
			}
		}
	})
}
