package monitor

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// silent drops the HTTP library's messages about clients, because the terminal is the program's.
var silent = log.New(io.Discard, "", 0)

// limited bounds the number of connections. To accept another, it closes the connection that has been idle longest.
type limited struct {
	net.Listener
	most int

	mu    sync.Mutex
	conns map[*counted]state
}

// state is whether a connection is active, and since when.
type state struct {
	active bool // a request is being read or answered
	since  time.Time
}

type counted struct {
	net.Conn
	all *limited
}

func limitConnections(l net.Listener, most int) *limited {
	return &limited{Listener: l, most: most, conns: map[*counted]state{}}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &counted{conn, l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) >= l.most {
		last := l.connectionToClose()
		delete(l.conns, last)
		_ = last.Conn.Close()
	}
	l.conns[c] = state{since: time.Now()}
	return c, nil
}

// connectionToClose returns the connection to close: an idle connection before a busy one, then the one in this state for longest. While
// some host has several connections, it spares the hosts that have a single one.
func (l *limited) connectionToClose() *counted {
	hosts := map[string]int{}
	for c := range l.conns {
		hosts[c.clientHost()]++
	}
	var found *counted
	var best state
	for c, s := range l.conns {
		only := hosts[c.clientHost()] == 1 && len(hosts) < len(l.conns)
		if !only && (found == nil || best.active && !s.active || best.active == s.active && s.since.Before(best.since)) {
			found, best = c, s
		}
	}
	return found
}

// noteConnectionState notes a connection's state, as http.Server.ConnState.
func (l *limited) noteConnectionState(conn net.Conn, now http.ConnState) {
	c, ours := conn.(*counted)
	if !ours || now != http.StateActive && now != http.StateIdle {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, kept := l.conns[c]; kept {
		l.conns[c] = state{now == http.StateActive, time.Now()}
	}
}

func (c *counted) clientHost() string {
	host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	return host
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.all.mu.Lock()
	delete(c.all.conns, c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}
