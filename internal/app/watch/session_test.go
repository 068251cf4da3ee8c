package watch

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/remote"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
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
	list := findSessions()
	seen := map[string]bool{}
	for i := range list {
		seen[list[i].client.About.Program] = len(list[i].processes) == 1
		list[i].client.Close()
	}
	if len(list) < answering || len(seen) < answering {
		t.Errorf("%d sessions were found: %v", len(list), seen)
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
	defer server.Close()
	to, err := net.Dial("unix", path)
	if err != nil {
		panic(err)
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(to, conn); _ = to.Close() })
	both.Go(func() { _, _ = io.Copy(conn, to) })
	both.Wait()
}

func TestChoose(t *testing.T) {
	session := func(pid, child int, program string) found {
		c := &remote.Client{}
		c.About.PID, c.About.Child, c.About.Program = pid, child, program
		return found{client: c}
	}
	train, churn, again := session(10, 11, "/bin/train"), session(20, 21, "churn"), session(30, 31, "churn")
	for _, c := range []struct {
		list []found
		name string
		want int // the session's process id
		err  string
	}{
		{[]found{train}, "", 10, ""},
		{[]found{train, churn}, "train", 10, ""},
		{[]found{train, churn, again}, "31", 30, ""},
		{[]found{train, churn, again}, "20", 20, ""},
		{nil, "", 0, "no session of this user runs here"},
		{nil, "train", 0, "no session of this user runs here"},
		{[]found{train, churn}, "", 0, "several sessions run: name one by its number, as in --session 10: 10 train (pid 11), 20 churn (pid 21)"},
		{[]found{train, churn, again}, "churn", 0, "several sessions run: name one by its number, as in --session 20: "},
		{[]found{train, churn}, "tray", 0, `no session is "tray", only: 10 train (pid 11), 20 churn (pid 21)`},
	} {
		got, err := choose(c.list, c.name)
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
