package watch

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/remote"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// One session does not wait for another: here, none accepts a connection before all of them are asked. Some end then.
func TestFindSessionsSideBySide(t *testing.T) {
	place := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", place)
	const answering, silent = 4, 4
	var asked sync.WaitGroup
	asked.Add(answering + silent)
	for i := range answering + silent {
		folder := filepath.Join(place, "gpumemtop-"+strconv.Itoa(os.Getpid())+"-"+strconv.Itoa(i))
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, "view")
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := listener.Accept()
			asked.Done()
			asked.Wait()
			if err != nil {
				return
			}
			_ = listener.Close()
			if i >= answering {
				_ = conn.Close()
				return
			}
			relay(conn, filepath.Join(folder, "server"), i)
		}()
	}
	list, others := findSessions()
	if slices.Contains(others, strconv.Itoa(os.Getpid())) {
		t.Errorf("ended sessions do not answer: %v", others)
	}
	seen := map[string]bool{}
	for i := range list {
		seen[list[i].client.About.Program] = len(list[i].processes) == 1
		list[i].client.Close()
	}
	if len(list) < answering || len(seen) < answering {
		t.Errorf("%d sessions were found: %v", len(list), seen)
	}
}

// TestSilentSessions: many that are stopped take the time of one, and are named.
func TestSilentSessions(t *testing.T) {
	place := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", place)
	const silent = 8
	var want []string
	for i := range silent {
		pid := strconv.Itoa(1<<30 + i)
		want = append(want, pid)
		folder := filepath.Join(place, "gpumemtop-"+pid+"-ab")
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("unix", filepath.Join(folder, "view"))
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close() //nolint:errcheck // nothing was written
	}
	began := time.Now()
	list, pids := findSessions() // and what else runs on this machine
	for i := range list {
		list[i].client.Close()
	}
	if took := time.Since(began); took > 2*findTime { // one after the other they take eight times as long
		t.Errorf("%d sessions took %v", silent, took)
	}
	for _, pid := range want {
		if !slices.Contains(pids, pid) {
			t.Errorf("%s is not among %v", pid, pids)
		}
	}
}

// relay joins a connection with a session's server.
func relay(conn net.Conn, path string, number int) {
	snapshot := &stats.Snapshot{Processes: []stats.Process{{PID: number}}}
	server, err := remote.Serve(path, remote.Host{
		About: remote.About{Program: strconv.Itoa(number)}, Snapshot: func() *stats.Snapshot { return snapshot },
		State: func() remote.State { return remote.State{} },
	})
	if err != nil {
		panic(err)
	}
	defer server.SendLastAndClose()
	to, err := net.Dial("unix", path)
	if err != nil {
		panic(err)
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(to, conn); _ = to.Close() })
	both.Go(func() { _, _ = io.Copy(conn, to) })
	both.Wait()
}

// The session's process has ended: a new process with its id is not the session's.
func TestProcessIDsComeAgain(t *testing.T) {
	f := found{client: &remote.Client{}, processes: []stats.Process{{PID: 7, State: stats.Exited}, {PID: 8, Place: wire.Place{Born: "1"}}}}
	for _, c := range []struct {
		pid  int
		born string
		runs bool
	}{{7, "", false}, {8, "1", true}, {8, "2", false}} {
		if f.runsPID(c.pid, c.born) != c.runs || !f.watchesPID(c.pid) {
			t.Errorf("%d, begun at %q", c.pid, c.born)
		}
	}
}

func TestChoose(t *testing.T) {
	session := func(pid, child int, program string) found {
		c := &remote.Client{}
		c.About.PID, c.About.Child, c.About.Program = pid, child, program
		return found{client: c}
	}
	train, churn, again := session(10, 11, "/bin/train"), session(20, 21, "churn"), session(30, 31, "churn")
	for _, c := range []struct {
		list   []found
		silent []string
		name   string
		want   int // the session's process id
		err    string
	}{
		{[]found{train}, nil, "", 10, ""},
		{[]found{train, churn}, nil, "train", 10, ""},
		{[]found{train, churn, again}, nil, "31", 30, ""},
		{[]found{train, churn, again}, nil, "20", 20, ""},
		{nil, nil, "", 0, "no session of this user runs here"},
		{nil, nil, "train", 0, "no session of this user runs here"},
		{[]found{train, churn}, nil, "", 0, "several sessions run: name one by its number, as in --session 10: 10 train (pid 11), 20 churn (pid 21)"},
		{[]found{train, churn, again}, nil, "churn", 0, "several sessions run: name one by its number, as in --session 20: "},
		{[]found{train, churn}, nil, "tray", 0, `no session is "tray", only: 10 train (pid 11), 20 churn (pid 21)`},
		{nil, []string{"12", "13"}, "train", 0, "no session can be shown (no answer within 5s, or another version: pid 12, 13)"},
		{[]found{train}, []string{"12"}, "12", 0, `no session is "12", only: 10 train (pid 11) (no answer within 5s, or another version: pid 12)`},
		{[]found{train}, []string{"12"}, "", 10, ""},
	} {
		got, err := chooseSession(c.list, c.silent, c.name)
		switch {
		case c.err != "":
			if err == nil || !strings.HasPrefix(err.Error(), c.err) {
				t.Errorf("%q: %v, want %s", c.name, err, c.err)
			}
		case err != nil || got.client.About.PID != c.want:
			t.Errorf("%q: %+v, %v, want %d", c.name, got, err, c.want)
		}
	}
}
