// Package remote shows the dashboard of a session on other terminals of the same user, over a socket in the session's
// private folder. A client asks in lines of text; each gets one answer, in Go's gob encoding.
package remote

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// About is the first message of a server.
type About struct {
	Version  int
	PID      int    // of gpumemtop
	Program  string // the watched program; of several the first
	Child    int    // its process id; 0: there is no single one
	Attached bool   // the programs were not started by the session
	Fixed    bool   // nothing can be changed
	Captures bool   // Output answers
	Curve    bool   // Curve answers
}

// version changes when clients of another version would not understand the messages.
const version = 4

// State is the state of the program.
type State struct {
	PID    int
	State  stats.State
	Status int // exit status, or signal number when Signaled; -1 when unknown
}

// Answer is the answer to one line.
type Answer struct {
	Error    string          // why the request was refused
	Text     string          // describes what was done
	Sequence uint64          // number of the requested change
	Snapshot *stats.Snapshot // the latest; nil: as before
	State    State
	Lines    []view.OutputLine
	Next     uint64
	Curve    *view.Curve
	Final    bool // no answer follows
}

// Host has the functions of the session that a server shows. All but About and Snapshot may be nil. Any goroutine may call them.
type Host struct {
	About     About
	Snapshot  func() *stats.Snapshot
	State     func() State
	Output    func(since uint64) ([]view.OutputLine, uint64)
	Curve     func() *view.Curve
	SetLimit  func(name, value string) (sequence uint64, err error)
	SetPolicy func(name string) (sequence uint64, err error)
	Adopt     func(name string) (sequence uint64, err error)
	Record    func() (text string, err error)
	Measure   func() (text string, err error)
}

// Server answers clients.
type Server struct {
	host     Host
	listener *net.UnixListener
	clients  sync.WaitGroup // goroutines of clients, and accept
	closing  chan struct{}

	mu    sync.Mutex
	conns map[*net.UnixConn]bool
}

const (
	clientsMax   = 16
	lineMax      = 4096                   // bytes of a request
	writeTimeout = 5 * time.Second        // for an answer that the client does not read
	farewell     = 300 * time.Millisecond // time for clients to ask once more at the end
)

// Serve answers at a path, which must not exist. Only this user and root may connect.
func Serve(path string, host Host) (*Server, error) {
	host.About.Version, host.About.PID, host.About.Curve = version, os.Getpid(), host.Curve != nil
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open the socket for other terminals: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil { // until then its folder keeps other users out
		return nil, errors.Join(err, listener.Close())
	}
	s := &Server{host: host, listener: listener, closing: make(chan struct{}), conns: map[*net.UnixConn]bool{}}
	s.clients.Go(s.acceptClients)
	return s, nil
}

func (s *Server) acceptClients() {
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // mostly because too many files are open
			continue
		}
		if !s.mayConnectionStay(conn) {
			_ = conn.Close()
			continue
		}
		s.clients.Go(func() {
			s.serveClient(conn)
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
			_ = conn.Close()
		})
	}
}

// mayConnectionStay reports whether a connection may stay.
func (s *Server) mayConnectionStay(conn *net.UnixConn) bool {
	uid, known := userOfPeer(conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !known || uid != 0 && int(uid) != os.Geteuid() || len(s.conns) >= clientsMax {
		return false
	}
	s.conns[conn] = true
	return true
}

// userOfPeer returns the user at the other end.
func userOfPeer(conn *net.UnixConn) (uid uint32, known bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		if who, wrong := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); wrong == nil {
			uid, known = who.Uid, true
		}
	})
	return uid, known && err == nil
}

// serveClient answers until the client leaves or the session ends.
func (s *Server) serveClient(conn *net.UnixConn) {
	answers := gob.NewEncoder(conn)
	lines := bufio.NewReaderSize(conn, lineMax)
	send := func(what any) bool {
		return conn.SetWriteDeadline(time.Now().Add(writeTimeout)) == nil && answers.Encode(what) == nil
	}
	if !send(&s.host.About) {
		return
	}
	var last *stats.Snapshot
	for {
		select {
		case <-s.closing: // Close did not see this connection
			_ = conn.SetReadDeadline(time.Now().Add(farewell))
		default:
		}
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return
		}
		answer := s.answerRequest(strings.TrimSuffix(string(line), "\n"))
		if answer.Snapshot == last {
			answer.Snapshot = nil
		} else if answer.Snapshot != nil {
			last = answer.Snapshot
		}
		if !send(&answer) || answer.Final {
			return
		}
	}
}

// request is a line of a client.
type request struct {
	verb, name, value string
	since             uint64
	curve             bool
}

// parseRequest reads "look SINCE CURVE", "limit NAME VALUE", "policy NAME", "adopt NAME", "record" or "measure".
func parseRequest(line string) (request, error) {
	verb, rest, _ := strings.Cut(line, " ")
	r := request{verb: verb, name: rest}
	switch verb {
	case "look":
		since, curve, _ := strings.Cut(rest, " ")
		var err error
		r.since, err = strconv.ParseUint(since, 10, 64)
		r.curve = curve == "curve"
		if err != nil || curve != "" && !r.curve {
			return r, fmt.Errorf("bad request %q", line)
		}
		return r, nil
	case "limit":
		r.name, r.value, _ = strings.Cut(rest, " ")
	case "policy", "adopt":
	case "record", "measure":
		return r, nil
	default:
		return r, fmt.Errorf("bad request %q", line)
	}
	if r.name == "" {
		return r, fmt.Errorf("bad request %q: it lacks a name", line)
	}
	return r, nil
}

func (s *Server) answerRequest(line string) (a Answer) {
	select {
	case <-s.closing:
		a.Final = true
	default:
	}
	r, err := parseRequest(line)
	switch {
	case err != nil:
	case r.verb == "look":
		s.answerState(&r, &a)
	case s.host.About.Fixed:
		err = errors.New("the session does not let other terminals change anything")
	case r.verb == "limit" && s.host.SetLimit != nil:
		a.Sequence, err = s.host.SetLimit(r.name, r.value)
	case r.verb == "policy" && s.host.SetPolicy != nil:
		a.Sequence, err = s.host.SetPolicy(r.name)
	case r.verb == "adopt" && s.host.Adopt != nil:
		a.Sequence, err = s.host.Adopt(r.name)
	case r.verb == "record" && s.host.Record != nil:
		a.Text, err = s.host.Record()
	case r.verb == "measure" && s.host.Measure != nil:
		a.Text, err = s.host.Measure()
	case r.verb == "record":
		err = errors.New("this session records everything, or nothing, from its start: see -o")
	default:
		err = errors.New("this session has no pool to change")
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// answerState fills in the present state.
func (s *Server) answerState(r *request, a *Answer) {
	a.Snapshot, a.Next = s.host.Snapshot(), r.since
	if s.host.State != nil {
		a.State = s.host.State()
	}
	if s.host.Output != nil {
		a.Lines, a.Next = s.host.Output(r.since)
	}
	if r.curve && s.host.Curve != nil {
		a.Curve = s.host.Curve()
	}
}

// SendLastAndClose gives clients the last state, and ends the server. It may be called on nil.
func (s *Server) SendLastAndClose() {
	if s == nil {
		return
	}
	close(s.closing)
	_ = s.listener.Close()
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.SetReadDeadline(time.Now().Add(farewell))
	}
	s.mu.Unlock()
	s.clients.Wait()
}
