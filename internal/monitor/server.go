package monitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// Bounds on clients, which may be hostile or stop reading.
const (
	connectionsMax = 64
	headerMax      = 8 << 10 // bytes
	readTimeout    = 5 * time.Second
	writeTimeout   = 90 * time.Second // a profile may take profileMax
	idleTimeout    = 2 * time.Minute
)

// Server answers monitoring systems. They cannot change anything.
type Server struct {
	listener net.Listener
	address  string // as users write it
	http     http.Server
	pace     pace
	source   func() *stats.Snapshot
	metrics  *collector
	summary  func(*stats.Snapshot, io.Writer) error

	mu      sync.Mutex // guards what was written last
	written map[string]written
}

type written struct {
	of   *stats.Snapshot
	at   time.Time
	text []byte
}

// freshFor is how long a text is sent again, so that frequent requests cost little.
const freshFor = 500 * time.Millisecond

// Listen opens an address: HOST:PORT, :PORT or PORT on the loopback interface, or unix:PATH, which only this user can open.
// Port 0 means any free port. If a port is taken, Listen opens the next free one.
func Listen(address string) (*Server, error) {
	s := &Server{address: address, written: map[string]written{}, pace: newPace()}
	var err error
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		s.listener, err = listenAtUnixSocket(path)
	} else {
		s.listener, err = listenAtTCP(address)
	}
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	return s, nil
}

// portsMax bounds the further ports that are tried if the first is taken.
const portsMax = 100

func listenAtTCP(address string) (net.Listener, error) {
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errors.New("want HOST:PORT, PORT or unix:PATH, for example 9400")
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	number, _ := strconv.Atoi(port) // a name has no next port
	for next := number + 1; errors.Is(err, unix.EADDRINUSE) && number > 0 && next <= min(number+portsMax, math.MaxUint16); next++ {
		l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(next)))
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return nil, op.Err
	}
	return l, err
}

// listenAtUnixSocket makes a socket that other users cannot open. It replaces a socket that a killed session left.
func listenAtUnixSocket(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		if c, err := net.Dial("unix", path); err == nil {
			_ = c.Close()
			return nil, unix.EADDRINUSE
		} else if errors.Is(err, unix.ECONNREFUSED) {
			_ = os.Remove(path)
		}
	}
	old := unix.Umask(0o177) // safe: no other goroutine creates files yet
	defer unix.Umask(old)
	l, err := net.Listen("unix", path)
	var op *net.OpError
	if errors.As(err, &op) {
		return nil, op.Err
	}
	return l, err
}

// HasOtherPortThanAsked reports whether the server listens at another port than the one asked for.
func (s *Server) HasOtherPortThanAsked() bool {
	at, tcp := s.listener.Addr().(*net.TCPAddr)
	number, err := strconv.Atoi(s.address[strings.LastIndexByte(s.address, ':')+1:])
	return tcp && err == nil && number > 0 && number != at.Port
}

// Address returns the server's address, as a client writes it.
func (s *Server) Address() string {
	if s.listener.Addr().Network() == "unix" {
		return s.address
	}
	return "http://" + s.listener.Addr().String() + "/"
}

// StartAnswering begins to answer from snapshots. summary writes a snapshot as JSON.
func (s *Server) StartAnswering(source func() *stats.Snapshot, run Run, summary func(*stats.Snapshot, io.Writer) error) {
	s.source, s.metrics, s.summary = source, newCollector(source, run), summary
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", s.serveMetrics)
	mux.HandleFunc("GET /summary.json", s.serveSummary)
	mux.HandleFunc("GET /debug/pprof/opencl", s.serveProfile)
	mux.HandleFunc("GET /{$}", s.serveIndex)
	s.pace.Handler = mux
	connections := limitConnections(s.listener, connectionsMax)
	s.http = http.Server{
		Handler: s.refuseForeignRequests(&s.pace), ConnState: connections.noteConnectionState, MaxHeaderBytes: headerMax,
		ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		ErrorLog: silent,
	}
	go func() { _ = s.http.Serve(connections) }() // Close ends it
}

// Close ends all connections.
func (s *Server) Close() error {
	if s.http.Handler == nil {
		return s.listener.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := s.http.Shutdown(ctx); err == nil {
		return nil
	}
	return s.http.Close()
}

// textOfLatestSnapshot returns a text of the latest snapshot. It writes it only if there is none yet and no earlier text is fresh.
func (s *Server) textOfLatestSnapshot(form string, write func(*stats.Snapshot, io.Writer) error) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.source()
	if last := s.written[form]; last.of == now || time.Since(last.at) < freshFor {
		return last.text, nil
	}
	var b bytes.Buffer
	if err := write(now, &b); err != nil {
		return nil, err
	}
	s.written[form] = written{now, time.Now(), b.Bytes()}
	return b.Bytes(), nil
}

func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	format := negotiateFormat(r.Header)
	text, err := s.textOfLatestSnapshot(string(format), func(_ *stats.Snapshot, out io.Writer) error { return s.metrics.writeMetrics(out, format) })
	writeReply(w, string(format), text, err)
}

func (s *Server) serveSummary(w http.ResponseWriter, _ *http.Request) {
	text, err := s.textOfLatestSnapshot("summary", s.summary)
	writeReply(w, "application/json", text, err)
}

func (s *Server) serveIndex(w http.ResponseWriter, _ *http.Request) {
	const page = `<!DOCTYPE html><title>gpumemtop</title><h1>gpumemtop</h1><ul>
<li><a href="/metrics">/metrics</a>: for Prometheus
<li><a href="/summary.json">/summary.json</a>: the figures so far
<li><a href="/debug/pprof/opencl">/debug/pprof/opencl</a>: memory by call site, for go tool pprof; at=peak, seconds=N
</ul>
`
	writeReply(w, "text/html; charset=utf-8", []byte(page), nil)
}

func writeReply(w http.ResponseWriter, form string, text []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", form)
	w.Header().Set("Content-Length", strconv.Itoa(len(text))) // otherwise the text is sent in chunks, which cost more
	_, _ = w.Write(text)                                      // fails if the client has left
}
